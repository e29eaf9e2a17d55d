package rules

import (
	"cmp"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// Status is what GET /api/v1/rules tells about the engine.
type Status struct{ Groups []GroupStatus }

// GroupStatus is one group of rules.
type GroupStatus struct {
	Name, File string
	Limit      int
	Rules      []RuleStatus
}

// RuleStatus is one rule, how it fares, and what it last said of each query.
type RuleStatus struct {
	Alert, Signal, Expression, Unit string
	Of                              SignalOf
	Detector                        string // name of it
	Condition                       string // what it asks, in one line
	For, KeepFiringFor              Extent
	Labels, Annotations             Labels // as the file writes them
	// Health is "unknown" before the first value, "err" while LastError says why
	// something failed, else "ok".
	Health, LastError string
	LastMs            int64 // event time of the newest value, Absent before
	Pending, Firing   int
	Judgements        []Judged
}

// Judged is the last judgement of one query or operator.
type Judged struct {
	Query         event.QueryRef
	Operator      string
	OperatorIndex int // -1 for the query
	State         AlertState
	Group         string // key of a group of queries, where the rule judges those
	Batch         int64  // newest batch of the query
	Judgement
}

// Status describes all rules. Judgements are left out unless asked for: there is
// one for each rule of each operator.
func (e *Engine) Status(judgements bool) Status {
	var out Status
	for i := range e.pack.groups {
		g := &e.pack.groups[i]
		gs := GroupStatus{Name: g.name, File: g.file, Limit: g.limit}
		for ri := g.first; ri < g.last; ri++ {
			gs.Rules = append(gs.Rules, e.ruleStatus(ri))
		}
		out.Groups = append(out.Groups, gs)
	}
	flat := out.flat()
	for _, q := range e.queries {
		for ri, list := range q.rules {
			for _, s := range list {
				flat[ri].count(q, s, judgements)
			}
		}
	}
	for ri := range e.rules {
		for _, g := range e.rules[ri].groups {
			flat[ri].count(g, g.rules[ri][0], judgements)
		}
	}
	for _, r := range flat {
		slices.SortFunc(r.Judgements, func(a, b Judged) int {
			return cmp.Or(cmp.Compare(a.Query.ID, b.Query.ID), cmp.Compare(a.OperatorIndex, b.OperatorIndex))
		})
	}
	return out
}

// flat lists the rules by their place in the pack.
func (s *Status) flat() []*RuleStatus {
	var out []*RuleStatus
	for i := range s.Groups {
		for k := range s.Groups[i].Rules {
			out = append(out, &s.Groups[i].Rules[k])
		}
	}
	return out
}

func (e *Engine) ruleStatus(ri int) RuleStatus {
	r, st := e.pack.rules[ri], &e.rules[ri]
	out := RuleStatus{
		Alert: r.alert, Signal: r.signal.name, Expression: r.signal.expr.text, Unit: r.signal.unit, Of: r.signal.of,
		Detector: r.detector.name(), Condition: r.detector.describe(), For: r.forExtent, KeepFiringFor: r.keep,
		Health: "ok", LastError: st.lastError, LastMs: st.lastMs,
	}
	for i := range r.labels {
		out.Labels = out.Labels.with(r.labels[i].name, r.labels[i].text)
	}
	for i := range r.annotations {
		out.Annotations = out.Annotations.with(r.annotations[i].name, r.annotations[i].text)
	}
	switch {
	case st.lastError != "":
		out.Health = "err"
	case st.lastMs == event.Absent:
		out.Health = "unknown"
	}
	return out
}

func (r *RuleStatus) count(q *queryState, s *series, judgements bool) {
	state := Inactive
	if s.alert != nil {
		state = s.alert.state
	}
	switch state {
	case Pending:
		r.Pending++
	case Firing:
		r.Firing++
	}
	if judgements {
		r.Judgements = append(r.Judgements, Judged{
			Query: q.ref, Operator: s.operator, OperatorIndex: s.index, State: state, Batch: q.lastBatch, Group: q.group, Judgement: s.judged,
		})
	}
}
