package history

import (
	"fmt"
	"math"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// minFreeBytes is what Commit leaves on the disk, for compactions and for
// deleting what is old. Reopen is content with less, so that a history that has
// filled its disk can be opened to delete.
const (
	minFreeBytes       = 64 << 20
	minFreeReopenBytes = 24 << 20
)

// Commit makes the steps durable, all of them or none, with one write to the
// disk. Their numbers go on from NextSeq. It must be called by one goroutine at a
// time. After an error nothing else of the steps was written, with one exception:
// where the disk failed (ErrFailed), they may or may not be there once Reopen has
// succeeded, and NextSeq then tells.
func (s *Store) Commit(steps []*Step) error {
	if len(steps) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.o.Now()
	err := s.commit(steps)
	s.account(err)
	if err != nil {
		s.o.Metrics.CommitErrors.Inc()
		return err
	}
	s.o.Metrics.CommitSeconds.Observe(s.o.Now().Sub(start).Seconds())
	s.count(steps)
	s.observe(start)
	return nil
}

func (s *Store) commit(steps []*Step) error {
	if err := s.admit(steps); err != nil {
		return fmt.Errorf("history %s: commit: %w", s.o.Dir, err)
	}
	if err := s.write("commit", pebble.Sync, func(b *pebble.Batch) error {
		s.known.Lock()
		defer s.known.Unlock()
		w := writer{s: s, b: b}
		for _, step := range steps {
			if err := w.step(step); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	s.next += uint64(len(steps))
	if len(s.tally) > maxTallies {
		return s.flushTallies()
	}
	return nil
}

// admit refuses what must not be written.
func (s *Store) admit(steps []*Step) error {
	for i, step := range steps {
		if want := s.next + uint64(i); step.Seq != want {
			return fmt.Errorf("%w: %d, want %d", ErrSequence, step.Seq, want)
		}
		if len(step.Records) > maxRecords {
			return fmt.Errorf("step %d holds %d records, more than %d", step.Seq, len(step.Records), maxRecords)
		}
		for _, state := range step.States {
			if strings.IndexByte(state.Kind, 0) >= 0 {
				return fmt.Errorf("kind of state %q has a zero byte", state.Kind)
			}
		}
	}
	return s.room(minFreeBytes)
}

// room keeps Pebble from meeting a full disk, which it does not survive.
func (s *Store) room(least uint64) error {
	usage, err := s.o.FS.GetDiskUsage(s.o.Dir)
	if err != nil {
		return nil //nolint:nilerr // where the system does not say, writing will
	}
	if usage.AvailBytes < least {
		return fmt.Errorf("%w: %d MiB left", ErrDiskFull, usage.AvailBytes>>20)
	}
	return nil
}

// writer turns steps into the keys and values of a batch.
type writer struct {
	s       *Store
	b       *pebble.Batch
	key     []byte
	value   []byte
	entries []entry
	err     error // the first
}

func (w *writer) set(key, value []byte) {
	if err := w.b.Set(key, value, nil); w.err == nil {
		w.err = err
	}
}

func (w *writer) step(step *Step) error {
	w.entries = w.entries[:0]
	for i := range step.Records {
		w.record(step.Seq, uint32(i), &step.Records[i])
	}
	w.value = appendEntries(w.value[:0], w.entries)
	w.set(logKey(step.Seq), w.value)
	for _, o := range step.Offsets {
		w.set(offsetKey(o.Topic, o.Partition), appendUint(nil, uint64(o.Next)))
	}
	w.states(step)
	for _, v := range step.Words {
		w.set(wordKey(v.ID), []byte(v.Text))
	}
	w.s.hold.add(step.Seq, w.entries)
	return w.err
}

func (w *writer) states(step *Step) {
	for i := range step.States {
		v := &step.States[i]
		w.value = append(appendUint(w.value[:0], v.Seq), v.Body...)
		w.set(stateKey(v.Kind, v.Key), w.value)
	}
	for _, v := range step.Dropped {
		if err := w.b.Delete(stateKey(v.Kind, v.Key), nil); w.err == nil {
			w.err = err
		}
	}
}

func (w *writer) record(seq uint64, position uint32, r *Record) {
	number, isNew := w.s.book.number(r.Query, r.Lineage)
	if isNew {
		w.set(queryKey(number), appendQuery(nil, string(r.Query), r.Lineage))
	}
	k := rawKey{query: number, atMs: r.AtMs, seq: seq, position: position}
	w.key = k.append(w.key[:0])
	w.set(w.key, r.Body)
	w.entries = append(w.entries, entry{number, r.AtMs})
	w.s.book.seen(number, k.bucket())
	w.s.tally.add(k.bucket(), number)
}

// Trim notes that the saved states cover all steps up to this one: Replay will
// not be asked for them again. Their records stay. The states must have been
// committed before.
func (s *Store) Trim(upTo uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	upTo = min(upTo, s.next-1)
	if upTo == 0 || upTo == math.MaxUint64 {
		return nil
	}
	err := s.write("trim", pebble.NoSync, func(b *pebble.Batch) error {
		if err := b.Set(metaKey(metaTrimmed), appendUint(nil, upTo), nil); err != nil {
			return err
		}
		return b.DeleteRange(logKey(0), logKey(upTo+1), nil)
	})
	if err == nil {
		s.hold.trim(upTo)
	}
	return err
}
