package rules

import (
	"fmt"
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// sharing is a detector that judges columns which other rules judge too.
type sharing interface {
	detector
	// adjusts is the load that values are adjusted for, nil for none.
	adjusts() *expression
	// newSharer makes the state of one series over the columns that columnOf gives.
	newSharer(s *trend.Scratch, columnOf func(Extent) *column) sharer
}

// sharer is a tracker over shared columns, which have each batch before push comes.
type sharer interface {
	tracker
	// columns are those that it judges; nil ones are none.
	columns() [3]*column
	// shares is false where it has columns of its own, fed by push.
	shares() bool
}

// shared is the rule's detector where it shares columns; nil where its trackers keep
// what they need.
func (r *rule) shared() sharing {
	d, _ := r.detector.(sharing)
	return d
}

// ownColumns makes columns for one tracker alone.
type ownColumns struct{ sets []*columnSet }

// of returns what finds a column for an extent.
func (own *ownColumns) of(load bool, s *trend.Scratch) func(Extent) *column {
	return func(e Extent) *column {
		want := reachOf(e)
		for _, set := range own.sets {
			if set.reach == want {
				return set.list[0]
			}
		}
		set := newColumnSet(want, false, s)
		c := set.add(&column{users: 1})
		if load {
			c.load = set.add(&column{users: 1})
		}
		own.sets = append(own.sets, set)
		return c
	}
}

// valueKey says in words everything that decides the values of the rule's series.
func (r *rule) valueKey() string {
	key := r.signal.key() + fmt.Sprint("\x00", r.inWarmUp)
	if r.when != nil {
		key += "\x00when " + r.when.key
	}
	if d := r.shared(); d != nil && d.adjusts() != nil {
		key += "\x00for " + d.adjusts().key
	}
	return key
}

// judges reports whether a rule of figures looks at the query's batches.
func (r *rule) judges(q *queryState) bool {
	// The duration of a real-time batch is configured: it says nothing.
	return q.trigger != event.TriggerRealTime || !r.signal.expr.duration
}

// stage evaluates the columns that rules share for one batch, and takes them in.
func (e *Engine) stage(q *queryState, b *event.Batch, warm bool, out []Verdict) []Verdict {
	for _, i := range e.sharers {
		r := e.pack.rules[i]
		if !r.judges(q) {
			continue
		}
		if r.signal.of == OfQuery {
			e.memo.of(-1)
			out = e.stageOne(q, i, b, nil, warm, out)
			continue
		}
		for k := range b.Operators[:min(len(b.Operators), e.opts.MaxOperators)] {
			e.memo.of(k)
			out = e.stageOne(q, i, b, &b.Operators[k], warm, out)
		}
	}
	q.pushColumns()
	return out
}

// stageOne evaluates what one rule judges of an operator. The first value makes the
// series.
func (e *Engine) stageOne(q *queryState, ri int, b *event.Batch, o *event.Operator, warm bool, out []Verdict) []Verdict {
	r := e.pack.rules[ri]
	s := q.find(ri, o)
	if s == nil {
		if warm && !r.inWarmUp {
			return out
		}
		if v, plausible := r.valueOf(b, o, &q.facts, &e.memo); math.IsNaN(v) {
			if !plausible {
				e.rules[ri].metrics.implausible.Inc()
			}
			return out
		}
		s, out = e.series(q, ri, o, out)
	}
	for _, c := range s.shared.columns() {
		if c != nil {
			c.stage(q, b, o, &e.memo, warm)
		}
	}
	return out
}

// sharedValue returns the value that the batch had for the series, NaN without one, and
// counts what could not be true.
func (e *Engine) sharedValue(q *queryState, ri int, s *series) float64 {
	c := s.shared.columns()[0]
	if c.staged != q.position {
		return math.NaN()
	}
	if c.implausible {
		e.rules[ri].metrics.implausible.Inc()
	}
	return c.value
}

// find returns the rule's series for the operator, or for the query where o is nil; nil
// where there is none.
func (q *queryState) find(ri int, o *event.Operator) *series {
	index, name := -1, ""
	if o != nil {
		index, name = o.Index, o.Name
	}
	for _, s := range q.rules[ri] {
		if s.index == index && s.operator == name {
			return s
		}
	}
	return nil
}

// release gives back the columns and the evidence that the series shares.
func (s *series) release(q *queryState) {
	s.evidence.leave(q)
	if s.shared == nil || !s.shared.shares() {
		return
	}
	for _, c := range s.shared.columns() {
		c.release()
	}
}
