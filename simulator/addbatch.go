package simulator

import (
	"time"

	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/workload"
)

// setDevices makes the driver's devices what they are in this batch.
func (q *query) setDevices(f *fault.State) {
	f.Device.CPU *= q.cpuFactor()
	if q.node != nil {
		q.node.SetBatch(q.turn, ms(q.now), f.Device)
	}
}

// addBatch plays the job of a batch: reading, each stateful operator in the order
// of the plan, and the sink. It returns how long the job took.
func (q *query) addBatch(f *fault.State, start time.Duration) (time.Duration, error) {
	took, err := q.settleExecutors(f, start)
	if err != nil {
		return 0, err
	}
	for _, e := range q.execs {
		e.setBatch(q.turn, ms(start), f)
		if err := e.maintain(start); err != nil {
			return 0, err
		}
	}
	took += q.readTime()
	q.inputs = q.inputs[:0]
	for i := range q.takes {
		q.inputs = append(q.inputs, q.takes[i].Rows)
	}
	for _, s := range q.stages {
		q.ready(s, f)
		s.shuffle(q.inputs)
		d, err := q.evaluate(s, 0, start+took)
		if err != nil {
			return 0, err
		}
		took += d
		q.inputs = s.outputs(q.inputs)
	}
	took += q.sinkTime()
	again, err := q.actAgain(f, start+took)
	return took + again, err
}

// actAgain plays the further actions of a foreachBatch function on a batch that is
// not persisted. Spark keeps what was written for a shuffle, so that each runs the
// last operator's tasks once more and nothing before them: the same versions are
// loaded, changed and committed again.
func (q *query) actAgain(f *fault.State, start time.Duration) (time.Duration, error) {
	var took time.Duration
	if len(q.stages) == 0 {
		return 0, nil
	}
	last := q.stages[len(q.stages)-1]
	for n := 1; n < q.actions(f); n++ {
		d, err := q.evaluate(last, n, start+took)
		if err != nil {
			return 0, err
		}
		took += d + q.sinkTime()
	}
	return took, nil
}

// evaluate runs the tasks of an operator, for the first time in the batch or again.
func (q *query) evaluate(s *stage, n int, start time.Duration) (time.Duration, error) {
	s.evaluate(n)
	return s.run(q.execs, q.place, start, q.o.Parallel)
}

// ready gives a stage what the batch is about.
func (q *query) ready(s *stage, f *fault.State) {
	s.version, s.lateMs, s.evictMs, s.nowMs = q.next, q.wm.lateMs, q.wm.nowMs, ms(q.now)
	if !f.NoExpiry {
		q.frozenMs = 0
		return
	}
	if q.frozenMs == 0 {
		q.frozenMs = ms(q.now)
	}
	s.evictMs, s.nowMs = 0, q.frozenMs
}

// actions is how often the sink evaluates the batch.
func (q *query) actions(f *fault.State) int {
	if f.Actions > 0 {
		return f.Actions
	}
	return max(q.sc.Query.Sink.Actions, 1)
}

// readTime is how long the stage takes that reads the sources and writes the
// shuffle.
func (q *query) readTime() time.Duration {
	var took time.Duration
	for i := range q.takes {
		took = max(took, q.readSource(i, &q.takes[i]))
	}
	return took
}

// readSource deals a source's partitions out over the executors; the last one to
// finish counts.
func (q *query) readSource(i int, t *workload.Take) time.Duration {
	parts := max(q.sc.Query.Sources[i].Partitions, 1)
	rows, bytes := t.Count/int64(parts), t.Bytes/int64(parts)
	var took time.Duration
	for n, e := range q.execs {
		tasks := parts / len(q.execs)
		if n < parts%len(q.execs) {
			tasks++
		}
		if tasks == 0 {
			continue
		}
		one := e.spend(device.StepSchedule, device.Work{Ops: 1})
		one += e.spend(device.StepSourceRead, device.Work{Rows: rows, RemoteIn: bytes})
		one += e.spend(device.StepShuffle, device.Work{Rows: rows, BytesIn: bytes})
		rounds := (tasks + len(e.cores) - 1) / len(e.cores)
		took = max(took, one*time.Duration(rounds))
	}
	return took
}

func (e *executor) spend(s device.Step, w device.Work) time.Duration {
	return e.meter.End(s, e.meter.Begin(s), w)
}

// outputRows is what reaches the sink.
func (q *query) outputRows() int64 {
	if n := len(q.stages); n > 0 {
		return q.stages[n-1].output()
	}
	var rows int64
	for i := range q.takes {
		rows += q.takes[i].Count
	}
	return rows
}

// sinkTime is what writing the output takes beyond the tasks that made it.
func (q *query) sinkTime() time.Duration {
	w := device.Work{Rows: q.outputRows() / int64(len(q.execs))}
	switch q.sc.Query.Sink.Kind {
	case "noop":
		w.Rows = 0
	case "kafka", "delta", "foreach_batch":
		w.Requests = 1
	}
	return q.execs[0].spend(device.StepSink, w)
}
