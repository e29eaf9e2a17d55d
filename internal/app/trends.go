package app

import (
	"strconv"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/exporter"
	"github.com/stategauge/stategauge/rules"
)

// trends shows the engine's judgements and alerts as series. The exporter knows
// nothing of rules and the rules nothing of Prometheus, so it is done here.
type trends struct {
	exporter *exporter.Exporter
	slopes   map[slopeKey]*shown
	alerts   map[alertKey]*shown
	round    uint64
}

// shown is a series on the page and the round that last had a value for it.
type shown struct {
	slot  exporter.Slot
	round uint64
	value float64
}

type slopeKey struct {
	query    event.QueryID
	alert    string
	operator int
}

type alertKey struct{ name, state, severity string }

func newTrends(x *exporter.Exporter) *trends {
	return &trends{exporter: x, slopes: map[slopeKey]*shown{}, alerts: map[alertKey]*shown{}}
}

const (
	slopeFamily = "stategauge_trend_slope_per_batch"
	slopeHelp   = "Slope of a rule's signal over its window, in the signal's unit per batch; 0 while no trend is significant."
	alertFamily = "stategauge_alerts"
	alertHelp   = "Alerts by name, state and severity."
)

// refresh takes what the engine says now. It runs on the judging goroutine.
func (t *trends) refresh(e *rules.Engine, alerts []rules.Alert) {
	t.round++
	for _, g := range e.Status(true).Groups {
		for i := range g.Rules {
			t.slopesOf(&g.Rules[i])
		}
	}
	t.countAlerts(alerts)
	sweep(t.exporter, t.slopes, t.round)
	sweep(t.exporter, t.alerts, t.round)
}

func (t *trends) slopesOf(r *rules.RuleStatus) {
	for i := range r.Judgements {
		j := &r.Judgements[i]
		if j.Points == 0 || j.Said == rules.SaidTooFew {
			continue
		}
		k := slopeKey{j.Query.ID, r.Alert, j.OperatorIndex}
		s := t.slopes[k]
		if s == nil {
			s = &shown{slot: t.exporter.Slot(slopeFamily, slopeHelp, slopeLabels(r, j)...)}
			t.slopes[k] = s
		}
		s.round = t.round
		t.exporter.Set(s.slot, j.SlopePerBatch)
	}
}

func slopeLabels(r *rules.RuleStatus, j *rules.Judged) []event.Label {
	l := []event.Label{
		{Name: "query_id", Value: string(j.Query.ID)},
		{Name: "query_name", Value: j.Query.Label()},
		{Name: "application", Value: j.Query.Application},
		{Name: "alertname", Value: r.Alert},
		{Name: "signal", Value: r.Signal},
	}
	if j.OperatorIndex >= 0 {
		l = append(l, event.Label{Name: "operator", Value: j.Operator}, event.Label{Name: "operator_index", Value: strconv.Itoa(j.OperatorIndex)})
	}
	return l
}

// countAlerts counts alerts by name, state and severity. A series stays at 0 once
// it was there, so that dashboards see an alert end.
func (t *trends) countAlerts(alerts []rules.Alert) {
	for _, s := range t.alerts {
		s.value, s.round = 0, t.round
	}
	for i := range alerts {
		a := &alerts[i]
		k := alertKey{a.Labels.Get("alertname"), a.State.String(), a.Labels.Get("severity")}
		s := t.alerts[k]
		if s == nil {
			s = &shown{slot: t.exporter.Slot(alertFamily, alertHelp,
				event.Label{Name: "alertname", Value: k.name}, event.Label{Name: "alertstate", Value: k.state}, event.Label{Name: "severity", Value: k.severity})}
			t.alerts[k] = s
		}
		s.value++
		s.round = t.round
	}
	for _, s := range t.alerts {
		t.exporter.Set(s.slot, s.value)
	}
}

// sweep drops series that nothing had a value for in this round.
func sweep[K comparable](x *exporter.Exporter, m map[K]*shown, round uint64) {
	for k, s := range m {
		if s.round != round {
			x.Drop(s.slot)
			delete(m, k)
		}
	}
}
