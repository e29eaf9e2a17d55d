package trend

import "math"

const (
	// levelPoints is the number of points a LevelWindow keeps: 60 and 500 batches
	// as they are.
	levelPoints = 560
	// likeLoad is the number of earlier points that are compared with when load
	// counts: those with the most similar load.
	likeLoad = 60
)

// LevelOptions say what counts as a changed level.
type LevelOptions struct {
	// By is the least difference as a share of the level before (0.35 and not 1.35);
	// AtLeast the least difference in the value's unit. Both must be met.
	By, AtLeast float64
	// AdjustForLoad compares with earlier batches of like load before it says Found.
	AdjustForLoad bool
	// Falling looks for a lower level instead.
	Falling bool
}

// LevelResult is a judgement and its evidence.
type LevelResult struct {
	Verdict        Verdict
	Recent, Before float64 // medians, in the value's unit
	Ratio          float64 // Recent / Before; 0 where Before is not positive
	// Expected is the median of the batches of like load, where load was looked at.
	Expected                     float64
	RecentLoad, BeforeLoad       float64 // medians; 0 where unknown
	RecentBatches, BeforeBatches int
	Since                        int64 // first of the recent batches, -1 unless both spans are covered
}

// LevelWindow compares the median of the newest batches with that of many before
// them, which finds steps and slow drifts that no slope over 120 batches shows.
//
// It keeps a ring of its own of up to 560 points, so that 60 against 500 batches are
// judged exactly; longer spans use medians of 3, 9 and so on batches, and a median
// of those. Memory: 56 bytes a kept point, at most 31
// KiB. A Push is O(1), a Level two selections, some 5
// µs. Errors measured for 60 against 500 batches, 35 % and held for 20: no false
// episode in 240,000 batches of four noises, .07 per 1,000 on a level that wanders
// by 20 %; a step of half as much again is found after some 55 to 60 batches, a
// ramp of half a percent a batch after some 125, a step of 30 % hardly ever.
//
// Pitfall: the level before moves with the window, so after 500 batches a fault
// has become the level. A rule must hold its finding by other means.
type LevelWindow struct {
	ring           ring
	recent, before Span
	scratch        *Scratch
}

// NewLevelWindow returns an empty window for comparing recent with the span
// before it.
func NewLevelWindow(recent, before Span) *LevelWindow {
	return &LevelWindow{ring: newRing(recent.Plus(before), levelPoints), recent: recent, before: before}
}

// UseScratch makes w work in s, as for Window.
func (w *LevelWindow) UseScratch(s *Scratch) { w.scratch = s }

// BreakAfter makes a pause of more than ms milliseconds start the window afresh.
func (w *LevelWindow) BreakAfter(ms int64) { w.ring.breakMs = ms }

// Push takes p in, as for Window.
func (w *LevelWindow) Push(p Point) bool { return w.ring.push(p) }

// Reset forgets all points.
func (w *LevelWindow) Reset() { w.ring.reset() }

// Len returns the number of kept points.
func (w *LevelWindow) Len() int { return w.ring.n }

// Batches returns the number of batches that the kept points stand for.
func (w *LevelWindow) Batches() int { return w.ring.batches }

// Full reports whether both spans are covered.
func (w *LevelWindow) Full() bool {
	split, ok := w.split()
	return ok && split > 0
}

// Level compares the newest batches with those before them. TooFew means that
// the two spans are not covered yet.
func (w *LevelWindow) Level(o LevelOptions) LevelResult {
	split, ok := w.split()
	if !ok {
		return LevelResult{Since: -1}
	}
	if w.scratch == nil {
		w.scratch = new(Scratch)
	}
	s := w.scratch
	s.x, s.y, s.load = w.ring.copyTo(s.x[:0], s.y[:0], s.load[:0])
	res := LevelResult{Verdict: Clear, Since: w.ring.meta[w.ring.at(split)].first}
	res.BeforeBatches, res.RecentBatches = w.count(0, split), w.count(split, w.ring.n)
	s.judgeLevel(o, split, &res)
	return res
}

// judgeLevel compares the points in s from split on with those before.
func (s *Scratch) judgeLevel(o LevelOptions, split int, res *LevelResult) {
	res.Before, res.Recent = s.median(s.y[:split]), s.median(s.y[split:])
	if res.Before > 0 {
		res.Ratio = res.Recent / res.Before
	}
	if !o.differs(res.Before, res.Recent) {
		return
	}
	res.Verdict = Found
	if o.AdjustForLoad {
		s.judgeLevelLoad(o, split, res)
	}
}

// differs reports whether the recent level lies far enough from the one before.
func (o LevelOptions) differs(before, recent float64) bool {
	move := recent - before
	if o.Falling {
		move = -move
	}
	return move > 0 && move > o.By*before && move >= o.AtLeast
}

// judgeLevelLoad compares like with like: the recent batches with the earlier ones
// whose load was nearest to theirs. Where the load is higher than ever (lower, for a
// fall), those are scaled in proportion, the most that load plausibly explains.
func (s *Scratch) judgeLevelLoad(o LevelOptions, split int, res *LevelResult) {
	var recentKnown, beforeKnown bool
	res.RecentLoad, recentKnown = s.knownMedian(s.load[split:])
	res.BeforeLoad, beforeKnown = s.knownMedian(s.load[:split])
	if !recentKnown || !beforeKnown {
		res.Verdict = CannotTell
		return
	}
	res.Expected = s.likeLoad(s.y[:split], s.load[:split], res.RecentLoad, o.Falling)
	if !o.differs(res.Expected, res.Recent) {
		res.Verdict = Explained
	}
}

// knownMedian returns the median of the known loads, and whether at least half
// are known.
func (s *Scratch) knownMedian(load []float64) (float64, bool) {
	s.pick = s.pick[:0]
	for _, l := range load {
		if !math.IsNaN(l) {
			s.pick = append(s.pick, l)
		}
	}
	if 2*len(s.pick) < len(load) {
		return 0, false
	}
	return medianInPlace(s.pick), true
}

// likeLoad returns the median value of the points whose load is nearest to want.
func (s *Scratch) likeLoad(y, load []float64, want float64, falling bool) float64 {
	s.pick = s.pick[:0]
	for _, l := range load {
		if !math.IsNaN(l) {
			s.pick = append(s.pick, math.Abs(l-want))
		}
	}
	reach := selectInPlace(s.pick, min(likeLoad, len(s.pick))-1)
	s.pick = s.pick[:0]
	for i, l := range load {
		if !math.IsNaN(l) && math.Abs(l-want) <= reach {
			s.pick = append(s.pick, excused(y[i], l, want, falling))
		}
	}
	return medianInPlace(s.pick)
}

// excused returns what y would be at a load of want if it followed load in
// proportion; but y itself where that would make a move look larger.
func excused(y, load, want float64, falling bool) float64 {
	if load > 0 && want > 0 && (want > load) != falling {
		return y * (want / load)
	}
	return y
}

// split returns the first of the recent points: the newest ones that cover the
// recent span. It reports false unless the rest covers the span before. A block or
// an interval that reaches into both spans counts for both, or a window cut to
// measure would always be one batch short; half of the batches before must be real.
func (w *LevelWindow) split() (int, bool) {
	r := &w.ring
	batches := 0
	for i := r.n - 1; i > 0; i-- {
		m := &r.meta[r.at(i)]
		batches += int(m.batches)
		if !w.recent.covered(batches, r.newest().untilMs-m.fromMs) {
			continue
		}
		rest := r.batches - batches
		return i, 2*rest >= w.before.Batches &&
			w.before.covered(r.batches-w.recent.Batches, r.spanMs()-w.recent.Ms)
	}
	return 0, false
}

func (w *LevelWindow) count(from, until int) int {
	sum := 0
	for i := from; i < until; i++ {
		sum += int(w.ring.meta[w.ring.at(i)].batches)
	}
	return sum
}
