package rules

import (
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// most is the largest figure that is taken for a measurement: it fits a float32.
const most = 1e30

// steadyClock is event time that never goes back: the sum of the steps forward. A
// sender whose clock was wrong for a while cannot hold it, nor make a window older.
type steadyClock struct {
	batch, atMs, elapsedMs int64
	started                bool
}

// step moves on to p and reports whether p is newer than the last and measurable.
func (c *steadyClock) step(p trend.Point) bool {
	if !(math.Abs(p.Value) <= most) || p.Batch < 0 || c.started && p.Batch <= c.batch {
		return false
	}
	if c.started && p.AtMs != event.Absent && c.atMs != event.Absent && p.AtMs > c.atMs {
		c.elapsedMs += p.AtMs - c.atMs
	}
	c.started, c.batch = true, p.Batch
	if p.AtMs != event.Absent {
		c.atMs = p.AtMs
	}
	return true
}

const (
	// maxStep bounds the batches of one point of a history.
	maxStep = 243
	// foldBy is three and not two: the median of three sheds an outlier.
	foldBy = 3
	// tickMs is the resolution of a history's clock.
	tickMs = 100
)

// history keeps the newest batches of a signal and of a detector's inputs, as far
// back as an extent asks and in at most limit points: where that holds more batches,
// a point stands for 3, 9, 27 or more in a row, by the median of each figure.
//
// Memory: 8 bytes a point, 10 once it stands for several batches, and 4 for each
// figure, grown on demand. Figures have the
// seven digits of a float32: times since 1970 must not be asked for their trend.
type history struct {
	over    Extent
	limit   int
	columns int // the signal and the inputs
	// spare is how many points are dropped at once at least; 0 is an eighth.
	spare int
	// peaks makes a point stand for its batches by the one of the highest value.
	peaks bool

	values []float32 // columns of a point side by side
	batch  []uint32  // of a point's middle, since base
	at     []uint32  // of a point's middle, ticks since the clock began
	count  []uint16  // batches in the point; nil while each is one batch
	n      int       // points; what lies behind them are batches of a point to come
	step   int       // batches of a new point
	base   int64
	clock  steadyClock
}

func newHistory(over Extent, limit, columns int) *history {
	return &history{over: over, limit: limit, columns: columns, step: 1}
}

// push takes in one batch and reports whether it did: what is not newer than the
// last one, or cannot be measured, is left out.
func (h *history) push(p trend.Point, in []float64) bool {
	if !h.clock.step(p) {
		return false
	}
	ticks := h.clock.elapsedMs / tickMs
	if len(h.batch) > 0 && (p.Batch-h.base > math.MaxUint32 || ticks > math.MaxUint32) {
		h.reset()
		h.clock.step(p)
		ticks = 0
	}
	if len(h.batch) == 0 {
		h.base = p.Batch
	}
	h.grow()
	h.batch, h.at = append(h.batch, uint32(p.Batch-h.base)), append(h.at, uint32(ticks))
	if h.count != nil {
		h.count = append(h.count, 1)
	}
	h.values = append(h.values, float32(p.Value))
	for c := range h.columns - 1 {
		h.values = append(h.values, single(in, c))
	}
	if len(h.batch)-h.n < h.step {
		return true
	}
	h.fold(h.n, h.n, len(h.batch))
	h.cut(h.n + 1)
	h.n++
	if h.n >= h.limit {
		h.makeRoom()
	}
	h.refine()
	return true
}

// grow makes room for one more point: twice as much, and no more than the limit.
func (h *history) grow() {
	n := len(h.batch)
	if n < cap(h.batch) {
		return
	}
	more := max(min(max(n, 16), h.limit-n), h.step)
	h.batch, h.at = widen(h.batch, more), widen(h.at, more)
	if h.count != nil {
		h.count = widen(h.count, more)
	}
	h.values = widen(h.values, more*h.columns)
}

// widen returns v with room for exactly so many more.
func widen[T any](v []T, more int) []T { return append(make([]T, 0, len(v)+more), v...) }

// single returns an input that can be kept, NaN where there is none.
func single(in []float64, c int) float32 {
	if c >= len(in) || !(math.Abs(in[c]) <= most) {
		return float32(math.NaN())
	}
	return float32(in[c])
}

// cut keeps the first n points.
func (h *history) cut(n int) {
	h.batch, h.at, h.values = h.batch[:n], h.at[:n], h.values[:n*h.columns]
	if h.count != nil {
		h.count = h.count[:n]
	}
}

// makeRoom drops points that the extent does not need, and folds the rest where
// it needs too many.
func (h *history) makeRoom() {
	from, covered := h.start(h.over)
	drop := h.spare
	if drop == 0 {
		drop = h.n / 8
	}
	switch {
	case covered && from >= drop:
		h.drop(from)
		return
	case h.step >= maxStep:
		h.drop(drop)
		return
	}
	h.number()
	kept := 0
	for i := 0; i < h.n; i += foldBy {
		h.fold(kept, i, min(i+foldBy, h.n))
		kept++
	}
	h.n = kept
	h.cut(kept)
	h.step *= foldBy
}

// refine makes new points of fewer batches where few points make up the extent: the
// stream has become slower.
func (h *history) refine() {
	if h.step == 1 {
		return
	}
	few := h.limit/(2*foldBy) - 1 // the most that are too few
	if from := max(0, h.n-few); few > 0 && h.covers(h.over, from) {
		h.step /= foldBy
	}
}

// counted is how many batches a point stands for.
func (h *history) counted(i int) int {
	if h.count == nil {
		return 1
	}
	return int(h.count[i])
}

// number makes room for points of several batches.
func (h *history) number() {
	if h.count != nil {
		return
	}
	h.count = make([]uint16, len(h.batch), cap(h.batch))
	for i := range h.count {
		h.count[i] = 1
	}
}

// drop forgets the oldest points.
func (h *history) drop(k int) {
	copy(h.batch, h.batch[k:])
	copy(h.at, h.at[k:])
	if h.count != nil {
		copy(h.count, h.count[k:])
	}
	copy(h.values, h.values[k*h.columns:])
	h.n -= k
	h.cut(h.n)
}

// fold makes points [from, until) the point `to`, which is not behind them.
func (h *history) fold(to, from, until int) {
	if until-from == 1 && to == from {
		return
	}
	at, sum := (from+until-1)/2, 0
	for i := from; i < until; i++ {
		sum += h.counted(i)
		if h.peaks && h.value(i, 0) > h.value(at, 0) {
			at = i
		}
	}
	h.batch[to], h.at[to], h.count[to] = h.batch[at], h.at[at], uint16(min(sum, math.MaxUint16))
	var room [maxStep]float64
	for c := range h.columns {
		v := h.values[at*h.columns+c]
		if !h.peaks {
			v = float32(medianOf(h.known(room[:0], c, from, until)))
		}
		h.values[to*h.columns+c] = v
	}
}

// known appends the figures of a column that are there.
func (h *history) known(to []float64, c, from, until int) []float64 {
	for i := from; i < until; i++ {
		if v := h.value(i, c); v == v {
			to = append(to, v)
		}
	}
	return to
}

func (h *history) value(i, c int) float64 { return float64(h.values[i*h.columns+c]) }

// start returns the first of the newest points that make up the extent, and whether
// there are enough; 0 where there are not.
func (h *history) start(e Extent) (from int, covered bool) {
	batches := 0
	for i := h.n - 1; i >= 0; i-- {
		batches += h.counted(i)
		if e.Met(batches, h.ageMs(i)) {
			return i, true
		}
	}
	return 0, false
}

// covers reports whether the points since from make up the extent: what an older point
// adds is batches and time.
func (h *history) covers(e Extent, from int) bool {
	return h.n > 0 && e.Met(h.batches(from), h.ageMs(from))
}

// ageMs is the time from a point to the newest one.
func (h *history) ageMs(i int) int64 { return int64(h.at[h.n-1]-h.at[i]) * tickMs }

// spanMs is the time that the points cover.
func (h *history) spanMs() int64 {
	if h.n == 0 {
		return 0
	}
	return h.ageMs(0)
}

// batches counts what the points since from stand for.
func (h *history) batches(from int) int {
	if h.count == nil {
		return h.n - from
	}
	sum := 0
	for _, n := range h.count[from:h.n] {
		sum += int(n)
	}
	return sum
}

// rare reports whether the newest so many batches took longer than a week: what
// comes so seldom has no trend.
func (h *history) rare(batches int) bool {
	from, _ := h.start(Extent{Batches: batches})
	return h.n > 0 && h.ageMs(from) > maxAgeMs
}

// batchAt is the batch of a point.
func (h *history) batchAt(i int) int64 { return h.base + int64(h.batch[i]) }

// column appends the figures of column c since point from.
func (h *history) column(to []float64, c, from int) []float64 {
	for i := from; i < h.n; i++ {
		to = append(to, h.value(i, c))
	}
	return to
}

// ids appends the batches since point from.
func (h *history) ids(to []int64, from int) []int64 {
	for i := from; i < h.n; i++ {
		to = append(to, h.batchAt(i))
	}
	return to
}

// timesMs appends the points' times, milliseconds of the history's own clock.
func (h *history) timesMs(to []int64, from int) []int64 {
	for i := from; i < h.n; i++ {
		to = append(to, int64(h.at[i])*tickMs)
	}
	return to
}

// reset forgets all batches; the room stays.
func (h *history) reset() {
	h.n, h.step, h.clock, h.count = 0, 1, steadyClock{}, nil
	h.cut(0)
}

// frozen is what stays of a history that nothing is added to any more. Memory: 4 bytes
// a figure.
type frozen struct {
	values  []float32 // columns of a point side by side
	columns int
	batches int
	spanMs  int64
	rare    bool // so many of the newest batches took longer than a week
}

// freeze keeps what comparisons with a history ask for. rare is as for history.rare.
func (h *history) freeze(rare int) *frozen {
	return &frozen{
		values: append(make([]float32, 0, h.n*h.columns), h.values[:h.n*h.columns]...), columns: h.columns,
		batches: h.batches(0), spanMs: h.spanMs(), rare: h.rare(rare),
	}
}

// column appends the figures of column c.
func (f *frozen) column(to []float64, c int) []float64 {
	for i := c; i < len(f.values); i += f.columns {
		to = append(to, float64(f.values[i]))
	}
	return to
}

// medianOf returns the median, NaN of nothing. It reorders v.
func medianOf(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	n := len(v)
	return v[(n-1)/2] + (v[n/2]-v[(n-1)/2])/2
}
