package operator

import (
	"fmt"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// part is what a task is busy with: the figure of Result that gets the time.
type part uint8

const (
	updating part = iota
	removing
	committing // work that Spark does inside the commit's time, like removing what outlived its time
	other
	numParts
)

// maxStores is how many stores a task can have: those of a join.
const maxStores = 4

// task is a Task while it runs, with the memory that the next one reuses.
type task struct {
	*Task
	o       *Operator
	r       *Result
	part    part
	times   [numParts]time.Duration
	seen    [maxStores]time.Duration // of each store, given to a part already
	rows    [numParts]int64          // rows that code ran for
	key     []byte                   // scratch for the key and value at hand
	value   []byte
	key2    []byte
	key3    []byte
	doomed  keyList
	groups  groups
	counts  counters
	pairs   []pair
	kept    []workload.Row // rows that are not late
	matches matches
	spans   spans
}

// counters are the operators' own figures.
type counters struct {
	duplicates, evictionRead                  int64
	registered, deleted, expired, ttlRemovals int64
	values, lists, maps, ttlLists, ttlMaps    int64
}

// pair is a key of a join and how many rows it has.
type pair struct{ key, n uint64 }

func newTask(o *Operator) *task {
	x := &task{o: o}
	x.matches.visit = x.matches.add
	x.spans.visit = x.spans.add
	return x
}

// Run does a task: it loads the stores, does with them what the operator does
// for the rows, removes what may go, and commits. What was in r is gone, its
// memory is reused. On an error nothing is committed, but for a join of several
// stores some may be, as with a task of Spark that fails between two commits.
func (o *Operator) Run(t *Task, r *Result) error {
	if len(t.Stores) != len(o.stores) {
		return fmt.Errorf("operator %s partition %d: %d stores given, %d needed", o.name, t.Partition, len(t.Stores), len(o.stores))
	}
	x := o.tasks.Get().(*task)
	defer o.tasks.Put(x)
	x.begin(t, r)
	if err := x.run(); err != nil {
		for _, s := range t.Stores {
			// The first error is what counts; a store that can not even abort fails its next load.
			_ = s.Abort()
		}
		return fmt.Errorf("operator %s partition %d version %d: %w", o.name, t.Partition, t.Version, err)
	}
	x.finish()
	return nil
}

func (x *task) begin(t *Task, r *Result) {
	x.Task, x.r, x.part = t, r, updating
	x.times = [numParts]time.Duration{}
	x.seen = [maxStores]time.Duration{}
	x.rows = [numParts]int64{}
	x.counts = counters{}
	*r = Result{Uploaded: r.Uploaded[:0], Out: t.Out[:0]}
	r.Custom.Clear()
}

func (x *task) run() error {
	if err := x.load(); err != nil {
		return err
	}
	if err := x.o.plan.run(x); err != nil {
		return err
	}
	x.measure()
	for i, s := range x.Stores {
		if err := s.Commit(); err != nil {
			return fmt.Errorf("commit store %s: %w", x.o.stores[i], err)
		}
	}
	return nil
}

func (x *task) load() error {
	load := store.Store.Load
	if x.o.readWrite {
		load = store.LoadReadWrite
	}
	for i, s := range x.Stores {
		if err := load(s, x.Version); err != nil {
			return fmt.Errorf("load store %s: %w", x.o.stores[i], err)
		}
	}
	return nil
}

// measure gives the time that stores spent since the last call to the current part.
func (x *task) measure() {
	for i, s := range x.Stores {
		f := s.Figures()
		took := f.Get + f.Put + f.Scan
		x.times[x.part] += took - x.seen[i]
		x.seen[i] = took
	}
}

// finish sums up what the stores report and what the code cost.
func (x *task) finish() {
	r := x.r
	r.Instances = len(x.Stores)
	x.measure()
	for i, s := range x.Stores {
		f := s.Figures()
		r.Load += f.Load
		r.Commit += f.Commit
		r.MemoryBytes += f.MemoryBytes
		r.Uploaded = append(r.Uploaded, f.LastUploaded)
		if x.o.reports[i] {
			r.RowsTotal += f.Rows
			addVector(&r.Custom, &f.Custom)
		}
	}
	for p, n := range x.rows {
		if n > 0 {
			m := x.Meter.Begin(device.StepCode)
			x.times[p] += x.Meter.End(device.StepCode, m, device.Work{Rows: n})
		}
	}
	r.Update = x.times[updating]
	r.Removal = x.times[removing]
	r.Commit += x.times[committing]
	r.Other = x.times[other]
	x.report()
}

// addVector adds what is present in src to dst.
func addVector(dst, src *event.Vector) {
	for id := range src {
		if !src.Has(event.MetricID(id)) {
			continue
		}
		if dst.Has(event.MetricID(id)) {
			dst[id] += src[id]
		} else {
			dst[id] = src[id]
		}
	}
}

// report adds the operator's own figures, those that the version has.
func (x *task) report() {
	for _, id := range x.o.own {
		x.r.Custom[id] = float64(x.figure(id))
	}
}

func (x *task) figure(id event.MetricID) int64 {
	c := &x.counts
	switch id {
	case event.NumDroppedDuplicateRows:
		return c.duplicates
	case event.NumRowsReadDuringEviction:
		return c.evictionRead
	case event.NumValueStateVars:
		return c.values
	case event.NumListStateVars:
		return c.lists
	case event.NumMapStateVars:
		return c.maps
	case event.NumListStateWithTTLVars:
		return c.ttlLists
	case event.NumMapStateWithTTLVars:
		return c.ttlMaps
	case event.NumRegisteredTimers:
		return c.registered
	case event.NumDeletedTimers:
		return c.deleted
	case event.NumExpiredTimers:
		return c.expired
	case event.NumValuesRemovedDueToTTLExpiry:
		return c.ttlRemovals
	case event.TimerProcessingTime:
		return x.r.Removal.Milliseconds()
	}
	// The rest stays 0: no initial state is given, no variable deleted, no null
	// stored, and rows are removed in one go.
	return 0
}

// emit hands a row on.
func (x *task) emit(row workload.Row) {
	x.r.Output++
	if x.Collect && len(x.r.Out) < MaxOut {
		x.r.Out = append(x.r.Out, row)
	}
}

// late reports whether a row or window that ends at ms lies behind the watermark
// by which input is dropped.
func (x *task) late(ms int64) bool { return x.LateMs > 0 && ms <= x.LateMs }

// gone reports whether state that ends at ms may go.
func (x *task) gone(ms int64) bool { return x.EvictMs > 0 && ms <= x.EvictMs }
