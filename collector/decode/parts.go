package decode

import (
	"hash/maphash"
	"math"

	"github.com/stategauge/stategauge/event"
)

// offsetKind is one of a source's three offsets.
type offsetKind uint8

const (
	offsetStart offsetKind = iota
	offsetEnd
	offsetLatest
)

// part is one partition of one source: where the batch began, where it ended and
// the newest offset there is, event.Absent where not told.
type part struct {
	id uint64
	at [3]int64
}

// set stores an offset. Kafka's negative ones are names for earliest and latest,
// not places.
func (p *part) set(k offsetKind, v int64) {
	if v < 0 {
		v = event.Absent
	}
	p.at[k] = v
}

// partTable pairs the three offset maps of each source by partition. Partitions of
// all sources of a batch stand in one slice, source after source.
type partTable struct {
	parts  []part
	first  []int // index into parts of each source's first one
	expect int   // the partition that comes next if the maps agree in their order

	// The rest finds partitions that come in another order: a filter that says
	// when to look, and an index that is built only then.
	filter  [64]uint64
	index   map[uint64]int
	indexed int // parts before this one are in index
}

var partSeed = maphash.MakeSeed()

// topicID and partID tell the partitions of one source apart by 64 bits.
func topicID(topic []byte) uint64 { return maphash.Bytes(partSeed, topic) }

func partID(topic, partition uint64) uint64 {
	return topic ^ (partition+2)*0x9e3779b97f4a7c15
}

// plainID stands for an offset that is one number for the whole source.
const plainID = 1

func (t *partTable) reset() { t.parts, t.first = t.parts[:0], t.first[:0] }

func (t *partTable) shrink() {
	if cap(t.parts) > scratchBytes/32 {
		t.parts, t.index = nil, nil
	}
}

// next begins a source.
func (t *partTable) next() {
	t.first = append(t.first, len(t.parts))
	t.forget()
}

// forget empties filter and index.
func (t *partTable) forget() {
	clear(t.filter[:])
	if t.indexed > 0 {
		clear(t.index)
	}
	t.indexed = 0
}

func (t *partTable) current() int { return t.first[len(t.first)-1] }

// begin starts an offset of the present source and says whether it had come before.
func (t *partTable) begin(k offsetKind) (repeated bool) {
	t.expect = t.current()
	for i := t.expect; i < len(t.parts); i++ {
		repeated = repeated || t.parts[i].at[k] != event.Absent
		t.parts[i].at[k] = event.Absent
	}
	return repeated
}

// undo takes back an offset that turned out to be of another shape: everything
// of kind k, and the partitions from n on.
func (t *partTable) undo(k offsetKind, n int) {
	t.parts = t.parts[:n]
	t.begin(k)
	t.forget()
	for i := t.current(); i < n; i++ {
		t.mark(t.parts[i].id)
	}
}

// mark enters id into the filter and says whether it may have been there.
func (t *partTable) mark(id uint64) (known bool) {
	word, bit := &t.filter[id>>58], uint64(1)<<(id>>52&63)
	known = *word&bit != 0
	*word |= bit
	return known
}

// place returns the index of a partition of the present source, adding it if new.
func (t *partTable) place(id uint64) int {
	i := t.expect
	if i >= len(t.parts) || t.parts[i].id != id {
		i = t.search(id)
	}
	t.expect = i + 1
	return i
}

func (t *partTable) search(id uint64) int {
	if t.mark(id) {
		if i, ok := t.lookup(id); ok {
			return i
		}
	}
	t.parts = append(t.parts, part{id: id, at: [3]int64{event.Absent, event.Absent, event.Absent}})
	return len(t.parts) - 1
}

// lookup finds a partition by the index, which it brings up to date first.
func (t *partTable) lookup(id uint64) (int, bool) {
	if t.index == nil {
		t.index = map[uint64]int{}
	}
	for t.indexed = max(t.indexed, t.current()); t.indexed < len(t.parts); t.indexed++ {
		t.index[t.parts[t.indexed].id] = t.indexed
	}
	i, ok := t.index[id]
	return i, ok
}

// fold sums the partitions of each source into its backlog and its progress.
func (t *partTable) fold(sources []event.Source) {
	for s := range min(len(sources), len(t.first)) {
		end := len(t.parts)
		if s+1 < len(t.first) {
			end = t.first[s+1]
		}
		foldParts(&sources[s], t.parts[t.first[s]:end])
	}
}

func foldParts(s *event.Source, parts []part) {
	s.Backlog, s.Read = event.Absent, event.Absent
	for i := range parts {
		start, end, latest := parts[i].at[offsetStart], parts[i].at[offsetEnd], parts[i].at[offsetLatest]
		if end == event.Absent {
			continue
		}
		if latest != event.Absent {
			s.Backlog = add(s.Backlog, max(0, latest-end))
		}
		if start != event.Absent {
			s.Read = add(s.Read, end-start)
		}
	}
}

// add sums offsets, neither of which is below -math.MaxInt64; sums out of range
// stop at the range's end.
func add(sum, v int64) int64 {
	switch {
	case sum == event.Absent:
		return v
	case v > 0 && sum > math.MaxInt64-v:
		return math.MaxInt64
	case v < 0 && sum < -math.MaxInt64-v:
		return -math.MaxInt64
	}
	return sum + v
}
