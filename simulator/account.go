package simulator

import (
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

// Account is what a query did, added up as the simulation went on: the truth
// that a collector's counters can be held against.
type Account struct {
	Name    string
	Batches int64 // executed, with and without rows
	NoData  int64 // of them without rows
	// Delivered counts the progress events of executed batches that were sent, so
	// neither dropped nor lost with their sender.
	Delivered  int64
	InputRows  int64
	OutputRows int64 // that left the last operator
	// DurationMs adds up batchDuration, PhaseMs durationMs by metric.
	DurationMs int64
	PhaseMs    map[event.MetricID]int64
	// Operators adds up what each operator's progress said, by position: NaN where
	// a figure never came. Sums of levels mean nothing.
	Operators []event.Vector
	last      []event.Vector
}

// add takes an executed batch.
func (a *Account) add(g *spark.Progress, stages []*stage) {
	a.Batches++
	if g.InputRows == 0 {
		a.NoData++
	}
	a.InputRows += g.InputRows
	if n := len(stages); n > 0 {
		a.OutputRows += stages[n-1].output()
	}
	a.DurationMs += g.DurationMs
	if a.PhaseMs == nil {
		a.PhaseMs = make(map[event.MetricID]int64)
	}
	p := &g.Phases
	for _, x := range [...]struct {
		id event.MetricID
		ms int64
	}{
		{event.DurationTriggerExecution, p.TriggerExecution},
		{event.DurationLatestOffset, p.LatestOffset},
		{event.DurationWalCommit, p.WalCommit},
		{event.DurationGetBatch, p.GetBatch},
		{event.DurationQueryPlanning, p.QueryPlanning},
		{event.DurationAddBatch, p.AddBatch},
		{event.DurationCommitOffsets, p.CommitOffsets},
	} {
		a.PhaseMs[x.id] += max(x.ms, 0)
	}
	a.addOperators(g.Operators)
}

func (a *Account) addOperators(ops []spark.Operator) {
	for len(a.Operators) < len(ops) {
		var v event.Vector
		v.Clear()
		a.Operators, a.last = append(a.Operators, v), append(a.last, v)
	}
	for i := range ops {
		addVector(&a.Operators[i], &ops[i].Values)
		a.last[i] = ops[i].Values
	}
}

func (a *Account) deliver(sent bool) {
	if sent {
		a.Delivered++
	}
}

// Last returns what an operator's newest progress said, by position.
func (a *Account) Last(operator int) event.Vector { return a.last[operator] }

// copy detaches the account from the query that goes on writing it.
func (a *Account) copy() Account {
	c := *a
	c.Operators = append([]event.Vector(nil), a.Operators...)
	c.last = append([]event.Vector(nil), a.last...)
	c.PhaseMs = make(map[event.MetricID]int64, len(a.PhaseMs))
	for id, n := range a.PhaseMs {
		c.PhaseMs[id] = n
	}
	return c
}
