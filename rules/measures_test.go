package rules

import (
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

const measuredRules = `
signals:
  took: {of: query, value: duration_ms / 1000, unit: seconds}
  rows: {of: operator, value: numRowsTotal, unit: rows, when: numRowsTotal > 10}
groups:
  - name: g
    rules:
      - alert: Long
        signal: took
        above: {limit: 5s}
        labels: {severity: info, symptom: x}
        annotations: {summary: s, description: d}
      - alert: Longer
        signal: took
        above: {limit: 9s}
        labels: {severity: info, symptom: x}
        annotations: {summary: s, description: d}
      - alert: Many
        signal: rows
        above: {limit: "100"}
        labels: {severity: info, symptom: x}
        annotations: {summary: s, description: d}
`

func measuresOf(t *testing.T, files ...Source) []Measure {
	t.Helper()
	p, err := Load(files...)
	if err != nil {
		t.Fatal(err)
	}
	return p.Measures()
}

func TestASignalOfSeveralRulesIsOneMeasure(t *testing.T) {
	got := measuresOf(t, Source{Name: "a.yaml", Data: []byte(measuredRules)})
	if len(got) != 2 || got[0].Name != "rows" || got[1].Name != "took" || got[1].Unit != "seconds" {
		t.Errorf("%+v", got)
	}
}

func TestAMeasureHasAValueForEachOperatorThatItAppliesTo(t *testing.T) {
	b := event.Batch{Executed: true, StartMs: 1000}
	b.Reset()
	b.Executed, b.StartMs = true, 1000
	b.Values[event.DurationTriggerExecution] = 4000
	for _, rows := range []float64{50, 5, 70} {
		b.AddOperator().Values[event.NumRowsTotal] = rows
	}
	u := event.Update{Event: &event.Event{Kind: event.KindProgress, Batch: &b}, Outcome: event.OutcomeExecuted, IntervalMs: math.NaN()}
	got := map[string]map[int]float64{}
	for _, m := range measuresOf(t, Source{Name: "a.yaml", Data: []byte(measuredRules)}) {
		got[m.Name] = map[int]float64{}
		m.Visit(&u, func(operator int, v float64) { got[m.Name][operator] = v })
	}
	if len(got["took"]) != 1 || got["took"][-1] != 4 {
		t.Errorf("took: %v", got["took"])
	}
	if len(got["rows"]) != 2 || got["rows"][0] != 50 || got["rows"][2] != 70 {
		t.Errorf("rows: %v", got["rows"])
	}
	u.Outcome = event.OutcomeDuplicate
	for _, m := range measuresOf(t, Source{Name: "a.yaml", Data: []byte(measuredRules)}) {
		m.Visit(&u, func(int, float64) { t.Errorf("%s: a repeat was measured", m.Name) })
	}
}
