package notify

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Reasons of failed and dropped notifications.
const (
	reasonTimeout    = "timeout"
	reasonConnection = "connection"
	reasonServer     = "server_error"
	reasonRefused    = "refused"
	reasonBadAlert   = "bad_alert"
	reasonQueueFull  = "queue_full"
	reasonShutdown   = "shutdown"
)

var (
	failReasons = []string{reasonTimeout, reasonConnection, reasonServer, reasonRefused, reasonBadAlert}
	dropReasons = []string{reasonQueueFull, reasonBadAlert, reasonShutdown}
)

// label tells the Alertmanagers apart: the URL without its password and, behind a
// name, the address.
const label = "alertmanager"

// metrics are the package's own series. Counters begin at 0 for every Alertmanager
// and reason, so that rate() sees the first failure.
type metrics struct {
	sent    *prometheus.CounterVec
	failed  *prometheus.CounterVec
	dropped *prometheus.CounterVec
	queued  *prometheus.GaugeVec
	latency *prometheus.HistogramVec
	skew    *prometheus.GaugeVec
	lookups *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	with := promauto.With(reg)
	return &metrics{
		sent: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_notifications_sent_total", Help: "Alerts that the Alertmanager took, resends included.",
		}, []string{label}),
		failed: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_notifications_failed_total", Help: "Requests to the Alertmanager that failed, by reason.",
		}, []string{label, "reason"}),
		dropped: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_notifications_dropped_total", Help: "Alert states that were given up for the Alertmanager, by reason.",
		}, []string{label, "reason"}),
		queued: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stategauge_notifications_queue_length", Help: "Alert states that wait for their first delivery to the Alertmanager.",
		}, []string{label}),
		latency: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stategauge_notifications_latency_seconds", Help: "Time for one request to the Alertmanager.",
			Buckets:                        []float64{.005, .02, .1, .5, 2, 10},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 100,
		}, []string{label}),
		skew: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stategauge_alertmanager_clock_skew_seconds", Help: "How far the Alertmanager's clock is ahead of this one, from its last answer.",
		}, []string{label}),
		lookups: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_alertmanager_lookup_failures_total", Help: "Failed look-ups of a name that stands for several Alertmanagers.",
		}, []string{label}),
	}
}

// start begins the series of one Alertmanager.
func (m *metrics) start(name string) {
	m.sent.WithLabelValues(name)
	m.queued.WithLabelValues(name)
	m.latency.WithLabelValues(name)
	for _, r := range failReasons {
		m.failed.WithLabelValues(name, r)
	}
	for _, r := range dropReasons {
		m.dropped.WithLabelValues(name, r)
	}
}

// stop ends the series of an address that is gone.
func (m *metrics) stop(name string) {
	by := prometheus.Labels{label: name}
	m.sent.DeletePartialMatch(by)
	m.failed.DeletePartialMatch(by)
	m.dropped.DeletePartialMatch(by)
	m.queued.DeletePartialMatch(by)
	m.latency.DeletePartialMatch(by)
	m.skew.DeletePartialMatch(by)
}
