package simulator

import (
	"fmt"
	"time"

	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/operator"
	"github.com/stategauge/stategauge/simulator/store"
)

// executor is one simulated executor: its stores, its devices, its cores on the
// virtual clock, and when its maintenance thread runs next. One goroutine works
// for it at a time.
type executor struct {
	id     int // unique in a run of the simulation: a replacement has a new one
	stores *store.Executor
	meter  device.Meter
	node   *device.Node // nil in live mode
	every  time.Duration
	next   time.Duration // virtual time of the next maintenance round
	cores  []time.Duration
	parts  []int // partitions of the stage at hand
}

// setBatch makes the devices and stores of the batch what the faults leave of them.
func (e *executor) setBatch(batch, nowMs int64, f *fault.State) {
	if e.node != nil {
		e.node.SetBatch(batch, nowMs, f.Device)
	}
	e.stores.SetNow(nowMs)
	e.stores.SetFaults(f.Store)
}

// maintain runs the rounds of the maintenance thread that fell due by now. After
// a long silence only the last two are played: the rounds before them would have
// found nothing new.
func (e *executor) maintain(now time.Duration) error {
	if behind := now - e.next; behind > 2*e.every {
		e.next += (behind/e.every - 1) * e.every
	}
	for e.next <= now {
		e.stores.SetNow(ms(e.next))
		e.next += e.every
		if _, err := e.stores.Maintain(); err != nil {
			return fmt.Errorf("maintenance of executor %d: %w", e.id, err)
		}
	}
	return nil
}

// begin readies the cores for a stage.
func (e *executor) begin() {
	for i := range e.cores {
		e.cores[i] = 0
	}
}

// core returns the core that is free first.
func (e *executor) core() int {
	best := 0
	for i, free := range e.cores {
		if free < e.cores[best] {
			best = i
		}
	}
	return best
}

// finish is when the last core becomes free, from the stage's start.
func (e *executor) finish() time.Duration {
	var last time.Duration
	for _, free := range e.cores {
		last = max(last, free)
	}
	return last
}

// runTasks runs an operator's tasks of this executor: really one after another,
// in virtual time on its cores, with maintenance at its due time in between.
func (e *executor) runTasks(s *stage, start time.Duration) error {
	e.begin()
	for _, p := range e.parts {
		core := e.core()
		if err := e.maintain(start + e.cores[core]); err != nil {
			return err
		}
		took, err := e.runTask(s, p)
		if err != nil {
			return err
		}
		e.cores[core] += took
	}
	return nil
}

func (e *executor) runTask(s *stage, p int) (time.Duration, error) {
	if e.node != nil {
		e.node.SetTask(s.draws(), p)
	}
	launch := e.meter.End(device.StepSchedule, e.meter.Begin(device.StepSchedule), device.Work{Ops: 1, Rows: int64(len(s.rows[p]))})
	t := &s.tasks[p]
	if err := e.openStores(s, p, t); err != nil {
		return 0, err
	}
	t.Partition, t.Version, t.Rows, t.Meter = p, s.version, s.rows[p], e.meter
	t.Collect = s.collect
	t.LateMs, t.EvictMs, t.NowMs = s.lateMs, s.evictMs, s.nowMs
	r := &s.results[p]
	if err := s.op.Run(t, r); err != nil {
		return 0, fmt.Errorf("operator %d, partition %d: %w", s.index, p, err)
	}
	t.Out = r.Out
	return launch + r.Total(), nil
}

func (e *executor) openStores(s *stage, p int, t *operator.Task) error {
	t.Stores = t.Stores[:0]
	for _, name := range s.storeNames {
		st, err := e.stores.Store(store.ID{Operator: s.index, Partition: p, Name: name}, s.families)
		if err != nil {
			return fmt.Errorf("store %s of operator %d, partition %d: %w", name, s.index, p, err)
		}
		t.Stores = append(t.Stores, st)
	}
	return nil
}
