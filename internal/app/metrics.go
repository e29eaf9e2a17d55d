package app

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// metrics are the daemon's own figures that belong to no other package.
type metrics struct {
	collector *collector.Metrics
	refused   prometheus.Counter // steps turned away because the intake was full

	reloadOK   prometheus.Gauge
	reloadTime prometheus.Gauge

	judged       prometheus.Counter
	judgeSeconds prometheus.Counter
	verdicts     *prometheus.CounterVec

	mu      sync.RWMutex
	sources map[string]*sourceCounters
}

// sourceCounters are the children of one source, looked up once: the label lookup
// would cost more than the count.
type sourceCounters struct {
	outcomes []prometheus.Counter
	delay    prometheus.Observer
}

func newMetrics(reg prometheus.Registerer, sources ...string) *metrics {
	with := promauto.With(reg)
	return &metrics{
		collector: collector.NewMetrics(reg, sources...),
		sources:   map[string]*sourceCounters{},
		refused: with.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_intake_refused_total", Help: "Pieces of intake turned away because a queue was full; senders try again.",
		}),
		reloadOK: with.NewGauge(prometheus.GaugeOpts{
			Name: "stategauge_config_last_reload_successful", Help: "1 if the newest attempt to load the configuration succeeded.",
		}),
		reloadTime: with.NewGauge(prometheus.GaugeOpts{
			Name: "stategauge_config_last_reload_success_timestamp_seconds", Help: "When the configuration in force was loaded.",
		}),
		judged: with.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_rules_updates_judged_total", Help: "Updates that the rules have judged.",
		}),
		judgeSeconds: with.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_rules_judging_seconds_total", Help: "Time spent judging.",
		}),
		verdicts: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_rules_verdicts_total", Help: "Judgements and alerts that changed their state, by what was said.",
		}, []string{"said"}),
	}
}

// gaugeFunc registers a figure that is read when it is asked for.
func gaugeFunc(reg prometheus.Registerer, name, help string, f func() float64) {
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
}

// counterFunc registers a count that is read when it is asked for.
func counterFunc(reg prometheus.Registerer, name, help string, f func() float64) {
	promauto.With(reg).NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f)
}

func (m *metrics) bySource(source string) *sourceCounters {
	m.mu.RLock()
	c := m.sources[source]
	m.mu.RUnlock()
	if c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c = &sourceCounters{delay: m.collector.Delay.WithLabelValues(source)}
	c.outcomes = append(c.outcomes, m.collector.Events.WithLabelValues(source, event.OutcomeUnknown.String()))
	for _, o := range event.Outcomes() {
		c.outcomes = append(c.outcomes, m.collector.Events.WithLabelValues(source, o.String()))
	}
	m.sources[source] = c
	return c
}

// countMissing counts absent fields by name. batchDuration is absent by design
// before Spark 4.0, so it counts only where triggerExecution is absent too.
func (m *metrics) countMissing(missing event.Missing) {
	if missing&event.MissingTriggerExecution == 0 {
		missing &^= event.MissingBatchDuration
	}
	for _, field := range missing.MissingNames() {
		m.collector.FieldMissing.WithLabelValues(field).Inc()
	}
}
