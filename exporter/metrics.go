package exporter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons why a series was not created.
const (
	dropTotal       = "total"
	dropPerQuery    = "per_query"
	dropUnknownKeys = "unknown_keys"
	dropPhases      = "phases"
	dropObserved    = "observed"
	dropName        = "name"
)

// metrics is what the exporter says about itself.
type metrics struct {
	dropped      *prometheus.CounterVec // by reason
	implausible  *prometheus.CounterVec // by Spark's field name
	scrapes      *prometheus.CounterVec // by format
	scrapeErrors *prometheus.CounterVec // by reason
	scrapeTime   prometheus.Histogram
}

// newMetrics registers them with reg; nil registers nothing.
func newMetrics(x *Exporter, reg prometheus.Registerer) *metrics {
	with := promauto.With(reg)
	m := &metrics{
		dropped: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_series_dropped_total", Help: "Series that were wanted and not created, by the limit that forbade them.",
		}, []string{"reason"}),
		implausible: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_implausible_values_total", Help: "Values left out because they cannot be true, by Spark's field name.",
		}, []string{"field"}),
		scrapes: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_scrapes_total", Help: "Metrics pages rendered, by format.",
		}, []string{"format"}),
		scrapeErrors: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_scrape_errors_total", Help: "Faults while a metrics page was made or sent; the rest of the page is served all the same.",
		}, []string{"reason"}),
		scrapeTime: with.NewHistogram(prometheus.HistogramOpts{
			Name: "stategauge_scrape_render_seconds", Help: "Time to render the series of all queries for one page.",
			Buckets:                        []float64{.001, .005, .01, .05, .1, .5, 1},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 100,
		}),
	}
	// Read when asked for: an update must not pay for them.
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stategauge_series", Help: "Series of all queries that exist now, histograms with all their parts.",
	}, func() float64 { return float64(x.total.Load()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stategauge_unknown_keys", Help: "Metric keys outside the catalog that have a family now.",
	}, func() float64 { return float64(x.unknownKeys.Load()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stategauge_exported_queries", Help: "Queries that have series now.",
	}, func() float64 { return float64(x.live.Load()) })
	m.start()
	return m
}

// start gives the label values that are known beforehand their zero.
func (m *metrics) start() {
	for _, r := range []string{dropTotal, dropPerQuery, dropUnknownKeys, dropPhases, dropObserved, dropName} {
		m.dropped.WithLabelValues(r)
	}
	for _, f := range []string{formatText, formatOpenMetrics, formatProtobuf, formatOther} {
		m.scrapes.WithLabelValues(f)
	}
	for _, r := range []string{errorGather, errorEncode, errorWrite, errorBusy} {
		m.scrapeErrors.WithLabelValues(r)
	}
}
