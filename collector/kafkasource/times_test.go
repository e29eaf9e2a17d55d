package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// partsOf makes assignments of the topic's first n partitions.
func partsOf(n int) []collector.Assignment {
	out := make([]collector.Assignment, n)
	for i := range out {
		out[i] = collector.Assignment{Topic: topicEvents, Partition: int32(i)}
	}
	return out
}

func TestOffsetsForTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const none = event.Absent
		c := newFakeCluster(6)
		c.sendAt(0, 100, 200, 300, 400)    // reaches over all times
		c.sendAt(1, 100, 150)              // ends before most
		c.sendAt(3, -1, -1, -1)            // has no times
		c.sendAt(4, 100, 200, 300, 400, 5) // begins later than the search finds
		c.truncate(4, 3)
		c.sendAt(5, 100, 100)
		c.truncate(5, 2) // all gone by retention
		r := fakeRig(t, c)
		for _, f := range []struct {
			atMs     int64
			expected []int64
		}{
			{0, []int64{0, 0, 0, none, 3, 2}},
			{-5, []int64{0, 0, 0, none, 3, 2}},
			{120, []int64{1, 1, 0, none, 3, 2}},
			{151, []int64{1, 2, 0, none, 3, 2}},
			{400, []int64{3, 2, 0, none, 3, 2}},
			{401, []int64{4, 2, 0, none, 5, 2}},
			{time.Now().UnixMilli(), []int64{4, 2, 0, none, 5, 2}},
		} {
			got, err := r.src.OffsetsForTimes(t.Context(), partsOf(6), f.atMs)
			if err != nil || !slices.Equal(got, f.expected) {
				t.Errorf("time %d: offsets %v (%v), expected %v", f.atMs, got, err, f.expected)
			}
		}
		if got, err := r.src.OffsetsForTimes(t.Context(), nil, 100); err != nil || len(got) != 0 {
			t.Errorf("of no partition: %v, %v", got, err)
		}
	})
}

func TestSearchByTimeOutlastsALeaderThatMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(2)
		c.sendAt(0, 100, 200)
		c.sendAt(1, 100, 200)
		c.searchErr = map[int32]error{1: errors.New("not the leader")}
		time.AfterFunc(time.Second, func() { c.set(func() { c.searchErr = nil }) })
		begin := time.Now()
		got, err := fakeRig(t, c).src.OffsetsForTimes(t.Context(), partsOf(2), 150)
		if err != nil || !slices.Equal(got, []int64{1, 1}) {
			t.Errorf("offsets %v, %v", got, err)
		}
		if d := time.Since(begin); d < time.Second || d > 2*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestSearchByTimeGivesUpAndSaysOfWhat(t *testing.T) {
	inBubble(t, "of one partition", func(t *testing.T) {
		c := newFakeCluster(3)
		for p := range int32(3) {
			c.sendAt(p, 100, 200)
		}
		c.searchErr = map[int32]error{1: errors.New("not the leader")}
		begin := time.Now()
		got, err := fakeRig(t, c).src.OffsetsForTimes(t.Context(), partsOf(3), 150)
		if err == nil || !strings.Contains(err.Error(), "1970-01-01T00:00:00Z in 1 of 3 partitions, spark-events/1 among them: not the leader") {
			t.Errorf("error is %v", err)
		}
		if !slices.Equal(got, []int64{1, event.Absent, 1}) {
			t.Errorf("offsets %v: those that are known must be told", got)
		}
		if d := time.Since(begin); d < time.Second || d > 10*time.Second {
			t.Errorf("took %v", d)
		}
	})
	inBubble(t, "of all, while brokers are gone", func(t *testing.T) {
		c := newFakeCluster(2)
		c.down = errFakeDown
		got, err := fakeRig(t, c).src.OffsetsForTimes(t.Context(), partsOf(2), 150)
		if !errors.Is(err, errFakeDown) || !slices.Equal(got, []int64{event.Absent, event.Absent}) {
			t.Errorf("offsets %v, error %v", got, err)
		}
	})
	inBubble(t, "at once when its context ends", func(t *testing.T) {
		c := newFakeCluster(1)
		c.down = errFakeDown
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := fakeRig(t, c).src.OffsetsForTimes(ctx, partsOf(1), 150); err == nil {
			t.Error("no error")
		}
		if d := time.Since(begin); d != 250*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}

func TestSearchByTimeOnABroker(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(4), kfake.NumBrokers(3))
	b.sendAt(0, 1000, 2000, 3000)
	b.sendAt(1, 1000)
	r := newRig(t, quick(b.ListenAddrs()...))
	var refusals atomic.Int32
	b.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		q := req.(*kmsg.ListOffsetsRequest)
		if q.Topics[0].Partitions[0].Timestamp < 0 || refusals.Add(1) > 3 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		topic, part := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
		topic.Topic, part.Partition, part.ErrorCode = q.Topics[0].Topic, q.Topics[0].Partitions[0].Partition, kerr.NotLeaderForPartition.Code
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	for atMs, expected := range map[int64][]int64{1500: {1, 1, 0, 0}, 3001: {3, 1, 0, 0}, 0: {0, 0, 0, 0}} {
		got, err := r.src.OffsetsForTimes(t.Context(), partsOf(4), atMs)
		if err != nil || !slices.Equal(got, expected) {
			t.Errorf("time %d: offsets %v (%v), expected %v", atMs, got, err, expected)
		}
	}
	if refusals.Load() <= 3 {
		t.Error("no request was refused: the test sees too little")
	}
}

// TestHookRewindsByTime does what a daemon does that takes partitions over: it looks
// up where an hour ago was, and takes what lies before the committed offset, or
// before the end of the log where there is none, for history.
func TestHookRewindsByTime(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(2))
	now := time.Now()
	ago := func(minutes ...int) (out []int64) {
		for _, m := range minutes {
			out = append(out, now.Add(-time.Duration(m)*time.Minute).UnixMilli())
		}
		return out
	}
	b.sendAt(0, ago(90, 70, 50, 40)...)
	b.sendAt(1, ago(80, 61, 59, 1)...)
	read := func(in *intake) string {
		history, news := in.replayed()
		return fmt.Sprintf("%d as history and %d as news", history, news)
	}
	start := func() *rig {
		var r *rig
		r = newRig(t, quick(b.ListenAddrs()...), func(o *Options) {
			o.Hooks.Assigned = func(ctx context.Context, got []collector.Assignment) ([]collector.Start, error) {
				offsets, err := r.src.OffsetsForTimes(ctx, got, now.Add(-time.Hour).UnixMilli())
				starts := make([]collector.Start, len(got))
				for i, offset := range offsets {
					starts[i] = collector.Start{Offset: offset, Live: got[i].Committed}
					if got[i].Committed == event.Absent {
						starts[i].Live = got[i].End
					}
				}
				return starts, err
			}
		})
		return r.start()
	}
	first := start().wait(2).ready()
	eventually(t, "the group is told where news begin", want("committed", func() int64 { return b.committed(0) }, 4))
	b.sendAt(0, now.UnixMilli())
	eventually(t, "the news are read", want("read", func() string { return read(first.in) }, "4 as history and 1 as news"))
	first.halt()
	b.sendAt(1, now.UnixMilli(), now.UnixMilli())
	second := start()
	eventually(t, "both are read again", want("read", func() string { return read(second.in) }, "5 as history and 2 as news"))
	eventually(t, "it is caught up", want("caught up", func() bool { return second.src.Progress().CaughtUp() }, true))
}
