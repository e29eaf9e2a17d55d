package rules

import (
	"cmp"
	"math"
	"slices"

	"github.com/stategauge/stategauge/rules/trend"
)

// carry carries which windows a set is for.
func (r *reach) carry(c *codec) {
	batches, hours := int(r.batches), int(r.hours)+1
	c.Count(&batches, math.MaxInt8)
	c.Count(&hours, math.MaxInt8)
	r.batches, r.hours = int8(batches), int8(hours-1)
	c.bools(&r.acrossRuns, &r.acrossPauses)
}

func (k *columnKey) carry(c *codec) {
	index := int64(k.index)
	c.fixed(&k.values)
	c.str(&k.operator)
	c.Int(&index)
	c.Bool(&k.load)
	k.index = int32(index)
}

// savedColumn is a column as it is written and read.
type savedColumn struct {
	columnKey
	born, moves int64
	place       int // while writing
}

// savedSet is a set as it is written. What is saved has an order that does not hang on
// which series came first, so that it is the same after it was loaded.
type savedSet struct {
	*columnSet
	columns []savedColumn
}

func (s *columnSet) toSave() savedSet {
	out := savedSet{columnSet: s}
	for _, x := range s.list {
		if x != nil {
			out.columns = append(out.columns, savedColumn{columnKey: x.key, born: x.born, moves: int64(x.moves), place: x.place})
		}
	}
	slices.SortFunc(out.columns, func(a, b savedColumn) int { return a.compare(b.columnKey) })
	return out
}

func (k columnKey) compare(o columnKey) int {
	return cmp.Or(cmp.Compare(k.values, o.values), cmp.Compare(k.index, o.index), cmp.Compare(k.operator, o.operator),
		cmp.Compare(truth(k.load), truth(o.load)))
}

func (s savedSet) compare(o savedSet) int {
	return cmp.Or(cmp.Compare(s.reach.batches, o.reach.batches), cmp.Compare(s.reach.hours, o.reach.hours),
		cmp.Compare(truth(s.reach.acrossRuns), truth(o.reach.acrossRuns)), cmp.Compare(truth(s.reach.acrossPauses), truth(o.reach.acrossPauses)),
		cmp.Compare(truth(s.single), truth(o.single)),
		slices.CompareFunc(s.columns, o.columns, func(a, b savedColumn) int { return a.compare(b.columnKey) }))
}

// saveColumns writes all sets.
func (q *queryState) saveColumns(c *codec) {
	sets := make([]savedSet, 0, len(q.columns))
	for _, s := range q.columns {
		if !s.empty() {
			sets = append(sets, s.toSave())
		}
	}
	slices.SortFunc(sets, savedSet.compare)
	n := len(sets)
	c.items(&n)
	for _, s := range sets {
		s.reach.carry(c)
		c.Bool(&s.single)
		n := len(s.columns)
		c.items(&n)
		for i := range s.columns {
			s.columns[i].carry(c)
		}
		s.cols.CarryAxis(c)
		for _, x := range s.columns {
			s.cols.CarryColumn(c, x.place)
		}
	}
}

func (x *savedColumn) carry(c *codec) {
	x.columnKey.carry(c)
	c.ints(&x.born, &x.moves)
}

// loadColumns fills the columns that the query's series have asked for, and passes over
// those that none did.
func (q *queryState) loadColumns(c *codec, scratch *trend.Scratch) {
	n := 0
	for c.items(&n); n > 0 && c.err == nil; n-- {
		var want reach
		single := false
		want.carry(c)
		c.Bool(&single)
		q.loadSet(c, want, single, scratch)
	}
}

func (q *queryState) loadSet(c *codec, want reach, single bool, scratch *trend.Scratch) {
	columns := 0
	if c.items(&columns); columns > maxSetColumns {
		c.Fail("%d columns in a set", columns)
	}
	found := make([]savedColumn, columns)
	for i := range found {
		found[i].carry(c)
	}
	if c.err != nil {
		return
	}
	set := q.setFor(want, single, found, scratch)
	if set.cols.Pushes() > 0 {
		c.Fail("a set of columns is there twice")
		return
	}
	set.cols.CarryAxis(c)
	for _, x := range found {
		at := -1
		if to := set.find(x.columnKey); to != nil && c.err == nil {
			at, to.born, to.moves = to.place, x.born, int(x.moves)
		}
		if c.err == nil {
			set.cols.CarryColumn(c, at)
		}
	}
}

// maxSetColumns bounds the columns of a set: more than signals and operators can make.
const maxSetColumns = 1 << 16

// setFor returns the query's set that such columns belong into, and one that nobody
// keeps where none of them is asked for.
func (q *queryState) setFor(want reach, single bool, found []savedColumn, scratch *trend.Scratch) *columnSet {
	for _, s := range q.columns {
		if s.reach != want || s.single {
			continue
		}
		if !single {
			return s
		}
		for _, x := range found {
			if to := s.find(x.columnKey); to != nil && !x.load {
				own := s.split(to)
				q.columns = append(q.columns, own)
				return own
			}
		}
	}
	return newColumnSet(want, single, scratch)
}

// saveRings writes the evidence.
func (q *queryState) saveRings(c *codec) {
	rings := slices.Clone(q.rings)
	slices.SortFunc(rings, func(a, b *sharedRing) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.operator, b.operator), cmp.Compare(a.plan.hash, b.plan.hash))
	})
	n := len(rings)
	c.items(&n)
	for _, r := range rings {
		key, index, columns := r.plan.hash, int64(r.index), len(r.sums)
		c.fixed(&key)
		c.str(&r.operator)
		c.Int(&index)
		c.items(&columns)
		for i := range r.plan.hashes {
			c.fixed(&r.plan.hashes[i])
		}
		r.carryAxis(c)
		for i := range columns {
			r.carryColumn(c, i)
		}
	}
}

// loadRings fills the rings that the query's series gather evidence in. Figures that are
// gathered since stay absent before.
func (q *queryState) loadRings(c *codec) {
	n := 0
	for c.items(&n); n > 0 && c.err == nil; n-- {
		key, index, columns, operator := uint64(0), int64(0), 0, ""
		c.fixed(&key)
		c.str(&operator)
		c.Int(&index)
		c.items(&columns)
		keys := make([]uint64, columns)
		for i := range keys {
			c.fixed(&keys[i])
		}
		if c.err != nil {
			return
		}
		q.ring(key, operator, index).load(c, keys)
	}
}

// ring finds a ring by its saved key; one that nobody keeps where there is none.
func (q *queryState) ring(key uint64, operator string, index int64) *sharedRing {
	for _, r := range q.rings {
		if r.operator == operator && int64(r.index) == index && r.plan.hash == key {
			return r
		}
	}
	return &sharedRing{evidenceRing: newEvidenceRing(0, Extent{}), plan: &evidencePlan{}}
}

func (r *sharedRing) load(c *codec, keys []uint64) {
	r.carryAxis(c)
	for i := range r.blocks {
		r.blocks[i] = float32(math.NaN())
	}
	places := map[uint64]int{}
	for i, k := range r.plan.hashes {
		places[k] = i
	}
	for _, k := range keys {
		at, known := places[k]
		if !known {
			at = -1
		}
		r.carryColumn(c, at)
	}
}

// carryAxis carries which blocks there are. What is read stands from the first place on.
func (r *sharedRing) carryAxis(c *codec) {
	c.ints(&r.batch, &r.openMs, &r.opened, &r.open.Ms)
	c.counts(&r.open.Batches)
	n := r.n
	c.Count(&n, evidenceBlocks)
	before := int64(0)
	for k := range n {
		at := (r.head + k) % evidenceBlocks
		step := r.first[at] - before
		c.Int(&step)
		before += step
		r.first[at] = before
	}
	r.n = n
}

// carryColumn carries one figure; a place below 0 reads past one.
func (r *sharedRing) carryColumn(c *codec, place int) {
	sum, count := 0.0, int64(0)
	var column [evidenceBlocks]float32
	width := len(r.sums)
	if c.writing {
		sum, count = r.sums[place], int64(r.counts[place])
		for k := range r.n {
			column[k] = r.blocks[(r.head+k)%evidenceBlocks*width+place]
		}
	}
	c.Float(&sum)
	c.Int(&count)
	c.Singles(column[:r.n])
	if c.writing || place < 0 {
		return
	}
	r.sums[place], r.counts[place] = sum, int32(count)
	for k := range r.n {
		r.blocks[k*width+place] = column[k]
	}
}
