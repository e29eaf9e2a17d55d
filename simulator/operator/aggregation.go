package operator

import (
	"errors"
	"time"

	"github.com/stategauge/stategauge/simulator/workload"
)

// aggregation plays groupBy with a count and a sum. Rows arrive aggregated by
// key; each key is read, merged and written, and at the end the whole store is
// scanned for windows that the watermark has closed.
type aggregation struct {
	mode      Mode
	windowMs  int64
	watermark bool
	bytes     int // of a value, version byte aside
}

// aggregateBytes is a value of two aggregates: null bits, a count and a sum.
const aggregateBytes = 3 * word

// windowedKeyBytes is a key with its window: the window's place, the key, and
// the window's own null bits, start and end.
const (
	windowedKeyBytes = prefix + 5*word
	windowEndAt      = windowedKeyBytes - word
	windowStartAt    = windowEndAt - word
	windowedKeyAt    = prefix + word
)

func (o *Operator) chooseAggregation() error {
	s := o.spec
	if s.Mode == Append && (s.Window == 0 || !s.Watermark) {
		return errors.New("output mode append needs a window and a watermark")
	}
	if s.Window < 0 || s.Window > 0 && s.Window < time.Millisecond {
		return errors.New("window is shorter than a millisecond")
	}
	o.readWrite = true
	o.plan = &aggregation{
		mode: s.Mode, windowMs: s.Window.Milliseconds(), watermark: s.Watermark,
		bytes: max(aggregateBytes, s.ValueBytes),
	}
	return nil
}

func (a *aggregation) run(x *task) error {
	x.groups.fill(x.Rows, a.windowMs)
	x.ran(int64(len(x.Rows)))
	for i := range x.groups.list {
		if err := a.merge(x, &x.groups.list[i]); err != nil {
			return err
		}
	}
	if a.mode == Complete {
		return x.in(other, a.emitAll)
	}
	if a.windowMs == 0 || !a.watermark {
		return nil
	}
	return x.in(removing, a.evict)
}

// merge adds a group to state. The key is read before it is known to be late:
// the restoring half of the operator does not look at the watermark.
func (a *aggregation) merge(x *task, g *group) error {
	x.key = a.appendKey(x.key[:0], g)
	old, found, err := x.get(0, 0, x.key)
	if err != nil {
		return err
	}
	count, sum := uint64(g.count), uint64(g.maxMs)
	if found && len(old) >= prefix+2*word {
		count += wordAt(old, prefix)
		sum += wordAt(old, prefix+word)
	}
	if a.mode != Complete && a.windowMs > 0 && x.late(g.startMs+a.windowMs) {
		x.r.Dropped++
		return nil
	}
	x.value = pad(appendRow(x.value[:0], count, sum), a.bytes, g.key)
	if err := x.put(0, 0, x.key, x.value); err != nil {
		return err
	}
	x.r.Updated++
	if a.mode == Update {
		x.emit(a.row(g.key, g.startMs, g.maxMs))
	}
	return nil
}

func (a *aggregation) appendKey(b []byte, g *group) []byte {
	if a.windowMs == 0 {
		return appendRow(b, g.key)
	}
	const place = (windowedKeyBytes-3*word-1)<<32 | 3*word
	b = appendRow(b, place, g.key)
	b = appendWord(b, 0)
	b = appendWord(b, micros(g.startMs))
	return appendWord(b, micros(g.startMs+a.windowMs))
}

// row is what is handed on for a key: its event time is the last moment of its
// window or, where there is none, ms.
func (a *aggregation) row(key uint64, startMs, ms int64) workload.Row {
	if a.windowMs > 0 {
		ms = startMs + a.windowMs - 1
	}
	return workload.Row{Key: key, EventMs: ms, Bytes: int32(words(a.bytes))}
}

// evict reads all of the state to find the windows that are closed.
func (a *aggregation) evict(x *task) error {
	x.doomed.reset()
	err := x.scan(0, 0, nil, nil, func(key, _ []byte) bool {
		if len(key) == windowedKeyBytes && x.gone(millisAt(key, windowEndAt)) {
			x.doomed.add(key)
		}
		return true
	})
	if err != nil {
		return err
	}
	for i := range x.doomed.len() {
		key := x.doomed.at(i)
		if err := x.remove(0, 0, key); err != nil {
			return err
		}
		x.r.Removed++
		if a.mode == Append {
			x.ran(1)
			x.emit(a.row(wordAt(key, windowedKeyAt), millisAt(key, windowStartAt), 0))
		}
	}
	return nil
}

// emitAll hands on the whole state.
func (a *aggregation) emitAll(x *task) error {
	return x.scan(0, 0, nil, nil, func(key, _ []byte) bool {
		switch {
		case len(key) == windowedKeyBytes:
			x.emit(a.row(wordAt(key, windowedKeyAt), millisAt(key, windowStartAt), 0))
		case len(key) >= prefix+word:
			x.emit(a.row(wordAt(key, prefix), 0, x.NowMs))
		}
		x.ran(1)
		return true
	})
}
