package trend

import "math"

// AddColumn gives the store one more column, without values so far, and returns its
// place. It costs O(points).
func (c *Columns) AddColumn() int {
	c.width++
	c.fine.widen()
	c.coarse.widen()
	for i := range c.levels {
		open := [blockGrowth]float32{}
		for k := range open {
			open[k] = float32(math.NaN())
		}
		c.levels[i].vals = append(c.levels[i].vals, open)
	}
	c.row = append(c.row, 0)
	return c.width - 1
}

// widen adds a column of nothing.
func (l *lane) widen() {
	vals := make([]float32, len(l.marks))
	for i := range vals {
		vals[i] = float32(math.NaN())
	}
	l.vals = append(l.vals, vals)
}

// ClearColumn forgets the values of one column; its watched spans stay.
func (c *Columns) ClearColumn(column int) {
	for _, l := range []*lane{c.fine, c.coarse} {
		for i := range l.vals[column] {
			l.vals[column][i] = float32(math.NaN())
		}
		for _, v := range l.views {
			if int(v.column) == column {
				v.recount(l)
			}
		}
	}
	for i := range c.levels {
		for k := range c.levels[i].vals[column] {
			c.levels[i].vals[column][k] = float32(math.NaN())
		}
	}
}

// Pushes returns the number of batches that the store ever took.
func (c *Columns) Pushes() int64 { return c.pushes }

// Replay visits the newest batches as they are, oldest first, in which a column has a
// value, with that of a second column, NaN where it has none or is NoLoad.
func (c *Columns) Replay(column, load int, visit func(batch, ms int64, value, load float32)) {
	l := c.fine
	for i := range l.n {
		k := l.at(i)
		v, units := l.vals[column][k], float32(math.NaN())
		if load >= 0 {
			units = l.vals[load][k]
		}
		if v == v {
			visit(l.marks[k].first(*l.origin), l.marks[k].fromMs(*l.origin), v, units)
		}
	}
}

// Known returns in how many of the newest so many batches a column has a value, and
// how many of those are kept as they are.
func (c *Columns) Known(column, newest int) (known, batches int) {
	l := c.fine
	batches = min(newest, l.n)
	for i := l.n - batches; i < l.n; i++ {
		if v := l.vals[column][l.at(i)]; v == v {
			known++
		}
	}
	return known, batches
}

// Newest appends the newest n values of a column, the newest first, as far as they are
// kept as they are.
func (c *Columns) Newest(column, n int, to []float64) []float64 {
	l := c.fine
	for i := l.n - 1; i >= 0 && n > 0; i-- {
		if v := l.vals[column][l.at(i)]; v == v {
			to = append(to, float64(v))
			n--
		}
	}
	return to
}

// Reach returns the batches with a value that a column has over a span, the event time
// that they cover in milliseconds, and whether they make up the span. O(points).
func (c *Columns) Reach(column int, s Span) (batches int, ms int64, full bool) {
	l, from, full := c.choose(column, s)
	for i := from; i < l.n; i++ {
		k := l.at(i)
		if v := l.vals[column][k]; v == v {
			if batches == 0 {
				ms = l.spanMs(i)
			}
			batches += l.marks[k].batches()
		}
	}
	return batches, ms, full
}

// FineMs is the event time that the batches kept as they are cover, milliseconds.
func (c *Columns) FineMs() int64 { return c.fine.spanMs(0) }

// WatchedMs is the event time that a watched span covers by now, milliseconds.
func (c *Columns) WatchedMs(number int) int64 {
	l, v := c.watched(number)
	return l.spanMs(l.n - v.n)
}

// Scratch returns the buffers that the store works in.
func (c *Columns) Scratch() *Scratch { return c.work() }
