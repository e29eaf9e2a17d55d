package app

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// fakeKafka runs a broker in this process and returns its address and a producer.
func fakeKafka(t testing.TB, partitions int32) (string, *kgo.Client) {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "spark-events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	addr := broker.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("spark-events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return addr, client
}

func produce(t testing.TB, c *kgo.Client, key string, values ...[]byte) {
	t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Key: []byte(key), Value: v, Headers: []kgo.RecordHeader{{Key: "team", Value: []byte("night")}}})
	}
	if err := c.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func kafkaText(addr string) string {
	return fmt.Sprintf("kafka: {brokers: [%q], topics: [spark-events], watch_interval: 1s}\nlabels: {team: [\"header:team\"]}\n", addr)
}

func TestEventsOnATopicBecomeSeriesAndAreReadOnce(t *testing.T) {
	addr, client := fakeKafka(t, 3)
	one, two := newStream(1), newStream(2)
	for range 5 {
		produce(t, client, one.id, bytes.Clone(one.next()))
		produce(t, client, two.id, bytes.Clone(two.next()))
	}
	produce(t, client, one.id, []byte("{"), nil, []byte("[[[["))
	o := withConfig(t, testOptions(t), kafkaText(addr))
	first, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	first.Start()
	awaitSeries(t, first, "spark_streaming_batches_total", 5, "query_name", "orders_1", "kind", "data", "team", "night")
	awaitSeries(t, first, "spark_streaming_batches_total", 5, "query_name", "orders_2", "kind", "data")
	awaitSeries(t, first, "stategauge_events_total", 10, "source", "kafka", "outcome", "executed")
	awaitSeries(t, first, "stategauge_events_rejected_total", 1, "source", "kafka", "reason", "empty")
	await(t, "health to be good", func() error {
		if code, body := get(t, first, "/-/healthy"); code != 200 || !strings.Contains(body, `"kafka":"ok"`) {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	produce(t, client, one.id, bytes.Clone(one.next()))
	second := start(t, o)
	awaitSeries(t, second, "spark_streaming_batches_total", 1, "query_name", "orders_1", "kind", "data")
	awaitSeries(t, second, "stategauge_events_total", 1, "source", "kafka", "outcome", "executed")
}

func TestPoisonBehindTheLastEventIsCountedOnceOverACrash(t *testing.T) {
	addr, client := fakeKafka(t, 1)
	one := newStream(1)
	produce(t, client, one.id, bytes.Clone(one.next()))
	storage := t.TempDir() + "/history"
	// Each has a group of its own, as if the first had never got to tell it anything.
	daemon := func(group string) Options {
		o := withConfig(t, testOptions(t), fmt.Sprintf("kafka: {brokers: [%q], topics: [spark-events], group: %s}\n", addr, group))
		o.StoragePath = storage
		return o
	}
	first, err := New(daemon("one"))
	if err != nil {
		t.Fatal(err)
	}
	first.Start()
	awaitSeries(t, first, "stategauge_events_total", 1, "source", "kafka", "outcome", "executed")
	produce(t, client, one.id, []byte("{"), []byte("[[[["))
	awaitSeries(t, first, "stategauge_events_rejected_total", 2, "source", "kafka")
	await(t, "the poison to be passed", func() error {
		if n := valueOfOffset(t, first); n != 3 {
			return fmt.Errorf("the history has the partition up to %d", n)
		}
		return nil
	})
	first.drainAbruptly()

	produce(t, client, one.id, bytes.Clone(one.next()))
	second := start(t, daemon("two"))
	awaitSeries(t, second, "stategauge_events_total", 1, "source", "kafka", "outcome", "executed")
	awaitSeries(t, second, "stategauge_events_rejected_total", 0, "source", "kafka")
}

// valueOfOffset is how far the history has the only partition.
func valueOfOffset(t *testing.T, a *App) int64 {
	t.Helper()
	offsets, err := a.journal.store.Offsets()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range offsets {
		return o.Next
	}
	return event.Absent
}

func awaitSeries(t *testing.T, a *App, name string, want float64, labels ...string) {
	t.Helper()
	await(t, name, func() error {
		sum := 0.0
		for _, m := range scrape(t, a)[name].GetMetric() {
			if hasLabels(m, labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		if sum != want {
			return fmt.Errorf("%s%v = %g, want %g", name, labels, sum, want)
		}
		return nil
	})
}

func TestABrokerThatIsGoneMakesTheDaemonDegradedNotDead(t *testing.T) {
	a := start(t, withConfig(t, testOptions(t), kafkaText("127.0.0.1:9")))
	await(t, "the daemon to say that it is degraded", func() error {
		if _, body := get(t, a, "/-/healthy"); !strings.Contains(body, `"status":"degraded"`) {
			return fmt.Errorf("%s", body)
		}
		return nil
	})
	if code, got := post(t, a, newStream(1).ndjson(1)); code != 200 || got.Accepted != 1 {
		t.Errorf("%d %+v", code, got)
	}
	if code, _ := get(t, a, "/-/ready"); code != 200 {
		t.Errorf("ready: %d", code)
	}
}

func TestOnlyPartitionsThatWereNotHeldAreATakeover(t *testing.T) {
	a := start(t, testOptions(t))
	post(t, a, newStream(1).ndjson(1))
	part := func(kept ...bool) (out []collector.Assignment) {
		for id, kept := range kept {
			out = append(out, collector.Assignment{Topic: "t", Partition: int32(id), Committed: int64(id) * 7, Kept: kept})
		}
		return out
	}
	next := int64(0)
	missed := func(jump int64) int64 {
		s := newStream(1)
		next += 1 + jump
		s.batch = next
		post(t, a, bytes.Clone(s.next()))
		a.ask(func(s *shard) { s.tracker.Tick(a.opts.Now().UnixMilli()+60_000, nil) })
		n := int64(0)
		a.ask(func(s *shard) {
			for _, q := range s.tracker.Queries(nil) {
				n += q.Missed
			}
		})
		return n
	}
	for _, c := range []struct {
		got          []collector.Assignment
		jump, missed int64
	}{{part(false, false), 5, 0}, {part(true, true), 4, 4}, {part(true), 3, 7}, {part(false, true), 9, 7}} {
		start, err := a.assigned(context.Background(), c.got)
		if err != nil || len(start) != len(c.got) || start[0] != (collector.Start{Offset: event.Absent, Live: event.Absent}) {
			t.Fatalf("starts %v, %v", start, err)
		}
		if n := missed(c.jump); n != c.missed {
			t.Errorf("after %v: %d missed, want %d", c.got, n, c.missed)
		}
	}
}

// TestASourceThatIsAskedForWhileItStopsStops is about a rebalance that is on its way when
// the daemon stops: it asks for the source, to look back by.
func TestASourceThatIsAskedForWhileItStopsStops(t *testing.T) {
	a := &App{}
	asked := func(ctx context.Context) error {
		<-ctx.Done()
		a.kafkaSource()
		return nil
	}
	a.kafka.running = runPart(asked, func(error) {})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := a.kafka.stop(ctx); err != nil {
		t.Error(err)
	}
}
