package trend

import "math"

const (
	// leastPoints is the least number of points that is ever judged.
	leastPoints = 10
	// rangeZ is Sen's interval widened: 1.96 covers far less than 95 % of short
	// dependent series.
	rangeZ = 2.4
)

// RisingOptions say what counts as a rise. DefaultRising gives the values that
// the error rates at Rising were measured with.
type RisingOptions struct {
	// MinPoints is the least number of batches with a value; never below 10.
	MinPoints int
	// Z is the one-sided limit of the corrected test; 0 means 3.09 (99.9 %).
	Z float64
	// GateZ is the limit of the cheap test before it, which takes batches for
	// independent; 0 means 2.33 (99 %), and never more than Z.
	GateZ float64
	// By is the least rise over the window as a share of the fitted value at its
	// start; AtLeast the least rise in the value's unit. Both must be met.
	By, AtLeast float64
	// AdjustForLoad asks whether Point.Load explains the rise.
	AdjustForLoad bool
	// Falling looks for a fall instead.
	Falling bool
}

// DefaultRising returns 60 batches, 99.9 %, a gate of 99 % and a rise by a quarter.
func DefaultRising() RisingOptions {
	return RisingOptions{MinPoints: 60, Z: ConfidenceZ(0.999), GateZ: ConfidenceZ(0.99), By: 0.25}
}

// Fit is a line through the window's points without their outliers, and how sure
// it is that it is not flat.
type Fit struct {
	N, Outliers   int     // points kept and set aside
	SlopePerBatch float64 // unit of the value per batch id
	Start, End    float64 // the line at the oldest and at the newest point
	Rise          float64 // End - Start: negative in a fall
	Relative      float64 // Rise / Start; 0 where Start is not positive
	Z             float64 // corrected for memory; positive in a rise
	// R1 is the lag-1 correlation around the line, and VarianceFactor what it
	// makes of the variance of S.
	R1, VarianceFactor float64
}

// RisingResult is a judgement and its evidence. Where the cheap test already says
// Clear, or the points are too few, Fit and what follows it are zero.
type RisingResult struct {
	Verdict Verdict
	RawZ    float64 // the cheap test over all points, without correction
	Batches int     // batches in the window
	Fit
	// RiseLow and RiseHigh are the likely range of Rise; only with a finding.
	RiseLow, RiseHigh float64
	Since             int64 // batch where the move began, -1 without a finding
	// Load is what became of the load adjustment, zero where none was made.
	Load LoadFit
}

// Rising judges whether the values of the window rise (or fall).
//
// The cheap test is Mann-Kendall's z from the S that Push maintains. Past the gate
// points further than 3.5 scaled deviations from a Theil-Sen line are set aside; the
// variance of S over the rest is multiplied for the memory that they show (Yue and
// Wang 2004); z must pass Z and the Theil-Sen line must climb by enough.
//
// Cost: some nanoseconds where the gate holds (9 batches of 10), else 0.1 to 0.5
// ms for 120 to 240 points. Errors measured with the defaults over 120 batches and
// the finding held for 5: .02 to .4 false episodes per 1,000 healthy batches, up
// to .8 on a level that wanders by 20 %; a step of 40 % is found after some 35
// batches, a ramp of half a percent a batch after 50 to 85. That is an early
// watch: a ticket should ask that 120 and 240 batches agree and hold for 20.
//
// Pitfalls: a window that is half before and half after a step "rises"; something
// that explodes within the last tenth of the window counts as outliers until more
// of it is seen, which is for a limit to catch.
func (w *Window) Rising(o RisingOptions) RisingResult {
	o = o.withDefaults()
	res := RisingResult{Batches: w.ring.batches, Since: -1}
	if w.ring.batches < o.MinPoints || w.ring.n < leastPoints {
		return res
	}
	res.Verdict = Clear
	res.RawZ = kendallOf(w.ring.n, w.rank.s, w.rank.tieTerm).Z
	if o.sign()*res.RawZ <= o.GateZ {
		return res
	}
	s := w.work()
	s.x, s.y, s.load = w.ring.copyTo(s.x[:0], s.y[:0], s.load[:0])
	var line Line
	res.Fit, line = s.fit(s.x, s.y)
	if !o.passes(res.Fit, o.Z) {
		return res
	}
	res.Verdict = Found
	res.RiseLow, res.RiseHigh = s.riseRange(res.Fit, line)
	res.Since = w.ring.firstBatchAt(s.x, s.since(o.sign()))
	if o.AdjustForLoad {
		s.judgeLoad(o, &res)
	}
	return res
}

func (o RisingOptions) withDefaults() RisingOptions {
	if o.Z <= 0 {
		o.Z = ConfidenceZ(0.999)
	}
	if o.GateZ <= 0 {
		o.GateZ = ConfidenceZ(0.99)
	}
	o.GateZ = min(o.GateZ, o.Z)
	o.MinPoints = max(o.MinPoints, leastPoints)
	return o
}

func (o RisingOptions) sign() float64 {
	if o.Falling {
		return -1
	}
	return 1
}

// passes reports whether f is sure and large enough.
func (o RisingOptions) passes(f Fit, z float64) bool {
	move := o.sign() * f.Rise
	return o.sign()*f.Z > z && move > 0 && move >= o.By*f.Start && move >= o.AtLeast
}

// fit runs the dear test over the points. It leaves what it kept in the buffers.
func (s *Scratch) fit(x, y []float64) (Fit, Line) {
	s.setOutliersAside(x, y, s.line(x, y))
	n := len(s.keptX)
	line := s.line(s.keptX, s.keptY)
	k := s.mannKendall(s.keptY)
	f := Fit{N: n, Outliers: len(x) - n, SlopePerBatch: line.Slope}
	f.R1 = s.lagOne(line)
	f.VarianceFactor = AR1VarianceFactor(f.R1, n)
	f.Z = standardize(k.S, k.VarS*f.VarianceFactor)
	f.Start, f.End = line.At(x[0]), line.At(x[len(x)-1])
	f.Rise = f.End - f.Start
	if f.Start > 0 {
		f.Relative = f.Rise / f.Start
	}
	return f, line
}

// riseRange returns the likely range of the rise over the kept points.
func (s *Scratch) riseRange(f Fit, line Line) (low, high float64) {
	k := s.mannKendall(s.keptY)
	lo, hi := s.slopeRange(s.keptX, s.keptY, line.Slope, rangeZ, k.VarS*f.VarianceFactor)
	width := s.x[len(s.x)-1] - s.x[0]
	return lo * width, hi * width
}

// firstBatchAt returns the first batch of the point at x.
func (r *ring) firstBatchAt(xs []float64, x float64) int64 {
	for i := range xs {
		if xs[i] >= x {
			return r.meta[r.at(i)].first
		}
	}
	return r.meta[r.head].first
}

// since returns the x at which the kept points leave their first level, by the
// least squares of two pictures over all places: a step, and a bend from level to
// slope. Outliers are gone, so squares are safe here. O(n).
func (s *Scratch) since(sign float64) float64 {
	var all, tail sums
	for i, x := range s.keptX {
		all.add(x, s.keptY[i])
	}
	best, at := 0.0, s.keptX[0]
	for k := len(s.keptX) - 1; k >= 0; k-- {
		tail.add(s.keptX[k], s.keptY[k])
		gain := max(all.stepGain(tail, sign), all.bendGain(tail, s.keptX[k], sign))
		if gain > best {
			best, at = gain, s.keptX[k]
		}
	}
	return at
}

// sums are moments of points.
type sums struct{ n, x, y, xx, xy float64 }

func (m *sums) add(x, y float64) {
	m.n++
	m.x += x
	m.y += y
	m.xx += x * x
	m.xy += x * y
}

// stepGain is what a step at the start of tail takes from the squares of all.
func (m *sums) stepGain(tail sums, sign float64) float64 {
	return m.gain(tail.n, tail.n, tail.y, sign)
}

// bendGain is the same for a line that is level up to from and climbs after it.
func (m *sums) bendGain(tail sums, from, sign float64) float64 {
	f := tail.x - tail.n*from
	ff := tail.xx - 2*from*tail.x + tail.n*from*from
	return m.gain(f, ff, tail.xy-from*tail.y, sign)
}

// gain is the part of the squares that a regressor explains, given its sum, its
// sum of squares and its sum of products with y; 0 for a move the other way.
func (m *sums) gain(f, ff, fy, sign float64) float64 {
	cov, variance := fy-f*m.y/m.n, ff-f*f/m.n
	if variance <= 1e-12*ff || sign*cov <= 0 || math.IsNaN(cov) {
		return 0
	}
	return cov * cov / variance
}
