package rules

import (
	"math"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// Measure is a signal as something to be kept and shown apart from any rule.
type Measure struct {
	Name string
	Unit string
	Of   SignalOf

	signal *signal
}

// Measures returns the signals that the pack's rules judge, each once, by name. A
// name means the same in all files of a pack.
func (p *Pack) Measures() []Measure {
	var out []Measure
	known := map[string]bool{}
	for _, r := range p.rules {
		if s := r.signal; s != nil && !known[s.name] {
			known[s.name] = true
			out = append(out, Measure{Name: s.name, Unit: s.unit, Of: s.of, signal: s})
		}
	}
	slices.SortFunc(out, func(a, b Measure) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Visit calls visit for each value that the measure has in a batch that ran: once,
// with operator -1, or for each operator. Facts that no single batch tells are
// unknown to it. A value that does not apply or cannot be true is left out.
func (m *Measure) Visit(u *event.Update, visit func(operator int, v float64)) {
	if u.Outcome != event.OutcomeExecuted || u.Event.Batch == nil {
		return
	}
	b, facts := u.Event.Batch, factsOfUpdate(u)
	if m.Of == OfQuery {
		m.visit(b, nil, -1, &facts, visit)
		return
	}
	for i := range b.Operators {
		m.visit(b, &b.Operators[i], i, &facts, visit)
	}
}

func (m *Measure) visit(b *event.Batch, o *event.Operator, operator int, f *Facts, visit func(int, float64)) {
	if when := m.signal.when; when != nil {
		if holds, _ := when.at(b, o, f); holds != 1 {
			return
		}
	}
	v, plausible := m.signal.expr.at(b, o, f)
	if plausible && !math.IsNaN(v) && !math.IsInf(v, 0) {
		visit(operator, v)
	}
}

// factsOfUpdate are the facts that the update itself tells.
func factsOfUpdate(u *event.Update) Facts {
	f := unknownFacts
	f[FactIntervalMs] = u.IntervalMs
	f.triggers(u.Trigger)
	if v := u.Event.Batch.Spark; !v.IsZero() {
		f[FactSpark] = float64(100*int(v.Major) + int(v.Minor))
	}
	return f
}
