package kafkasource

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/collector"
)

func TestEventsOfAllPartitionsArriveInOrderAndAreCommitted(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(3))
	for p := range 3 {
		b.progresses(int32(p), p*100, p*100+100)
	}
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(300)
	last := map[int32]int64{0: -1, 1: -1, 2: -1}
	for _, g := range r.in.all() {
		if g.offset != last[g.partition]+1 {
			t.Fatalf("partition %d: offset %d after %d", g.partition, g.offset, last[g.partition])
		}
		last[g.partition] = g.offset
	}
	for p := range 3 {
		eventually(t, "offsets are committed", want("committed", func() int64 { return b.committed(int32(p)) }, 100))
		eventually(t, "lag is 0", want("lag", func() float64 { return r.lag(int32(p)) }, 0))
	}
	if r.up() != 1 {
		t.Error("stategauge_source_up is not 1")
	}
	if d := r.halt(); d > 5*time.Second {
		t.Errorf("stop took %v", d)
	}
	if n := len(r.in.all()); n != 300 {
		t.Errorf("%d events handled, expected 300", n)
	}
}

func TestRestartGoesOnAtTheCommittedOffset(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 50)
	first := newRig(t, quick(b.ListenAddrs()...)).start().wait(50)
	first.halt() // commits what was handled
	b.progresses(0, 50, 80)
	second := newRig(t, quick(b.ListenAddrs()...)).start().wait(30)
	for batch, n := range second.in.distinct() {
		if batch < 50 || n != 1 {
			t.Errorf("batch %d came %d times after the restart", batch, n)
		}
	}
}

func TestStepsEndAtTheConfiguredNumberOfEvents(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	var lines []string
	for i := range 25 {
		lines = append(lines, progress(i))
	}
	b.send(0, "["+strings.Join(lines[:20], ",")+"]", strings.Join(lines[20:], "\n"))
	cfg := quick(b.ListenAddrs()...)
	cfg.BatchEvents = 8
	r := newRig(t, cfg).start().wait(25)
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	for i, n := range r.in.sizes {
		if n > 8 {
			t.Errorf("step %d holds %d events", i, n)
		}
	}
	// Inside a message a step reaches that message only: it must come again whole.
	if got := r.in.steps[0].Reached; got != 0 {
		t.Errorf("first step reaches %d, expected 0", got)
	}
	if got := r.in.steps[len(r.in.steps)-1].Reached; got != 2 {
		t.Errorf("last step reaches %d, expected 2", got)
	}
}

func TestPoisonIsCountedByReasonAndPassedOver(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "20000000"}))
	rec := func(v []byte) *kgo.Record { return &kgo.Record{Topic: topicEvents, Value: v} }
	b.sendRecords(
		rec([]byte(progress(1))),
		rec([]byte("{")),
		rec([]byte("")),
		rec(nil),
		rec([]byte(strings.Repeat("[", 5_000_000))),
		rec([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xab\x56")),
		rec([]byte(" \n ")),
		rec([]byte(`{"hello":"world"}`)),
		rec([]byte("["+progress(2)+","+progress(3)+"]")),
		rec([]byte(progress(4))),
	)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(4)
	eventually(t, "poison is committed past", want("committed", func() int64 { return b.committed(0) }, 10))
	if n := r.rejected(collector.ReasonEmpty); n != 3 {
		t.Errorf("%d rejected as empty, expected 3", n)
	}
	if n := r.rejected(collector.ReasonEncoding); n != 1 {
		t.Errorf("%d rejected for their encoding, expected 1", n)
	}
	total := 0
	for _, reason := range collector.Reasons() {
		total += r.rejected(reason)
	}
	if total < 7 || total > 8 {
		t.Errorf("%d rejected in all, expected each of 7 once", total)
	}
	if v := valueOf(r.metrics.Rebalances); v != 1 {
		t.Errorf("%v generations: poison must not restart the group", v)
	}
	if n := strings.Count(r.log.String(), "no usable event"); n > warningLines {
		t.Errorf("%d log lines about poison", n)
	}
}

func TestPoisonBehindTheLastEventIsHandedOverAsAStepOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(3))
	b.send(2, progress(1))
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(1)
	b.send(2, "{", "[")
	eventually(t, "poison is handed over", want("reached", func() int64 {
		r.in.mu.Lock()
		defer r.in.mu.Unlock()
		return r.in.steps[len(r.in.steps)-1].Reached
	}, 3))
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	for i, s := range r.in.steps {
		if s.Topic != topicEvents || s.Partition != 2 {
			t.Errorf("step %d is of %s-%d, expected partition 2", i, s.Topic, s.Partition)
		}
	}
	if n := r.in.sizes[len(r.in.sizes)-1]; n != 0 {
		t.Errorf("the last step holds %d events, expected none", n)
	}
}

func TestPoisonFloodWritesFewLogLines(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	bad := make([]string, 2000)
	for i := range bad {
		bad[i] = "{"
	}
	b.send(0, bad...)
	r := newRig(t, quick(b.ListenAddrs()...)).start()
	eventually(t, "poison is committed past", want("committed", func() int64 { return b.committed(0) }, 2000))
	if n := r.logLines(); n > 20 {
		t.Errorf("%d log lines", n)
	}
	if valueOf(r.metrics.LogSuppressed) == 0 {
		t.Error("no suppressed line was counted")
	}
}

func TestFullIntakeHoldsThePartitionBackAndLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 500)
	cfg := quick(b.ListenAddrs()...)
	r := newRig(t, cfg)
	r.in.setGate(func(context.Context, *collector.Step) error { return errBusy })
	r.start().ready()
	eventually(t, "the lag shows what waits", want("lag", func() float64 { return r.lag(0) }, 500))
	eventually(t, "the step is offered again", func() error {
		if valueOf(r.metrics.Retries) < 3 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if c := b.committed(0); c > 0 {
		t.Errorf("offset %d committed though nothing was handled", c)
	}
	b.progresses(0, 500, 600)
	eventually(t, "the lag grows", want("lag", func() float64 { return r.lag(0) }, 600))
	r.in.setGate(nil)
	r.wait(600)
	for batch, n := range r.in.distinct() {
		if n != 1 {
			t.Errorf("batch %d came %d times", batch, n)
		}
	}
	eventually(t, "the lag is gone", want("lag", func() float64 { return r.lag(0) }, 0))
}

func TestCrashBetweenHandlingAndCommitRepeatsTheEvents(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	// No commit reaches the group.
	b.ControlKey(8, refuse(b))
	b.progresses(0, 0, 40)
	first := newRig(t, quick(b.ListenAddrs()...)).start().wait(40)
	first.halt()
	if valueOf(first.metrics.CommitErrors) == 0 {
		t.Error("no failed commit was counted")
	}
	second := newRig(t, quick(b.ListenAddrs()...)).start().wait(40)
	if n := len(second.in.distinct()); n != 40 {
		t.Errorf("%d of 40 events came again", n)
	}
}

func TestRepeatedCrashesLoseNothing(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), shortSessions)
	const events, lives = 1000, 8
	b.progresses(0, 0, events)
	seen := map[int64]bool{}
	for life := range lives {
		cfg := quick(b.ListenAddrs()...)
		cfg.SessionTimeout = shortSession
		cfg.BatchEvents = 40
		r := newRig(t, cfg)
		dead := make(chan struct{})
		if life < lives-1 {
			r.in.setGate(diesAfter(3, dead))
		}
		r.start()
		if life == lives-1 {
			eventually(t, "the rest arrives", want("committed", func() int64 { return b.committed(0) }, events))
		} else {
			<-dead
			r.src.cluster.cut() // and with it the last commit
		}
		r.halt()
		for batch := range r.in.distinct() {
			seen[batch] = true
		}
	}
	if len(seen) != events {
		t.Errorf("%d of %d events were handled", len(seen), events)
	}
}

// diesAfter is the handler of a process that dies after some steps.
func diesAfter(steps int, dead chan struct{}) func(context.Context, *collector.Step) error {
	n := 0
	return func(context.Context, *collector.Step) error {
		n++
		if n == steps+1 {
			close(dead)
		}
		if n > steps {
			return errBusy
		}
		return nil
	}
}

func TestReadyWithoutAnyMessage(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(3))
	b.progresses(1, 0, 5) // the other two are empty
	begin := time.Now()
	r := newRig(t, quick(b.ListenAddrs()...))
	if err := r.src.Health(); err == nil {
		t.Error("healthy before it ran")
	}
	r.start().ready()
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("ready after %v", d)
	}
	if r.up() != 1 {
		t.Error("stategauge_source_up is not 1")
	}
}

func TestHeadersBecomeLabels(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.sendRecords(&kgo.Record{Topic: topicEvents, Value: []byte(progress(1)), Headers: []kgo.RecordHeader{
		{Key: "team", Value: []byte("old")}, {Key: "team", Value: []byte("payments")},
	}}, &kgo.Record{Topic: topicEvents, Value: []byte(progress(2))})
	r := newRig(t, quick(b.ListenAddrs()...), func(o *Options) {
		o.Enrich = collector.NewEnrich(map[string][]string{"team": {"query:team", "header:team"}})
	}).start().wait(2)
	for _, g := range r.in.all() {
		if expected := map[int64]string{1: "payments", 2: ""}[g.batch]; g.team != expected {
			t.Errorf("batch %d has team %q, expected %q", g.batch, g.team, expected)
		}
	}
}

func TestLatestSkipsOldMessagesButNothingThatComesLater(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 10)
	cfg := quick(b.ListenAddrs()...)
	cfg.StartOffset = StartLatest
	r := newRig(t, cfg).start().ready()
	eventually(t, "the start is committed", want("committed", func() int64 { return b.committed(0) }, 10))
	r.halt()
	b.progresses(0, 10, 20) // while nobody reads
	again := newRig(t, cfg).start().wait(10)
	for batch := range again.in.distinct() {
		if batch < 10 {
			t.Errorf("old batch %d was read", batch)
		}
	}
}

// refuse makes a control function that answers by closing the connection.
func refuse(b *broker) controlFunc {
	return func(controlRequest) (controlResponse, error, bool) {
		b.KeepControl()
		return nil, fmt.Errorf("refused by the test"), true
	}
}
