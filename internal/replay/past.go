package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/filesource"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
)

const (
	// pastCacheBytes holds what is read of all queries in one hour, which lies
	// together on the disk and is wanted in the order of time.
	pastCacheBytes = 64 << 20
	// pastRecords is how many records are read ahead as they are stored, over all
	// queries, and pastEvents how many more are decoded to be put into order. Each
	// query may have a few in any case.
	pastRecords = 32 << 10
	pastEvents  = 4 << 10
)

// past is the history of a daemon, read as a log: the events of all queries side by
// side in the order in which they were heard, those of one query in the order in
// which the daemon received them. Memory is bounded by the number of queries,
// whatever the length of the history.
type past struct {
	path, dir    string
	fromMs, toMs int64 // as in Inputs
}

// Run reads the history as it is at this moment, even while a daemon writes to it.
// A query that cannot be read to its end costs no other.
func (p *past) Run(ctx context.Context, handle collector.Handler, report func(filesource.Rejected)) (filesource.Summary, error) {
	r := &pastReader{past: p, ctx: ctx, handle: handle, report: report}
	if p.dir == "" {
		return r.sum, inputError{p.path, errors.New("it names no directory")}
	}
	store, err := history.Open(history.Options{Dir: p.dir, ReadOnly: true, CacheBytes: pastCacheBytes})
	if err == nil {
		r.store = store
		r.sum.Files = 1
		err = errors.Join(r.run(), store.Close())
	}
	if err != nil && ctx.Err() == nil {
		err = inputError{p.path, err}
	}
	return r.sum, err
}

// pastReader reads one history. It belongs to one goroutine.
type pastReader struct {
	*past
	ctx    context.Context
	handle collector.Handler
	report func(filesource.Rejected)
	sum    filesource.Summary

	store *history.Store
	words *record.Dictionary
	reels reelHeap
	chunk int // records that a reel reads at once
	ahead int // events that a reel keeps decoded at most

	free  []*held // decoded before, their memory to be used again
	step  collector.Step
	given []*held // in step
}

func (r *pastReader) run() error {
	if err := r.open(); err != nil {
		return err
	}
	var failed failures
	for len(r.reels) > 0 && r.ctx.Err() == nil {
		top := r.reels[0]
		if h := top.take(); h != nil {
			failed.add(r.give(h))
			continue
		}
		failed.add(top.fill())
		if len(top.waiting) == 0 {
			heap.Pop(&r.reels)
		} else {
			heap.Fix(&r.reels, 0)
		}
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	failed.add(r.flush())
	return failed.err()
}

// open reads the dictionary and finds the queries. Their records are read when
// their time has come.
func (r *pastReader) open() error {
	words, err := r.store.Words()
	if err != nil {
		return err
	}
	entries := make([]record.Entry, len(words))
	for i, w := range words {
		entries[i] = record.Entry(w)
	}
	r.words = record.NewDictionary(0)
	if err := r.words.Load(entries); err != nil {
		return err
	}
	queries, err := r.store.Queries()
	if err != nil {
		return err
	}
	r.thread(queries)
	return nil
}

// thread makes a reel for each query that has records in bounds.
func (r *pastReader) thread(queries []history.QueryInfo) {
	fromMs, toMs := int64(math.MinInt64), int64(math.MaxInt64)
	if r.fromMs != 0 {
		fromMs = r.fromMs
	}
	if r.toMs != 0 {
		toMs = r.toMs
	}
	byID := map[event.QueryID]*reel{}
	for _, q := range queries {
		if q.LastMs < fromMs || q.FirstMs >= toMs {
			continue
		}
		l := byID[q.ID]
		if l == nil { // a query that has changed its name comes once for each
			l = &reel{past: r, id: q.ID, index: len(r.reels), fromMs: fromMs, toMs: toMs, ms: max(q.FirstMs, fromMs)}
			byID[q.ID] = l
			r.reels = append(r.reels, l)
		}
		l.ms = min(l.ms, max(q.FirstMs, fromMs))
	}
	heap.Init(&r.reels)
	n := max(1, len(r.reels))
	r.chunk = min(max(pastRecords/n, 32), 1024)
	r.ahead = max(pastEvents/n, 8)
}

// give adds an event to the step, and hands the step on when it is full.
func (r *pastReader) give(h *held) error {
	r.given = append(r.given, h)
	r.step.Items = append(r.step.Items, collector.Item{Event: h.update.Event, Origin: h.update.Origin})
	if len(r.given) < stepEvents {
		return nil
	}
	return r.flush()
}

func (r *pastReader) flush() error {
	if len(r.given) == 0 {
		return nil
	}
	r.step.Reached = event.Absent
	err := r.handle(r.ctx, &r.step)
	if err == nil {
		r.sum.Events += len(r.given)
	}
	r.free = append(r.free, r.given...)
	r.given, r.step.Items = r.given[:0], r.step.Items[:0]
	return err
}

// unused returns memory to decode into.
func (r *pastReader) unused() *held {
	if n := len(r.free); n > 0 {
		h := r.free[n-1]
		r.free = r.free[:n-1]
		return h
	}
	return &held{}
}

// reject counts a record that cannot be used.
func (r *pastReader) reject(id event.QueryID, atMs int64, err error) {
	r.sum.Rejected++
	r.report(filesource.Rejected{File: r.path, Reject: collector.Reject{
		Reason: collector.ReasonEncoding, Err: fmt.Errorf("query %s at %s: %w", id, moment(atMs), err),
	}})
}

// reelHeap has the reel on top whose next event was heard first, as far as is
// known.
type reelHeap []*reel

func (h reelHeap) Len() int           { return len(h) }
func (h reelHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h reelHeap) Less(i, j int) bool { return h[i].before(h[j]) }

// Push and Pop are for package heap.
func (h *reelHeap) Push(x any) { *h = append(*h, x.(*reel)) }

// Pop takes the last reel off.
func (h *reelHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = slices.Delete(*h, len(*h)-1, len(*h))
	return last
}
