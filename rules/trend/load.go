package trend

import "math"

const (
	// loadVaries is the least spread of the load (9th less 1st decile, as a share
	// of the median) that could explain anything.
	loadVaries = 0.05
	// timeBound is the Kendall correlation of load and time beyond which the two
	// cannot be told apart; it answers to a Spearman correlation of .9.
	timeBound = 0.72
	// unitSlack is how much more a unit of load may be said to cost than it cost
	// at the window's start.
	unitSlack = 1.1
	// negligible is the share of a rise that load must explain to be its reason.
	negligible = 0.2
	// huberK is where Huber's weights begin to fall, in standard deviations.
	huberK = 1.345
	// It takes at most huberRounds, and stops where the last changed the slope by less
	// than huberSettled of it, or what a usual change of load makes by less than that of
	// the noise: a load that nothing follows has no slope to settle.
	huberRounds  = 12
	huberSettled = 1e-3
)

// LoadFit is what load has to do with the value.
type LoadFit struct {
	Adjusted Fit // of the values as they would be at the median load
	// PerUnit is the value that one unit of load costs, and Elasticity the percent
	// of value for a percent of load at the medians.
	PerUnit, Elasticity float64
	// WithTime is true where load moved with time so closely that the two cannot be
	// told apart: then load is given all that it can plausibly explain.
	WithTime bool
}

// judgeLoad takes a finding back where load explains it.
//
// The value at the median load is value - b*(load - median load), with b from a
// Huber regression of value on load and time: the time term keeps a slowdown from
// being charged to a load that happens to grow with it. Where load and time cannot
// be told apart (a daily flank, a growing topic) there is no time term. In both cases
// b is held between 0 and 1.1 times what a unit of load cost in the first third of
// the window, so that a load of a tenth more never excuses a duration that doubles,
// and a slowdown at the same load stays a finding. The adjusted values must still
// rise by enough; their z need only pass the gate, since the raw ones passed Z. A
// finding of which load takes less than a fifth also stands.
//
// Limits, measured over 120 batches with noise of 10 %, load growing by a tenth to
// double, noisily or smoothly: without a fault load explains all that it causes; a value
// that climbs by half or doubles on top of it is found in .95 to 1.0. By a quarter, the
// least that is asked for, it is found in .30 to .58 beside a noisy load and hardly
// ever beside a smooth one that grows by half: what is left after the adjustment is
// then below the floor. Beside a load five times as high a climb by half is found in .7.
func (s *Scratch) judgeLoad(o RisingOptions, res *RisingResult) {
	s.keepLoaded()
	if len(s.keptX) == 0 || 2*len(s.keptX) < len(s.x) || len(s.keptX) < leastPoints {
		res.Verdict = CannotTell
		return
	}
	x, y, load := s.keptX, s.keptY, s.keptLoad
	mid, spread := s.loadSpread(load)
	if !(spread > loadVaries*math.Abs(mid)) {
		return
	}
	res.Load.WithTime = math.Abs(s.mannKendall(load).Tau) > timeBound
	b := s.huberSlope(x, y, load, spread, !res.Load.WithTime)
	b = min(max(b, 0), s.unitCost(y, load))
	s.adjusted = s.adjusted[:0]
	for i := range x {
		s.adjusted = append(s.adjusted, y[i]-b*(load[i]-mid))
	}
	if level := s.median(y); level > 0 {
		res.Load.Elasticity = b * mid / level
	}
	res.Load.PerUnit = b
	// fit reuses the kept buffers, so it works on the window's own.
	s.x, s.y = append(s.x[:0], x...), append(s.y[:0], s.adjusted...)
	res.Load.Adjusted, _ = s.fit(s.x, s.y)
	if !o.stands(res.Fit, res.Load.Adjusted) {
		res.Verdict = Explained
	}
}

// stands reports whether the finding survives the adjustment.
func (o RisingOptions) stands(raw, adjusted Fit) bool {
	if o.passes(adjusted, o.GateZ) {
		return true
	}
	return o.sign()*adjusted.Z > o.GateZ && o.sign()*adjusted.Rise > (1-negligible)*o.sign()*raw.Rise
}

// keepLoaded fills the kept buffers with the points whose load is known.
func (s *Scratch) keepLoaded() {
	s.keptX, s.keptY, s.keptLoad = s.keptX[:0], s.keptY[:0], s.keptLoad[:0]
	for i, l := range s.load {
		if math.IsNaN(l) {
			continue
		}
		s.keptX, s.keptY, s.keptLoad = append(s.keptX, s.x[i]), append(s.keptY, s.y[i]), append(s.keptLoad, l)
	}
}

// loadSpread returns the median of the load and the distance of its outer deciles.
func (s *Scratch) loadSpread(load []float64) (mid, spread float64) {
	mid = s.median(load)
	n := len(load)
	high := selectInPlace(s.pick, n-1-n/10)
	return mid, high - selectInPlace(s.pick, n/10)
}

// unitCost returns the most that a unit of load may be said to cost.
func (s *Scratch) unitCost(y, load []float64) float64 {
	s.pick = s.pick[:0]
	for i := range y {
		if 3*i >= len(y) && len(s.pick) > 0 {
			break
		}
		if load[i] > 0 && y[i] > 0 {
			s.pick = append(s.pick, y[i]/load[i])
		}
	}
	if len(s.pick) == 0 {
		return 0
	}
	return unitSlack * medianInPlace(s.pick)
}

// huberSlope returns the coefficient of load in a regression of y on load, and on
// x too where withTime says so; spread is that of the load (Huber 1964, by reweighted least squares).
func (s *Scratch) huberSlope(x, y, load []float64, spread float64, withTime bool) float64 {
	s.residual = append(s.residual[:0], y...) // any: the first round weighs all alike
	var p plane
	scale := math.Inf(1)
	for round := range huberRounds {
		before := p.perLoad
		p = s.weighted(x, y, load, scale, withTime)
		if d := math.Abs(p.perLoad - before); round > 1 && (d <= huberSettled*math.Abs(p.perLoad) || d*spread <= huberSettled*scale) {
			break
		}
		for i := range x {
			s.residual[i] = y[i] - p.at(x[i], load[i])
		}
		_, width := s.spread(s.residual, 1, 0)
		if !(width > 0) {
			break
		}
		scale = width
	}
	return p.perLoad
}

// plane is y = base + perLoad*load + perX*x.
type plane struct{ base, perLoad, perX float64 }

func (p plane) at(x, load float64) float64 { return p.base + p.perLoad*load + p.perX*x }

// weighted solves one round; an infinite scale weighs all points alike.
func (s *Scratch) weighted(x, y, load []float64, scale float64, withTime bool) plane {
	var w, mx, my, ml float64
	s.pick = s.pick[:0]
	for i := range x {
		h := huberWeight(s.residual[i], scale)
		s.pick = append(s.pick, h)
		w += h
		mx, my, ml = mx+h*x[i], my+h*y[i], ml+h*load[i]
	}
	mx, my, ml = mx/w, my/w, ml/w
	var ll, lx, xx, ly, xy float64
	for i, h := range s.pick {
		dx, dy, dl := x[i]-mx, y[i]-my, load[i]-ml
		ll, lx, xx, ly, xy = ll+h*dl*dl, lx+h*dl*dx, xx+h*dx*dx, ly+h*dl*dy, xy+h*dx*dy
	}
	var p plane
	det := ll*xx - lx*lx
	switch {
	case withTime && det > 1e-9*ll*xx:
		p.perLoad, p.perX = (ly*xx-xy*lx)/det, (xy*ll-ly*lx)/det
	case ll > 0:
		p.perLoad = ly / ll
	}
	p.base = my - p.perLoad*ml - p.perX*mx
	return p
}

func huberWeight(residual, scale float64) float64 {
	if a := math.Abs(residual); a > huberK*scale {
		return huberK * scale / a
	}
	return 1
}
