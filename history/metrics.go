package history

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// What retention deletes, and why.
const (
	kindRaw    = "raw"
	kindHourly = "hourly"
	whyAge     = "age"
	whySize    = "size"
)

// Metrics counts what the history does to the disk. One Metrics serves one Store,
// and every Store that is opened after it.
type Metrics struct {
	CommitSeconds      prometheus.Histogram   // time until a group of steps was durable
	CommitErrors       prometheus.Counter     // groups of steps that were not written
	Steps              prometheus.Counter     // steps written
	Records            prometheus.Counter     // records written
	RecordBytes        prometheus.Counter     // bytes of their bodies
	Syncs              prometheus.Counter     // times that the log was forced to disk
	Written            prometheus.Counter     // bytes that reached the disk, compactions included
	WriteAmplification prometheus.Gauge       // bytes that reached the disk per byte handed over, since the last opening
	DiskBytes          prometheus.Gauge       // size of the history on disk
	Deletions          *prometheus.CounterVec // ranges deleted by retention, by kind and reason
	Reopened           prometheus.Counter     // times that the history was opened anew after a failure
	DegradedSince      prometheus.Gauge       // Unix seconds since when nothing can be written; 0: all is well
}

// NewMetrics registers the metrics with reg; nil registers them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	with := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: "stategauge_history_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: "stategauge_history_" + name, Help: help})
	}
	m := &Metrics{
		CommitSeconds: with.NewHistogram(prometheus.HistogramOpts{
			Name: "stategauge_history_commit_seconds", Help: "Time until a group of steps was durable.",
			Buckets: prometheus.ExponentialBuckets(0.000125, 2, 16), NativeHistogramBucketFactor: 1.1,
		}),
		CommitErrors:       counter("commit_errors_total", "Groups of steps that could not be written."),
		Steps:              counter("steps_total", "Steps of intake written."),
		Records:            counter("records_total", "Records written."),
		RecordBytes:        counter("record_bytes_total", "Bytes of the bodies of the records written."),
		Syncs:              counter("log_syncs_total", "Times that the write-ahead log was forced to disk."),
		Written:            counter("written_bytes_total", "Bytes that the history wrote to disk, log, flushes and compactions together."),
		WriteAmplification: gauge("write_amplification_ratio", "Bytes written to disk per byte handed to the history, since it was opened."),
		DiskBytes:          gauge("disk_bytes", "Size of the history on disk."),
		Deletions: with.NewCounterVec(prometheus.CounterOpts{
			Name: "stategauge_history_retention_deletions_total", Help: "Ranges of time that retention deleted.",
		}, []string{"kind", "reason"}),
		Reopened:      counter("reopened_total", "Times that the history was opened anew after its disk had failed."),
		DegradedSince: gauge("degraded_since_timestamp_seconds", "Since when the history cannot be written; 0 while it can."),
	}
	for _, kind := range []string{kindRaw, kindHourly} {
		for _, why := range []string{whyAge, whySize} {
			m.Deletions.WithLabelValues(kind, why)
		}
	}
	return m
}
