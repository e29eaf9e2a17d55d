package mockcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/kafkasource"
	"github.com/stategauge/stategauge/event"
)

const topic = "spark-events"

// cluster is a mock cluster with a producer.
type cluster struct {
	t    *testing.T
	mock *kafka.MockCluster
	sent map[int32]int64
}

func newCluster(t *testing.T, brokers, partitions int) *cluster {
	t.Helper()
	mock, err := kafka.NewMockCluster(brokers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mock.Close)
	c := &cluster{t, mock, map[int32]int64{}}
	if partitions > 0 {
		c.create(partitions)
	}
	return c
}

func (c *cluster) create(partitions int) {
	c.t.Helper()
	if err := c.mock.CreateTopic(topic, partitions, 1); err != nil {
		c.t.Fatal(err)
	}
}

// send writes n events to a partition, in the compression given ("none" for none).
// The batch ids of a partition count from 0, as its offsets do.
func (c *cluster) send(partition int32, n int, compression string) {
	c.t.Helper()
	p, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": c.mock.BootstrapServers(), "compression.codec": compression, "linger.ms": 50,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	defer p.Close()
	reports, name := make(chan kafka.Event, n), topic
	for range n {
		m := &kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &name, Partition: partition},
			Value:          progress(partition, c.sent[partition]),
			Headers:        []kafka.Header{{Key: "team", Value: []byte("night")}},
		}
		if err := p.Produce(m, reports); err != nil {
			c.t.Fatal(err)
		}
		c.sent[partition]++
	}
	for range n {
		if m := (<-reports).(*kafka.Message); m.TopicPartition.Error != nil {
			c.t.Fatal(m.TopicPartition.Error)
		}
	}
}

// committed asks for a group's offset with librdkafka's consumer.
func (c *cluster) committed(group string, partition int32) int64 {
	c.t.Helper()
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": c.mock.BootstrapServers(), "group.id": group})
	if err != nil {
		c.t.Fatal(err)
	}
	defer consumer.Close()
	name := topic
	at, err := consumer.Committed([]kafka.TopicPartition{{Topic: &name, Partition: partition}}, 20_000)
	if err != nil {
		c.t.Fatal(err)
	}
	return int64(at[0].Offset)
}

func progress(query int32, batch int64) []byte {
	return fmt.Appendf(nil, `{"id":"%08d-1111-4222-8333-444444444444","runId":"%08d-5555-4666-8777-888888888888","name":"query_%d",`+
		`"timestamp":"2026-03-01T10:00:00.000Z","batchId":%d,"batchDuration":120,"numInputRows":10,`+
		`"durationMs":{"addBatch":80,"triggerExecution":120},"stateOperators":[],"sources":[],"sink":{"description":"noop"}}`,
		query, query, query, batch)
}

// reader is a source and what its handler was given, in order, by partition.
type reader struct {
	t    *testing.T
	src  *kafkasource.Source
	reg  *prometheus.Registry
	stop context.CancelFunc
	done chan error

	mu   sync.Mutex
	got  map[int32][]int64 // batch ids
	team map[string]int    // by the header that came along
}

func newReader(c *cluster, group string) *reader {
	c.t.Helper()
	r := &reader{t: c.t, reg: prometheus.NewRegistry(), done: make(chan error, 1), got: map[int32][]int64{}, team: map[string]int{}}
	conf := kafkasource.DefaultConfig()
	conf.Brokers, conf.Topics, conf.GroupID = []string{firstOf(c.mock.BootstrapServers())}, []string{topic}, group
	conf.WatchdogInterval, conf.MaxWait = 500*time.Millisecond, 100*time.Millisecond
	conf.HeartbeatInterval, conf.SessionTimeout = 500*time.Millisecond, 6*time.Second
	src, err := kafkasource.New(kafkasource.Options{
		Config: conf, Handler: r.handle, Pool: decode.NewPool(decode.DefaultLimits()),
		Intake: collector.NewMetrics(r.reg, kafkasource.SourceName), Metrics: kafkasource.NewMetrics(r.reg),
		Enrich: collector.NewEnrich(map[string][]string{"team": {"header:team"}}),
		Logger: slog.New(slog.NewTextHandler(c.t.Output(), nil)),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r.src = src
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.done <- src.Run(ctx) }()
	c.t.Cleanup(r.halt)
	return r
}

// halt stops the source, which commits what is handled. It may be called again.
func (r *reader) halt() {
	r.stop()
	err := <-r.done
	r.done <- err
	if err != nil {
		r.t.Error(err)
	}
}

func firstOf(servers string) string {
	for i := range servers {
		if servers[i] == ',' {
			return servers[:i]
		}
	}
	return servers
}

func (r *reader) handle(_ context.Context, step *collector.Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range step.Items {
		it := &step.Items[i]
		it.Outcome = event.OutcomeExecuted
		if it.Event.Batch == nil || it.Event.Batch.ID != it.Origin.Offset {
			r.t.Errorf("offset %d carries %+v", it.Origin.Offset, it.Event.Batch)
			continue
		}
		r.got[it.Origin.Partition] = append(r.got[it.Origin.Partition], it.Event.Batch.ID)
		for _, l := range it.Event.Extra {
			r.team[l.Value]++
		}
	}
	return nil
}

// has waits until the handler was given exactly the batches from first to before
// end of a partition, each once and in order.
func (r *reader) has(partition int32, first, end int64) {
	r.t.Helper()
	await(r.t, fmt.Sprintf("batches %d to %d of partition %d", first, end-1, partition), func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		got := r.got[partition]
		for i, id := range got {
			if id != first+int64(i) {
				r.t.Fatalf("batch %d came as number %d of partition %d, which starts with %d", id, i, partition, first)
			}
		}
		if n := end - first; int64(len(got)) != n {
			return fmt.Errorf("%d of %d came; health: %w", len(got), n, r.src.Health())
		}
		return nil
	})
}

// await asks until there is no error: the cluster has a clock of its own.
func await(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

var errHealthy = errors.New("the source says that all is well")
