package simulator

import (
	"errors"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/operator"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// stage is one stateful operator of a query: the tasks that play it, a task per
// partition, and memory that they reuse from batch to batch.
type stage struct {
	index      int
	op         *operator.Operator
	storeNames []string
	families   []store.Family
	copies     *copies
	collect    bool // another operator wants the output rows

	rows    [][]workload.Row // per partition, cut out of backing
	backing []workload.Row
	counts  []int
	tasks   []operator.Task
	results []operator.Result // of the evaluation at hand: one of evaluations
	// evaluations are the results of each time that the batch was evaluated, and
	// behind those memory for more.
	evaluations [][]operator.Result
	evaluation  int // at hand, from 0

	version                int64
	lateMs, evictMs, nowMs int64
}

func newStage(index int, op *operator.Operator, partitions int, c *copies) *stage {
	s := &stage{
		index: index, op: op, storeNames: op.StoreNames(), families: op.Families(), copies: c,
		rows: make([][]workload.Row, partitions), counts: make([]int, partitions), tasks: make([]operator.Task, partitions),
	}
	s.evaluate(0)
	return s
}

// evaluate makes room for the results of an evaluation of the batch, counted from
// 0, and keeps those of the ones before.
func (s *stage) evaluate(n int) {
	for len(s.evaluations) <= n {
		s.evaluations = append(s.evaluations, make([]operator.Result, len(s.tasks)))
	}
	s.evaluation, s.results = n, s.evaluations[n]
}

// draws is the number by which tasks draw their luck: that of the operator, which
// in each further evaluation is as good as another one.
func (s *stage) draws() int { return s.index + s.evaluation<<16 }

// partition says where a key's state is. It must not change with anything but
// the number of partitions: state on disk depends on it.
func partition(key uint64, partitions int) int {
	return int(seed.Mix(key) % uint64(partitions))
}

// shuffle deals rows out to the partitions, keeping their order. Rows of
// partitions that are copies are counted but not kept.
func (s *stage) shuffle(inputs [][]workload.Row) {
	n := len(s.counts)
	clear(s.counts)
	for _, in := range inputs {
		for i := range in {
			s.counts[partition(in[i].Key, n)]++
		}
	}
	s.cut()
	for _, in := range inputs {
		for i := range in {
			if p := partition(in[i].Key, n); s.copies.real(p) {
				s.rows[p] = append(s.rows[p], in[i])
			}
		}
	}
}

// cut gives each partition its part of the backing memory, as long as its count.
func (s *stage) cut() {
	total := 0
	for p, n := range s.counts {
		if s.copies.real(p) {
			total += n
		}
	}
	if cap(s.backing) < total {
		s.backing = make([]workload.Row, 0, total+total/4)
	}
	at := 0
	for p, n := range s.counts {
		if !s.copies.real(p) {
			s.rows[p] = nil
			continue
		}
		s.rows[p] = s.backing[at : at : at+n]
		at += n
	}
}

// run plays the operator on all executors and returns how long the stage took.
// With parallel above 1 so many executors work at once; what each does depends on
// nothing that the others do, and results are read in partition order.
func (s *stage) run(execs []*executor, place *placement, start time.Duration, parallel int) (time.Duration, error) {
	for _, e := range execs {
		e.parts = e.parts[:0]
	}
	for p, slot := range place.of {
		if s.copies.real(p) {
			execs[slot].parts = append(execs[slot].parts, p)
		}
	}
	if err := each(execs, parallel, func(e *executor) error { return e.runTasks(s, start) }); err != nil {
		return 0, err
	}
	s.copies.fill(s, execs, place)
	var took time.Duration
	for _, e := range execs {
		took = max(took, e.finish())
	}
	return took, nil
}

// each calls work for every executor, up to parallel at once, and waits for all.
func each(execs []*executor, parallel int, work func(*executor) error) error {
	if parallel <= 1 || len(execs) < 2 {
		for _, e := range execs {
			if err := work(e); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(execs))
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, e := range execs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = work(e)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// outputs lists what the tasks hand on, in partition order.
func (s *stage) outputs(out [][]workload.Row) [][]workload.Row {
	out = out[:0]
	for p := range s.results {
		if s.copies.real(p) {
			out = append(out, s.results[p].Out)
		}
	}
	return out
}

// output counts the rows handed on, those of copies too.
func (s *stage) output() int64 {
	var n int64
	for p := range s.results {
		n += s.results[p].Output
	}
	return n
}

// sum folds the tasks' results into what the progress shows: every task floors
// its times to milliseconds, then they are added up. Tasks of all evaluations
// count, as Spark's accumulators do, so that even partitions multiply.
func (s *stage) sum(o *spark.Operator) {
	v := &o.Values
	v.Clear()
	o.Name = s.op.Name()
	for _, id := range ownFigures {
		v[id] = 0
	}
	for n := range s.evaluation + 1 {
		for p := range s.evaluations[n] {
			addResult(v, &s.evaluations[n][p])
		}
		v[event.NumShufflePartitions] += float64(len(s.results))
	}
}

// addResult adds what a task did.
func addResult(v *event.Vector, r *operator.Result) {
	v[event.NumRowsTotal] += float64(r.RowsTotal)
	v[event.NumRowsUpdated] += float64(r.Updated)
	v[event.NumRowsRemoved] += float64(r.Removed)
	v[event.NumRowsDroppedByWatermark] += float64(r.Dropped)
	v[event.AllUpdatesTime] += float64(ms(r.Update))
	v[event.AllRemovalsTime] += float64(ms(r.Removal))
	v[event.CommitTime] += float64(ms(r.Commit))
	v[event.MemoryUsedBytes] += float64(r.MemoryBytes)
	v[event.NumStateStoreInstances] += float64(r.Instances)
	addVector(v, &r.Custom)
}

// ownFigures are the figures that every operator has, whatever its provider.
var ownFigures = [...]event.MetricID{
	event.NumRowsTotal, event.NumRowsUpdated, event.AllUpdatesTime, event.NumRowsRemoved, event.AllRemovalsTime,
	event.CommitTime, event.MemoryUsedBytes, event.NumRowsDroppedByWatermark, event.NumShufflePartitions, event.NumStateStoreInstances,
}

// addVector adds what w has to v; a figure that v lacks becomes w's.
func addVector(v, w *event.Vector) {
	for i, x := range w {
		switch {
		case x != x:
		case v[i] != v[i]:
			v[i] = x
		default:
			v[i] += x
		}
	}
}
