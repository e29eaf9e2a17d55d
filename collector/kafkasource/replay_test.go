package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// startAt makes hooks that begin every partition there.
func startAt(offset, live int64) func(*Options) {
	return func(o *Options) {
		o.Hooks.Assigned = func(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
			starts := make([]collector.Start, len(got))
			for i := range starts {
				starts[i] = collector.Start{Offset: offset, Live: live}
			}
			return starts, nil
		}
	}
}

// replayed returns how many events came as history, and how many as news.
func (in *intake) replayed() (history, news int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i, s := range in.steps {
		if s.Replayed {
			history += in.sizes[i]
		} else {
			news += in.sizes[i]
		}
	}
	return history, news
}

func (c *fakeCluster) committedOffset(p int32) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	offset, ok := c.committed[partition{topicEvents, p}]
	if !ok {
		return event.Absent
	}
	return offset
}

func (c *fakeCluster) commitBefore(p int32, offset int64) {
	c.change(func() { c.committed[partition{topicEvents, p}] = offset })
}

func (c *fakeCluster) sendBatches(p int32, first, end int) {
	for i := first; i < end; i++ {
		c.send(p, progress(i))
	}
}

// TestStartsAgainstCommitted goes through where a hook can start, compared with what
// the group has and what the log holds. The log has offsets first to 99.
func TestStartsAgainstCommitted(t *testing.T) {
	const none = event.Absent
	for _, c := range []struct {
		name                           string
		first, committed, offset, live int64
		history, news                  int
		lost                           float64
		gap                            string
		told                           int64
	}{
		{"no wish goes on where the group is", 0, 60, none, none, 0, 40, 0, "", 100},
		{"no wish and no group reads all", 0, none, none, none, 0, 100, 0, "", 100},
		{"a store ahead of the group wins", 0, 60, 80, 80, 0, 20, 0, "", 100},
		{"a store behind the group wins", 0, 60, 40, 40, 0, 60, 0, "", 100},
		{"a store of one who knows no history wins as well", 0, 60, 40, none, 0, 60, 0, "", 100},
		{"a rewind to before the committed offset", 0, 60, 20, 60, 40, 40, 0, "", 100},
		{"a rewind of a group that never read", 0, none, 20, 100, 80, 0, 0, "", 100},
		{"history up to where the group is, from the beginning", 0, 100, 0, 100, 100, 0, 0, "", 100},
		{"history from where the group is", 0, 60, none, 90, 30, 10, 0, "", 100},
		{"a store whose offset retention has passed", 50, 60, 40, 40, 0, 50, 10, gapRetention, 100},
		{"a group whose offset retention has passed", 70, 60, none, none, 0, 30, 10, gapRetention, 100},
		{"a rewind beyond retention is no loss", 30, 60, 0, 60, 30, 40, 0, "", 100},
		{"a rewind and the news behind it, both beyond retention", 70, 60, 0, 60, 0, 30, 10, gapRetention, 100},
		{"a store ahead of a log that is another one", 0, 60, 180, 180, 0, 100, 0, gapRecreated, 100},
		{"a rewind in a log that is another one", 0, 160, 20, 160, 0, 100, 0, gapRecreated, 100},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			f := newFakeCluster(1)
			f.sendBatches(0, 0, 100)
			f.truncate(0, c.first)
			if known(c.committed) {
				f.commitBefore(0, c.committed)
			}
			r := fakeRig(t, f, startAt(c.offset, c.live)).start()
			after(time.Minute)
			history, news := r.in.replayed()
			if history != c.history || news != c.news {
				t.Errorf("%d events as history, %d as news, expected %d and %d", history, news, c.history, c.news)
			}
			if lost := valueOf(r.metrics.OffsetsLost.WithLabelValues(topicEvents)); lost != c.lost {
				t.Errorf("%v offsets lost, expected %v", lost, c.lost)
			}
			gaps, lines := 0.0, strings.Count(r.log.String(), "offsets are gone")
			for _, reason := range []string{gapRetention, gapRecreated, gapEmpty, gapUnreadable} {
				n := r.gaps(reason)
				gaps += n
				if reason == c.gap && n != 1 {
					t.Errorf("%v gaps by %s, expected one", n, reason)
				}
			}
			if gaps != float64(min(len(c.gap), 1)) || lines != int(gaps) {
				t.Errorf("%v gaps, told %d times", gaps, lines)
			}
			if told := f.committedOffset(0); told != c.told {
				t.Errorf("the group has offset %d, expected %d", told, c.told)
			}
			if !r.src.Progress().CaughtUp() || countSeries(r.metrics.ReplayLag) != 0 || valueOf(r.metrics.Replaying) != 0 {
				t.Errorf("not caught up: %+v", r.src.Progress())
			}
			r.mustBeHealthy("at the end")
			r.halt()
		})
	}
}

func TestHistoryIsNoLagAndKeepsThePartitionFromBeingCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		c.sendBatches(0, 0, 100)
		c.commitBefore(0, 80)
		c.commitBefore(1, 0)
		r := fakeRig(t, c, func(o *Options) {
			o.Config.BatchEvents = 10
			o.Hooks.Assigned = func(context.Context, []collector.Assignment) ([]collector.Start, error) {
				return []collector.Start{{Offset: 30, Live: 80}, anywhere}, nil
			}
		})
		c.batch = 10
		r.in.setGate(func(_ context.Context, step *collector.Step) error {
			if step.Reached > 50 {
				return errBusy
			}
			return nil
		})
		if r.src.Progress().CaughtUp() {
			t.Error("caught up before it ran")
		}
		r.start()
		after(time.Minute)
		if p := r.src.Progress(); p != (Progress{Joined: true, Assigned: 2, Replaying: 1, Left: 30}) || p.CaughtUp() {
			t.Errorf("progress is %+v", p)
		}
		if r.lag(0) != 20 || valueOf(r.metrics.ReplayLag.WithLabelValues(topicEvents, "0")) != 30 {
			t.Errorf("lag %v and history of %v offsets", r.lag(0), valueOf(r.metrics.ReplayLag.WithLabelValues(topicEvents, "0")))
		}
		if n := countSeries(r.metrics.ReplayLag); n != 1 {
			t.Errorf("%d partitions show history, expected the one", n)
		}
		if told := c.committedOffset(0); told != 80 {
			t.Errorf("the group has offset %d during the replay, expected 80", told)
		}
		if strings.Contains(r.log.String(), "history is read again") {
			t.Error("the end of the replay is told before it is there")
		}
		r.in.setGate(nil)
		after(time.Minute)
		if p := r.src.Progress(); !p.CaughtUp() || r.lag(0) != 0 || countSeries(r.metrics.ReplayLag) != 0 {
			t.Errorf("progress is %+v, lag %v", p, r.lag(0))
		}
		if n := valueOf(r.metrics.Replayed); n != 50 {
			t.Errorf("%v events counted as history", n)
		}
		if n := strings.Count(r.log.String(), "history is read again: from here on it is news"); n != 1 {
			t.Errorf("the end of the replay is told %d times", n)
		}
		r.halt()
	})
}

// A step never holds both, however the messages come.
func TestNoStepHoldsBothHistoryAndNews(t *testing.T) {
	for live := int64(0); live <= 12; live++ {
		inBubble(t, fmt.Sprintf("with %d messages of history", live), func(t *testing.T) {
			c := newFakeCluster(1)
			for i := range 4 { // messages of 1, 2 and 0 events, and one that is poison
				n := 10 * i
				c.send(0, progress(n), "["+progress(n+1)+","+progress(n+2)+"]", "{")
			}
			r := fakeRig(t, c, startAt(0, live), func(o *Options) {
				o.Config.BatchEvents = 3
				next := o.Handler
				o.Handler = func(ctx context.Context, step *collector.Step) error {
					for i := range step.Items {
						if (step.Items[i].Origin.Offset < live) != step.Replayed {
							t.Errorf("offset %d is in a step with Replayed=%v", step.Items[i].Origin.Offset, step.Replayed)
						}
					}
					return next(ctx, step)
				}
			}).start()
			after(time.Minute)
			if n := len(r.in.all()); n != 12 {
				t.Errorf("%d events, expected 12", n)
			}
			poison := 0
			for i := live; i < 12; i++ {
				if i%3 == 2 {
					poison++
				}
			}
			if n := r.rejected(collector.ReasonSyntax) + r.rejected(collector.ReasonTruncated); n != poison {
				t.Errorf("%d messages counted as poison, expected the %d that are news", n, poison)
			}
			r.halt()
		})
	}
}

func TestPartitionThatIsKeptGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.sendBatches(0, 0, 50)
		c.set(func() { c.commitErr = errors.New("coordinator is loading") })
		var kept []bool
		r := fakeRig(t, c, func(o *Options) {
			o.Hooks.Assigned = func(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
				kept = append(kept, got[0].Kept)
				return []collector.Start{anywhere}, nil
			}
		}).start()
		after(time.Second)
		c.rebalance()
		after(time.Second)
		c.set(func() { c.generations++ }) // one that this member was not in
		c.rebalance()
		after(time.Second)
		if fmt.Sprint(kept) != "[false true false]" {
			t.Errorf("kept: %v", kept)
		}
		if n := len(r.in.all()); n != 100 {
			t.Errorf("%d events, expected 50 from the first generation and 50 repeated in the third", n)
		}
		r.halt()
	})
}

func TestReplayGoesOnInTheNextGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(1)
		c.sendBatches(0, 0, 100)
		c.commitBefore(0, 80)
		c.batch = 10
		asked := 0
		r := fakeRig(t, c, func(o *Options) {
			o.Hooks.Assigned = func(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
				if asked++; got[0].Kept {
					return []collector.Start{anywhere}, nil
				}
				return []collector.Start{{Offset: 0, Live: got[0].Committed}}, nil
			}
		})
		r.in.setGate(func(_ context.Context, step *collector.Step) error {
			if step.Reached > 40 {
				return errBusy
			}
			return nil
		})
		r.start()
		after(10 * time.Second)
		c.rebalance()
		after(10 * time.Second)
		if p := r.src.Progress(); p.Left != 40 || asked != 2 {
			t.Errorf("progress is %+v after %d assignments", p, asked)
		}
		r.in.setGate(nil)
		after(10 * time.Second)
		if history, news := r.in.replayed(); history != 80 || news != 20 {
			t.Errorf("%d events as history and %d as news, expected 80 and 20", history, news)
		}
		r.halt()
	})
}

func TestHookSeesTheLogsAndIsAskedAgainWithinTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		c.sendBatches(0, 0, 50)
		c.truncate(0, 20)
		c.commitBefore(1, 0)
		var seen []collector.Assignment
		failures := 3
		r := fakeRig(t, c, func(o *Options) {
			o.Hooks.Assigned = func(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
				if failures--; failures >= 0 {
					return nil, errors.New("store is busy")
				}
				seen = got
				return []collector.Start{anywhere, anywhere}, nil
			}
		}).start()
		after(200 * time.Millisecond)
		r.mustReport("while the hook fails", "assigned partitions cannot be prepared: store is busy")
		after(10 * time.Second)
		r.mustBeHealthy("after that")
		expected := []collector.Assignment{
			{Topic: topicEvents, Committed: event.Absent, First: 20, End: 50},
			{Topic: topicEvents, Partition: 1, First: 0, End: 0},
		}
		if fmt.Sprint(seen) != fmt.Sprint(expected) {
			t.Errorf("the hook saw %+v, expected %+v", seen, expected)
		}
		if n := valueOf(r.metrics.Rebalances); n != 1 {
			t.Errorf("%v generations: a hook that fails must not interrupt the group", n)
		}
		r.halt()
	})
}

// While history is read again the group is told where the news begin, and never
// anything before that, whatever it had.
func TestGroupIsToldWhereTheNewsBeginDuringAReplay(t *testing.T) {
	for _, c := range []struct {
		name                  string
		committed, live, told int64
	}{
		{"with nothing committed", event.Absent, 90, 90},
		{"with less committed", 40, 90, 90},
		{"with more committed", 95, 90, 95},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			f := newFakeCluster(1)
			f.batch = 10
			f.sendBatches(0, 0, 100)
			if known(c.committed) {
				f.commitBefore(0, c.committed)
			}
			r := fakeRig(t, f, startAt(0, c.live))
			r.in.setGate(busyBeyond(60))
			r.start()
			after(time.Minute)
			if told := f.committedOffset(0); told != c.told {
				t.Errorf("the group has offset %d in the middle of it, expected %d", told, c.told)
			}
			r.halt()
			if told := f.committedOffset(0); told != c.told {
				t.Errorf("the group has offset %d after a stop, expected %d", told, c.told)
			}
		})
	}
}

// An answer of the hook that comes when the generation is over is followed by
// Revoked, and so is an assignment of nothing: the daemon has to know what it lost.
func TestEveryAssignmentIsRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		var calls journal
		r := fakeRig(t, c, func(o *Options) {
			o.Hooks.Assigned = func(ctx context.Context, got []collector.Assignment) ([]collector.Start, error) {
				calls.note("+%d", len(got))
				if calls.len() == 1 {
					<-ctx.Done()
				}
				return []collector.Start{anywhere, anywhere}[:len(got)], nil
			}
			o.Hooks.Revoked = func(_ context.Context, lost []collector.Assignment) error {
				calls.note("-%d", len(lost))
				return nil
			}
		}).start()
		after(time.Second)
		c.rebalance()
		after(time.Second)
		c.set(func() { c.others = true })
		c.rebalance()
		after(time.Second)
		r.halt()
		if got := calls.String(); got != "+2 -2 +2 -2 +0 -0" {
			t.Errorf("hooks were called %s", got)
		}
	})
}

// journal is a list of calls that several goroutines write.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.lines)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, " ")
}
