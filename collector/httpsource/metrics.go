package httpsource

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// answers are the status codes that a Source gives.
var answers = []int{200, 400, 405, 408, 413, 415, 429, 503}

// Metrics counts what the HTTP intake itself does; what becomes of the events is
// counted by the collector.Metrics.
type Metrics struct {
	Requests *prometheus.CounterVec // by status code
	WireSize prometheus.Counter     // bytes of bodies as they came
	Size     prometheus.Counter     // bytes of bodies, decompressed
	InFlight prometheus.Gauge       // bytes that requests under way take
	Duration prometheus.Histogram   // seconds from the first byte of a request to its answer
}

// NewMetrics registers the metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	with := promauto.With(reg)
	m := &Metrics{
		Requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_http_intake_requests_total", Help: "Requests that brought events, by status code of the answer.",
		}, []string{"code"}),
		WireSize: with.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_http_intake_wire_bytes_total", Help: "Bytes of request bodies as they came.",
		}),
		Size: with.NewCounter(prometheus.CounterOpts{
			Name: "stategauge_http_intake_body_bytes_total", Help: "Bytes of request bodies after decompression.",
		}),
		InFlight: with.NewGauge(prometheus.GaugeOpts{
			Name: "stategauge_http_intake_in_flight_bytes", Help: "Memory that the bodies of requests under way take.",
		}),
		Duration: with.NewHistogram(prometheus.HistogramOpts{
			Name: "stategauge_http_intake_request_duration_seconds", Help: "Time from the begin of a request to its answer.",
			Buckets:                        []float64{.001, .005, .025, .1, .5, 2, 10},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 100,
		}),
	}
	for _, code := range answers {
		m.Requests.WithLabelValues(strconv.Itoa(code))
	}
	return m
}
