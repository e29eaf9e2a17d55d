package trend

import "math"

// Trace fills out with the points of a column that cover the span, or all there are, as
// Series does, but dates each point by its middle: a line through times wants that. It
// returns what a second column has at the same points, appended to load; NaN where it
// has nothing or is NoLoad. O(points of the span).
func (c *Columns) Trace(column, load int, s Span, out *Series, loads []float64) []float64 {
	l, from, full := c.choose(column, s)
	*out = Series{Batch: out.Batch[:0], AtMs: out.AtMs[:0], X: out.X[:0], Y: out.Y[:0], Full: full}
	for i := from; i < l.n; i++ {
		k := l.at(i)
		v := l.vals[column][k]
		if v != v {
			continue
		}
		m := l.mark(k)
		units := math.NaN()
		if load >= 0 {
			units = float64(l.vals[load][k])
		}
		out.Batch, out.AtMs = append(out.Batch, m.first), append(out.AtMs, m.fromMs+int64(m.lasts)/2)
		out.X, out.Y = append(out.X, float64(m.fromMs+int64(m.lasts)/2-out.AtMs[0])), append(out.Y, float64(v))
		out.Batches += int(m.batches)
		loads = append(loads, units)
	}
	return loads
}
