package kafkasource

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Why offsets were jumped over.
const (
	gapRetention = "retention" // the broker had deleted them
	gapRecreated = "recreated" // the topic, or its log, is a new one
	gapEmpty     = "empty"     // the broker sends nothing there, as compaction can leave it

	gapUnreadable = "unreadable" // the batch there is broken, or unpacks to too much
)

// Metrics counts what the source itself does; what came of the events is counted
// by collector.Metrics. One Metrics can serve several sources one after the other.
type Metrics struct {
	Lag           *prometheus.GaugeVec   // offsets from the next to be handled to the end of the log, by topic and partition; absent while not known
	ReplayLag     *prometheus.GaugeVec   // offsets of history still to be read again, by topic and partition; absent without a replay
	Replaying     prometheus.Gauge       // partitions of which history is being read again
	Replayed      prometheus.Counter     // events handed over as history
	Keyless       *prometheus.CounterVec // messages without a key, by topic
	Fetches       prometheus.Counter     // fetches that brought messages
	Messages      prometheus.Counter     // messages fetched
	Steps         prometheus.Counter     // steps that the handler applied
	Retries       prometheus.Counter     // steps that the handler refused and that were offered again
	Commits       prometheus.Counter     // commits that the group accepted
	CommitErrors  prometheus.Counter     // commits that failed
	Gaps          *prometheus.CounterVec // jumps over offsets, by topic and reason
	OffsetsLost   *prometheus.CounterVec // offsets deleted before they were read, or unreadable, by topic
	Rebalances    prometheus.Counter     // generations of the group that this process was part of
	Assigned      prometheus.Gauge       // partitions that this process reads
	Restarts      *prometheus.CounterVec // readers that were started again after an error, by topic
	LogSuppressed prometheus.Counter     // log lines left out by the limit
}

// NewMetrics registers the metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	with := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: "stategauge_kafka_" + name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: "stategauge_kafka_" + name, Help: help}, labels)
	}
	return &Metrics{
		Lag: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stategauge_kafka_lag", Help: "Offsets from the next one to be handled to the end of the log; absent while not known.",
		}, []string{"topic", "partition"}),
		ReplayLag: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stategauge_kafka_replay_lag", Help: "Offsets of history still to be read again after a take-over; absent once a partition is caught up.",
		}, []string{"topic", "partition"}),
		Replaying: with.NewGauge(prometheus.GaugeOpts{
			Name: "stategauge_kafka_partitions_replaying", Help: "Partitions of which history is being read again after a take-over.",
		}),
		Replayed:     counter("events_replayed_total", "Events read again to fill windows after a take-over; they are counted nowhere else."),
		Keyless:      vec("messages_without_key_total", "Messages without a key: events of one query may lie in several partitions.", "topic"),
		Fetches:      counter("fetches_total", "Fetches that brought messages."),
		Messages:     counter("messages_total", "Messages fetched."),
		Steps:        counter("steps_total", "Steps that the handler applied."),
		Retries:      counter("step_retries_total", "Times that a step was refused and offered again."),
		Commits:      counter("commits_total", "Offset commits that the group accepted."),
		CommitErrors: counter("commit_errors_total", "Offset commits that failed."),
		Gaps:         vec("gaps_total", "Jumps over offsets that could not be read, by reason.", "topic", "reason"),
		OffsetsLost:  vec("offsets_lost_total", "Offsets that were deleted before they were read, or cannot be.", "topic"),
		Rebalances:   counter("rebalances_total", "Generations of the consumer group that this process was part of."),
		Assigned: with.NewGauge(prometheus.GaugeOpts{
			Name: "stategauge_kafka_partitions_assigned", Help: "Partitions that this process reads.",
		}),
		Restarts:      vec("reader_restarts_total", "Readers started again after an error.", "topic"),
		LogSuppressed: counter("log_lines_suppressed_total", "Log lines of the Kafka source that were left out by its limit."),
	}
}

// start makes the counters of a topic begin at 0.
func (m *Metrics) start(topics []string) {
	for _, t := range topics {
		for _, reason := range []string{gapRetention, gapRecreated, gapEmpty, gapUnreadable} {
			m.Gaps.WithLabelValues(t, reason)
		}
		m.OffsetsLost.WithLabelValues(t)
		m.Restarts.WithLabelValues(t)
		m.Keyless.WithLabelValues(t)
	}
}

func (m *Metrics) setLag(p partition, lag int64) {
	m.Lag.WithLabelValues(p.topic, strconv.Itoa(int(p.id))).Set(float64(max(lag, 0)))
}

// setReplayLag shows how far reached is from live, as long as it is before it.
func (m *Metrics) setReplayLag(p partition, live, reached int64) {
	id := strconv.Itoa(int(p.id))
	if reached < live {
		m.ReplayLag.WithLabelValues(p.topic, id).Set(float64(live - reached))
		return
	}
	m.ReplayLag.DeleteLabelValues(p.topic, id)
}

func (m *Metrics) dropLag(p partition) {
	m.Lag.DeleteLabelValues(p.topic, strconv.Itoa(int(p.id)))
	m.ReplayLag.DeleteLabelValues(p.topic, strconv.Itoa(int(p.id)))
}
