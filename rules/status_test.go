package rules

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

func TestStatusTellsRulesAndJudgements(t *testing.T) {
	p := scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, for: 2 batches, keep_firing_for: 1h, labels: {severity: ticket}, annotations: {summary: '{{ .Value }}'}}\n"+opRule)
	s := lifeStream(p)
	if got := s.e.Status(true).Groups[0].Rules[0]; got.Health != "unknown" || got.LastMs != event.Absent || got.Judgements != nil {
		t.Errorf("before the first batch: %+v", got)
	}
	s.play(figures{rows: 2, updated: 1, operators: 2})
	g := s.e.Status(true).Groups[0]
	if g.Name != "g" || g.File != "r.yaml" || len(g.Rules) != 2 {
		t.Fatalf("got %+v", g)
	}
	a, op := g.Rules[0], g.Rules[1]
	if a.Alert != "A" || a.Signal != "rows" || a.Expression != "input_rows" || a.Unit != "rows" || a.Of != OfQuery || a.Detector != "scripted" {
		t.Errorf("got %+v", a)
	}
	if a.Health != "ok" || a.LastMs != startMs || a.Pending != 1 || a.Firing != 0 || a.For.Batches != 2 || a.KeepFiringFor.Ms != hourMs {
		t.Errorf("got %+v", a)
	}
	if a.Labels.Get("severity") != "ticket" || a.Annotations.Get("summary") != "{{ .Value }}" {
		t.Errorf("labels %v, annotations %v", a.Labels, a.Annotations)
	}
	j := a.Judgements[0]
	if len(a.Judgements) != 1 || j.Query.Name != "orders" || j.OperatorIndex != -1 || j.Said != SaidFound || j.State != Pending || j.Batch != 100 {
		t.Errorf("got %+v", a.Judgements)
	}
	if len(op.Judgements) != 2 || op.Judgements[1].OperatorIndex != 1 || op.Judgements[1].Said != SaidClear || op.Of.String() != "operator" {
		t.Errorf("got %+v", op.Judgements)
	}
	if got := s.e.Status(false).Groups[0].Rules[0]; got.Judgements != nil || got.Pending != 1 {
		t.Errorf("without judgements: %+v", got)
	}
}

func TestMemoryOfARetiredQueryIsGivenBack(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule))
	s.play(figures{rows: 2})
	u := s.update(figures{})
	u.Outcome, u.State, u.Successor = event.OutcomeStateChange, event.StateRetired, "q-2"
	vs := s.e.Apply(&u, nil)
	if len(vs) != 1 || vs[0].Alert.Reason != "the query was retired: q-2 took over its name" {
		t.Errorf("got %v", lines(vs))
	}
	if len(s.e.queries) != 0 || s.e.alerts != 0 || counterValue(t, s.e.opts.Metrics.queries) != 0 {
		t.Errorf("%d queries and %d alerts are left", len(s.e.queries), s.e.alerts)
	}
}
