package operator

import (
	"math/bits"

	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/workload"
)

// group is the rows of a task that have a key (and window) in common.
type group struct {
	key     uint64
	startMs int64 // of the window; 0 without
	count   int64
	maxMs   int64 // newest event time
	bytes   int32 // size of the last row
	first   int32 // its rows by index, linked through groups.next
	last    int32
}

// groups is a hash table with open addressing that keeps the order in which
// groups came first. Its memory is reused, and grows with the largest batch.
type groups struct {
	list  []group
	slots []int32 // index into list plus one; 0 is free
	next  []int32 // per row the next of its group, -1 at its end
}

// fill groups rows by key and the start of the window of so many milliseconds
// that they fall into; 0: by key alone.
func (g *groups) fill(rows []workload.Row, windowMs int64) {
	g.reset(len(rows))
	for i := range rows {
		g.add(&rows[i], int32(i), windowStart(rows[i].EventMs, windowMs))
	}
}

func (g *groups) reset(rows int) {
	size := 1 << bits.Len(uint(2*rows))
	if cap(g.slots) < size {
		g.slots = make([]int32, size)
	}
	g.slots = g.slots[:size]
	clear(g.slots)
	g.list = g.list[:0]
	g.next = g.next[:0]
}

func (g *groups) add(row *workload.Row, i int32, startMs int64) {
	g.next = append(g.next, -1)
	mask := uint64(len(g.slots) - 1)
	for at := seed.Mix(row.Key, uint64(startMs)) & mask; ; at = (at + 1) & mask {
		n := g.slots[at]
		if n == 0 {
			g.list = append(g.list, group{
				key: row.Key, startMs: startMs, count: 1, maxMs: row.EventMs, bytes: row.Bytes, first: i, last: i,
			})
			g.slots[at] = int32(len(g.list))
			return
		}
		if e := &g.list[n-1]; e.key == row.Key && e.startMs == startMs {
			e.count++
			e.maxMs, e.bytes = max(e.maxMs, row.EventMs), row.Bytes
			g.next[e.last], e.last = i, i
			return
		}
	}
}

// windowStart is where the window begins that ms lies in, before 1970 too.
func windowStart(ms, windowMs int64) int64 {
	if windowMs <= 0 {
		return 0
	}
	return ms - ((ms%windowMs)+windowMs)%windowMs
}
