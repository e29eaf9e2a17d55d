package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
)

// The tests of this file run on a fake cluster and a fake clock: minutes pass in
// no time, and exactly.

// fakeRig is a rig on a fake cluster with the default configuration.
func fakeRig(t *testing.T, c *fakeCluster, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, in: &intake{}, log: &syncBuffer{}}
	r.metrics, r.counts = instruments()
	cfg := DefaultConfig()
	cfg.Brokers, cfg.Topics = []string{"fake:9092"}, []string{topicEvents}
	o := Options{
		Config: cfg, Handler: r.in.handle, Pool: decode.NewPool(decode.DefaultLimits()),
		Intake: r.counts, Metrics: r.metrics, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	o.fill()
	r.src = newSource(o)
	r.src.cluster = c
	return r
}

// inBubble runs a test on the fake clock.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// after lets time pass until everything that is due has happened.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) mustBeHealthy(when string) {
	r.t.Helper()
	if err := r.src.Health(); err != nil {
		r.t.Errorf("%s: health is %v", when, err)
	}
}

func (r *rig) mustReport(when, part string) {
	r.t.Helper()
	if err := r.src.Health(); err == nil || !strings.Contains(err.Error(), part) {
		r.t.Errorf("%s: health is %v, expected %q in it", when, err, part)
	}
}

func (c *fakeCluster) set(do func()) { c.change(do) }

func TestBrokersGoneForAMinute(t *testing.T) {
	inBubble(t, "and the membership with them", func(t *testing.T) { brokersGone(t, (*fakeCluster).rebalance) })
	inBubble(t, "before the group notices", func(t *testing.T) { brokersGone(t, func(*fakeCluster) {}) })
}

func brokersGone(t *testing.T, meanwhile func(*fakeCluster)) {
	c := newFakeCluster(2)
	c.send(0, progress(1), progress(2))
	r := fakeRig(t, c).start()
	after(time.Second)
	r.mustBeHealthy("at first")
	if r.up() != 1 || r.lag(0) != 0 {
		t.Errorf("up %v, lag %v", r.up(), r.lag(0))
	}
	gone := time.Now()
	c.set(func() { c.down = errFakeDown })
	meanwhile(c)
	after(time.Minute)
	r.mustReport("after a minute", "the brokers cannot be asked: fake: connection refused (since "+gone.UTC().Format("2006-01-02T15:04:"))
	if r.up() != 0 {
		t.Errorf("stategauge_source_up is %v", r.up())
	}
	if n := countSeries(r.metrics.Lag); n != 0 {
		t.Errorf("%d lag series are shown", n)
	}
	if n := r.logLines(); n > 20 {
		t.Errorf("%d log lines", n)
	}
	c.set(func() { c.down = nil })
	c.send(0, progress(3))
	after(15 * time.Second)
	r.mustBeHealthy("after the outage")
	if n := len(r.in.distinct()); n != 3 || r.up() != 1 {
		t.Errorf("%d events, up %v", n, r.up())
	}
	r.halt()
}

func TestTopicThatIsMissingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(0)
		r := fakeRig(t, c).start()
		after(10 * time.Minute)
		r.mustReport("without the topic", `topic "spark-events" is missing`)
		if n := r.logLines(); n > 3 {
			t.Errorf("%d log lines in 10 minutes", n)
		}
		c.create(topicEvents, 1)
		c.send(0, progress(1))
		after(r.src.cfg.WatchdogInterval + time.Second)
		r.mustBeHealthy("with the topic")
		if n := len(r.in.distinct()); n != 1 {
			t.Errorf("%d events arrived", n)
		}
		r.halt()
	})
}

func TestIntakeThatIsFullForTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		for i := range 500 {
			c.send(0, progress(i))
		}
		r := fakeRig(t, c)
		r.in.setGate(func(context.Context, *collector.Step) error { return errBusy })
		r.start()
		after(10 * time.Minute)
		if r.lag(0) != 500 {
			t.Errorf("lag is %v", r.lag(0))
		}
		r.mustReport("while the intake is full", "events of spark-events/0 are not taken in: test intake: intake is full")
		if r.up() != 1 {
			t.Error("a full intake is no fault of the source, which can be read")
		}
		if n := valueOf(r.metrics.Retries); n < 100 || n > 140 {
			t.Errorf("%v retries in 10 minutes, expected about one in 5 s", n)
		}
		r.in.setGate(nil)
		after(10 * time.Second)
		r.mustBeHealthy("after that")
		if n := len(r.in.all()); n != 500 || r.lag(0) != 0 {
			t.Errorf("%d events, lag %v", n, r.lag(0))
		}
		r.halt()
	})
}

func TestAnyErrorOfTheHandlerIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.send(0, progress(1))
		r := fakeRig(t, c)
		left := 5
		r.in.setGate(func(context.Context, *collector.Step) error {
			if left--; left >= 0 {
				return errors.New("disk is full")
			}
			return nil
		})
		r.start()
		after(time.Minute)
		if n := len(r.in.all()); n != 1 {
			t.Errorf("%d events", n)
		}
		if c.committed[firstPartition] != 1 {
			t.Errorf("committed %d", c.committed[firstPartition])
		}
		r.halt()
	})
}

func TestStopIsBounded(t *testing.T) {
	inBubble(t, "by a handler that heeds its context", func(t *testing.T) {
		c := newFakeCluster(1)
		c.send(0, progress(1))
		r := fakeRig(t, c)
		r.in.setGate(func(ctx context.Context, _ *collector.Step) error {
			<-ctx.Done()
			return ctx.Err()
		})
		r.start()
		after(time.Second)
		if d := r.halt(); d != drainTimeout {
			t.Errorf("stop took %v, expected %v", d, drainTimeout)
		}
		if _, ok := c.committed[firstPartition]; ok && c.committed[firstPartition] != 0 {
			t.Errorf("committed %d though nothing was handled", c.committed[firstPartition])
		}
	})
	inBubble(t, "by commits that hang", func(t *testing.T) {
		c := newFakeCluster(1)
		r := fakeRig(t, c).start()
		after(time.Second)
		c.set(func() { c.commitHangs = true })
		c.send(0, progress(1))
		after(time.Second)
		if d := r.halt(); d != cutTimeout {
			t.Errorf("stop took %v, expected %v", d, cutTimeout)
		}
	})
	inBubble(t, "by a hook that hangs", func(t *testing.T) {
		c := newFakeCluster(1)
		r := fakeRig(t, c, func(o *Options) {
			o.Hooks.Revoked = func(ctx context.Context, _ []collector.Assignment) error {
				<-ctx.Done()
				return ctx.Err()
			}
		}).start()
		after(time.Second)
		if d := r.halt(); d != hookTimeout {
			t.Errorf("stop took %v, expected %v", d, hookTimeout)
		}
	})
	inBubble(t, "while a full intake is waited for", func(t *testing.T) {
		c := newFakeCluster(1)
		c.send(0, progress(1))
		r := fakeRig(t, c)
		r.in.setGate(func(context.Context, *collector.Step) error { return errBusy })
		r.start()
		after(time.Minute)
		if d := r.halt(); d != 0 {
			t.Errorf("stop took %v", d)
		}
	})
}

func TestSecondRunIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fakeRig(t, newFakeCluster(1)).start()
		after(time.Second)
		if err := r.src.Run(t.Context()); err == nil {
			t.Error("no error")
		}
		r.halt()
		r.mustReport("after the stop", "the source is stopped")
		if r.up() != 0 {
			t.Error("stategauge_source_up is not 0 after the stop")
		}
	})
}

func TestGroupThatRefusesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.refused = errors.New("not authorized to join")
		r := fakeRig(t, c).start()
		after(time.Minute)
		r.mustReport("while refused", "the consumer group cannot be joined: not authorized to join")
		if r.up() != 0 {
			t.Error("stategauge_source_up is not 0")
		}
		if n := r.logLines(); n > 20 {
			t.Errorf("%d log lines", n)
		}
		c.set(func() { c.refused = nil })
		after(time.Second)
		r.mustBeHealthy("once admitted")
		r.halt()
	})
}

func TestRebalancesLeaveHealthAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		r := fakeRig(t, c).start()
		after(time.Second)
		for i := range 10 {
			c.send(0, progress(i))
			c.rebalance()
			if err := r.src.Health(); err != nil {
				t.Errorf("health is %v", err)
			}
			after(time.Second)
		}
		// One more that does not come to an end.
		c.set(func() { c.refused = errRebalancing })
		c.rebalance()
		after(r.src.cfg.SessionTimeout - time.Second)
		r.mustBeHealthy("shortly after")
		after(2 * time.Second)
		r.mustReport("after a session timeout", "the consumer group is not joined again")
		if n := len(r.in.all()); n != 10 {
			t.Errorf("%d events handled, expected each of 10 once", n)
		}
		r.halt()
	})
}

func TestPartitionThatOpensButCannotBeReadIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		r := fakeRig(t, c).start()
		after(time.Second)
		r.mustBeHealthy("at first")
		c.set(func() { c.fetchErr = errors.New("replica is in trouble") })
		c.send(1, progress(1))
		after(settling - time.Second)
		r.mustBeHealthy("for a short while")
		after(time.Minute)
		r.mustReport("after that", "partition spark-events/1 cannot be read: replica is in trouble (since 2000-01-01T00:00:01Z)")
		if r.up() != 0 {
			t.Error("stategauge_source_up is not 0")
		}
		if r.lag(1) != 1 {
			t.Errorf("lag is %v, expected 1: the brokers still tell it", r.lag(1))
		}
		c.set(func() { c.fetchErr = nil })
		after(10 * time.Second)
		r.mustBeHealthy("at the end")
		if n := len(r.in.all()); n != 1 || r.up() != 1 {
			t.Errorf("%d events, up %v", n, r.up())
		}
		r.halt()
	})
}

func TestFailedCommitsAreRepeatedWithTheNewestOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.commitErr = errors.New("coordinator is loading")
		c.send(0, progress(1))
		r := fakeRig(t, c).start()
		after(time.Minute)
		c.send(0, progress(2))
		after(time.Second)
		if n := valueOf(r.metrics.CommitErrors); n < 10 || n > 30 {
			t.Errorf("%v failed commits in a minute, expected one about every 5 s", n)
		}
		c.set(func() { c.commitErr = nil })
		after(6 * time.Second)
		if got := c.committed[firstPartition]; got != 2 {
			t.Errorf("committed %d, expected 2", got)
		}
		r.halt()
	})
}

func TestCommitsAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		r := fakeRig(t, c).start()
		for i := range 1000 {
			c.send(0, progress(i))
			after(10 * time.Millisecond)
		}
		if n := valueOf(r.metrics.Steps); n != 1000 {
			t.Errorf("%v steps", n)
		}
		if n := valueOf(r.metrics.Commits); n > 42 {
			t.Errorf("%v commits in 10 s with an interval of %v", n, r.src.cfg.CommitInterval)
		}
		r.halt()
		if got := c.committed[firstPartition]; got != 1000 {
			t.Errorf("committed %d", got)
		}
	})
}

func TestRetentionDuringOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		for i := range 100 {
			c.send(0, progress(i))
		}
		c.batch = 10
		r := fakeRig(t, c)
		gate := make(chan struct{})
		r.in.setGate(func(ctx context.Context, step *collector.Step) error {
			if step.Reached == 20 {
				<-gate
			}
			return nil
		})
		r.start()
		after(time.Second)
		c.truncate(0, 60) // while the step up to 20 is being handled
		close(gate)
		after(10 * time.Second)
		if lost := valueOf(r.metrics.OffsetsLost.WithLabelValues(topicEvents)); lost != 40 {
			t.Errorf("%v offsets lost, expected 40", lost)
		}
		if n := len(r.in.distinct()); n != 60 {
			t.Errorf("%d events, expected 60", n)
		}
		r.mustBeHealthy("afterwards")
		r.halt()
	})
}

func TestTopicReplacedByOneThatIsShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		for i := range 100 {
			c.send(0, progress(i))
		}
		r := fakeRig(t, c).start()
		after(time.Second)
		c.delete(topicEvents)
		after(time.Minute) // long enough to be noticed
		c.create(topicEvents, 1)
		for i := range 50 {
			c.send(0, progress(1000+i))
		}
		// The broker kept offsets of the old topic, one of them within the new.
		c.set(func() { c.committed[firstPartition] = 40 })
		after(time.Minute)
		if n := len(r.in.distinct()); n != 150 {
			t.Errorf("%d events, expected 150", n)
		}
		if n := r.gaps(gapRecreated); n != 1 {
			t.Errorf("%v gaps", n)
		}
		r.halt()
	})
}

func TestHealthIsToldInTheLogOnceEachWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		r := fakeRig(t, c).start()
		after(time.Second)
		for range 3 {
			c.set(func() { c.down = errFakeDown })
			after(time.Minute)
			c.set(func() { c.down = nil })
			after(time.Minute)
		}
		log := r.log.String()
		if n := strings.Count(log, "cannot be asked"); n != 6 {
			t.Errorf("the outages are told %d times, expected 3 beginnings and 3 ends:\n%s", n, log)
		}
		r.halt()
	})
}

func ExampleSource_Health() {
	f := newFaults(slog.New(slog.DiscardHandler), func() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) })
	f.raise(faultTopic+"spark-events", 0, `topic "spark-events" is missing`)
	_, err := f.check()
	fmt.Println(err)
	// Output: topic "spark-events" is missing (since 2026-03-01T10:00:00Z)
}
