package track

import (
	"math/bits"

	"github.com/stategauge/stategauge/event"
)

// maxBatch is the largest batch id that is believed.
const maxBatch = 1 << 62

// window remembers exactly which of the newest batch ids were seen: a ring of
// bits, the id modulo its size being the place.
type window struct {
	bits   []uint64
	newest int64 // event.Absent while empty
}

func newWindow(batches int) window {
	return window{bits: make([]uint64, batches/64), newest: event.Absent}
}

func (w *window) reset() {
	clear(w.bits)
	w.newest = event.Absent
}

func (w *window) size() int64 { return int64(len(w.bits)) * 64 }

func (w *window) slot(id int64) (int, uint64) {
	i := id % w.size()
	return int(i / 64), 1 << (i % 64)
}

// below reports whether id is too old to be told.
func (w *window) below(id int64) bool {
	return w.newest != event.Absent && id <= w.newest-w.size()
}

// has reports whether id was seen; false where it cannot be told.
func (w *window) has(id int64) bool {
	if w.newest == event.Absent || id < 0 || id > w.newest || w.below(id) {
		return false
	}
	i, b := w.slot(id)
	return w.bits[i]&b != 0
}

// mark notes id as seen, moving the window up where it is the newest. An id
// below the window is left alone.
func (w *window) mark(id int64) {
	if w.below(id) {
		return
	}
	if w.newest == event.Absent {
		w.newest = id
	}
	if id > w.newest {
		w.advance(id)
	}
	i, b := w.slot(id)
	w.bits[i] |= b
}

func (w *window) advance(id int64) {
	if id-w.newest >= w.size() {
		clear(w.bits)
		w.newest = id
		return
	}
	for w.newest < id {
		w.newest++
		i, b := w.slot(w.newest)
		w.bits[i] &^= b
	}
}

// holes counts the ids in (from, to] that were not seen; whatever lies below the
// window counts as not seen.
func (w *window) holes(from, to int64) int64 {
	n := int64(0)
	if low := w.newest - w.size(); from < low {
		n, from = min(low, to)-from, low
	}
	for id := from + 1; id <= to; id++ {
		if !w.has(id) {
			n++
		}
	}
	return n
}

// count returns how many ids the window holds.
func (w *window) count() int {
	n := 0
	for _, v := range w.bits {
		n += bits.OnesCount64(v)
	}
	return n
}

// verdict is what a run knows of a batch.
type verdict uint8

const (
	fresh  verdict = iota
	seen           // counted before
	tooOld         // older than what is remembered
	absurd         // cannot be true
)

// stamps remembers the newest few times of things that have no number.
type stamps struct{ at []int64 }

// note judges a time and remembers it if it is fresh. limit bounds the memory and
// must be the same at each call. The oldest time makes room, so that whatever was
// forgotten is older than all that is remembered.
func (s *stamps) note(at int64, limit int) verdict {
	oldest := 0
	for i, v := range s.at {
		if v == at {
			return seen
		}
		if v < s.at[oldest] {
			oldest = i
		}
	}
	if len(s.at) < limit {
		s.at = append(s.at, at)
		return fresh
	}
	if at < s.at[oldest] {
		return tooOld
	}
	s.at[oldest] = at
	return fresh
}

func (s *stamps) reset() { s.at = s.at[:0] }
