package operator

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/stategauge/stategauge/simulator/workload"
)

// session plays groupBy(session_window): a key has any number of sessions, each
// under the key and its start. Rows of a key are merged with the sessions in
// state that they touch, which a prefix scan finds; the whole store is scanned
// for those that the watermark has closed.
type session struct {
	mode  Mode
	gapMs int64
	bytes int // of a value, version byte aside
}

// span is a session.
type span struct {
	startMs, endMs int64 // end: the last event time plus the gap
	count          uint64
	changed        bool // differs from what is in state
}

// spans is the sessions of the key at hand: those in state and those of the batch.
type spans struct {
	visit func(key, value []byte) bool
	list  []span
	old   []int64 // starts of those in state
}

// A session's key: the length of the key, the key, then the start. Its value
// begins with the end and the count.
const (
	sessionPrefixBytes = 1 + 4 + 2*word
	sessionStartAt     = sessionPrefixBytes + word
	sessionKeyBytes    = sessionStartAt + word
	sessionKeyAt       = 1 + 4 + word
	sessionEndAt       = prefix
	sessionCountAt     = prefix + word
	sessionBytes       = 8 * word // with the window as a struct and two aggregates
)

func (o *Operator) chooseSession() error {
	s := o.spec
	if s.Gap < time.Millisecond {
		return errors.New("gap is shorter than a millisecond")
	}
	if s.Mode == Update {
		return errors.New("output mode update is not possible")
	}
	if s.Mode == Append && !s.Watermark {
		return errors.New("output mode append needs a watermark")
	}
	o.readWrite = true
	o.plan = &session{mode: s.Mode, gapMs: s.Gap.Milliseconds(), bytes: max(sessionBytes, s.ValueBytes)}
	return nil
}

func (s *session) run(x *task) error {
	rows := s.timely(x)
	x.groups.fill(rows, 0)
	x.ran(int64(len(rows)))
	for i := range x.groups.list {
		if err := s.merge(x, rows, &x.groups.list[i]); err != nil {
			return err
		}
	}
	if s.mode == Complete {
		return x.in(other, s.emitAll)
	}
	return x.in(removing, s.evict)
}

// timely drops the rows whose session alone would lie behind the watermark.
func (s *session) timely(x *task) []workload.Row {
	if s.mode == Complete {
		return x.Rows
	}
	x.kept = x.kept[:0]
	for i := range x.Rows {
		if x.late(x.Rows[i].EventMs + s.gapMs) {
			x.r.Dropped++
			continue
		}
		x.kept = append(x.kept, x.Rows[i])
	}
	return x.kept
}

// merge brings the rows of a key together with its sessions in state.
func (s *session) merge(x *task, rows []workload.Row, g *group) error {
	sp := &x.spans
	sp.list, sp.old = sp.list[:0], sp.old[:0]
	x.key = appendSessionPrefix(x.key[:0], g.key)
	x.key2 = after(x.key2, x.key)
	if err := x.scan(0, 0, x.key, x.key2, sp.visit); err != nil {
		return err
	}
	for i := g.first; i >= 0; i = x.groups.next[i] {
		sp.list = append(sp.list, span{startMs: rows[i].EventMs, endMs: rows[i].EventMs + s.gapMs, count: 1, changed: true})
	}
	sp.join()
	if err := s.write(x, g.key); err != nil {
		return err
	}
	return s.removeMerged(x, g.key)
}

// add takes a session that is in state.
func (sp *spans) add(key, value []byte) bool {
	if len(key) != sessionKeyBytes || len(value) < sessionCountAt+word {
		return true
	}
	start := millisAt(key, sessionStartAt)
	sp.list = append(sp.list, span{
		startMs: start, endMs: millisAt(value, sessionEndAt), count: wordAt(value, sessionCountAt),
	})
	sp.old = append(sp.old, start)
	return true
}

// join merges what overlaps. Touching is not overlapping: a row at the very end
// of a session begins a new one.
func (sp *spans) join() {
	slices.SortFunc(sp.list, func(a, b span) int { return cmp.Compare(a.startMs, b.startMs) })
	out := sp.list[:0]
	for _, next := range sp.list {
		if n := len(out); n > 0 && next.startMs < out[n-1].endMs {
			last := &out[n-1]
			last.endMs = max(last.endMs, next.endMs)
			last.count += next.count
			last.changed = true
			continue
		}
		out = append(out, next)
	}
	sp.list = out
}

func (s *session) write(x *task, key uint64) error {
	for i := range x.spans.list {
		at := &x.spans.list[i]
		if !at.changed {
			continue
		}
		x.key = appendSessionKey(x.key[:0], key, at.startMs)
		x.value = appendRow(x.value[:0], micros(at.endMs), at.count)
		x.value = pad(x.value, s.bytes, key)
		if err := x.put(0, 0, x.key, x.value); err != nil {
			return err
		}
		x.r.Updated++
	}
	return nil
}

// removeMerged removes the sessions in state that became part of another. They
// are not counted as rows removed.
func (s *session) removeMerged(x *task, key uint64) error {
	for _, start := range x.spans.old {
		if x.spans.startsAt(start) {
			continue
		}
		x.key = appendSessionKey(x.key[:0], key, start)
		if err := x.remove(0, 0, x.key); err != nil {
			return err
		}
	}
	return nil
}

func (sp *spans) startsAt(ms int64) bool {
	for i := range sp.list {
		if sp.list[i].startMs == ms {
			return true
		}
	}
	return false
}

func (s *session) evict(x *task) error {
	x.doomed.reset()
	err := x.scan(0, 0, nil, nil, func(key, value []byte) bool {
		if len(key) == sessionKeyBytes && len(value) >= sessionCountAt && x.gone(millisAt(value, sessionEndAt)) {
			x.doomed.add(key)
		}
		return true
	})
	if err != nil {
		return err
	}
	for i := range x.doomed.len() {
		key := x.doomed.at(i)
		x.ran(1)
		x.emit(s.row(key))
	}
	return x.removeDoomed()
}

func (s *session) emitAll(x *task) error {
	return x.scan(0, 0, nil, nil, func(key, _ []byte) bool {
		if len(key) == sessionKeyBytes {
			x.ran(1)
			x.emit(s.row(key))
		}
		return true
	})
}

// row is what is handed on for a session.
func (s *session) row(key []byte) workload.Row {
	return workload.Row{
		Key: wordAt(key, sessionKeyAt), EventMs: millisAt(key, sessionStartAt) + s.gapMs - 1, Bytes: int32(words(s.bytes)),
	}
}

func appendSessionPrefix(b []byte, key uint64) []byte {
	b = append(b, 0, 0, 0, 0, 2*word)
	b = appendWord(b, 0)
	return appendWord(b, key)
}

func appendSessionKey(b []byte, key uint64, startMs int64) []byte {
	b = appendWord(appendSessionPrefix(b, key), 0)
	return appendWord(b, micros(startMs))
}
