package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// Signal computes one number from one batch. v is the vector of what the signal
// is of: the batch's own for a query, the operator's for an operator; o is nil for
// a query. NaN means absent. A Signal does not allocate and keeps nothing.
type Signal func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64

// SignalOf says what a signal has one value for.
type SignalOf uint8

// What a signal can be of.
const (
	OfQuery SignalOf = iota
	OfOperator
)

// String returns the word that rule files use.
func (s SignalOf) String() string {
	if s == OfOperator {
		return "operator"
	}
	return "query"
}

// expression is a compiled Signal and what is known about it.
type expression struct {
	text string
	// key is the text and the texts of the signals in it: equal keys, equal values.
	key string
	// slot is its place, from 1, among the different expressions of its pack; 0 is none.
	slot   int
	places *places // that the slot is one of
	eval   Signal
	// figure is set where it is one figure of the vector that is looked at; id says which.
	figure bool
	id     event.MetricID
	// times lists the operator's time figures in it: where one cannot be true, the
	// value is not used.
	times []event.MetricID
	// wide is true where an operator's expression looks at nothing of the operator: it
	// has one value for the whole batch.
	wide bool
	// duration is true where the value comes from the duration of a trigger or of
	// its phases, which a real-time trigger makes meaningless.
	duration bool
}

// at evaluates the expression for a batch, and for an operator of it where o is
// not nil. plausible is false where a figure in it cannot be true; the value is
// NaN then.
func (x *expression) at(b *event.Batch, o *event.Operator, f *Facts) (value float64, plausible bool) {
	v := &b.Values
	if o != nil {
		v = &o.Values
		for _, id := range x.times {
			if !b.PlausibleTaskSeconds(o, id) {
				return math.NaN(), false
			}
		}
	}
	if x.figure {
		value = v[x.id]
	} else {
		value = x.eval(v, b, o, f)
	}
	if value-value != 0 { // infinite, or no number at all
		return math.NaN(), true
	}
	return value, true
}

// signal is a named expression of a rule file.
type signal struct {
	name string
	of   SignalOf
	unit string
	expr *expression
	when *expression // nil where it always applies
}

// key says in words everything that decides the signal's values.
func (s *signal) key() string {
	key := s.of.String() + "\x00" + s.expr.key
	if s.when != nil {
		key += "\x00when " + s.when.key
	}
	return key
}
