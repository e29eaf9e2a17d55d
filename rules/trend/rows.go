package trend

import "math"

// Rows is memory in which callers gather what a judgement looks at, so that a
// judgement allocates nothing. Contents are the caller's from one judgement to the
// next; the methods of Scratch do not touch them.
type Rows struct {
	X, Y, Before, Load, Driver, Rival []float64
	Batch, Ms                         []int64
	Places                            []int
}

// Rows returns the memory that goes with s.
func (s *Scratch) Rows() *Rows { return &s.rows }

// Median returns the median of v, the mean of the middle two for an even count, and
// NaN of nothing. O(n); v stays as it is.
func (s *Scratch) Median(v []float64) float64 { return s.median(v) }

// LikeLoad returns the median of the values y of those batches whose load is nearest
// to want, some 60 of them: what a batch of such a load takes. Batches of less load
// are scaled in proportion (of more load, where falling), the most that load
// plausibly explains. It reports false where fewer than half of the loads are known.
// O(n).
//
// Pitfall: where load only ever grew, those batches are also the newest ones.
func (s *Scratch) LikeLoad(y, load []float64, want float64, falling bool) (float64, bool) {
	if _, known := s.knownMedian(load); !known || len(y) != len(load) || !measurable(want) {
		return math.NaN(), false
	}
	return s.likeLoad(y, load, want, falling), true
}

// WithoutLoad appends to into what y would be at the median load, by the same robust
// regression that Rising adjusts with (Huber 1964, on load and on time x), NaN where
// the load is unknown. It reports false, and appends y as it is, where fewer than half
// of the loads are known. O(n) a round, 12 rounds.
//
// Pitfall: a fault that the load happens to go along with is taken out too, as far as
// a unit of load may plausibly cost that much.
func (s *Scratch) WithoutLoad(into, x, y, load []float64) ([]float64, bool) {
	s.x, s.y, s.load = append(s.x[:0], x...), append(s.y[:0], y...), append(s.load[:0], load...)
	s.keepLoaded()
	if len(s.keptX) < leastPoints || 2*len(s.keptX) < len(y) {
		return append(into, y...), false
	}
	mid, spread := s.loadSpread(s.keptLoad)
	b := 0.0
	if spread > loadVaries*math.Abs(mid) {
		withTime := math.Abs(s.mannKendall(s.keptLoad).Tau) > timeBound
		b = s.huberSlope(s.keptX, s.keptY, s.keptLoad, spread, !withTime)
		b = min(max(b, 0), s.unitCost(s.keptY, s.keptLoad))
	}
	for i := range y {
		into = append(into, y[i]-b*(load[i]-mid))
	}
	return into, true
}
