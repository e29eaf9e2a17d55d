package trend

import "math"

// Carrier carries state to a saved form or from it: each method writes what its
// argument points to, or fills it. So one description of a state serves both ways, and
// what is written cannot differ from what is read.
type Carrier interface {
	// Writing is true on the way to the saved form.
	Writing() bool
	// Int carries a whole number, Float a number exactly, NaN too.
	Int(x *int64)
	Float(x *float64)
	Bool(x *bool)
	// Count carries a number between 0 and most; what is read beyond that fails.
	Count(n *int, most int)
	// Singles carries values exactly, as many as v has room for.
	Singles(v []float32)
	// Fail notes that what was read cannot be; OK reports whether nothing failed yet.
	// After a failure nothing that is read may be used.
	Fail(format string, args ...any)
	OK() bool
}

// CarryAxis carries all that the columns of a store share: which batches it keeps. The
// store that it is read into has the same options and as many columns as the caller will
// carry, in any order, with CarryColumn; all of them are empty before.
func (c *Columns) CarryAxis(v Carrier) {
	v.Bool(&c.started)
	for _, x := range []*int64{&c.pushes, &c.lastBatch, &c.lastMs, &c.elapsedMs, &c.origin.batch, &c.origin.ms} {
		v.Int(x)
	}
	if c.pushes < 0 || c.started && !c.origin.holds(c.lastBatch, c.elapsedMs) {
		v.Fail("a store of %d batches up to %d", c.pushes, c.lastBatch)
		return
	}
	for i := range c.watches {
		c.watches[i].fine.short = 0 // what is read may fill it at once
	}
	c.fine.carry(v)
	c.coarse.carry(v)
	n := len(c.levels)
	v.Count(&n, maxLevels)
	for i := 0; i < n && v.OK(); i++ {
		if i == len(c.levels) {
			c.levels = append(c.levels, openLevel{vals: make([][blockGrowth]float32, c.width)})
		}
		o := &c.levels[i]
		v.Count(&o.n, blockGrowth-1)
		if o.n > 0 {
			new(markForm).carry(v, &o.mark, c.origin, mark{first: c.origin.batch, fromMs: c.origin.ms})
		}
	}
	if v.OK() && c.started != (c.fine.n > 0) {
		v.Fail("a store has begun and keeps no batch, or the other way round")
	}
}

// maxLevels bounds the open levels: one for each size that a block may have.
const maxLevels = 8

// CarryColumn carries the values of one column over the batches that CarryAxis carried.
// A place below 0 reads past a column that nobody wants any more.
func (c *Columns) CarryColumn(v Carrier, place int) {
	c.fine.carryColumn(v, place)
	c.coarse.carryColumn(v, place)
	for i := range c.levels {
		var past [blockGrowth]float32
		open := &past
		if place >= 0 {
			open = &c.levels[i].vals[place]
		}
		v.Singles(open[:c.levels[i].n])
	}
}

// carry carries the marks of a lane. What is read stands from place 0 on.
func (l *lane) carry(v Carrier) {
	n := l.n
	v.Count(&n, l.limit)
	size := l.size
	v.Count(&size, maxBlock)
	if !v.OK() {
		return
	}
	if !v.Writing() {
		l.hold(n)
		l.size = max(size, 1)
	}
	before, form := mark{first: l.origin.batch, fromMs: l.origin.ms}, new(markForm)
	for i := 0; i < n && v.OK(); i++ {
		var m mark
		if v.Writing() {
			m = l.mark(l.at(i))
		}
		form.carry(v, &m, l.origin, before)
		if i > 0 && m.first <= before.first {
			v.Fail("batch %d stands behind batch %d", m.first, before.first)
		}
		if !v.Writing() && v.OK() {
			l.marks[i] = l.origin.pack(m)
		}
		before = m
	}
	if !v.Writing() && v.OK() {
		l.look()
	}
}

// markForm is a mark as it is carried: its distance from the one before.
type markForm struct {
	first, from         int64
	lasts, ids, batches int
}

// carry carries a mark by way of f, which is room for one.
func (f *markForm) carry(v Carrier, m *mark, o *origin, before mark) {
	*f = markForm{m.first - before.first, m.fromMs - before.fromMs, int(m.lasts), int(m.ids), int(m.batches)}
	v.Int(&f.first)
	v.Int(&f.from)
	v.Count(&f.batches, maxBatches)
	if f.batches > 1 {
		v.Count(&f.lasts, math.MaxUint32)
		v.Count(&f.ids, maxIDs)
	}
	if v.Writing() || !v.OK() {
		return
	}
	if f.first < 0 || f.from < 0 || f.first > maxReach || f.from > maxReachMs || f.batches == 0 || !o.holds(before.first+f.first, before.fromMs+f.from) {
		v.Fail("a mark that cannot be: %d batches from %d on", f.batches, before.first+f.first)
		return
	}
	*m = mark{first: before.first + f.first, fromMs: before.fromMs + f.from, lasts: uint32(f.lasts), ids: uint16(f.ids), batches: uint16(f.batches)}
}

// hold makes room for n rows of nothing, as much as they would have grown.
func (l *lane) hold(n int) {
	room := 0
	for room < n {
		room = min(max(2*room, minKept), l.limit)
	}
	l.marks, l.head, l.n = make([]packedMark, room), 0, n
	for c := range l.vals {
		l.vals[c] = make([]float32, room)
		for i := range l.vals[c] {
			l.vals[c][i] = float32(math.NaN())
		}
	}
}

func (l *lane) carryColumn(v Carrier, place int) {
	if !v.Writing() && place >= 0 {
		v.Singles(l.vals[place][:l.n])
		return
	}
	if !v.Writing() {
		v.Singles(make([]float32, l.n))
		return
	}
	// The ring in order: the rows up to the end of its room, then those before its head.
	end := min(l.head+l.n, len(l.marks))
	v.Singles(l.vals[place][l.head:end])
	v.Singles(l.vals[place][:l.n-(end-l.head)])
}

// Carry carries how the dear test came out last.
func (p *Pace) Carry(v Carrier) {
	v.Int(&p.next)
	found := p.found != nil
	v.Bool(&found)
	if !found {
		return
	}
	if !v.Writing() {
		p.found = new(RisingResult)
	}
	p.found.carry(v)
}

func (r *RisingResult) carry(v Carrier) {
	said := int(r.Verdict)
	v.Count(&said, int(CannotTell))
	r.Verdict = Verdict(said)
	since, batches := r.Since, int64(r.Batches)
	v.Int(&since)
	v.Int(&batches)
	r.Since, r.Batches = since, int(batches)
	for _, x := range []*float64{&r.RawZ, &r.RiseLow, &r.RiseHigh, &r.Load.PerUnit, &r.Load.Elasticity} {
		v.Float(x)
	}
	v.Bool(&r.Load.WithTime)
	r.Fit.carry(v)
	r.Load.Adjusted.carry(v)
}

func (f *Fit) carry(v Carrier) {
	v.Count(&f.N, math.MaxInt32)
	v.Count(&f.Outliers, math.MaxInt32)
	for _, x := range []*float64{&f.SlopePerBatch, &f.Start, &f.End, &f.Rise, &f.Relative, &f.Z, &f.R1, &f.VarianceFactor} {
		v.Float(x)
	}
}

// Carry carries the baseline and both sums; the options are not part of it.
func (c *CUSUM) Carry(v Carrier) {
	v.Count(&c.base.N, math.MaxInt32)
	v.Float(&c.base.Level)
	v.Float(&c.base.Spread)
	for _, l := range []*leg{&c.up, &c.down} {
		pushes := int64(l.pushes)
		v.Float(&l.sum)
		v.Int(&l.since)
		v.Int(&pushes)
		l.pushes = int32(pushes)
	}
}
