package trend

import "math"

// NoLoad is the load column of a judgement that has none.
const NoLoad = -1

// Series is a copy of one column over a span, for the tests that take slices. Its
// buffers are used again by the next call that is given it.
type Series struct {
	Batch   []int64   // first batch of each point
	AtMs    []int64   // its start, event time, Unix milliseconds; steps back are flattened
	X       []float64 // batches from the first point, the middle of a block
	Y       []float64
	Batches int  // that the points stand for
	Full    bool // the span is covered
}

// Series fills out with the points of a column that cover the span, or all there are.
// Batches without a value are left out. O(points of the span).
func (c *Columns) Series(column int, s Span, out *Series) {
	l, from, full := c.choose(column, s)
	*out = Series{Batch: out.Batch[:0], AtMs: out.AtMs[:0], X: out.X[:0], Y: out.Y[:0], Full: full}
	first := 0.0
	for i := from; i < l.n; i++ {
		k := l.at(i)
		v := l.vals[column][k]
		if v != v {
			continue
		}
		m := l.mark(k)
		if len(out.X) == 0 {
			first = m.x()
		}
		out.Batch, out.AtMs = append(out.Batch, m.first), append(out.AtMs, m.fromMs)
		out.X, out.Y = append(out.X, m.x()-first), append(out.Y, float64(v))
		out.Batches += int(m.batches)
	}
}

// Series fills out with the points of the window, as Columns.Series does with those
// of a column.
func (w *Window) Series(out *Series) {
	*out = Series{Batch: out.Batch[:0], AtMs: out.AtMs[:0], X: out.X[:0], Y: out.Y[:0], Batches: w.ring.batches, Full: w.ring.full()}
	r := &w.ring
	for i := range r.n {
		m := &r.meta[r.at(i)]
		out.Batch, out.AtMs = append(out.Batch, m.first), append(out.AtMs, r.lastMs-r.elapsedMs+m.fromMs)
		out.X, out.Y = append(out.X, m.x-r.meta[r.head].x), append(out.Y, r.vals[r.at(i)])
	}
}

// choose returns the lane to judge a column over a span by, and the first of its rows:
// the batches as they are where they reach back far enough, or are all there are.
func (c *Columns) choose(column int, s Span) (l *lane, from int, full bool) {
	from, full = c.fine.cover(column, s)
	if full || c.fine.n < c.o.Fine {
		return c.fine, from, full
	}
	from, full = c.coarse.cover(column, s)
	return c.coarse, from, full
}

// cover returns the first of the rows whose values in a column cover a span.
func (l *lane) cover(column int, s Span) (from int, full bool) {
	if l.spanMs(0) < s.Ms {
		return 0, false
	}
	vals, batches := l.vals[column], 0
	for i := l.n - 1; i >= 0; i-- {
		k := l.at(i)
		if v := vals[k]; v == v {
			batches += l.marks[k].batches()
		}
		if batches >= s.Batches && l.spanMs(i) >= s.Ms {
			return i, true
		}
	}
	return 0, false
}

// Rising judges a column over a span as Window.Rising does, load taken from another
// column or NoLoad. Its cheap test sorts the points, some 3 µs at 120; a column that is
// judged at each batch is better watched.
func (c *Columns) Rising(column, load int, span Span, o RisingOptions) RisingResult {
	l, from, _ := c.choose(column, span)
	_, batches := c.copyRows(l, from, column, load)
	o = o.withDefaults()
	res := RisingResult{Since: -1}
	k := c.work().mannKendall(c.work().y)
	if o.gate(k.N, batches, k.Z, &res) {
		c.judgeRows(o, &res)
	}
	return res
}

// RisingWatched judges a watched span: some nanoseconds where the cheap test says
// Clear.
func (c *Columns) RisingWatched(number, load int, o RisingOptions) RisingResult {
	l, v := c.watched(number)
	o = o.withDefaults()
	res := RisingResult{Since: -1}
	if v.gate(&o, &res) {
		c.copyRows(l, l.n-v.n, int(v.column), load)
		c.judgeRows(o, &res)
	}
	return res
}

// watched returns the lane to judge a watched span by, and its view there.
func (c *Columns) watched(number int) (*lane, *view) {
	w := &c.watches[number]
	l, v, other := c.fine, w.fine, w.coarse
	if c.fine.n >= c.o.Fine && !w.fine.covers(c.fine, c.pushes) {
		l, v, other = c.coarse, w.coarse, w.fine
	}
	v.wake(l, c.pushes)
	other.rest(c.pushes)
	return l, v
}

// gate is the cheap test of so many points, z of which is Mann-Kendall's: it reports
// whether the dear one is to follow.
func (o *RisingOptions) gate(points, batches int, z float64, res *RisingResult) bool {
	res.Batches = batches
	if batches < o.MinPoints || points < leastPoints {
		return false
	}
	res.Verdict, res.RawZ = Clear, z
	if o.Falling {
		return -z > o.GateZ
	}
	return z > o.GateZ
}

// gate is the cheap test of what the view counts.
func (v *view) gate(o *RisingOptions, res *RisingResult) bool {
	n := len(v.order)
	return o.gate(n, v.batches, standardize(v.sum.s, varianceOfS(n, v.sum.tieTerm)), res)
}

// judgeRows runs the dear test over the points in the scratch.
func (c *Columns) judgeRows(o RisingOptions, res *RisingResult) {
	s := c.work()
	at, found := s.rises(o, res)
	if !found {
		return
	}
	for i, x := range s.x {
		if x >= at {
			res.Since = s.first[i]
			break
		}
	}
	if o.AdjustForLoad {
		s.judgeLoad(o, res)
	}
}

// copyRows fills the scratch with the rows from one on that have a value.
func (c *Columns) copyRows(l *lane, from, column, load int) (known, batches int) {
	s := c.work()
	s.x, s.y, s.load, s.first = s.x[:0], s.y[:0], s.load[:0], s.first[:0]
	for i := from; i < l.n; i++ {
		k := l.at(i)
		v := l.vals[column][k]
		if v != v {
			continue
		}
		m := l.mark(k)
		s.first = append(s.first, m.first)
		s.x, s.y = append(s.x, m.x()-float64(s.first[0])), append(s.y, float64(v))
		units := math.NaN()
		if load >= 0 {
			units = float64(l.vals[load][k])
		}
		s.load = append(s.load, units)
		known, batches = known+1, batches+int(m.batches)
	}
	return known, batches
}

// Level compares the newest batches of a column with those of the span before them,
// as LevelWindow.Level does, from the same points as all else. The newest are taken
// as they are where the fine points reach back far enough; a block that reaches into
// both spans is left out. Spans of 60 and 500 batches have blocks of 9 in the default
// size, and so some 55 points before. O(points).
func (c *Columns) Level(column, load int, recent, before Span, o LevelOptions) LevelResult {
	res := LevelResult{Since: -1}
	near, from, full := c.choose(column, recent)
	if !full {
		return res
	}
	far, start, _ := c.choose(column, recent.Plus(before))
	since := near.marks[near.at(from)].first(*near.origin)
	s := c.work()
	s.y, s.load = s.y[:0], s.load[:0]
	if !o.AdjustForLoad {
		load = NoLoad // nobody looks at it
	}
	split, batches := s.addValues(far, start, far.rowOf(since), column, load)
	_, res.RecentBatches = s.addValues(near, from, near.n, column, load)
	all := batches + res.RecentBatches + far.size - 1
	if split == 0 || 2*batches < before.Batches ||
		!before.covered(all-recent.Batches, near.until-far.marks[far.at(start)].fromMs(*far.origin)-recent.Ms) {
		return LevelResult{Since: -1}
	}
	res.BeforeBatches, res.Since, res.Verdict = batches, since, Clear
	s.judgeLevel(o, split, &res)
	return res
}

// addValues appends the values of rows [from, until), and what a second column has
// beside them, NaN for all without a load to look at.
func (s *Scratch) addValues(l *lane, from, until, column, load int) (known, batches int) {
	vals, loads := l.vals[column], l.vals[max(load, 0)]
	for i := from; i < until; i++ {
		k := l.at(i)
		v := vals[k]
		if v != v {
			continue
		}
		s.y = append(s.y, float64(v))
		units := math.NaN()
		if load >= 0 {
			units = float64(loads[k])
		}
		s.load = append(s.load, units)
		known, batches = known+1, batches+l.marks[k].batches()
	}
	return known, batches
}

// rowOf returns the first row that holds a batch of id batch or later.
func (l *lane) rowOf(batch int64) int {
	i := l.n
	for i > 0 {
		m := l.mark(l.at(i - 1))
		if m.first+int64(m.ids) < batch {
			break
		}
		i--
	}
	return i
}

// Points returns the number of batches with a value that a column has over a span.
func (c *Columns) Points(column int, s Span) int {
	l, from, _ := c.choose(column, s)
	batches := 0
	for i := from; i < l.n; i++ {
		if v := l.vals[column][l.at(i)]; v == v {
			batches += l.marks[l.at(i)].batches()
		}
	}
	return batches
}

// work returns the buffers to work in.
func (c *Columns) work() *Scratch {
	if c.scratch == nil {
		c.scratch = new(Scratch)
	}
	return c.scratch
}
