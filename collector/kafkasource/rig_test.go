package kafkasource

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
)

const (
	topicEvents = "spark-events"
	queryID     = "5d0f7c7e-2f6b-4f0e-9a45-6a1f0c1b9e21"
	runID       = "b7a3c9d2-1f44-4a6e-8c53-0e9d7f6a2b10"
)

// progress is a small progress of one query.
func progress(batch int) string {
	return fmt.Sprintf(`{"id":%q,"runId":%q,"name":"orders","timestamp":"2026-03-01T10:00:00.000Z","batchId":%d,`+
		`"batchDuration":120,"numInputRows":10,"durationMs":{"addBatch":80,"triggerExecution":120},`+
		`"stateOperators":[],"sources":[],"sink":{"description":"noop"}}`, queryID, runID, batch)
}

// taken is one event as the handler saw it.
type taken struct {
	batch     int64
	partition int32
	offset    int64
	team      string
}

// intake is a handler that remembers. Its gate, where set, decides what a step gets.
type intake struct {
	mu    sync.Mutex
	got   []taken
	steps []collector.Step // without items
	sizes []int
	gate  func(ctx context.Context, step *collector.Step) error
}

func (in *intake) handle(ctx context.Context, step *collector.Step) error {
	in.mu.Lock()
	gate := in.gate
	in.mu.Unlock()
	if gate != nil {
		if err := gate(ctx, step); err != nil {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range step.Items {
		it := &step.Items[i]
		it.Outcome = event.OutcomeExecuted
		one := taken{batch: event.Absent, partition: it.Origin.Partition, offset: it.Origin.Offset}
		if it.Event.Batch != nil {
			one.batch = it.Event.Batch.ID
		}
		for _, l := range it.Event.Extra {
			one.team += l.Value
		}
		in.got = append(in.got, one)
	}
	in.sizes = append(in.sizes, len(step.Items))
	in.steps = append(in.steps, collector.Step{Reached: step.Reached, Topic: step.Topic, Partition: step.Partition, Replayed: step.Replayed})
	return nil
}

func (in *intake) setGate(gate func(context.Context, *collector.Step) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.gate = gate
}

func (in *intake) all() []taken {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]taken(nil), in.got...)
}

// distinct returns the batch ids seen and how often each came.
func (in *intake) distinct() map[int64]int {
	out := map[int64]int{}
	for _, g := range in.all() {
		out[g.batch]++
	}
	return out
}

// rig is a source with everything around it.
type rig struct {
	t       testing.TB
	src     *Source
	in      *intake
	metrics *Metrics
	counts  *collector.Metrics
	log     *syncBuffer
	stop    context.CancelFunc
	done    chan struct{}
	err     error
}

// instruments are what several sources of one process share.
func instruments() (*Metrics, *collector.Metrics) {
	reg := prometheus.NewRegistry()
	return NewMetrics(reg), collector.NewMetrics(reg, SourceName)
}

// quick is a configuration that does in tenths of a second what takes seconds.
func quick(brokers ...string) Config {
	c := DefaultConfig()
	c.Brokers, c.Topics = brokers, []string{topicEvents}
	c.HeartbeatInterval = 100 * time.Millisecond
	c.WatchdogInterval = 200 * time.Millisecond
	c.CommitInterval = 20 * time.Millisecond
	c.MaxWait = 100 * time.Millisecond
	return c
}

func newRig(t testing.TB, cfg Config, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, in: &intake{}, log: &syncBuffer{}}
	r.metrics, r.counts = instruments()
	o := Options{
		Config: cfg, Handler: r.in.handle, Pool: decode.NewPool(decode.DefaultLimits()),
		Intake: r.counts, Metrics: r.metrics, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	src, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.src = src
	return r
}

// start runs the source until the test ends or halt is called.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		r.err = r.src.Run(ctx)
	}()
	r.t.Cleanup(func() {
		r.halt()
		if r.t.Failed() {
			r.t.Logf("log of the source:\n%s", r.log.String())
		}
	})
	return r
}

// halt stops the source and returns how long that took.
func (r *rig) halt() time.Duration {
	begin := time.Now()
	r.stop()
	select {
	case <-r.done:
	case <-time.After(20 * time.Second):
		r.t.Fatal("source did not stop")
	}
	if r.err != nil {
		r.t.Errorf("Run: %v", r.err)
	}
	return time.Since(begin)
}

func (r *rig) ready() *rig {
	r.t.Helper()
	eventually(r.t, "the source is healthy", func() error { return r.src.Health() })
	return r
}

func (r *rig) lag(p int32) float64 {
	return valueOf(r.metrics.Lag.WithLabelValues(topicEvents, fmt.Sprint(p)))
}

func (r *rig) rejected(reason collector.Reason) int {
	return int(valueOf(r.counts.Rejected.WithLabelValues(SourceName, string(reason))))
}

func (r *rig) up() float64 {
	return valueOf(r.counts.SourceUp.WithLabelValues(SourceName))
}

func (r *rig) gaps(reason string) float64 {
	return valueOf(r.metrics.Gaps.WithLabelValues(topicEvents, reason))
}

func (r *rig) logLines() int { return strings.Count(r.log.String(), "\n") }

// wait blocks until n different batches came, in any order.
func (r *rig) wait(n int) *rig {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d events arrive", n), func() error {
		if got := len(r.in.distinct()); got < n {
			return fmt.Errorf("%d so far", got)
		}
		return nil
	})
	return r
}

// eventually polls a condition on real brokers and sockets, where no clock can be
// given, until it holds.
func eventually(t testing.TB, what string, cond func() error) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(2 * time.Minute)
	for {
		err := cond()
		if err == nil {
			return
		}
		select {
		case <-limit:
			t.Fatalf("waited in vain until %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// broker is an in-process Kafka.
type broker struct {
	*kfake.Cluster
	t  testing.TB
	cl *kgo.Client
}

func newBroker(t testing.TB, opts ...kfake.Opt) *broker {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &broker{Cluster: c, t: t}
}

// A member that dies without a word keeps its partitions for a session timeout.
const shortSession = 600 * time.Millisecond

var shortSessions = kfake.GroupMinSessionTimeout(shortSession)

func withTopic(partitions int32) kfake.Opt { return kfake.SeedTopics(partitions, topicEvents) }

func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	if b.cl != nil {
		return b.cl
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.ListenAddrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.ProducerBatchMaxBytes(16 << 20),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	b.cl = cl
	return cl
}

// reconnect makes the next record go through a producer that knows nothing yet.
func (b *broker) reconnect() { b.cl = nil }

// send writes values to a partition, in order.
func (b *broker) send(partition int32, values ...string) {
	b.t.Helper()
	recs := make([]*kgo.Record, len(values))
	for i, v := range values {
		recs[i] = &kgo.Record{Topic: topicEvents, Partition: partition, Value: []byte(v)}
	}
	b.sendRecords(recs...)
}

// sendAt writes a message for each time, in Unix milliseconds, each a batch of its own.
func (b *broker) sendAt(partition int32, atMs ...int64) {
	b.t.Helper()
	for i, at := range atMs {
		b.sendRecords(&kgo.Record{
			Topic: topicEvents, Partition: partition, Value: []byte(progress(i)), Timestamp: time.UnixMilli(at),
		})
	}
}

func (b *broker) sendRecords(recs ...*kgo.Record) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.client().ProduceSync(ctx, recs...).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

// progresses writes the batches from first up to but not including end.
func (b *broker) progresses(partition int32, first, end int) {
	b.t.Helper()
	var values []string
	for i := first; i < end; i++ {
		values = append(values, progress(i))
	}
	b.send(partition, values...)
}

func (b *broker) committed(partition int32) int64 {
	info := b.GroupInfo("stategauge")
	if info == nil {
		return -1
	}
	if c, ok := info.Commits[topicEvents][partition]; ok {
		return c.Offset
	}
	return -1
}

func (b *broker) exists(topic string) bool { return b.TopicInfo(topic) != nil }

// syncBuffer is a log that tests read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// want makes a condition out of a comparison.
func want[T comparable](name string, got func() T, expected T) func() error {
	return func() error {
		if g := got(); g != expected {
			return fmt.Errorf("%s is %v, expected %v", name, g, expected)
		}
		return nil
	}
}

var errBusy = fmt.Errorf("test intake: %w", collector.ErrFull)

type (
	controlRequest  = kmsg.Request
	controlResponse = kmsg.Response
	controlFunc     = func(kmsg.Request) (kmsg.Response, error, bool)
)

// valueOf reads a counter or a gauge.
func valueOf(m prometheus.Metric) float64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		panic(err)
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

func countSeries(c prometheus.Collector) int {
	ch := make(chan prometheus.Metric, 1000)
	c.Collect(ch)
	return len(ch)
}
