package kafkasource

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// brokerEnv makes the test binary a broker, in a process of its own, so that the
// benchmark's CPU time is the client's alone.
const brokerEnv = "STATEGAUGE_TEST_BROKER"

func TestMain(m *testing.M) {
	if os.Getenv(brokerEnv) == "" {
		os.Exit(m.Run())
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(benchPartitions, topicEvents))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent goes away
	c.Close()
}

const (
	benchPartitions = 4
	benchMessages   = 4000
)

// separateBroker starts a broker process and fills its topic.
func separateBroker(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), brokerEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addr := strings.TrimSpace(line)
	fill(b, addr)
	return addr
}

func fill(b *testing.B, addr string) {
	b.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	recs := make([]*kgo.Record, benchMessages)
	for i := range recs {
		recs[i] = &kgo.Record{Topic: topicEvents, Partition: int32(i % benchPartitions), Value: []byte(largeProgress(i))}
	}
	if err := cl.ProduceSync(context.Background(), recs...).FirstErr(); err != nil {
		b.Fatal(err)
	}
}

// largeProgress is a progress of 7 KB: three operators with 35 custom metrics each
// and offsets of 32 partitions.
func largeProgress(batch int) string {
	var s strings.Builder
	offsets := func(add int) string {
		parts := make([]string, 32)
		for p := range parts {
			parts[p] = fmt.Sprintf(`"%d":%d`, p, 4_000_000_000+batch*1000+p+add)
		}
		return `{"orders":{` + strings.Join(parts, ",") + `}}`
	}
	fmt.Fprintf(&s, `{"id":"%08d-2f6b-4f0e-9a45-6a1f0c1b9e21","runId":%q,"name":"orders","timestamp":"2026-03-01T10:%02d:%02d.000Z",`+
		`"batchId":%d,"batchDuration":%d,"numInputRows":1000,"inputRowsPerSecond":100.5,"processedRowsPerSecond":%d.25,`+
		`"durationMs":{"addBatch":1800,"commitOffsets":21,"getBatch":1,"latestOffset":9,"queryPlanning":12,"triggerExecution":1900,"walCommit":20},"stateOperators":[`,
		batch%50, runID, batch/60%60, batch%60, batch, 1900+batch%100, 500+batch%10)
	custom := []event.Metric{}
	for _, m := range event.Catalog() {
		if m.Scope == event.ScopeOperator && strings.HasPrefix(m.JSON, "rocksdb") && len(custom) < 35 {
			custom = append(custom, m)
		}
	}
	for op := range 3 {
		if op > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `{"operatorName":"stateStoreSave","numRowsTotal":%d,"numRowsUpdated":100,"numRowsRemoved":0,"allUpdatesTimeMs":120,`+
			`"allRemovalsTimeMs":3,"commitTimeMs":%d,"memoryUsedBytes":90000000,"numRowsDroppedByWatermark":0,"numShufflePartitions":200,`+
			`"numStateStoreInstances":200,"customMetrics":{`, 1_000_000+batch, 8000+batch%500)
		for i, m := range custom {
			if i > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, "%q:%d", m.JSON, 1000*i+batch)
		}
		s.WriteString("}}")
	}
	fmt.Fprintf(&s, `],"sources":[{"description":"KafkaV2[Subscribe[orders]]","startOffset":%s,"endOffset":%s,"latestOffset":%s,`+
		`"numInputRows":1000,"inputRowsPerSecond":100.5,"processedRowsPerSecond":526.3}],"sink":{"description":"noop","numOutputRows":-1}}`,
		offsets(0), offsets(30), offsets(40))
	return s.String()
}

// cpu is the CPU time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkKafkaToHandlerVersusReaderAndJSON reads 4,000 events of 7 KB from four
// partitions of a broker in another process, decodes them and hands them to a
// handler that does nothing. The peer is kafka-go's Reader, one per partition, and
// encoding/json into structs with maps. Both are measured by CPU time.
func BenchmarkKafkaToHandlerVersusReaderAndJSON(b *testing.B) {
	addr := separateBroker(b)
	var mine, peer time.Duration
	for b.Loop() {
		begin := cpu(b)
		readOnce(b, addr)
		mid := cpu(b)
		readPeer(b, addr)
		mine, peer = mine+mid-begin, peer+cpu(b)-mid
	}
	events := float64(b.N * benchMessages)
	b.ReportMetric(events/mine.Seconds(), "events/cpu_s")
	b.ReportMetric(events/peer.Seconds(), "peer_events/cpu_s")
	b.ReportMetric(peer.Seconds()/mine.Seconds(), "x_peer")
	b.ReportMetric(float64(len(largeProgress(1))), "B/event")
}

// readOnce reads the whole topic through a source, from the start.
func readOnce(b *testing.B, addr string) {
	var got atomic.Int64
	done := make(chan struct{})
	r := newRig(b, quick(addr), func(o *Options) {
		o.Config.MaxWait = 500 * time.Millisecond
		o.Handler = func(_ context.Context, step *collector.Step) error {
			for i := range step.Items {
				step.Items[i].Outcome = event.OutcomeExecuted
			}
			if got.Add(int64(len(step.Items))) == benchMessages {
				close(done)
			}
			return nil
		}
		o.Hooks.Assigned = func(_ context.Context, a []collector.Assignment) ([]collector.Start, error) {
			return make([]collector.Start, len(a)), nil
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- r.src.Run(ctx) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		b.Fatalf("%d of %d events after a minute: %v", got.Load(), benchMessages, r.src.Health())
	}
	cancel()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
}

// peerProgress is what an ordinary program would unmarshal into.
type peerProgress struct {
	ID, RunID, Name, Timestamp string
	BatchID, BatchDuration     int64
	NumInputRows               int64
	DurationMs                 map[string]int64
	StateOperators             []struct {
		OperatorName                                string
		NumRowsTotal, CommitTimeMs, MemoryUsedBytes int64
		CustomMetrics                               map[string]int64
	}
	Sources []struct {
		Description                          string
		StartOffset, EndOffset, LatestOffset map[string]map[string]int64
	}
}

func readPeer(b *testing.B, addr string) {
	results := make(chan error, benchPartitions)
	for p := range benchPartitions {
		go func() {
			r := kafka.NewReader(kafka.ReaderConfig{
				Brokers: []string{addr}, Topic: topicEvents, Partition: p, MaxBytes: 1 << 20, ReadLagInterval: -1,
			})
			defer func() { _ = r.Close() }()
			for range benchMessages / benchPartitions {
				m, err := r.ReadMessage(context.Background())
				if err != nil {
					results <- err
					return
				}
				var v peerProgress
				if err := json.Unmarshal(m.Value, &v); err != nil {
					results <- err
					return
				}
			}
			results <- nil
		}()
	}
	for range benchPartitions {
		if err := <-results; err != nil {
			b.Fatal(err)
		}
	}
}
