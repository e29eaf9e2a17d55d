package rules

import (
	"fmt"
	"math"

	"github.com/stategauge/stategauge/event"
)

// shared is the rule's detector where it judges columns that other rules judge too;
// nil where its trackers keep what they need.
func (r *rule) shared() *rising {
	d, _ := r.detector.(*rising)
	return d
}

// valueKey says in words everything that decides the values of the rule's series.
func (r *rule) valueKey() string {
	key := r.signal.key() + fmt.Sprint("\x00", r.inWarmUp)
	if r.when != nil {
		key += "\x00when " + r.when.key
	}
	for _, x := range r.detector.inputs() {
		key += "\x00for " + x.key
	}
	return key
}

// judges reports whether the rule looks at the query's batches.
func (r *rule) judges(q *queryState) bool {
	if r.ofEvents() {
		return false
	}
	// The duration of a real-time batch is configured: it says nothing.
	return q.trigger != event.TriggerRealTime || !r.signal.expr.duration
}

// stage evaluates the columns that rules share for one batch, and takes them in.
func (e *Engine) stage(q *queryState, b *event.Batch, warm bool, out []Verdict) []Verdict {
	for i, r := range e.pack.rules {
		if r.shared() == nil || !r.judges(q) {
			continue
		}
		if r.signal.of == OfQuery {
			out = e.stageOne(q, i, b, nil, warm, out)
			continue
		}
		for k := range b.Operators[:min(len(b.Operators), e.opts.MaxOperators)] {
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
		if v, plausible := r.valueOf(b, o, &q.facts); math.IsNaN(v) {
			if !plausible {
				e.rules[ri].metrics.implausible.Inc()
			}
			return out
		}
		s, out = e.series(q, ri, o, out)
	}
	s.tracker.(*risingTracker).stage(q, b, o, warm)
	return out
}

// sharedValue reports whether the batch had a value for the series, and counts what
// could not be true.
func (e *Engine) sharedValue(q *queryState, ri int, s *series) bool {
	c := s.tracker.(*risingTracker).short.column
	if c.staged != q.position {
		return false
	}
	if c.implausible {
		e.rules[ri].metrics.implausible.Inc()
	}
	return !math.IsNaN(c.value)
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
	if t, ok := s.tracker.(*risingTracker); ok && t.own == nil {
		t.release()
	}
}
