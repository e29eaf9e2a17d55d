package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/stategauge/stategauge/rules/trend"
)

// drives is how far the outer deciles of a driver must lie apart, as a share of its
// median, before anything can follow it.
const drives = 0.05

// scales is by how much a figure must differ between the driver's lowest and highest
// third before the ranks are asked, which costs twenty times more.
const scales = 0.1

// followsTracker is the state of `follows` for one series. Memory: 5 KiB.
type followsTracker struct {
	d    *follows
	s    *trend.Scratch
	past *history
}

func (t *followsTracker) push(p trend.Point, in []float64) { t.past.push(p, in) }

func (t *followsTracker) judge(*Judgement) Judgement {
	s := &t.d.spec
	from, covered := t.past.start(s.Over)
	if !covered {
		from = 0
	}
	n := t.past.batches(from)
	switch {
	case n < s.MinPoints:
		return tooFew(n, 0, Extent{Batches: s.MinPoints})
	case t.past.rare(s.MinPoints):
		return tooRare(s.MinPoints)
	}
	r := t.s.Rows()
	r.Y, r.Driver, r.X, r.Rival = t.past.column(r.Y[:0], 0, from), t.past.column(r.Driver[:0], 1, from), r.X[:0], t.past.column(r.Rival[:0], len(t.d.ins), from)
	for i := from; i < t.past.n; i++ {
		r.X = append(r.X, float64(t.past.batchAt(i)-t.past.base))
	}
	j := t.weigh(r, from)
	j.Points, j.SpanMs, j.Value = n, t.past.ageMs(from), t.s.Median(r.Y[len(r.Y)-min(newest, len(r.Y)):])
	return j
}

// weigh asks the ranks, and puts their answer in words.
func (t *followsTracker) weigh(r *trend.Rows, from int) Judgement {
	s := &t.d.spec
	if known, spread := t.spread(r); 2*known < len(r.Y) {
		return unknown("driver", s.Driver)
	} else if spread < drives {
		return judgement(SaidCannotTell, "cannot tell: the driver (%s) hardly moved", s.Driver)
	}
	low, high := t.outer(r)
	if !(math.Abs(high-low) >= scales*math.Abs(low)) {
		j := judgement(SaidClear, "it is the same whatever the driver is")
		j.rise(low, high)
		return j
	}
	rival := r.Rival
	if s.Rival == "" {
		rival = nil
	}
	a := t.s.PartialRank(r.Y, r.Driver, rival, r.X, t.d.options)
	switch a.Verdict {
	case trend.FollowsUnknown:
		return judgement(SaidTooFew, "too few points: %d with all figures", a.N)
	case trend.CannotSeparate:
		return t.inseparable(a)
	case trend.FollowsRival:
		return judgement(SaidClear, "it follows the rival (%s), by ranks %.2f", s.Rival, a.Rival)
	case trend.FollowsBoth:
		return judgement(SaidClear, "it follows both, by ranks %.2f and %.2f", a.Driver, a.Rival)
	case trend.FollowsNeither:
		return judgement(SaidClear, "it follows neither, by ranks %.2f and %.2f", a.Driver, a.Rival)
	}
	if a.Driver < 0 {
		return judgement(SaidClear, "it falls where the driver (%s) rises", s.Driver)
	}
	j := judgement(SaidFound, "by ranks %.2f with the driver, %.2f with its rival", a.Driver, a.Rival)
	if s.Rival == "" {
		j.Why = fmt.Sprintf("by ranks %.2f with the driver", a.Driver)
	}
	j.How, j.Since = "follows", t.past.batchAt(from)
	j.rise(low, high)
	if e := t.s.Elasticity(r.Y, r.Driver); e.Value == e.Value {
		j.SlopePerBatch = e.Value
		j.Text = fmt.Sprintf("%.2g (%.2g to %.2g)", e.Value, e.Low, e.High)
	}
	return j
}

func (t *followsTracker) inseparable(a trend.Association) Judgement {
	if a.WithTime {
		return judgement(SaidCannotSeparate, "cannot separate: the figures only ever moved with time; a restart with less state, or a load that changes, would tell")
	}
	return judgement(SaidCannotSeparate, "cannot separate: the driver (%s) and its rival (%s) moved alike", t.d.spec.Driver, t.d.spec.Rival)
}

// spread returns how many batches have the driver, and how far it moves.
func (t *followsTracker) spread(r *trend.Rows) (known int, spread float64) {
	r.Before = r.Before[:0]
	for _, v := range r.Driver {
		if v == v {
			r.Before = append(r.Before, v)
		}
	}
	slices.Sort(r.Before)
	n := len(r.Before)
	if n == 0 || !(r.Before[n/2] > 0) {
		return n, 0
	}
	return n, (r.Before[n-1-n/10] - r.Before[n/10]) / r.Before[n/2]
}

// outer are the signal's medians where the driver is in its lowest and in its
// highest third.
func (t *followsTracker) outer(r *trend.Rows) (low, high float64) {
	n := len(r.Before) // sorted by spread
	from, to := r.Before[n/3], r.Before[n-1-n/3]
	pick := func(want func(float64) bool) float64 {
		r.Load = r.Load[:0]
		for i, v := range r.Driver {
			if want(v) {
				r.Load = append(r.Load, r.Y[i])
			}
		}
		return t.s.Median(r.Load)
	}
	return pick(func(v float64) bool { return v <= from }), pick(func(v float64) bool { return v >= to })
}

func (t *followsTracker) points() int { return t.past.batches(0) }

func (t *followsTracker) reset() { t.past.reset() }
