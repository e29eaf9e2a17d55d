package collector

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/stategauge/stategauge/event"
)

// Metrics counts what came in and what became of it, for all sources together.
type Metrics struct {
	Events       *prometheus.CounterVec   // by source and outcome
	Rejected     *prometheus.CounterVec   // by source and reason
	FieldMissing *prometheus.CounterVec   // by Spark's field name
	Delay        *prometheus.HistogramVec // seconds from the end of a batch to its receipt, by source
	SourceUp     *prometheus.GaugeVec     // 1 while the source can be read, by source
}

// NewMetrics registers the intake metrics with reg; the values of outcome and
// reason that are known beforehand start at 0 for each of the sources.
func NewMetrics(reg prometheus.Registerer, sources ...string) *Metrics {
	with := promauto.With(reg)
	m := &Metrics{
		Events: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_events_total", Help: "Events taken in, by source and by what became of them.",
		}, []string{"source", "outcome"}),
		Rejected: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_events_rejected_total", Help: "Pieces of input that held no usable event, by source and reason.",
		}, []string{"source", "reason"}),
		FieldMissing: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_event_fields_missing_total", Help: "Executed batches that lacked a field which a progress should have.",
		}, []string{"field"}),
		Delay: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stategauge_intake_delay_seconds", Help: "Time from the end of a batch to the receipt of its event, both clocks taken as they are.",
			Buckets:                        []float64{.1, .5, 1, 5, 15, 60, 300, 1800, 7200},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 100,
		}, []string{"source"}),
		SourceUp: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stategauge_source_up", Help: "1 while the source can be read, 0 while it cannot.",
		}, []string{"source"}),
	}
	for _, s := range sources {
		for _, o := range event.Outcomes() {
			m.Events.WithLabelValues(s, o.String())
		}
		for _, r := range Reasons() {
			m.Rejected.WithLabelValues(s, string(r))
		}
	}
	return m
}
