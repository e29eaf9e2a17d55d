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
	center = s.median(v)
	s.pick = s.pick[:0]
	for _, x := range v {
		s.pick = append(s.pick, math.Abs(x-center))
	}
	return center, limit * max(madScale*medianInPlace(s.pick), floor)
}

// setOutliersAside fills the kept buffers with the points near the line.
func (s *Scratch) setOutliersAside(x, y []float64, l Line) {
	s.residual = s.residual[:0]
	for i := range x {
		s.residual = append(s.residual, y[i]-l.At(x[i]))
	}
	center, width := s.spread(s.residual, hampelLimit, madFloorShare*math.Abs(s.median(y)))
	s.keptX, s.keptY, s.index = s.keptX[:0], s.keptY[:0], s.index[:0]
	for i, e := range s.residual {
		if math.Abs(e-center) > width {
			continue
		}
		s.keptX, s.keptY, s.index = append(s.keptX, x[i]), append(s.keptY, y[i]), append(s.index, i)
	}
}
