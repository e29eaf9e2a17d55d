package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
)

// ledger is a pair of hooks that remembers what was assigned and checks that no
// step is handled outside of an assignment.
type ledger struct {
	mu      sync.Mutex
	held    map[int32]bool
	history []string
	start   map[int32]collector.Start
	fail    int // how often Assigned still fails
	strays  int
}

func (l *ledger) hooks() collector.PartitionHooks {
	l.held = map[int32]bool{}
	return collector.PartitionHooks{Assigned: l.assigned, Revoked: l.revoked}
}

func (l *ledger) assigned(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail > 0 {
		l.fail--
		return nil, errors.New("test hook fails")
	}
	starts := make([]collector.Start, len(got))
	for i, a := range got {
		l.held[a.Partition] = true
		l.history = append(l.history, fmt.Sprintf("+%d", a.Partition))
		starts[i] = anywhere
		if s, ok := l.start[a.Partition]; ok {
			starts[i] = s
		}
	}
	return starts, nil
}

func (l *ledger) revoked(_ context.Context, lost []collector.Assignment) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range lost {
		if !l.held[a.Partition] {
			l.strays++
		}
		delete(l.held, a.Partition)
		l.history = append(l.history, fmt.Sprintf("-%d", a.Partition))
	}
	return nil
}

// check is a gate for the intake: every step must be of a held partition.
func (l *ledger) check(_ context.Context, step *collector.Step) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range step.Items {
		if !l.held[step.Items[i].Origin.Partition] {
			l.strays++
		}
	}
	return nil
}

func (l *ledger) snapshot() (history []string, held, strays int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.history), len(l.held), l.strays
}

func (l *ledger) rig(t *testing.T, cfg Config) *rig {
	r := newRig(t, cfg, func(o *Options) { o.Hooks = l.hooks() })
	r.in.setGate(l.check)
	return r
}

func TestMembersThatJoinAndLeaveLoseNothing(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(4), shortSessions)
	const events = 2000
	sent := make(chan struct{})
	go func() { // writes all through the rebalances
		defer close(sent)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; i < events; i += 20 {
			<-tick.C
			b.progresses(int32(i/20%4), i, i+20)
		}
	}()
	first := &ledger{}
	a := first.rig(t, quick(b.ListenAddrs()...)).start().ready()
	seen := map[int64]bool{}
	for range 10 {
		second := &ledger{}
		r := second.rig(t, quick(b.ListenAddrs()...)).start()
		eventually(t, "the new member gets partitions", func() error {
			if _, held, _ := second.snapshot(); held == 0 {
				return errors.New("none yet")
			}
			return nil
		})
		r.ready().halt()
		for batch := range r.in.distinct() {
			seen[batch] = true
		}
		if _, held, strays := second.snapshot(); held != 0 || strays != 0 {
			t.Errorf("after the stop %d partitions are held; %d steps were handled outside of an assignment", held, strays)
		}
	}
	<-sent
	eventually(t, "everything was handled by someone", func() error {
		for batch := range a.in.distinct() {
			seen[batch] = true
		}
		if len(seen) < events {
			return fmt.Errorf("%d of %d", len(seen), events)
		}
		return nil
	})
	eventually(t, "the member that stayed holds everything", want("held", func() int { _, held, _ := first.snapshot(); return held }, 4))
	if _, _, strays := first.snapshot(); strays != 0 {
		t.Errorf("%d steps were handled outside of an assignment", strays)
	}
}

// A member that stops must leave the group, not rejoin it first: each of the others
// would be interrupted twice.
func TestAMemberThatStopsInterruptsTheOthersOnce(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(4), shortSessions)
	b.progresses(0, 0, 5)
	stays := newRig(t, quick(b.ListenAddrs()...)).start().ready()
	for range 3 {
		leaves := newRig(t, quick(b.ListenAddrs()...)).start()
		half := func(r *rig) func() error {
			return want("assigned", func() float64 { return valueOf(r.metrics.Assigned) }, 2)
		}
		eventually(t, "the new member gets half", half(leaves))
		eventually(t, "the old one keeps half", half(stays))
		leaves.ready()
		before := valueOf(stays.metrics.Rebalances)
		leaves.halt()
		eventually(t, "the rest is taken over", want("assigned", func() float64 { return valueOf(stays.metrics.Assigned) }, 4))
		stays.ready()
		if n := valueOf(stays.metrics.Rebalances) - before; n != 1 {
			t.Errorf("%g generations after one member left, want 1", n)
		}
	}
}

func TestHookRewindsAPartition(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(2))
	b.progresses(0, 0, 100)
	b.progresses(1, 100, 200)
	newRig(t, quick(b.ListenAddrs()...)).start().wait(200).halt()
	l := &ledger{start: map[int32]collector.Start{1: {Offset: 60, Live: 100}}}
	r := l.rig(t, quick(b.ListenAddrs()...)).start().wait(40).ready()
	for batch := range r.in.distinct() {
		if batch < 160 {
			t.Errorf("batch %d was read again", batch)
		}
	}
	if r.gaps(gapRetention)+r.gaps(gapRecreated) != 0 {
		t.Error("a rewind was counted as a gap")
	}
}

func TestRewindNeverTakesTheCommittedOffsetBack(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 100)
	newRig(t, quick(b.ListenAddrs()...)).start().wait(100).halt()
	l := &ledger{start: map[int32]collector.Start{0: {Offset: 10, Live: 100}}}
	cfg := quick(b.ListenAddrs()...)
	cfg.BatchEvents = 20
	r := newRig(t, cfg, func(o *Options) { o.Hooks = l.hooks() })
	r.in.setGate(func(_ context.Context, step *collector.Step) error {
		if step.Reached > 50 {
			return errBusy
		}
		return nil
	})
	r.start().wait(40).halt()
	if c := b.committed(0); c != 100 {
		t.Errorf("committed %d after a rewind that was cut short, expected 100", c)
	}
	last := newRig(t, quick(b.ListenAddrs()...), func(o *Options) { o.Hooks = l.hooks() }).start().wait(90)
	b.progresses(0, 100, 110)
	last.wait(100)
	eventually(t, "news are committed", want("committed", func() int64 { return b.committed(0) }, 110))
}

func TestRewindBeyondRetentionIsNoLoss(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 100)
	newRig(t, quick(b.ListenAddrs()...)).start().wait(100).halt()
	if err := b.DeleteRecords(topicEvents, 0, 90); err != nil {
		t.Fatal(err)
	}
	l := &ledger{start: map[int32]collector.Start{0: {Offset: 5, Live: 100}}}
	r := l.rig(t, quick(b.ListenAddrs()...)).start().wait(10)
	if n := valueOf(r.metrics.OffsetsLost.WithLabelValues(topicEvents)); n != 0 {
		t.Errorf("%v offsets counted as lost that had been handled before", n)
	}
}

func TestHookThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), shortSessions)
	b.progresses(0, 0, 10)
	l := &ledger{fail: 1}
	r := l.rig(t, quick(b.ListenAddrs()...)).start()
	eventually(t, "the failure is reported", r.reports("cannot be prepared: test hook fails"))
	r.wait(10).ready()
	r.halt()
	history, _, strays := l.snapshot()
	if !slices.Equal(history, []string{"+0", "-0"}) || strays != 0 {
		t.Errorf("hooks were called %v", history)
	}
}

func TestRevokedFollowsTheLastStep(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 10)
	l := &ledger{}
	r := l.rig(t, quick(b.ListenAddrs()...))
	inside, release := make(chan struct{}), make(chan struct{})
	r.in.setGate(func(ctx context.Context, step *collector.Step) error {
		close(inside)
		<-release
		return l.check(ctx, step)
	})
	r.start()
	<-inside
	r.stop()
	if history, _, _ := l.snapshot(); slices.Contains(history, "-0") {
		t.Error("revoked during a step")
	}
	close(release)
	r.halt()
	if history, _, strays := l.snapshot(); !slices.Equal(history, []string{"+0", "-0"}) || strays != 0 {
		t.Errorf("hooks were called %v, %d steps outside", history, strays)
	}
	if c := b.committed(0); c != 10 {
		t.Errorf("the last step was not committed: %d", c)
	}
}

func TestTwoGroupsBothReadEverything(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(2))
	b.progresses(0, 0, 50)
	b.progresses(1, 50, 100)
	other := quick(b.ListenAddrs()...)
	other.GroupID = "another"
	one, two := newRig(t, quick(b.ListenAddrs()...)).start(), newRig(t, other).start()
	one.wait(100)
	two.wait(100)
}

func TestMemberWithoutPartitionsIsHealthy(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), shortSessions)
	one := newRig(t, quick(b.ListenAddrs()...)).start().ready()
	two := newRig(t, quick(b.ListenAddrs()...)).start()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := b.WaitGroupStable(ctx, "stategauge", 2); err != nil {
		t.Fatal(err)
	}
	one.ready()
	two.ready()
	eventually(t, "one of them has the partition", want("assigned in all", func() float64 {
		return valueOf(one.metrics.Assigned) + valueOf(two.metrics.Assigned)
	}, 1))
}
