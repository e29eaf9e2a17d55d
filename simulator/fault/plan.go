package fault

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/workload"
)

// medium is the size at which a fault has the amount that its share, bytes or
// length says; others are in proportion to how far they lie above 1. So x1.2 is
// two fifths of it and x3 four times as much.
const medium = scenario.DefaultFaultSize

// Plan is the faults of one query. It does not change and may be asked from
// several goroutines.
type Plan struct {
	sources int
	entries []entry
}

// entry is one fault with its size settled.
type entry struct {
	scenario.Fault
	apply     applier
	executors int // of the cluster
	seed      uint64
}

// applier adds what a fault does in a batch to s; it is called only while the
// fault lasts.
type applier func(e *entry, batch int64, s *State)

// NewPlan returns the faults of a scenario that befall one of its queries,
// counted from 0. size, where above 0, replaces the size of every fault that is
// not fixed. The scenario must have been checked.
func NewPlan(sc *scenario.Scenario, query int, size float64, root uint64) (*Plan, error) {
	if size != 0 && (size < 1 || math.IsNaN(size) || math.IsInf(size, 0)) {
		return nil, fmt.Errorf("size of faults %v: must be at least 1", size)
	}
	p := &Plan{sources: max(1, len(sc.Query.Sources))}
	for i := range sc.Faults {
		f := sc.Faults[i]
		if f.Query != 0 && f.Query != query+1 {
			continue
		}
		apply, ok := appliers[f.Kind]
		if !ok {
			return nil, fmt.Errorf("fault %d of scenario %s: unknown kind %q", i+1, sc.Name, f.Kind)
		}
		e := entry{Fault: f, apply: apply, executors: sc.Cluster.Executors, seed: seed.Mix(root, seed.ForFaults, uint64(query), uint64(i))}
		e.settle(size)
		p.entries = append(p.entries, e)
	}
	return p, nil
}

func (e *entry) settle(size float64) {
	if size != 0 && !e.Fixed {
		e.Size = size
	}
	if e.Size == 0 {
		e.Size = medium
	}
}

// At returns what is wrong in a batch. batch counts the batches that the query
// has begun since the first, whatever became of its history: it is the batch id
// until a checkpoint is put back or deleted, and never goes back itself, or what
// happens once would happen for ever. A simulation that continues a checkpoint
// counts on from its batch id. The second argument is when the batch begins, in
// Unix milliseconds, for faults that go by the clock; none does yet.
func (p *Plan) At(batch, _ int64) State {
	s := Healthy(p.sources)
	for i := range p.entries {
		if e := &p.entries[i]; e.lasts(batch) {
			e.apply(e, batch, &s)
		}
	}
	return s
}

// Healthy is the state of a query with so many sources when nothing is wrong.
func Healthy(sources int) State {
	s := State{Device: device.Normal(), Input: make([]workload.Conditions, sources)}
	for i := range s.Input {
		s.Input[i] = workload.Normal()
	}
	return s
}

func (e *entry) lasts(batch int64) bool {
	return batch >= e.FromBatch && (e.ToBatch == 0 || batch < e.ToBatch)
}

// due reports whether a fault that happens at once does so before this batch:
// at its first, and then every so many.
func (e *entry) due(batch int64) bool {
	since := batch - e.FromBatch
	return since == 0 || e.Every > 0 && since%e.Every == 0
}

// factor is how much slower or larger things are: size, or on the way to it.
func (e *entry) factor(batch int64) float64 {
	since := batch - e.FromBatch + 1
	if e.Ramp <= 0 || since >= e.Ramp {
		return e.Size
	}
	return 1 + (e.Size-1)*float64(since)/float64(e.Ramp)
}

// amount is how much of a stated quantity there is: 1 at the medium size.
func (e *entry) amount(batch int64) float64 { return (e.factor(batch) - 1) / (medium - 1) }

// part is a share of a whole in proportion to size, below 1 always.
func (e *entry) part(batch int64, def float64) float64 {
	return min(0.95, e.shareOr(def)*e.amount(batch))
}

func (e *entry) shareOr(def float64) float64 {
	if e.Share > 0 {
		return float64(e.Share)
	}
	return def
}

func (e *entry) countOr(def int64) int64 {
	if e.Count > 0 {
		return e.Count
	}
	return def
}

// rand is a stream of the fault's own for a batch.
func (e *entry) rand(batch int64) *rand.Rand { return seed.New(e.seed, uint64(batch)) }

// inputs calls change for the sources that the fault befalls.
func (e *entry) inputs(s *State, change func(*workload.Conditions)) {
	for i := range s.Input {
		if e.Source == 0 || e.Source == i+1 {
			change(&s.Input[i])
		}
	}
}

// Kinds returns the kinds of fault that can be planned, sorted.
func Kinds() []string {
	out := make([]string, 0, len(appliers))
	for name := range appliers {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
