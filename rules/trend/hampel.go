package trend

import "math"

const (
	// hampelLimit is how many scaled median deviations from the median make an outlier.
	hampelLimit = 3.5
	// madScale makes the median deviation of normal noise its standard deviation.
	madScale = 1.4826
	// madFloorShare of the level is the least deviation that counts as noise: whole
	// milliseconds are often flat, and a deviation of 0 would make each step an outlier.
	madFloorShare = 0.01
	// longestSpike is the most points in a row that are outliers together. More of
	// them are a new level, which on a quiet series lies far off the line as well.
	longestSpike = 5
)

// Hampel marks the values that lie further than limit scaled median absolute
// deviations from the median (Hampel 1974; Davies and Gather 1993). The deviation
// counts as at least floor, in the unit of v: without a floor, a series that is
// mostly flat has a deviation of 0 and all that moves is an outlier. Up to half of
// the values may be wild. O(n).
func Hampel(v []float64, limit, floor float64) []bool {
	s := new(Scratch)
	center, width := s.spread(v, limit, floor)
	out := make([]bool, len(v))
	for i, x := range v {
		out[i] = math.Abs(x-center) > width
	}
	return out
}

// spread returns the median of v and the distance from which on it is an outlier.
func (s *Scratch) spread(v []float64, limit, floor float64) (center, width float64) {
	center, deviation := s.deviation(v)
	return center, limit * max(deviation, floor)
}

// deviation returns the median of v and the scaled median deviation from it.
func (s *Scratch) deviation(v []float64) (center, scaled float64) {
	center = s.median(v) // and s.pick is a copy of v
	for i, x := range s.pick {
		s.pick[i] = math.Abs(x - center)
	}
	return center, madScale * medianInPlace(s.pick)
}

// setOutliersAside fills the kept buffers with the points near the line, and with
// those that lie off to the same side for long.
func (s *Scratch) setOutliersAside(x, y []float64, l Line) {
	s.residual = s.residual[:0]
	for i := range x {
		s.residual = append(s.residual, y[i]-l.At(x[i]))
	}
	center, width := s.spread(s.residual, hampelLimit, madFloorShare*math.Abs(s.median(y)))
	s.keptX, s.keptY, s.index = s.keptX[:0], s.keptY[:0], s.index[:0]
	for i := 0; i < len(x); {
		side := sideOf(s.residual[i]-center, width)
		end := i + 1
		for end < len(x) && sideOf(s.residual[end]-center, width) == side {
			end++
		}
		if side == 0 || end-i > longestSpike {
			s.keep(x, y, i, end)
		}
		i = end
	}
}

// sideOf returns -1, 0 or +1: below, within or above the width.
func sideOf(e, width float64) int {
	switch {
	case e > width:
		return 1
	case e < -width:
		return -1
	}
	return 0
}

func (s *Scratch) keep(x, y []float64, from, until int) {
	s.keptX, s.keptY = append(s.keptX, x[from:until]...), append(s.keptY, y[from:until]...)
	for i := from; i < until; i++ {
		s.index = append(s.index, i)
	}
}
