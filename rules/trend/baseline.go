package trend

import "math"

// Baseline is what a series does while it is well: its median, and its spread as
// the scaled median deviation, so that up to half of the points that it was learned
// from may be spikes.
type Baseline struct {
	N             int     // points that it was learned from, 0 for none
	Level, Spread float64 // in the value's unit; Spread is above 0 unless N is 0
}

// Known reports whether the baseline was learned from anything.
func (b Baseline) Known() bool { return b.N > 0 && b.Spread > 0 }

// Score returns how many spreads v lies above the level; 0 without a baseline.
func (b Baseline) Score(v float64) float64 {
	if !b.Known() || !measurable(v) {
		return 0
	}
	return (v - b.Level) / b.Spread
}

// Baseline learns from y. The spread counts as at least 1 % of the level and at
// least floor, in the value's unit: whole milliseconds are often flat, and no spread
// at all would make each step infinitely far away. Values that are not finite are
// left out. O(n), no allocation once s has its size.
//
// When to learn is the caller's to decide, and matters more than how: from batches
// that were quiet, after a run's first few, and never while something is found, or
// the fault becomes the baseline.
func (s *Scratch) Baseline(y []float64, floor float64) Baseline {
	s.sorted = appendMeasurable(s.sorted[:0], y)
	if len(s.sorted) == 0 {
		return Baseline{}
	}
	level, spread := s.spread(s.sorted, 1, max(floor, 0))
	spread = max(spread, madFloorShare*math.Abs(level), math.SmallestNonzeroFloat64)
	return Baseline{N: len(s.sorted), Level: level, Spread: spread}
}

// appendMeasurable appends the values of y that can be computed with.
func appendMeasurable(to, y []float64) []float64 {
	for _, v := range y {
		if measurable(v) {
			to = append(to, v)
		}
	}
	return to
}
