package trend

import "math"

// Follows says which of two figures a third one scales with.
type Follows uint8

// The verdicts of PartialRank.
const (
	// FollowsUnknown means that there are too few points.
	FollowsUnknown Follows = iota
	// FollowsNeither means that it goes with neither.
	FollowsNeither
	// FollowsDriver means that it goes with the driver, whatever the rival does.
	FollowsDriver
	// FollowsRival is the reverse.
	FollowsRival
	// FollowsBoth means that each has its own part in it.
	FollowsBoth
	// CannotSeparate means that driver and rival, or driver and time, moved so much
	// alike that no figures can tell them apart.
	CannotSeparate
)

// String returns the verdict in words.
func (f Follows) String() string {
	switch f {
	case FollowsUnknown:
		return "too few points"
	case FollowsNeither:
		return "follows neither"
	case FollowsDriver:
		return "follows the driver"
	case FollowsRival:
		return "follows the rival"
	case FollowsBoth:
		return "follows both"
	case CannotSeparate:
		return "cannot separate"
	}
	return "unknown"
}

// PartialOptions say what counts as going together.
type PartialOptions struct {
	// MinPoints is the least number of points with all figures; 0 means 60, never
	// below 20.
	MinPoints int
	// AtLeast is the partial correlation from which on a figure is followed; 0 means
	// .4. Below AtMost, 0 meaning three quarters of AtLeast, it is not; between them
	// it counts only where the other one is not followed.
	AtLeast, AtMost float64
	// Z is the one-sided limit that the correlation must pass, with memory allowed
	// for; 0 means 3.09.
	Z float64
}

// Association is how a figure goes with a driver, and with a rival.
type Association struct {
	Verdict Follows
	N       int
	// Driver and Rival are Spearman's correlations with the figure, given the other
	// one and time; RawDriver and RawRival those given nothing.
	Driver, Rival       float64
	RawDriver, RawRival float64
	// DriverTime, RivalTime and FigureTime are correlations with time; DriverRival
	// that of the two candidates.
	DriverTime, RivalTime, FigureTime, DriverRival float64
	// Effective is the number of independent points that N is worth.
	Effective float64
	// WithTime is true where CannotSeparate is time's doing.
	WithTime bool
}

const (
	leastAssociated = 20
	// inseparable is the Spearman correlation from which on two figures are one.
	inseparable = 0.9
	// trending is the correlation with time from which on a figure counts as
	// trending itself.
	trending = 0.4
)

// PartialRank says whether a figure follows driver or rival (for instance: does the
// commit's time go with the size of the state or with the rows that come in?). It
// takes Spearman's rank correlations of all of them and of time, and from those the
// correlation with one candidate given the other and given time (Kendall 1942;
// inverse of the correlation matrix). rival may be nil. Points where one of the
// figures is missing are left out; at is their time or batch, and may be nil for
// evenly spaced points.
//
// The guard against time: two figures that both climb correlate whether or not one
// drives the other, and no arithmetic can tell. Where the driver's correlation with time
// is .9 or more and the figure trends too, the verdict is CannotSeparate; the same where
// driver and rival are .9 alike.
//
// Errors in 300 windows of 160 batches each, noise of 15 % and a state that is cut back
// each 40 batches: the state's doing, the input's, that of both and nobody's are told
// apart in all. A figure that climbs by itself beside a state that climbs is "cannot
// separate" in all of them, where the plain correlation blames the state in all.
//
// Cost: O(n log n), some 15 µs at 120 points and 30 at 240; no allocation once s has its
// size.
//
// Pitfalls: ranks see only what is monotonic; a common cause of both looks like
// following; a correlation says nothing of the amount, for which see Elasticity.
func (s *Scratch) PartialRank(figure, driver, rival, at []float64, o PartialOptions) Association {
	o = o.withDefaults()
	if !s.gather(figure, driver, rival, at) || len(s.y) < o.MinPoints {
		return Association{N: len(s.y)}
	}
	s.ranks, s.ranksB = s.rank(s.y, s.ranks), s.rank(s.keptX, s.ranksB)
	s.ranksT = s.rank(s.x, s.ranksT)
	a := Association{N: len(s.y)}
	a.RawDriver, a.DriverTime, a.FigureTime = pearson(s.ranks, s.ranksB), pearson(s.ranksB, s.ranksT), pearson(s.ranks, s.ranksT)
	if rival != nil {
		s.ranksC = s.rank(s.keptY, s.ranksC)
		a.RawRival, a.RivalTime, a.DriverRival = pearson(s.ranks, s.ranksC), pearson(s.ranksC, s.ranksT), pearson(s.ranksB, s.ranksC)
	}
	a.partial(rival != nil)
	a.Effective = s.effective(a.N)
	a.Verdict, a.WithTime = a.verdict(o, rival != nil)
	return a
}

func (o PartialOptions) withDefaults() PartialOptions {
	if o.MinPoints <= 0 {
		o.MinPoints = 60
	}
	o.MinPoints = max(o.MinPoints, leastAssociated)
	if !(o.AtLeast > 0) {
		o.AtLeast = 0.4
	}
	if !(o.AtMost > 0) {
		o.AtMost = 0.75 * o.AtLeast
	}
	if !(o.Z > 0) {
		o.Z = ConfidenceZ(0.999)
	}
	return o
}

// gather keeps the points that have all figures: the figure in y, time in x, driver
// and rival in the kept buffers. It reports false where lengths do not match.
func (s *Scratch) gather(figure, driver, rival, at []float64) bool {
	s.x, s.y, s.keptX, s.keptY = s.x[:0], s.y[:0], s.keptX[:0], s.keptY[:0]
	n := len(figure)
	if len(driver) != n || rival != nil && len(rival) != n || at != nil && len(at) != n {
		return false
	}
	for i, v := range figure {
		t, r := float64(i), 0.0
		if at != nil {
			t = at[i]
		}
		if rival != nil {
			r = rival[i]
		}
		if !measurable(v) || !measurable(driver[i]) || !measurable(r) || !measurable(t) {
			continue
		}
		s.x, s.y = append(s.x, t), append(s.y, v)
		s.keptX, s.keptY = append(s.keptX, driver[i]), append(s.keptY, r)
	}
	return true
}

// flatShare of the squares is rounding: what varies by no more is constant.
const flatShare = 1e-14

// pearson returns the correlation of a and b, 0 where one of them is constant.
func pearson(a, b []float64) float64 {
	n := float64(len(a))
	ma, mb := 0.0, 0.0
	for i := range a {
		ma, mb = ma+a[i]/n, mb+b[i]/n
	}
	var ab, aa, bb float64
	for i := range a {
		da, db := a[i]-ma, b[i]-mb
		ab, aa, bb = ab+da*db, aa+da*da, bb+db*db
	}
	if !(aa > flatShare*n*ma*ma) || !(bb > flatShare*n*mb*mb) {
		return 0
	}
	return min(max(ab/math.Sqrt(aa*bb), -1), 1)
}

// given returns the correlation of a and b with c held, from the three of them.
func given(ab, ac, bc float64) float64 {
	rest := (1 - ac*ac) * (1 - bc*bc)
	if rest < 1e-9 {
		return 0
	}
	return min(max((ab-ac*bc)/math.Sqrt(rest), -1), 1)
}

// partial fills Driver and Rival.
func (a *Association) partial(rival bool) {
	driver := given(a.RawDriver, a.FigureTime, a.DriverTime)
	if !rival {
		a.Driver = driver
		return
	}
	other := given(a.RawRival, a.FigureTime, a.RivalTime)
	between := given(a.DriverRival, a.DriverTime, a.RivalTime)
	a.Driver, a.Rival = given(driver, other, between), given(other, driver, between)
}

// effective is how many independent points n are worth: the memory of the figure's
// and the driver's ranks, time taken out, widens a correlation by (1+ab)/(1-ab)
// (Bartlett 1935).
func (s *Scratch) effective(n int) float64 {
	m := s.memoryWithoutTime(s.ranks) * s.memoryWithoutTime(s.ranksB)
	return max(float64(n)*(1-m)/(1+m), 4)
}

func (s *Scratch) memoryWithoutTime(ranks []float64) float64 {
	n := float64(len(ranks))
	mid := (n + 1) / 2
	var tt, tr float64
	for i, r := range ranks {
		t := s.ranksT[i] - mid
		tt, tr = tt+t*t, tr+t*(r-mid)
	}
	s.residual = s.residual[:0]
	for i, r := range ranks {
		s.residual = append(s.residual, r-mid-tr/max(tt, 1)*(s.ranksT[i]-mid))
	}
	return lagOneOf(s.residual, 0.5)
}

// verdict weighs the correlations.
func (a *Association) verdict(o PartialOptions, rival bool) (v Follows, withTime bool) {
	z := func(r float64) float64 {
		return math.Atanh(min(math.Abs(r), 0.999999)) * math.Sqrt(max(a.Effective-5, 1))
	}
	strong := func(r float64) bool { return math.Abs(r) >= o.AtLeast && z(r) > o.Z }
	moves := math.Abs(a.FigureTime) > trending
	if moves && (math.Abs(a.DriverTime) > inseparable || rival && math.Abs(a.RivalTime) > inseparable && !strong(a.Driver)) {
		return CannotSeparate, true
	}
	if rival && math.Abs(a.DriverRival) > inseparable && (strong(a.RawDriver) || strong(a.RawRival)) {
		return CannotSeparate, false
	}
	driver, other := strong(a.Driver), rival && strong(a.Rival)
	switch {
	case driver && other:
		return FollowsBoth, false
	case driver && math.Abs(a.Rival) <= math.Max(o.AtMost, math.Abs(a.Driver)/2):
		return FollowsDriver, false
	case other && math.Abs(a.Driver) <= math.Max(o.AtMost, math.Abs(a.Rival)/2):
		return FollowsRival, false
	case driver || other:
		return CannotSeparate, false
	}
	return FollowsNeither, false
}

// ElasticityFit is the percent of value for a percent of driver.
type ElasticityFit struct {
	N int // points with both above 0
	// Value is 1 for what grows in proportion, 0 for what does not follow at all;
	// NaN with fewer than 10 points or a driver that varies by less than 5 %.
	Value, Low, High float64
}

// Elasticity fits log(figure) against log(driver) by Theil-Sen, so that "sync time
// grows with size to the power .9" can be said, with Sen's widened range. Equal
// drivers count as one point, their median figure. O(n log n) like TheilSen, 0.1 ms at
// 120 points and 0.5 at 240; no allocation once s has its size. The range held the truth
// in 95 of 100 or more windows at powers from -1 to 1.5.
//
// Pitfalls: it says how much, not whether; ask PartialRank first. A driver that is
// itself noisy makes the answer too small. A fixed part that does not scale makes it
// smaller at low drivers.
func (s *Scratch) Elasticity(figure, driver []float64) ElasticityFit {
	none := ElasticityFit{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
	s.load, s.y = s.load[:0], s.y[:0]
	for i := range min(len(figure), len(driver)) {
		if figure[i] > 0 && driver[i] > 0 && measurable(figure[i]) && measurable(driver[i]) {
			s.load, s.y = append(s.load, math.Log(driver[i])), append(s.y, math.Log(figure[i]))
		}
	}
	none.N = len(s.y)
	if none.N < leastPoints {
		return none
	}
	if _, spread := s.loadSpread(s.load); !(spread > loadVaries) {
		return none
	}
	s.byDriver()
	if len(s.keptX) < leastPoints/2 {
		return none
	}
	line := s.line(s.keptX, s.keptY)
	k := s.mannKendall(s.keptY)
	low, high := s.slopeRange(s.keptX, s.keptY, line.Slope, rangeZ, k.VarS)
	return ElasticityFit{N: none.N, Value: line.Slope, Low: low, High: high}
}

// byDriver fills the kept buffers with the points in order of their driver, equal
// ones as one point.
func (s *Scratch) byDriver() {
	s.ranks = s.rank(s.load, s.ranks)
	s.keptX, s.keptY = s.keptX[:0], s.keptY[:0]
	for i := 0; i < len(s.order); {
		x := s.load[s.order[i]]
		s.pick = s.pick[:0]
		for ; i < len(s.order) && s.load[s.order[i]] == x; i++ {
			s.pick = append(s.pick, s.y[s.order[i]])
		}
		s.keptX, s.keptY = append(s.keptX, x), append(s.keptY, medianInPlace(s.pick))
	}
}
