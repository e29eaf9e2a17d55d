package rules

import (
	"math"

	"github.com/stategauge/stategauge/rules/trend"
)

const (
	recentPoints   = 48
	baselinePoints = 144
	// renewAfter is how many lengths of itself a baseline is good for: then a newer
	// one takes its place if nothing was found in all of it, or if what was found
	// has lasted so long that it is how the query is now.
	renewAfter = 5
)

// shiftedTracker is the state of `shifted` for one series. Memory: 1 KiB with the
// defaults, 2 with load, and as much again while a baseline is learned.
type shiftedTracker struct {
	d      *shifted
	s      *trend.Scratch
	base   *frozen  // the baseline, nil before the first
	next   *history // the one being learned, nil where none is
	recent *history
	cusum  *trend.CUSUM
	age    int // batches since the baseline was frozen
	quiet  int // batches in a row without an alarm of the CUSUM
	alarms int // and with one
	// broken is true while the baseline is from before a new run or a pause.
	broken  bool
	version float64
}

func (t *shiftedTracker) push(p trend.Point, in []float64) {
	if v := in[len(in)-1]; v == v {
		if t.version == t.version && v != t.version {
			t.forget()
		}
		t.version = v
	}
	in = in[:len(in)-1]
	if !t.recent.push(p, in) {
		return
	}
	t.cusum.Push(p.Batch, p.Value)
	t.age++
	if t.cusum.Alarm().Verdict == trend.Found {
		t.quiet, t.alarms = 0, t.alarms+1
	} else {
		t.quiet, t.alarms = t.quiet+1, 0
	}
	t.learn(p, in)
}

// learn feeds the next baseline where it is time for one, and freezes it.
func (t *shiftedTracker) learn(p trend.Point, in []float64) {
	length := t.d.spec.Baseline.Batches
	due := t.base == nil || t.broken || t.age >= (renewAfter-1)*length
	if !due {
		return
	}
	if t.next == nil {
		t.next = t.d.newBaseline()
	}
	t.next.push(p, in)
	if !t.next.covers(t.d.spec.Baseline, 0) {
		return
	}
	if t.base != nil && !t.broken && (t.age < renewAfter*length || t.quiet < length && t.alarms < renewAfter*length) {
		return
	}
	t.base, t.next, t.broken, t.age, t.quiet, t.alarms = t.next.freeze(t.leastRare()), nil, false, 0, 0, 0
	r := t.s.Rows()
	r.Y = t.base.column(r.Y[:0], 0)
	t.cusum.Freeze(t.s.Baseline(r.Y, 0))
}

func (t *shiftedTracker) judge(hold *Judgement) Judgement {
	j := t.compare()
	if j.Said != SaidFound && hold != nil && t.holds(hold) {
		value := j.Value
		j = judgement(SaidFound, "not back half of the way since")
		j.Value, j.Since, j.How, j.Points = value, hold.Since, "held", t.recent.batches(0)
		j.rise(hold.Start, value)
	}
	return j
}

// compare asks whether the newest batches lie off the baseline.
func (t *shiftedTracker) compare() Judgement {
	s := &t.d.spec
	from, covered := t.recent.start(s.Recent)
	j := t.short(covered)
	if j.Said == SaidTooFew {
		j.Value = t.now(from)
		return j
	}
	r := t.s.Rows()
	r.Y, r.Before = t.recent.column(r.Y[:0], 0, from), t.base.column(r.Before[:0], 0)
	alarm := t.cusum.Alarm()
	if s.Early && alarm.Batches > 0 && alarm.Batches < len(r.Y) {
		r.Y = r.Y[len(r.Y)-max(min(alarm.Batches, len(r.Y)), leastRecent):]
	}
	level := t.cusum.Baseline().Level
	j.Value, j.Points, j.SpanMs = t.s.Median(r.Y), t.base.batches+t.recent.batches(from), t.base.spanMs+t.recent.spanMs()
	j.rise(level, j.Value)
	switch {
	case !t.differs(level, j.Value):
		return j
	case alarm.Verdict != trend.Found:
		j.Why = "it moved, and not for long or surely enough"
		return j
	case !s.Early && !t.surely(r):
		j.Why = "it moved within what it does by itself"
		return j
	}
	j.Said, j.Since, j.How = SaidFound, alarm.Since, "shift"
	if t.broken {
		j.How, j.Why = "shift across a break", "the baseline is from before the newest run or pause"
	}
	if t.d.load {
		t.explain(&j, r, from)
	}
	return j
}

// leastRare is how many batches must not take longer than a week.
func (t *shiftedTracker) leastRare() int { return min(defaultMinPoints, t.d.spec.Baseline.Batches) }

// short says whether there are too few batches to compare.
func (t *shiftedTracker) short(recent bool) Judgement {
	s := &t.d.spec
	switch {
	case t.base != nil && t.base.rare, t.base == nil && t.next != nil && t.next.rare(t.leastRare()):
		return tooRare(t.leastRare())
	case t.base == nil && t.next == nil:
		return tooFew(0, 0, s.Baseline)
	case t.base == nil:
		return tooFew(t.next.batches(0), t.next.spanMs(), s.Baseline)
	case !recent:
		return tooFew(t.recent.batches(0), t.recent.spanMs(), s.Recent)
	}
	return judgement(SaidClear, "")
}

// differs reports whether the present level lies far enough off.
func (t *shiftedTracker) differs(before, now float64) bool {
	move := now - before
	if t.d.falling {
		move = -move
	}
	return move > 0 && move >= float64(t.d.spec.By)*before && move >= t.d.atLeast
}

// surely asks the ranks.
func (t *shiftedTracker) surely(r *trend.Rows) bool {
	z := t.s.RankSum(r.Before, r.Y, trend.RankSumOptions{MinPoints: leastRecent}).Z
	if t.d.falling {
		z = -z
	}
	return z > t.d.z
}

// explain takes a finding back where batches of like load took as long before.
func (t *shiftedTracker) explain(j *Judgement, r *trend.Rows, from int) {
	r.Load = t.recent.known(r.Load[:0], 1, from, t.recent.n)
	if 2*len(r.Load) < t.recent.n-from {
		j.Said, j.Why = SaidCannotTell, "cannot tell: adjusted_for ("+t.d.spec.AdjustedFor+") is not known"
		return
	}
	want := t.s.Median(r.Load)
	r.Load = t.base.column(r.Load[:0], 1)
	expected, known := t.s.LikeLoad(r.Before, r.Load, want, t.d.falling)
	switch {
	case !known:
		j.Said, j.Why = SaidCannotTell, "cannot tell: adjusted_for ("+t.d.spec.AdjustedFor+") is not known"
	case !t.differs(expected, j.Value):
		j.Said, j.Why = SaidExplained, "batches of such a load took as much before"
	}
}

// holds reports whether the level still stands where a finding took it, and has
// not for so long that it is the new one.
func (t *shiftedTracker) holds(f *Judgement) bool {
	if t.recent.clock.batch-f.Since > int64(renewAfter*t.d.spec.Baseline.Batches) {
		return false
	}
	from, _ := t.recent.start(t.d.spec.Recent)
	now, half := t.now(from), f.Start+f.Rise/2
	if t.d.falling {
		return now < half
	}
	return now > half
}

// now is the median of the newest batches.
func (t *shiftedTracker) now(from int) float64 {
	r := t.s.Rows()
	r.Y = t.recent.column(r.Y[:0], 0, from)
	return t.s.Median(r.Y)
}

func (t *shiftedTracker) points() int { return t.recent.batches(0) }

// reset begins a new segment. The baseline stays to be compared with, until the new
// segment has one of its own.
func (t *shiftedTracker) reset() {
	t.recent.reset()
	t.next = nil
	t.broken = t.base != nil
	t.cusum.Restart()
	t.quiet, t.alarms = 0, 0
}

// forget drops the baseline too.
func (t *shiftedTracker) forget() {
	t.reset()
	t.base, t.broken, t.version, t.age = nil, false, math.NaN(), 0
	t.cusum.Freeze(trend.Baseline{})
}
