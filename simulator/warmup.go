package simulator

import (
	"math"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

// What the first batch of a run takes longer than the others: the JVM loads
// classes and compiles, executors fetch the application, code is generated. The
// medians are those of captured runs, on a somewhat quieter machine.
const (
	coldPlanning = 2500 * time.Millisecond
	coldTasks    = 4500 * time.Millisecond
	coldCommit   = 120 * time.Millisecond
	coldRest     = 60 * time.Millisecond
	// warmBatches is the batch by which the processor's slowness of a new run has
	// fallen to a third.
	warmBatches = 4
	coldCPU     = 0.6
)

// warmUp is the additional time of a run's first batch.
type warmUp struct{ planning, tasks, commit, rest time.Duration }

func (q *query) warmth(r *rng) warmUp {
	if q.ofRun > 0 || q.o.Live {
		return warmUp{}
	}
	return warmUp{
		planning: r.about(coldPlanning, 0.35), tasks: r.about(coldTasks, 0.35),
		commit: r.about(coldCommit, 0.5), rest: r.about(coldRest, 0.6),
	}
}

// gcShare is the share of their time that executors spend collecting garbage: two
// percent of an ordinary heap, and more as state fills it.
func (q *query) gcShare() float64 {
	if q.conf.Provider != spark.HDFS {
		return ordinaryGC
	}
	var state float64
	for i := range q.progress.Operators {
		state += q.progress.Operators[i].Values[event.MemoryUsedBytes]
	}
	full := min(1, state/(float64(q.sc.Cluster.Memory)*float64(len(q.execs))))
	return ordinaryGC + fullGC*full*full
}

const (
	ordinaryGC = 0.02
	fullGC     = 0.4 // beyond that, with nothing but state on the heap
)

// cpuFactor is how much slower code still runs in a batch of a new run.
func (q *query) cpuFactor() float64 {
	if q.o.Live {
		return 1
	}
	return 1 + coldCPU*math.Exp(-float64(q.ofRun)/warmBatches)
}
