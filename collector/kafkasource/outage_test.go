package kafkasource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// busyBeyond makes a gate that takes nothing that reaches beyond an offset.
func busyBeyond(offset int64) func(context.Context, *collector.Step) error {
	return func(_ context.Context, step *collector.Step) error {
		if step.Reached > offset {
			return errBusy
		}
		return nil
	}
}

func TestAnOutageInTheMiddleOfAReplayChangesNothing(t *testing.T) {
	inBubble(t, "while the membership lasts", func(t *testing.T) { outageInReplay(t, func(*fakeCluster) {}) })
	inBubble(t, "and it ends", func(t *testing.T) { outageInReplay(t, (*fakeCluster).rebalance) })
	inBubble(t, "and others were there meanwhile", func(t *testing.T) {
		outageInReplay(t, func(c *fakeCluster) {
			c.set(func() { c.generations += 2 })
			c.rebalance()
		})
	})
}

func outageInReplay(t *testing.T, meanwhile func(*fakeCluster)) {
	c := newFakeCluster(1)
	c.batch = 10
	c.sendBatches(0, 0, 100)
	c.commitBefore(0, 80)
	r := fakeRig(t, c, func(o *Options) {
		o.Hooks.Assigned = func(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
			if got[0].Kept {
				return []collector.Start{anywhere}, nil
			}
			return []collector.Start{{Offset: 20, Live: got[0].Committed}}, nil
		}
	})
	r.in.setGate(busyBeyond(50))
	r.start()
	after(10 * time.Second)
	c.set(func() { c.down = errFakeDown })
	meanwhile(c)
	r.in.setGate(nil)
	after(5 * time.Minute)
	r.mustReport("while the brokers are gone", "the brokers cannot be asked")
	if r.src.Progress().CaughtUp() {
		t.Error("caught up while the brokers are gone")
	}
	if told := c.committedOffset(0); told != 80 {
		t.Errorf("the group has offset %d, expected 80", told)
	}
	c.set(func() { c.down = nil })
	c.sendBatches(0, 100, 110)
	after(time.Minute)
	r.mustBeHealthy("after the outage")
	for batch := range int64(110) {
		if n := r.in.distinct()[batch]; (n > 0) != (batch >= 20) || batch >= 80 && n != 1 {
			t.Errorf("batch %d came %d times", batch, n)
		}
	}
	if _, news := r.in.replayed(); news != 30 {
		t.Errorf("%d events as news, expected the 30 behind the committed offset", news)
	}
	if told := c.committedOffset(0); told != 110 || !r.src.Progress().CaughtUp() {
		t.Errorf("the group has offset %d, progress %+v", told, r.src.Progress())
	}
	r.halt()
}

func TestTruncationPastThePositionIsCountedAndToldOnce(t *testing.T) {
	for _, c := range []struct {
		name        string
		live, first int64
		lost        float64 // offsets that were news and are gone
	}{
		{"in the news", event.Absent, 70, 30},
		{"in the news behind a replay", 20, 70, 30},
		{"in the middle of a replay", 90, 70, 0},
		{"from a replay on into the news", 60, 70, 10},
		{"of everything", event.Absent, 100, 60},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			f := newFakeCluster(1)
			f.batch = 10
			f.sendBatches(0, 0, 100)
			r := fakeRig(t, f, startAt(0, c.live))
			r.in.setGate(busyBeyond(30)) // it has 30 to 39 in hand already
			r.start()
			after(10 * time.Second)
			f.truncate(0, c.first)
			r.in.setGate(nil)
			after(time.Minute)
			f.sendBatches(0, 100, 110)
			after(time.Minute)
			if n := len(r.in.distinct()); n != 40+110-int(c.first) {
				t.Errorf("%d events, expected %d", n, 40+110-int(c.first))
			}
			lost, gaps := valueOf(r.metrics.OffsetsLost.WithLabelValues(topicEvents)), r.gaps(gapRetention)
			told := strings.Count(r.log.String(), "offsets are gone")
			if expected := min(c.lost, 1); lost != c.lost || gaps != expected || told != int(expected) {
				t.Errorf("%v offsets lost in %v gaps, told %d times; expected %v", lost, gaps, told, c.lost)
			}
			r.mustBeHealthy("at the end")
			if r.lag(0) != 0 || f.committedOffset(0) != 110 {
				t.Errorf("lag %v, the group has offset %d", r.lag(0), f.committedOffset(0))
			}
			r.halt()
		})
	}
}

// A topic that is made anew during a replay has no history: all of it is news.
func TestALogThatIsReplacedDuringAReplayIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.batch = 10
		c.sendBatches(0, 0, 100)
		r := fakeRig(t, c, startAt(0, 90))
		r.in.setGate(busyBeyond(30))
		r.start()
		after(10 * time.Second)
		c.delete(topicEvents)
		c.create(topicEvents, 1)
		c.sendBatches(0, 200, 225)
		r.in.setGate(nil)
		after(time.Minute)
		if history, news := r.in.replayed(); history != 40 || news != 25 {
			t.Errorf("%d events as history and %d as news, expected 40 and 25", history, news)
		}
		if n := r.gaps(gapRecreated); n != 1 {
			t.Errorf("%v gaps, expected one", n)
		}
		if told := c.committedOffset(0); told != 25 || !r.src.Progress().CaughtUp() {
			t.Errorf("the group has offset %d, progress %+v", told, r.src.Progress())
		}
		r.halt()
	})
}

// A log can lose its end when its leader is lost: then the live offset is never
// reached by what was there, and what comes is news.
func TestALogThatLosesItsEndDuringAReplayEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.batch = 10
		c.sendBatches(0, 0, 100)
		c.commitBefore(0, 90)
		r := fakeRig(t, c, startAt(0, 90))
		r.in.setGate(busyBeyond(30))
		r.start()
		after(10 * time.Second)
		c.change(func() { l := c.logs[topicEvents][0]; l.values, l.times = l.values[:80], l.times[:80] })
		r.in.setGate(nil)
		after(time.Minute)
		if !r.src.Progress().CaughtUp() || r.gaps(gapRecreated) != 1 {
			t.Errorf("progress %+v, %v gaps", r.src.Progress(), r.gaps(gapRecreated))
		}
		c.sendBatches(0, 200, 205)
		after(time.Minute)
		if history, news := r.in.replayed(); history != 80 || news != 5 {
			t.Errorf("%d events as history and %d as news, expected 80 and 5", history, news)
		}
		if told := c.committedOffset(0); told != 85 {
			t.Errorf("the group has offset %d, expected 85", told)
		}
		if n := valueOf(r.metrics.Restarts.WithLabelValues(topicEvents)); n != 0 {
			t.Errorf("%v readers counted as failed", n)
		}
		r.halt()
	})
}

// moments is a hook that remembers when it was called.
type moments struct {
	mu sync.Mutex
	at []time.Time
}

func (m *moments) hook(context.Context, []collector.Assignment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
	return nil
}

func (m *moments) all() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.at)
}

func TestRevokedComesAtOnceThoughTheLastCommitHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		var revoked moments
		r := fakeRig(t, c, func(o *Options) { o.Hooks.Revoked = revoked.hook }).start()
		after(time.Second)
		c.set(func() { c.commitHangs = true })
		c.send(0, progress(1))
		after(time.Second)
		begin := time.Now()
		c.rebalance()
		after(0)
		if at := revoked.all(); len(at) != 1 || at[0] != begin {
			t.Errorf("revoked at %v, the partitions were gone at %v", at, begin)
		}
		r.halt()
	})
}

func TestHandlerThatHeedsItsContextEndsWithinTheGrace(t *testing.T) {
	inBubble(t, "of three seconds", func(t *testing.T) { handlerInGrace(t, 30*time.Second, drainTimeout) })
	inBubble(t, "of a third of a short session", func(t *testing.T) { handlerInGrace(t, 6*time.Second, 2*time.Second) })
}

func handlerInGrace(t *testing.T, session, grace time.Duration) {
	c := newFakeCluster(1)
	c.send(0, progress(1))
	var revoked moments
	r := fakeRig(t, c, func(o *Options) { o.Hooks.Revoked, o.Config.SessionTimeout = revoked.hook, session })
	var inside atomic.Int32
	r.in.setGate(func(ctx context.Context, _ *collector.Step) error {
		inside.Add(1)
		defer inside.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	})
	r.start()
	after(time.Second)
	begin := time.Now()
	c.rebalance()
	after(grace)
	if at := revoked.all(); len(at) != 1 || at[0].Sub(begin) != grace {
		t.Errorf("revoked at %v, expected %v after the partitions were gone at %v", at, grace, begin)
	}
	if n := inside.Load(); n != 1 {
		t.Errorf("%d steps are under way, expected the one of the next generation", n)
	}
	r.in.setGate(nil)
	r.halt()
}

// TestBrokerStopsInTheMiddleOfAReplay does it with sockets and files.
func TestBrokerStopsInTheMiddleOfAReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBroker(t, withTopic(2), kfake.DataDir(dir), kfake.SyncWrites(), shortSessions)
	addr := b.ListenAddrs()[0]
	b.progresses(0, 0, 60)
	b.progresses(1, 60, 100)
	cfg := quick(addr)
	cfg.BatchEvents, cfg.SessionTimeout = 10, shortSession
	newRig(t, cfg).start().wait(100).halt()
	r := newRig(t, cfg, func(o *Options) {
		o.Hooks.Assigned = func(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
			starts := make([]collector.Start, len(got))
			for i := range got {
				starts[i] = collector.Start{Offset: 10, Live: got[i].Committed}
			}
			return starts, nil
		}
	})
	r.in.setGate(busyBeyond(30))
	r.start()
	eventually(t, "both partitions are in the middle of it", want("left", func() int64 { return r.src.Progress().Left }, 30+10))
	b.Close()
	eventually(t, "the outage is reported", r.reports("brokers cannot be asked"))
	r.in.setGate(nil)
	var port int
	if _, err := fmt.Sscanf(addr, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	again := newBroker(t, kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites(), shortSessions)
	again.progresses(0, 100, 120)
	r.wait(80 + 20).ready()
	eventually(t, "it is caught up", func() error {
		if p := r.src.Progress(); !p.CaughtUp() {
			return fmt.Errorf("progress is %+v", p)
		}
		return nil
	})
	if _, news := r.in.replayed(); news != 20 {
		t.Errorf("%d events as news, expected 20", news)
	}
	eventually(t, "the news are committed", want("committed", func() int64 { return again.committed(0) }, 80))
	if c := again.committed(1); c != 40 {
		t.Errorf("the group has offset %d of the partition without news, expected 40", c)
	}
}

func TestMissingKeysAreCountedAndToldOnce(t *testing.T) {
	for _, c := range []struct {
		partitions, told int
	}{{1, 0}, {3, 1}} {
		inBubble(t, fmt.Sprintf("with %d partitions", c.partitions), func(t *testing.T) {
			f := newFakeCluster(c.partitions)
			f.keyless = true
			f.sendBatches(0, 0, 20)
			keyless := 0
			r := fakeRig(t, f, startAt(0, 5), func(o *Options) {
				next := o.Handler
				o.Handler = func(ctx context.Context, step *collector.Step) error {
					for i := range step.Items {
						if step.Items[i].Keyless {
							keyless++
						}
					}
					return next(ctx, step)
				}
			}).start()
			after(time.Minute)
			f.sendBatches(0, 20, 30)
			after(time.Minute)
			if n := valueOf(r.metrics.Keyless.WithLabelValues(topicEvents)); n != 25 || keyless != 30 {
				t.Errorf("%v messages counted and %d events marked, expected the 25 that are news and 30", n, keyless)
			}
			if n := strings.Count(r.log.String(), "messages have no key"); n != c.told {
				t.Errorf("told %d times, expected %d", n, c.told)
			}
			f.set(func() { f.keyless = false })
			f.sendBatches(0, 30, 40)
			after(time.Minute)
			if n := valueOf(r.metrics.Keyless.WithLabelValues(topicEvents)); n != 25 || keyless != 30 {
				t.Errorf("%v messages counted and %d events marked after messages with keys", n, keyless)
			}
			r.halt()
		})
	}
}

func TestKeysAreSeenOnABroker(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(2))
	b.sendRecords(
		&kgo.Record{Topic: topicEvents, Key: []byte(queryID), Value: []byte(progress(1))},
		&kgo.Record{Topic: topicEvents, Value: []byte(progress(2))},
		&kgo.Record{Topic: topicEvents, Key: []byte{}, Value: []byte(progress(3))},
	)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(3)
	if n := valueOf(r.metrics.Keyless.WithLabelValues(topicEvents)); n != 2 {
		t.Errorf("%v messages without a key, expected 2", n)
	}
}
