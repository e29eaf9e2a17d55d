package trend

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

// Fit is what the window's points do without their outliers, and how sure it is
// that they do not stay level. That is a Theil-Sen line, or a step or bend where it
// leaves less than .6 of the line's squares.
type Fit struct {
	N, Outliers   int     // points kept and set aside
	SlopePerBatch float64 // of the Theil-Sen line, unit of the value per batch id
	Start, End    float64 // the fit at the oldest and at the newest point
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
// Wang 2004); z must pass Z and the fit must climb by enough.
//
// Cost: some nanoseconds where the gate holds (9 batches of 10), else 0.05 to 0.3
// ms for 120 to 240 points.
//
// Errors measured with the defaults over 120 batches, judged at each batch and held
// for 5, in false episodes per 1,000 of 60,000 healthy batches: .02 with independent
// noise and outliers, .18 with AR .6, .05 with AR .6 and spikes of five times, .30 on a
// level that wanders by 10 %, .87 by 20 %. Of 20 faults in the milder of these noises,
// a step of half as much again is found in 20 (AR .6: 14) after some 26 to 41 batches,
// a ramp of half a percent a batch in 20 after 61 to 106, a step of 30 % in 18 (9)
// after 33 to 50; with hardly any noise a step takes 16 batches. That is an early
// watch: a ticket should ask that 120 and 240 batches agree for 20.
//
// Pitfalls: a window that is half before and half after a step "rises"; what
// explodes within the last few batches is set aside or outvoted until more of it is
// seen, which is for a limit to catch.
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
	from, found := s.rises(o, &res)
	if !found {
		return res
	}
	res.Since = w.ring.firstBatchAt(s.x, from)
	if o.AdjustForLoad {
		s.judgeLoad(o, &res)
	}
	return res
}

// rises runs the dear test over the points in s and returns where the move began.
func (s *Scratch) rises(o RisingOptions, res *RisingResult) (from float64, found bool) {
	var line Line
	res.Fit, line = s.fit(s.x, s.y)
	if !o.passes(res.Fit, o.Z) {
		return 0, false
	}
	res.Verdict = Found
	res.RiseLow, res.RiseHigh = s.riseRange(res.Fit, line)
	return s.picture(o.sign()).from, true
}

// The limits where none are set. The quantiles are dear, and asked for at each batch.
var defaultZ, defaultGateZ = ConfidenceZ(0.999), ConfidenceZ(0.99)

func (o RisingOptions) withDefaults() RisingOptions {
	if o.Z <= 0 {
		o.Z = defaultZ
	}
	if o.GateZ <= 0 {
		o.GateZ = defaultGateZ
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
	line := s.line(x, y)
	s.setOutliersAside(x, y, line)
	if len(s.keptX) < len(x) {
		line = s.line(s.keptX, s.keptY)
	}
	return s.weigh(x, line), line
}

// weigh says what the kept points do around a line, and how surely.
func (s *Scratch) weigh(x []float64, line Line) Fit {
	n := len(s.keptX)
	shape := s.picture(0)
	bent := shape.beatsLine()
	k := s.mannKendall(s.keptY)
	f := Fit{N: n, Outliers: len(x) - n, SlopePerBatch: line.Slope}
	f.R1 = s.memory(line, shape, bent)
	f.VarianceFactor = AR1VarianceFactor(f.R1, n)
	f.Z = standardize(k.S, k.VarS*f.VarianceFactor)
	first, last := x[0], x[len(x)-1]
	f.Start, f.End = line.At(first), line.At(last)
	if bent {
		f.Start, f.End = shape.at(first), shape.at(last)
	}
	f.Rise = f.End - f.Start
	if f.Start > 0 {
		f.Relative = f.Rise / f.Start
	}
	return f
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
