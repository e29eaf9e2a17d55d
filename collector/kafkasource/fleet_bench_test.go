package kafkasource

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

const benchFleetPartitions = 60

// consumers are members of one group, ours or another library's, that note which
// messages somebody has read.
type consumers interface {
	join() (leave func())
	read(offset int64) int // partitions of which this offset was read
	readers() int          // members that have read anything
}

// BenchmarkReadAgainAfterJoinAndLeaveVersusFranzGo has two members of a group with
// the default timings; a third joins and leaves. It measures how long after each
// change every one of 60 partitions is read, which is the time in which nothing is
// judged. The peer is franz-go's group consumer with the same timings and an eager
// balancer, in a group of its own on the same broker.
func BenchmarkReadAgainAfterJoinAndLeaveVersusFranzGo(b *testing.B) {
	broker := newBroker(b, withTopic(benchFleetPartitions))
	mine, peer := &ourConsumers{b: b, addr: broker.ListenAddrs()[0]}, &kgoConsumers{b: b, addr: broker.ListenAddrs()[0]}
	next := int64(0)
	round := func() int64 {
		var recs []*kgo.Record
		for p := range int32(benchFleetPartitions) {
			recs = append(recs, &kgo.Record{Topic: topicEvents, Partition: p, Key: []byte(queryID), Value: []byte(progress(int(next)))})
		}
		broker.sendRecords(recs...)
		next++
		return next - 1
	}
	settle := func(c consumers) time.Duration {
		begin := time.Now()
		offset := round()
		eventually(b, "every partition is read", want("read", func() int { return c.read(offset) }, benchFleetPartitions))
		return time.Since(begin)
	}
	// enter lets one more member join, and writes until it reads, too.
	enter := func(c consumers) (leave func()) {
		before := c.readers()
		leave = c.join()
		eventually(b, "the new member reads", func() error {
			if round(); c.readers() == before {
				return errors.New("not yet")
			}
			return nil
		})
		return leave
	}
	change := func(c consumers) (joined, left time.Duration) {
		begin := time.Now()
		leave := enter(c)
		settle(c)
		joined, begin = time.Since(begin), time.Now()
		leave()
		settle(c)
		return joined, time.Since(begin)
	}
	for _, c := range []consumers{mine, peer} {
		for range 2 {
			b.Cleanup(enter(c))
			settle(c)
		}
	}
	var joined, left, total, peerTotal time.Duration
	for b.Loop() {
		j, l := change(mine)
		joined, left, total = joined+j, left+l, total+j+l
		j, l = change(peer)
		peerTotal += j + l
	}
	b.ReportMetric(joined.Seconds()/float64(b.N), "s_after_join")
	b.ReportMetric(left.Seconds()/float64(b.N), "s_after_leave")
	b.ReportMetric(peerTotal.Seconds()/total.Seconds(), "x_peer")
}

// tally notes of which partitions an offset was read, and who read.
type tally struct {
	mu   sync.Mutex
	seen map[int64]map[int32]bool
	who  map[any]bool
}

func (t *tally) note(who any, p int32, offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen, t.who = map[int64]map[int32]bool{}, map[any]bool{}
	}
	t.who[who] = true
	if t.seen[offset] == nil {
		t.seen[offset] = map[int32]bool{}
	}
	t.seen[offset][p] = true
}

func (t *tally) read(offset int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.seen[offset])
}

func (t *tally) readers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.who)
}

type ourConsumers struct {
	tally
	b    *testing.B
	addr string
}

func (c *ourConsumers) join() func() {
	cfg := DefaultConfig()
	cfg.Brokers, cfg.Topics = []string{c.addr}, []string{topicEvents}
	var r *rig
	r = newRig(c.b, cfg, func(o *Options) {
		o.Handler = func(_ context.Context, step *collector.Step) error {
			for i := range step.Items {
				step.Items[i].Outcome = event.OutcomeExecuted
				c.note(r, step.Items[i].Origin.Partition, step.Items[i].Origin.Offset)
			}
			return nil
		}
	})
	r.start()
	return func() { r.halt() }
}

type kgoConsumers struct {
	tally
	b    *testing.B
	addr string
}

func (c *kgoConsumers) join() func() {
	d := DefaultConfig()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addr), kgo.ConsumerGroup("peer"), kgo.ConsumeTopics(topicEvents),
		kgo.Balancers(kgo.StickyBalancer()), kgo.HeartbeatInterval(d.HeartbeatInterval), kgo.SessionTimeout(d.SessionTimeout),
		kgo.RebalanceTimeout(d.RebalanceTimeout), kgo.FetchMaxWait(d.MaxWait), kgo.AutoCommitInterval(d.CommitInterval),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		c.b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			got := cl.PollFetches(context.Background())
			if got.IsClientClosed() {
				return
			}
			got.EachRecord(func(r *kgo.Record) { c.note(cl, r.Partition, r.Offset) })
		}
	}()
	return func() {
		cl.Close()
		<-done
	}
}
