package rollup

import "slices"

// Bounds of a Builder.
const (
	// MaxOpen is how many hours are open at a time: the present one, the one before
	// it for what comes late, and some more for clocks that are wrong.
	MaxOpen = 4
	// MaxValues is how many values of an hour are kept for its quantiles: nine
	// batches a second. Of a faster stream every second value is kept, then every
	// fourth, and so on; count, min, max and last stay exact.
	MaxValues = 1 << 15
)

// Builder gathers the values of one signal of one query, hour by hour. It is for
// one goroutine; the zero value is ready for anything from 1970 on.
//
// A value belongs to the hour in which its batch ended: the begin of a batch may
// lie hours back by the time it is told.
type Builder struct {
	fromMs int64       // hours before it are closed
	open   []gathering // by start
	spare  [][]float64
}

// gathering is an hour that values still come for.
type gathering struct {
	startMs  int64
	count    int
	min, max float64
	last     float64
	lastMs   int64
	stride   int // every stride-th value is kept
	values   []float64
}

// Skip makes the Builder refuse what lies before a moment, Unix milliseconds: after
// a restart, the end of the newest hour that was stored. What lies after it is
// added again from the batches.
func (b *Builder) Skip(toMs int64) { b.fromMs = max(b.fromMs, toMs) }

// Add takes the value of a batch that ended at a moment, Unix milliseconds. Values
// may come out of order while their hour is open; the last of an hour is the one
// with the latest moment. Absent and infinite values are passed over. taken is false
// for a value of an hour that is closed: it is not counted.
//
// Where more hours than MaxOpen would be open, one is closed and appended to out:
// the oldest, or, where that would close an hour before the value's own, the newest,
// which is then the work of a clock ahead of its time.
func (b *Builder) Add(atMs int64, v float64, out []Hour) (closed []Hour, taken bool) {
	if !finite(v) {
		return out, true
	}
	startMs := Start(atMs)
	if startMs < b.fromMs {
		return out, false
	}
	i, found := b.find(startMs)
	if !found {
		out = b.makeRoom(i, out)
		i, _ = b.find(startMs)
		b.open = slices.Insert(b.open, i, b.fresh(startMs))
	}
	b.open[i].add(atMs, v)
	return out, true
}

// find returns the place of an hour among the open ones. It looks from the newest
// back, which most values are of.
func (b *Builder) find(startMs int64) (i int, found bool) {
	i = len(b.open)
	for i > 0 && b.open[i-1].startMs > startMs {
		i--
	}
	if i > 0 && b.open[i-1].startMs == startMs {
		return i - 1, true
	}
	return i, false
}

// makeRoom closes an hour if there is no room for another one at place i.
func (b *Builder) makeRoom(i int, out []Hour) []Hour {
	switch {
	case len(b.open) < MaxOpen:
		return out
	case i == 0:
		return b.take(MaxOpen-1, MaxOpen, out)
	}
	b.fromMs = max(b.fromMs, b.open[0].startMs+HourMs)
	return b.take(0, 1, out)
}

func (b *Builder) fresh(startMs int64) gathering {
	g := gathering{startMs: startMs, stride: 1}
	if n := len(b.spare); n > 0 {
		g.values, b.spare = b.spare[n-1][:0], b.spare[:n-1]
	}
	return g
}

// Close appends the hours that ended by a moment to out, in order, and closes them
// for good. The moment is Unix milliseconds: the present less the time that late
// values are waited for, so that an hour is stored once and whole.
func (b *Builder) Close(byMs int64, out []Hour) []Hour {
	b.fromMs = max(b.fromMs, Start(byMs))
	n, _ := b.find(b.fromMs)
	return b.take(0, n, out)
}

// take appends the open hours from i to j to out and forgets them.
func (b *Builder) take(i, j int, out []Hour) []Hour {
	for k := i; k < j; k++ {
		out = append(out, b.open[k].hour())
		b.rest(b.open[k].values)
	}
	b.open = slices.Delete(b.open, i, j)
	return out
}

// restingValues is the largest memory that is kept for the next hour.
const restingValues = 1 << 12

func (b *Builder) rest(values []float64) {
	if cap(values) <= restingValues && len(b.spare) < MaxOpen {
		b.spare = append(b.spare, values)
	}
}

func (g *gathering) add(atMs int64, v float64) {
	if g.count == 0 {
		g.min, g.max, g.lastMs = v, v, atMs
	}
	if atMs >= g.lastMs {
		g.last, g.lastMs = v, atMs
	}
	g.min, g.max = min(g.min, v), max(g.max, v)
	if g.count%g.stride == 0 {
		g.keep(v)
	}
	g.count++
}

// keep keeps a value for the quantiles. Where there is no room, every second one
// goes, so that what stays is every stride-th value that came.
func (g *gathering) keep(v float64) {
	if len(g.values) == MaxValues {
		for i := range MaxValues / 2 {
			g.values[i] = g.values[2*i]
		}
		g.values, g.stride = g.values[:MaxValues/2], 2*g.stride
	}
	g.values = append(g.values, v)
}

// hour sums up what was gathered. It puts the values in order of size, after which
// nothing may be added.
func (g *gathering) hour() Hour {
	h, _ := Of(g.startMs, g.values)
	h.Count, h.Min, h.Max, h.Last = g.count, g.min, g.max, g.last
	return h
}
