package simulator

import (
	"errors"
	"fmt"
	"time"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// phases is the driver's time in a batch by Spark's own names; below 0: did not
// run. rest is what no phase explains.
type phases struct {
	latestOffset, walCommit, getBatch, planning, addBatch, commitOffsets, rest time.Duration
}

// notRun marks a phase without a key.
const notRun time.Duration = -1

func (p *phases) all() [6]*time.Duration {
	return [6]*time.Duration{&p.latestOffset, &p.walCommit, &p.getBatch, &p.planning, &p.addBatch, &p.commitOffsets}
}

// total is the whole trigger.
func (p *phases) total() time.Duration {
	sum := p.rest
	for _, d := range p.all() {
		sum += max(*d, 0)
	}
	return sum
}

// progress is durationMs: each phase cut to milliseconds, the whole as well, so
// that the phases never add up to more.
func (p *phases) progress() spark.Phases {
	cut := func(d time.Duration) int64 {
		if d < 0 {
			return -1
		}
		return ms(d)
	}
	return spark.Phases{
		TriggerExecution: ms(p.total()), LatestOffset: cut(p.latestOffset), WalCommit: cut(p.walCommit), GetBatch: cut(p.getBatch),
		QueryPlanning: cut(p.planning), AddBatch: cut(p.addBatch), CommitOffsets: cut(p.commitOffsets),
	}
}

// arrive lets rows arrive at the sources until nowMs under what faults make of
// the input.
func (q *query) arrive(nowMs int64) {
	f := q.faults()
	for i, s := range q.source {
		c := workload.Normal()
		if i < len(f.Input) {
			c = f.Input[i]
		}
		s.Advance(nowMs, c)
	}
}

// poll asks the sources what there is to read and how long the asking took.
func (q *query) poll() (available int64, took time.Duration) {
	for _, s := range q.source {
		m := q.driver.Begin(device.StepSourceList)
		p := s.Poll()
		took += q.driver.End(device.StepSourceList, m, device.Work{Requests: p.Requests, Files: p.Files})
		available += p.Available
	}
	return available, took
}

// planBatch takes a batch's rows from the sources and writes its offsets.
func (q *query) planBatch() (wal time.Duration, err error) {
	for i, s := range q.source {
		q.takes[i] = s.Take()
	}
	q.planned = &plan{}
	return q.writeOffsets()
}

// planAnyway plans the next batch if it is not planned yet, for a run that ends
// inside it.
func (q *query) planAnyway() error {
	if q.planned == nil {
		if q.o.Pace == nil {
			q.arrive(ms(q.now))
		}
		if _, err := q.planBatch(); err != nil {
			return err
		}
	}
	q.planned.replay = true
	return nil
}

// retake reads again what the offsets of a planned batch say.
func (q *query) retake(o *checkpoint.Offsets) error {
	for i, s := range q.source {
		if i >= len(o.Sources) {
			return errors.New("offset log has fewer sources than the query")
		}
		var err error
		if q.takes[i], err = s.TakeTo(o.Sources[i]); err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
	}
	q.planned = &plan{replay: true}
	return q.correctOffsets(o)
}

// correctOffsets writes the offsets of a planned batch again where a source could
// not read just what had been planned, as a folder whose old files are gone.
func (q *query) correctOffsets(o *checkpoint.Offsets) error {
	for i := range q.takes {
		if logged(q.takes[i].End) != o.Sources[i] {
			_, err := q.writeOffsets()
			return err
		}
	}
	return nil
}

// logged is an offset as the log has it: nothing where there is none.
func logged(offset string) string {
	if offset == "null" {
		return ""
	}
	return offset
}

func (q *query) writeOffsets() (time.Duration, error) {
	o := checkpoint.Offsets{WatermarkMs: q.wm.nowMs, TimestampMs: ms(q.now), Conf: q.conf.OffsetLogConf(q.version)}
	for i := range q.takes {
		o.Sources = append(o.Sources, logged(q.takes[i].End))
	}
	m := q.driver.Begin(device.StepLog)
	n, err := q.ckpt.WriteOffsets(q.next, &o)
	took := q.driver.End(device.StepLog, m, device.Work{Requests: 1, RemoteOut: n})
	return took, err
}

// purge forgets old entries of the logs; Spark does it beside the batch.
func (q *query) purge() error {
	keep := q.next - int64(q.conf.MinBatchesToRetain) + 1
	if keep <= 0 {
		return nil
	}
	_, err := q.ckpt.Purge(keep)
	return err
}

// run plays the planned batch to its end and reports it.
func (q *query) run(f *fault.State, latest, wal time.Duration) error {
	r := q.rng(q.next, rngBatch)
	p := phases{latestOffset: latest, walCommit: wal, rest: r.about(2*time.Millisecond, 0.7)}
	if q.planned.replay {
		p.latestOffset, p.walCommit = notRun, notRun
	} else {
		p.walCommit += f.WalExtra
	}
	p.getBatch = q.getBatchTime(r)
	p.planning = q.planTime()
	warm := q.warmth(r)
	p.planning += warm.planning
	lead := max(p.latestOffset, 0) + max(p.walCommit, 0) + p.getBatch + p.planning
	q.cold = q.untilStores(warm.tasks, lead)
	tasks, err := q.addBatch(f, q.now+lead)
	if err != nil {
		return err
	}
	p.addBatch = tasks + warm.tasks + f.OwnWork + f.Hang
	if p.commitOffsets, err = q.commit(f); err != nil {
		return err
	}
	p.commitOffsets += warm.commit + f.WalExtra
	p.rest += warm.rest
	return q.finish(f, &p, r)
}

// untilStores is how long after the start of a job the first store is opened, and
// with it the maintenance thread: late in a run's first job, whose classes are
// loaded and whose rows are read and shuffled before.
func (q *query) untilStores(warmUp, lead time.Duration) time.Duration {
	switch {
	case q.ofRun > 0:
		return 0
	case q.paced != nil:
		warmUp = max(fromMs(q.paced.DurationMs)-lead, 0)
	}
	return warmUp * 3 / 4
}

func (q *query) getBatchTime(r *rng) time.Duration {
	if q.sc.Query.Sources[0].Kind == "files" {
		return r.about(8*time.Millisecond, 0.6)
	}
	return r.about(300*time.Microsecond, 0.6)
}

// planTime is what planning the batch costs the driver.
func (q *query) planTime() time.Duration {
	m := q.driver.Begin(device.StepPlan)
	return q.driver.End(device.StepPlan, m, device.Work{Ops: int64(max(len(q.stages), 1))})
}

// commit writes commits/<batch> and moves the watermark on.
func (q *query) commit(f *fault.State) (time.Duration, error) {
	if q.wm.delayMs >= 0 && !f.WatermarkStuck {
		for i := range q.takes {
			if q.takes[i].Count > 0 {
				q.wm.observe(i, q.takes[i].MaxMs)
			}
		}
	}
	m := q.driver.Begin(device.StepLog)
	n, err := q.ckpt.WriteCommit(q.next, &checkpoint.Commit{NextWatermarkMs: q.wm.proposed(), StateIDs: q.stateIDs()})
	took := q.driver.End(device.StepLog, m, device.Work{Requests: 1, RemoteOut: n})
	if err != nil {
		return 0, err
	}
	return took, q.purge()
}

// finish ends the batch: the clock moves on, the progress is sent, and it is
// settled when the next trigger is due.
func (q *query) finish(f *fault.State, p *phases, r *rng) error {
	start := q.now
	if q.kind == triggerRealTime {
		p.rest += max(0, q.every-p.total())
	}
	q.pace(p)
	took := p.total()
	q.now += took
	q.fillProgress(p, start)
	q.account.add(&q.progress, q.stages)
	q.noData = q.wm.advance() && q.wantsNoData() || q.always()
	q.sayProgress(f, took, r)
	q.lastStart, q.lastTook = ms(start), took
	q.gc += time.Duration(float64(took) * q.gcShare() * float64(len(q.execs)))
	q.idle.executed()
	q.idleFrom, q.planned = -1, nil
	for i := range q.takes {
		q.takes[i] = workload.Take{}
	}
	q.next++
	q.turn++
	q.ofRun++
	q.spent++
	gap := r.about(3*time.Millisecond, 0.6)
	if q.ofRun == 1 {
		gap += r.between(40*time.Millisecond, 250*time.Millisecond)
	}
	q.due = nextTrigger(start, q.now+gap, q.interval())
	return nil
}

// interval is the grid of triggers; 0 where batches follow each other at once.
func (q *query) interval() time.Duration {
	if q.kind == triggerInterval {
		return q.every
	}
	return 0
}
