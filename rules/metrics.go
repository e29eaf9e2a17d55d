package rules

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the engine's own series. Engines may share them.
type Metrics struct {
	evaluations    *prometheus.CounterVec
	templateErrors *prometheus.CounterVec
	refused        *prometheus.CounterVec
	implausible    *prometheus.CounterVec
	queriesRefused prometheus.Counter
	ticksMissed    prometheus.Counter
	queries        prometheus.Gauge
}

// NewMetrics registers the engine's series with reg; nil registers nothing.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	perRule := func(name, help string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"rule"})
	}
	return &Metrics{
		evaluations:    perRule("stategauge_rule_evaluations_total", "Values that a rule took into its windows."),
		templateErrors: perRule("stategauge_rule_template_errors_total", "Annotations that were replaced by plain text because their template failed."),
		refused:        perRule("stategauge_rule_alerts_refused_total", "Findings that started no alert because a limit was reached."),
		implausible:    perRule("stategauge_rule_implausible_values_total", "Values kept out of a rule because they cannot be true."),
		queriesRefused: f.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_rule_queries_refused_total", Help: "Batches not judged because too many queries are known already.",
		}),
		ticksMissed: f.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_rule_ticks_missed_total", Help: "Ticks of the rule engine that came too late to happen.",
		}),
		queries: f.NewGauge(prometheus.GaugeOpts{
			Name: "stategauge_rule_queries", Help: "Queries that rules hold windows for.",
		}),
	}
}

// ruleMetrics are one rule's series, looked up once.
type ruleMetrics struct {
	evaluations, templateErrors, refused, implausible prometheus.Counter
}

func (m *Metrics) of(rule string) ruleMetrics {
	return ruleMetrics{
		evaluations: m.evaluations.WithLabelValues(rule), templateErrors: m.templateErrors.WithLabelValues(rule),
		refused: m.refused.WithLabelValues(rule), implausible: m.implausible.WithLabelValues(rule),
	}
}

// dropGone deletes the series of rules that were in old and are not in p.
func (m *Metrics) dropGone(old, p *Pack) {
	for _, r := range old.rules {
		if slices.ContainsFunc(p.rules, func(n *rule) bool { return n.alert == r.alert }) {
			continue
		}
		for _, v := range []*prometheus.CounterVec{m.evaluations, m.templateErrors, m.refused, m.implausible} {
			v.DeleteLabelValues(r.alert)
		}
	}
}
