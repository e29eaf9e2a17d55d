package replay

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/filesource"
	"github.com/stategauge/stategauge/event"
)

const (
	// maxLanes is how many logs are open at once. Beyond it some are read one after
	// the other, the earlier one first.
	maxLanes = 256
	// aheadEvents is how many events are read ahead, over all logs.
	aheadEvents = 2048
	// stepEvents is how many events are handed over at once.
	stepEvents = 128
)

// lane is one log while it is read, or several one after the other. Events stay in
// their order within it, which is that of their arrival.
type lane struct {
	logs  []eventLog
	steps chan *collector.Step
	taken chan struct{} // the step has been played
	index int           // breaks ties: replays of the same files are the same
	step  *collector.Step
	at    int   // place of the next event in step
	ms    int64 // when that event is heard
	dated int64 // date of the newest event that has one, event.Absent before the first
	in    Intake
	err   error
}

func newLane(index int, logs ...eventLog) *lane {
	return &lane{logs: logs, index: index, dated: event.Absent, steps: make(chan *collector.Step), taken: make(chan struct{})}
}

// Merge plays the events of all logs in the order in which they were heard, each
// log's own order kept. It returns when all is played or ctx has ended; nothing
// that it started still runs then.
func Merge(ctx context.Context, in Inputs, play func(it *collector.Item)) (Intake, error) {
	lanes, err := in.lanes(ctx)
	ctx, stop := context.WithCancel(ctx)
	for _, l := range lanes {
		go l.read(ctx, in.limit())
	}
	h := make(laneHeap, 0, len(lanes))
	for _, l := range lanes {
		if l.fetch() {
			h = append(h, l)
		}
	}
	heap.Init(&h)
	outside := 0
	for len(h) > 0 && ctx.Err() == nil {
		l := h[0]
		if l.dated == event.Absent || in.within(l.dated) {
			play(&l.step.Items[l.at])
		} else {
			outside++
		}
		if l.advance() {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	ended := ctx.Err()
	stop()
	sum, rerr := in.gather(lanes)
	sum.Events -= outside
	if ended != nil {
		return sum, ended
	}
	return sum, errors.Join(err, rerr)
}

// gather waits for all lanes and adds up what they read.
func (in *Inputs) gather(lanes []*lane) (Intake, error) {
	var sum Intake
	var errs []error
	for _, l := range lanes {
		l.drain()
		sum.Files += l.in.Files
		sum.Events += l.in.Events
		sum.Skipped += l.in.Skipped
		sum.Rejected += l.in.Rejected
		sum.Repaired += l.in.Repaired
		sum.Hidden += l.in.Hidden
		sum.Rejects = append(sum.Rejects, l.in.Rejects...)
		errs = append(errs, l.err)
	}
	if n := in.limit(); len(sum.Rejects) > n {
		sum.Hidden += len(sum.Rejects) - n
		sum.Rejects = sum.Rejects[:n]
	}
	return sum, errors.Join(errs...)
}

// read reads the lane's logs and hands out their steps. It owns the lane's intake
// until it closes steps.
func (l *lane) read(ctx context.Context, limit int) {
	defer close(l.steps)
	var errs []error
	for _, log := range l.logs {
		sum, err := log.Run(ctx, l.hand, func(r filesource.Rejected) { l.reject(r, limit) })
		l.in.Files += sum.Files
		l.in.Events += sum.Events
		l.in.Skipped += sum.Skipped
		l.in.Rejected += sum.Rejected
		l.in.Repaired += sum.Repaired
		errs = append(errs, err)
	}
	l.err = errors.Join(errs...)
}

// hand is the collector's handler: it waits until the step has been played.
func (l *lane) hand(ctx context.Context, step *collector.Step) error {
	select {
	case l.steps <- step:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-l.taken
	return nil
}

func (l *lane) reject(r filesource.Rejected, limit int) {
	if len(l.in.Rejects) >= limit {
		l.in.Hidden++
		return
	}
	l.in.Rejects = append(l.in.Rejects, Rejected{File: r.File, Line: r.Index, Reason: fmt.Sprintf("%s: %v", r.Reason, r.Err)})
}

// fetch waits for the next step; false where there is none any more.
func (l *lane) fetch() bool {
	for step := range l.steps {
		if len(step.Items) > 0 {
			l.step, l.at = step, 0
			l.date()
			return true
		}
		l.taken <- struct{}{}
	}
	l.step = nil
	return false
}

// advance moves on to the next event.
func (l *lane) advance() bool {
	l.at++
	if l.at < len(l.step.Items) {
		l.date()
		return true
	}
	l.taken <- struct{}{}
	return l.fetch()
}

// date notes when the next event is heard. What is known to be neither heard nor
// received later comes right after the event before it.
func (l *lane) date() {
	it := &l.step.Items[l.at]
	l.ms = max(l.ms, heardOrReceivedMs(it.Event, &it.Origin))
	if at := ownMs(it.Event); at != event.Absent {
		l.dated = at
	}
}

// drain gives back what was not played and waits for the reader to end.
func (l *lane) drain() {
	if l.step != nil {
		l.taken <- struct{}{}
	}
	for range l.steps {
		l.taken <- struct{}{}
	}
}

// laneHeap has the lane whose next event was heard first on top.
type laneHeap []*lane

func (h laneHeap) Len() int      { return len(h) }
func (h laneHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h laneHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].ms, h[j].ms), cmp.Compare(h[i].index, h[j].index)) < 0
}

// Push and Pop are for package heap.
func (h *laneHeap) Push(x any) { *h = append(*h, x.(*lane)) }

// Pop takes the last lane off.
func (h *laneHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = slices.Delete(*h, len(*h)-1, len(*h))
	return last
}
