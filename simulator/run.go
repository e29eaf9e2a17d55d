package simulator

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
)

// resumeAfter is how long a query was down whose checkpoint was there before the
// simulation: nobody says, and the clock must go on.
const resumeAfter = time.Minute

// open opens the query's checkpoint, and begins a new one where there is none.
func (q *query) open() error {
	var err error
	if q.ckpt, err = checkpoint.Open(q.fs, q.dir); err != nil {
		return err
	}
	q.ckpt.SetSeed(seed.Mix(q.seed, seed.ForIDs, uint64(q.runs)))
	id, ok, err := q.ckpt.QueryID()
	if err != nil {
		return err
	}
	if !ok {
		return q.begin()
	}
	q.id = id
	if err := q.resume(true); err != nil {
		return err
	}
	// What an earlier process drew must not come again: ids of runs and names of files.
	q.runs = int(q.next+1) << 20
	q.ckpt.SetSeed(seed.Mix(q.seed, seed.ForIDs, uint64(q.runs)))
	return nil
}

// begin gives the query a new id and an empty checkpoint.
func (q *query) begin() error {
	q.id = uuid(q.seed, seed.ForIDs, uint64(q.runs), 0)
	q.next, q.planned, q.noData = 0, nil, false
	q.wm.reset(0, 0)
	if err := q.ckpt.SetQueryID(q.id); err != nil {
		return err
	}
	if q.version.Less(spark.V40) {
		return nil
	}
	for _, s := range q.stages {
		if err := q.ckpt.WriteOperator(s.info()); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) info() checkpoint.OperatorInfo {
	o := checkpoint.OperatorInfo{ID: s.index, Name: s.op.Name()}
	for _, name := range s.storeNames {
		o.Stores = append(o.Stores, checkpoint.StoreInfo{Name: name, Partitions: len(s.results)})
	}
	return o
}

// resume reads from the checkpoint where to go on. With clock the checkpoint is
// from an earlier simulation, and time goes on from there.
func (q *query) resume(clock bool) error {
	committed, commit, planned, fresh, err := q.ckpt.Resume()
	if err != nil {
		return err
	}
	q.next, q.noData = committed+1, false
	if clock {
		q.turn, q.acted = q.next, committed
	}
	if fresh {
		q.wm.reset(0, 0)
	} else if err := q.resumeFrom(committed, commit, clock); err != nil {
		return err
	}
	return q.replan(planned, clock)
}

func (q *query) resumeFrom(committed int64, commit *checkpoint.Commit, clock bool) error {
	last, err := q.ckpt.Offsets(committed)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("checkpoint has commits/%d without offsets/%d", committed, committed)
	}
	if err != nil {
		return err
	}
	q.wm.reset(commit.NextWatermarkMs, last.WatermarkMs)
	q.noData = commit.NextWatermarkMs > last.WatermarkMs && q.wantsNoData() || q.always()
	if clock {
		q.now = max(q.now, fromMs(last.TimestampMs))
		q.arrive(ms(q.now))
	}
	for i, s := range q.source {
		if i < len(last.Sources) {
			if err := s.Seek(last.Sources[i]); err != nil {
				return fmt.Errorf("source %d: %w", i, err)
			}
		}
	}
	return nil
}

// replan readies the batch that an earlier run had planned and not finished: it
// runs again with the same offsets.
func (q *query) replan(planned *checkpoint.Offsets, clock bool) error {
	q.planned = nil
	if planned != nil {
		if clock {
			q.now = max(q.now, fromMs(planned.TimestampMs))
			q.arrive(planned.TimestampMs)
		}
		if err := q.retake(planned); err != nil {
			return err
		}
	}
	if clock {
		q.now += resumeAfter
	}
	return nil
}

// start begins a run: a started event, fresh executors without state, and the
// first trigger shortly after.
func (q *query) start() error {
	q.runs++
	q.runID = uuid(q.seed, seed.ForIDs, uint64(q.runs), 1)
	q.lastStart, q.ofRun, q.idleFrom, q.arrived = -1, 0, -1, false
	q.idle.executed()
	q.runStart = q.now
	if err := q.freshExecutors(); err != nil {
		return err
	}
	q.sayStarted()
	r := q.rng(q.next, rngStart)
	q.due = q.now + r.about(600*time.Millisecond, 0.3)
	return nil
}

// stop ends a run: in order, or by a failure.
func (q *query) stop(failure *spark.Failure) error {
	q.sayTerminated(failure)
	return q.vanish()
}

// vanish ends a run without a word.
func (q *query) vanish() error {
	q.runID = ""
	return q.closeExecutors()
}

// act does to the query what a fault says, before its next batch.
func (q *query) act(a *fault.Action) error {
	if q.runID == "" {
		return fmt.Errorf("fault %d for a query that does not run", a.Kind)
	}
	r := q.rng(q.next, rngAct+uint64(a.Kind))
	if a.Kind == fault.Fail || q.caughtInside(a, r) {
		if err := q.planAnyway(); err != nil {
			return err
		}
		q.now += time.Duration((0.2 + 0.7*r.Float64()) * float64(max(q.lastTook, time.Second)))
	}
	if err := q.end(a); err != nil {
		return err
	}
	if a.Final {
		q.ended = true
		return nil
	}
	q.now += max(a.Pause, 0) + r.between(2*time.Second, 6*time.Second)
	if err := q.change(a); err != nil {
		return err
	}
	return q.start()
}

// caughtInside says whether the end comes in the middle of a batch, which then
// runs again: as likely as the query is busy.
func (q *query) caughtInside(a *fault.Action, r *rng) bool {
	switch a.Kind {
	case fault.Restart, fault.Crash, fault.Redeploy, fault.Upgrade, fault.Outage:
	default:
		return false
	}
	busy := 1.0
	if q.every > 0 {
		busy = float64(q.lastTook) / float64(q.every)
	}
	return q.o.Pace == nil && q.ofRun > 0 && q.kind == triggerInterval && r.Float64() < busy
}

// end is how the run ends.
func (q *query) end(a *fault.Action) error {
	switch a.Kind {
	case fault.Crash:
		q.note(message{kind: event.KindUnknown, endsApp: true})
		return q.vanish()
	case fault.Fail:
		f := spark.FailureOf(a.Class, a.Text)
		return q.stop(&f)
	}
	return q.stop(nil)
}

// change is what is different in the next run.
func (q *query) change(a *fault.Action) error {
	if len(a.Conf) > 0 {
		if err := q.reconfigure(a.Conf); err != nil {
			return err
		}
	}
	switch a.Kind {
	case fault.Crash, fault.Redeploy:
		q.newApp()
	case fault.Upgrade:
		q.newApp()
		return q.upgrade()
	case fault.Rewind:
		if err := q.ckpt.Rewind(max(q.next-1-a.Batches, 0)); err != nil {
			return err
		}
		return q.resume(false)
	case fault.NewHistory:
		return q.newHistory()
	}
	return q.repartition()
}

// newApp makes the next run one of an application of its own.
func (q *query) newApp() {
	q.apps++
	q.app = q.index<<16 | q.apps
	q.lost, q.gc = 0, 0
}

// reconfigure adds settings, which hold from the next run on.
func (q *query) reconfigure(conf map[string]string) error {
	given := maps.Clone(q.given)
	if given == nil {
		given = make(map[string]string, len(conf))
	}
	maps.Copy(given, conf)
	q.given = given
	return q.setVersion(q.version)
}

// upgrade makes the query one of the next Spark version, if there is one.
func (q *query) upgrade() error {
	for _, v := range spark.Versions() {
		if q.version.Less(v) && (v.Major != q.version.Major || v.Minor != q.version.Minor) {
			return q.setVersion(v)
		}
	}
	return nil
}

// newHistory loses the checkpoint: another query by its id, reading on from the
// newest offsets.
func (q *query) newHistory() error {
	if err := q.ckpt.Remove(); err != nil {
		return err
	}
	var err error
	if q.ckpt, err = checkpoint.Open(q.fs, q.dir); err != nil {
		return err
	}
	q.ckpt.SetSeed(seed.Mix(q.seed, seed.ForIDs, uint64(q.runs)))
	q.arrive(ms(q.now))
	for _, s := range q.source {
		s.Skip()
	}
	return q.begin()
}

// repartition gives the query another number of shuffle partitions if a fault
// says so. The checkpoint fixes the number, so this happens only with offsets
// lost and the id kept: the query begins again at batch 0 without state.
func (q *query) repartition() error {
	f := q.faults()
	if f.Partitions == 0 || f.Partitions == len(q.place.of) {
		return nil
	}
	if err := q.ckpt.Rewind(-1); err != nil {
		return err
	}
	q.place = newPlacement(f.Partitions, 1) // until the run starts its executors
	q.conf.ShufflePartitions = f.Partitions
	if err := q.newStages(f.Partitions); err != nil {
		return err
	}
	for _, s := range q.source {
		s.Skip()
	}
	q.next, q.planned, q.noData = 0, nil, false
	q.wm.reset(0, 0)
	return nil
}

// What the driver's random numbers for a batch are drawn for.
const (
	rngStart uint64 = iota
	rngTrigger
	rngBatch
	rngLoss
	rngPlace
	rngRival
	rngAct // and up, by kind
)
