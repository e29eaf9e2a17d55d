package rules

import (
	"math"
	"slices"

	"github.com/stategauge/stategauge/rules/trend"
)

const (
	// windowPoints is how many points a window keeps: 120 batches of a minute as they
	// are, anything longer or faster as medians of a few batches in a row. Memory: 9
	// KiB a window.
	windowPoints = 144
	// newest is how many batches the present level is the median of.
	newest = 15
	// maxAgeMs is how old the oldest of min_points batches may be: slower streams
	// have too few points for a trend.
	maxAgeMs = 7 * 24 * 3600 * 1000
	// agreeShare of the longer window must be there before it can agree: until then
	// it holds the same batches as the short one.
	agreeShare = 0.75
	// holdBatches is how long a level that rose and stays is held against the one
	// before where the rule names no reference window of its own; after that it is
	// the new normal.
	holdBatches = 500
)

// risingTracker is the state of `rising` for one series.
type risingTracker struct {
	d           *rising
	short, long *trend.Window // long is nil without agree_over
	level       *levelTracker // nil without level

	recent  [newest]float64
	sorted  [newest]float64
	pushed  int
	times   []int64 // start times of the newest min_points batches, a ring
	lastAt  int64
	lastPos int64 // batch of the last push
}

func (t *risingTracker) push(p trend.Point, _ []float64) {
	t.recent[t.pushed%newest] = p.Value
	if len(t.times) < t.d.spec.MinPoints {
		t.times = append(t.times, p.AtMs)
	} else {
		t.times[t.pushed%len(t.times)] = p.AtMs
	}
	t.pushed++
	t.lastAt, t.lastPos = p.AtMs, p.Batch
	t.short.Push(p)
	if t.long != nil {
		t.long.Push(p)
	}
	if t.level != nil {
		t.level.push(p)
	}
}

func (t *risingTracker) reset() {
	t.pushed, t.times = 0, t.times[:0]
	t.short.Reset()
	if t.long != nil {
		t.long.Reset()
	}
	if t.level != nil {
		t.level.reset()
	}
}

func (t *risingTracker) points() int { return t.short.Batches() }

// rare reports whether the newest min_points batches took too long to be one
// trend.
func (t *risingTracker) rare() bool {
	n := len(t.times)
	if n < t.d.spec.MinPoints {
		return false
	}
	return t.lastAt-t.times[t.pushed%n] > maxAgeMs
}

func (t *risingTracker) judge(hold *Judgement) Judgement {
	if t.rare() {
		j := t.empty(SaidTooFew)
		j.Why = tooRare(t.d.spec.MinPoints).Why
		return j
	}
	j := t.trend()
	if j.Said != SaidFound && t.level != nil {
		j = better(j, t.shift())
	}
	if j.Said != SaidFound && hold != nil && t.holds(hold) {
		j = t.held(hold)
	}
	j.Why = t.why(j.Said)
	return j
}

// why says what a verdict without a finding rests on.
func (t *risingTracker) why(s Said) string {
	switch s {
	case SaidTooFew:
		want := Extent{Batches: t.d.spec.MinPoints}
		if t.points() >= want.Batches {
			want = t.d.spec.AgreeOver
		}
		return tooFew(t.points(), t.short.SpanMs(), want).Why
	case SaidCannotTell:
		return "cannot tell: it moved, and adjusted_for (" + t.d.spec.AdjustedFor + ") is not known for half of the batches"
	case SaidExplained:
		return t.d.spec.AdjustedFor + " explains it"
	}
	return ""
}

func (t *risingTracker) empty(said Said) Judgement {
	return Judgement{Said: said, Value: t.now(), Points: t.points(), SpanMs: t.short.SpanMs(), Since: -1}
}

// trend asks the windows for a line.
func (t *risingTracker) trend() Judgement {
	r := t.short.Rising(t.d.options)
	j := t.empty(saidOf(r.Verdict))
	if r.Verdict == trend.TooFew || r.Verdict == trend.Clear {
		return j
	}
	j.Start, j.End, j.Rise, j.Relative = r.Start, r.End, r.Rise, r.Relative
	j.SlopePerBatch, j.Since, j.How = r.SlopePerBatch, r.Since, "trend"
	if r.Verdict == trend.Found && t.long != nil {
		j.Said = t.agreed()
	}
	return j
}

// agreed asks the longer window whether it sees the same.
func (t *risingTracker) agreed() Said {
	want := agreeShare * float64(t.d.spec.AgreeOver.Batches)
	if float64(t.long.Batches()) < want {
		return SaidTooFew
	}
	return saidOf(t.long.Rising(t.d.options).Verdict)
}

// shift asks whether the newest batches lie above those before.
func (t *risingTracker) shift() Judgement {
	r := t.level.window.Level(t.d.level)
	j := t.empty(saidOf(r.Verdict))
	if r.Verdict == trend.TooFew || r.Verdict == trend.Clear {
		return j
	}
	j.Start, j.End, j.Rise = r.Before, r.Recent, r.Recent-r.Before
	if r.Before > 0 {
		j.Relative = j.Rise / r.Before
	}
	j.Points, j.SpanMs, j.Since, j.How = t.level.batches(), 0, r.Since, "level"
	if r.Verdict == trend.Found {
		j.Since = t.locate(r.Since)
	}
	return j
}

// locate finds the batch where a changed level began. The comparison only knows
// where its newest span begins; the short window, asked for any move at all, knows
// the batch that a step or a bend fits best. Too faint a move leaves what is known.
func (t *risingTracker) locate(known int64) int64 {
	o := trend.RisingOptions{MinPoints: leastMinPoints, Z: 1, GateZ: 1, By: 0.05, Falling: t.d.falling}
	if r := t.short.Rising(o); r.Verdict == trend.Found {
		return r.Since
	}
	return known
}

// better prefers a finding, then what says more than "too few".
func better(a, b Judgement) Judgement {
	if b.Said == SaidFound || a.Said == SaidTooFew || a.Said == SaidClear && b.Said == SaidExplained {
		return b
	}
	return a
}

// now is the present level: the median of the newest batches.
func (t *risingTracker) now() float64 {
	n := min(t.pushed, newest)
	if n == 0 {
		return math.NaN()
	}
	s := t.sorted[:n]
	copy(s, t.recent[:n])
	slices.Sort(s)
	return s[n/2]
}

// holds reports whether the value still stands where a finding took it. A line
// goes flat once its window lies behind a step, and the step is still there:
// being used to a fault is no recovery. More than half of the rise must be gone,
// or as much time have passed as the rule's reference window has.
func (t *risingTracker) holds(f *Judgement) bool {
	reference := int64(holdBatches)
	if l := t.d.spec.Level; l != nil {
		reference = int64(max(l.Before.Batches, holdBatches))
	}
	if t.lastPos-f.Since > reference {
		return false
	}
	half := f.Start + f.Rise/2
	if t.d.falling {
		return t.now() < half
	}
	return t.now() > half
}

// held repeats a finding with the present level.
func (t *risingTracker) held(f *Judgement) Judgement {
	j := t.empty(SaidFound)
	j.Start, j.End, j.Since, j.How = f.Start, j.Value, f.Since, "held"
	j.Rise = j.End - j.Start
	if j.Start > 0 {
		j.Relative = j.Rise / j.Start
	}
	return j
}

func saidOf(v trend.Verdict) Said {
	switch v {
	case trend.TooFew:
		return SaidTooFew
	case trend.Found:
		return SaidFound
	case trend.Explained:
		return SaidExplained
	case trend.CannotTell:
		return SaidCannotTell
	}
	return SaidClear
}
