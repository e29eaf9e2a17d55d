package kafkasource

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// realEnv names a broker, host:port, that these tests may make a topic and groups
// on. What a broker in memory cannot vouch for is tried on it: searches by time in
// real log segments, and a group's own rules.
const realEnv = "STATEGAUGE_TEST_KAFKA"

// realTopic makes the topic anew and returns the broker's address and a producer.
func realTopic(t *testing.T, partitions int32) (string, *kgo.Client) {
	addr := os.Getenv(realEnv)
	if addr == "" {
		t.Skipf("%s is not set", realEnv)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	drop := kmsg.NewPtrDeleteTopicsRequest()
	old := kmsg.NewDeleteTopicsRequestTopic()
	old.Topic = kmsg.StringPtr(topicEvents)
	drop.TopicNames, drop.Topics, drop.TimeoutMillis = []string{topicEvents}, append(drop.Topics, old), 10000
	if _, err := drop.RequestWith(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = topicEvents, partitions, 1
	create.Topics = append(create.Topics, topic)
	eventually(t, "the topic is made", func() error {
		resp, err := create.RequestWith(t.Context(), cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	})
	return addr, cl
}

func TestSearchByTimeOnARealBroker(t *testing.T) {
	addr, cl := realTopic(t, 3)
	now := time.Now()
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	write := func(p int32, minutes ...int) {
		for i, m := range minutes {
			rec := &kgo.Record{Topic: topicEvents, Partition: p, Key: []byte(queryID), Value: []byte(progress(i)), Timestamp: ago(m)}
			if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(0, 90, 70, 50, 40)
	write(1, 80, 61)
	r := newRig(t, quick(addr))
	for minutes, expected := range map[int][]int64{60: {2, 2, 0}, 75: {1, 1, 0}, 100: {0, 0, 0}, 0: {4, 2, 0}} {
		got, err := r.src.OffsetsForTimes(t.Context(), partsOf(3), ago(minutes).UnixMilli())
		if err != nil || !slices.Equal(got, expected) {
			t.Errorf("%d minutes ago: offsets %v (%v), expected %v", minutes, got, err, expected)
		}
	}
}

// TestAGroupOnARealBrokerRewindsAndKeeps lets members come and go whose hooks rewind
// what they did not keep.
func TestAGroupOnARealBrokerRewindsAndKeeps(t *testing.T) {
	addr, cl := realTopic(t, 6)
	cfg := quick(addr)
	cfg.GroupID = fmt.Sprint("stategauge-", time.Now().UnixNano())
	cfg.SessionTimeout = 6 * time.Second
	next := 0
	write := func(n int) {
		var recs []*kgo.Record
		for range n {
			recs = append(recs, &kgo.Record{Topic: topicEvents, Partition: int32(next % 6), Key: []byte(queryID), Value: []byte(progress(next))})
			next++
		}
		if err := cl.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	type one struct {
		*rig
		kept chan int
	}
	start := func() one {
		m := one{kept: make(chan int, 100)}
		m.rig = newRig(t, cfg, func(o *Options) {
			o.Hooks.Assigned = func(ctx context.Context, got []collector.Assignment) ([]collector.Start, error) {
				offsets, err := m.src.OffsetsForTimes(ctx, got, time.Now().Add(-time.Hour).UnixMilli())
				starts, kept := make([]collector.Start, len(got)), 0
				for i, a := range got {
					starts[i] = collector.Start{Offset: offsets[i], Live: a.Committed}
					if a.Committed == event.Absent {
						starts[i].Live = a.First
					}
					if a.Kept {
						starts[i] = anywhere
						kept++
					}
				}
				m.kept <- kept
				return starts, err
			}
		})
		m.start()
		return m
	}
	counts := func(m one) string {
		history, news := m.in.replayed()
		return fmt.Sprintf("%d as history, %d as news, %g partitions", history, news, valueOf(m.metrics.Assigned))
	}
	write(60)
	first := start()
	eventually(t, "all is news", want("first", func() string { return counts(first) }, "0 as history, 60 as news, 6 partitions"))
	second := start()
	eventually(t, "the second reads the history of three", want("second", func() string { return counts(second) }, "30 as history, 0 as news, 3 partitions"))
	eventually(t, "the first has nothing to read", want("first", func() string { return counts(first) }, "0 as history, 60 as news, 3 partitions"))
	write(60)
	eventually(t, "both read news", want("second", func() string { return counts(second) }, "30 as history, 30 as news, 3 partitions"))
	begin := time.Now()
	first.halt()
	eventually(t, "the second takes the rest over", want("second", func() string { return counts(second) }, "90 as history, 30 as news, 6 partitions"))
	t.Logf("taken over %v after the first left", time.Since(begin).Round(time.Millisecond))
	third := start()
	eventually(t, "the third has three", want("third", func() string { return counts(third) }, "60 as history, 0 as news, 3 partitions"))
	begin = time.Now()
	third.src.cluster.cut()
	third.stop()
	write(60)
	eventually(t, "the second has all again", want("partitions", func() float64 { return valueOf(second.metrics.Assigned) }, 6))
	eventually(t, "it is caught up", want("caught up", func() bool { return second.src.Progress().CaughtUp() }, true))
	eventually(t, "all news were news once", func() error {
		if _, news := second.in.replayed(); news != 90 {
			return fmt.Errorf("%s", counts(second))
		}
		return nil
	})
	t.Logf("taken over %v after the third was killed", time.Since(begin).Round(time.Millisecond))
	if n := len(second.kept); n < 3 {
		t.Errorf("%d assignments", n)
	}
	for i := range len(second.kept) {
		if kept := <-second.kept; (i == 0) != (kept == 0) {
			t.Errorf("assignment %d: %d partitions kept", i, kept)
		}
	}
}

func TestAMemberThatHangsOnARealBrokerStopsTheOthersForASessionAtMost(t *testing.T) {
	addr, cl := realTopic(t, 6)
	cfg := quick(addr)
	cfg.GroupID = fmt.Sprint("stategauge-", time.Now().UnixNano())
	cfg.SessionTimeout = 6 * time.Second
	one, two, three := newRig(t, cfg), newRig(t, cfg), newRig(t, cfg)
	hang := make(chan struct{})
	three.in.setGate(func(context.Context, *collector.Step) error {
		<-hang
		return nil
	})
	for _, r := range []*rig{one, two, three} {
		r.start()
	}
	for _, r := range []*rig{one, two, three} {
		eventually(t, "each has two", want("partitions", func() float64 { return valueOf(r.metrics.Assigned) }, 2))
	}
	var recs []*kgo.Record
	for p := range int32(6) {
		recs = append(recs, &kgo.Record{Topic: topicEvents, Partition: p, Key: []byte(queryID), Value: []byte(progress(int(p)))})
	}
	if err := cl.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	one.wait(2)
	begin := time.Now()
	two.halt()
	one.wait(4) // its own, and what the member that hangs has not handled
	eventually(t, "one has all", want("partitions", func() float64 { return valueOf(one.metrics.Assigned) }, 6))
	d := time.Since(begin)
	t.Logf("all partitions are read %v after a member left while another hangs; the session timeout is %v", d.Round(time.Millisecond), cfg.SessionTimeout)
	if d > cfg.SessionTimeout+10*time.Second {
		t.Error("that is too long")
	}
	close(hang)
	eventually(t, "the third is back", want("partitions", func() float64 { return valueOf(three.metrics.Assigned) }, 3))
}
