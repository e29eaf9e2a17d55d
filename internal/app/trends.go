package app

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/exporter"
	"github.com/stategauge/stategauge/rules"
)

// trends shows the engine's judgements and alerts as series. The exporter knows
// nothing of rules and the rules nothing of Prometheus, so it is done here.
//
// There are series only where there is something to say: a slope where a trend was
// found, a forecast where it leads somewhere. A slope of 0 for every other rule,
// query and operator would be a claim that nobody made, a thousand times over.
type trends struct {
	exporter *exporter.Exporter
	dropped  prometheus.Gauge
	lines    map[trendKey]*shown
	alerts   map[alertKey]*shown
	round    uint64
	left     int // series that this round had no room for
}

// maxTrends bounds the series of trends; alerts are bounded by the rules' names.
const maxTrends = 20_000

// shown is a series on the page and the round that last had a value for it.
type shown struct {
	slot  exporter.Slot
	round uint64
	value float64
}

type trendKey struct {
	query    event.QueryID
	group    string
	alert    string
	operator int
	what     trendKind
}

// trendKind is what a series says of a trend.
type trendKind uint8

const (
	trendSlope trendKind = iota
	trendEta
	trendEtaLow
	trendEtaHigh
)

// estimates are the values of the label estimate.
var estimates = map[trendKind]string{trendEta: "likely", trendEtaLow: "earliest", trendEtaHigh: "latest"}

type alertKey struct{ name, state, severity string }

func newTrends(x *exporter.Exporter, reg prometheus.Registerer) *trends {
	t := &trends{exporter: x, lines: map[trendKey]*shown{}, alerts: map[alertKey]*shown{}}
	t.dropped = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stategauge_trend_series_dropped", Help: "Series of trends that are not shown, since there are too many.",
	})
	reg.MustRegister(t.dropped)
	return t
}

const (
	slopeFamily = "stategauge_trend_slope_per_batch"
	slopeHelp   = "Slope of a rule's signal over its window, in the signal's unit per batch; absent where no trend was found."
	etaFamily   = "stategauge_forecast_seconds"
	etaHelp     = "Time until a rule's signal meets its limit; absent where no trend leads there."
	alertFamily = "stategauge_alerts"
	alertHelp   = "Alerts by name, state and severity; inhibited, muted and old ones fire and are not delivered."
)

// showTrends brings the series in line with the engine. It runs on the judging
// goroutine.
func (a *App) showTrends(alerts []rules.Alert) {
	t, o, now := a.trends, a.overrides.Load(), a.opts.Now()
	t.round++
	t.left = 0
	a.judge.engine.Visit(t.see)
	t.dropped.Set(float64(t.left))
	t.countAlerts(alerts, func(al *rules.Alert) string {
		if why := a.delivery.seems(al, o, now); why != "" {
			return why
		}
		return al.State.String()
	})
	sweep(t.exporter, t.lines, t.round)
	sweep(t.exporter, t.alerts, t.round)
}

// see shows what one judgement says of a trend.
func (t *trends) see(rule, signal string, j *rules.Judged) {
	if !tells(j) {
		return
	}
	if j.SlopePerBatch != 0 && finite(j.SlopePerBatch) != nil {
		t.set(trendSlope, j.SlopePerBatch, rule, signal, j)
	}
	if finite(j.EtaMs) == nil || j.EtaMs <= 0 {
		return
	}
	for kind, ms := range map[trendKind]float64{trendEta: j.EtaMs, trendEtaLow: j.EtaLowMs, trendEtaHigh: j.EtaHighMs} {
		if finite(ms) != nil && ms > 0 {
			t.set(kind, ms/1000, rule, signal, j)
		}
	}
}

// tells reports whether a judgement rests on a trend, whatever became of it.
func tells(j *rules.Judged) bool {
	switch j.Said {
	case rules.SaidFound, rules.SaidExplained, rules.SaidCannotSeparate:
		return true
	}
	return false
}

func (t *trends) set(kind trendKind, v float64, rule, signal string, j *rules.Judged) {
	k := trendKey{j.Query.ID, j.Group, rule, j.OperatorIndex, kind}
	s := t.lines[k]
	if s == nil {
		if len(t.lines) >= maxTrends {
			t.left++
			return
		}
		family, help := etaFamily, etaHelp
		if kind == trendSlope {
			family, help = slopeFamily, slopeHelp
		}
		s = &shown{slot: t.exporter.Slot(family, help, trendLabels(kind, rule, signal, j)...)}
		t.lines[k] = s
	}
	s.round = t.round
	t.exporter.Set(s.slot, v)
}

func trendLabels(kind trendKind, rule, signal string, j *rules.Judged) []event.Label {
	l := []event.Label{{Name: "alertname", Value: rule}, {Name: "signal", Value: signal}}
	if j.Query.ID != "" {
		l = append(l, event.Label{Name: "query_id", Value: string(j.Query.ID)},
			event.Label{Name: "query_name", Value: j.Query.Label()}, event.Label{Name: "application", Value: j.Query.Application})
	}
	if j.Group != "" {
		l = append(l, event.Label{Name: "group", Value: j.Group})
	}
	if j.OperatorIndex >= 0 {
		l = append(l, event.Label{Name: "operator", Value: j.Operator}, event.Label{Name: "operator_index", Value: strconv.Itoa(j.OperatorIndex)})
	}
	if word := estimates[kind]; word != "" {
		l = append(l, event.Label{Name: "estimate", Value: word})
	}
	return l
}

// countAlerts counts alerts by name, state and severity. A series stays at 0 once
// it was there, so that dashboards see an alert end.
func (t *trends) countAlerts(alerts []rules.Alert, stateOf func(*rules.Alert) string) {
	for _, s := range t.alerts {
		s.value, s.round = 0, t.round
	}
	for i := range alerts {
		a := &alerts[i]
		k := alertKey{a.Labels.Get("alertname"), stateOf(a), a.Labels.Get("severity")}
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

// finite returns nil for what JSON has no number for.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
