package trend

import "math"

// shape is how a series moves: level up to from, then higher by amount (a step),
// or climbing by amount a batch (a bend).
type shape struct {
	from, amount float64
	bend         bool
	squares      float64 // sum of squares that it leaves
	lineSquares  float64 // sum of squares that a straight line leaves
	meanY, meanF float64
}

// clearlyBetter is the share of a line's squares that a step or a bend must stay
// below to take its place.
const clearlyBetter = 0.6

// beatsLine reports whether the shape describes the points clearly better than a
// straight line does.
func (p shape) beatsLine() bool { return p.squares < clearlyBetter*p.lineSquares }

// at returns the shape's value at x.
func (p shape) at(x float64) float64 { return p.meanY + p.amount*(p.regressor(x)-p.meanF) }

func (p shape) regressor(x float64) float64 {
	switch {
	case x < p.from:
		return 0
	case p.bend:
		return x - p.from
	}
	return 1
}

// picture returns the step or bend that leaves the least squares of the kept
// points, over all places; sign +1 or -1 admits only moves up or down, 0 both.
// Outliers are gone, so squares are safe here. O(n).
func (s *Scratch) picture(sign float64) shape {
	var all, tail sums
	for i, x := range s.keptX {
		all.add(x, s.keptY[i])
	}
	best := shape{from: s.keptX[0]}
	gained := 0.0
	for k := len(s.keptX) - 1; k >= 0; k-- {
		from := s.keptX[k]
		tail.add(from, s.keptY[k])
		step, bend := tail.step(), tail.bend(from)
		if g := all.gain(step, sign); g > gained {
			gained, best = g, shape{from: from, amount: all.amount(step), meanF: step.f / all.n}
		}
		if g := all.gain(bend, sign); g > gained {
			gained, best = g, shape{from: from, amount: all.amount(bend), meanF: bend.f / all.n, bend: true}
		}
	}
	best.meanY = all.y / all.n
	total := max(all.yy-all.y*all.y/all.n, 0)
	best.squares = max(total-gained, 0)
	best.lineSquares = max(total-all.gain(all.bend(0), 0), 0)
	return best
}

// sums are moments of points.
type sums struct{ n, x, y, xx, xy, yy float64 }

func (m *sums) add(x, y float64) {
	m.n++
	m.x += x
	m.y += y
	m.xx += x * x
	m.xy += x * y
	m.yy += y * y
}

// regressor is the sum of a regressor, of its square and of its product with y.
type regressor struct{ f, ff, fy float64 }

// step is 1 on the points of m and 0 elsewhere.
func (m *sums) step() regressor { return regressor{m.n, m.n, m.y} }

// bend is x - from on the points of m and 0 elsewhere.
func (m *sums) bend(from float64) regressor {
	return regressor{
		f:  m.x - m.n*from,
		ff: m.xx - 2*from*m.x + m.n*from*from,
		fy: m.xy - from*m.y,
	}
}

// gain is the part of the squares that a regressor explains; 0 for a move against
// sign.
func (m *sums) gain(r regressor, sign float64) float64 {
	cov, variance := r.fy-r.f*m.y/m.n, r.ff-r.f*r.f/m.n
	if variance <= 1e-12*r.ff || sign*cov < 0 || math.IsNaN(cov) {
		return 0
	}
	return cov * cov / variance
}

// amount is the least squares coefficient of a regressor.
func (m *sums) amount(r regressor) float64 {
	return (r.fy - r.f*m.y/m.n) / (r.ff - r.f*r.f/m.n)
}
