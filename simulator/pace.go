package simulator

import (
	"math"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/operator"
	"github.com/stategauge/stategauge/simulator/workload"
)

// paceStep is how finely a source is led to the number of rows that a pace asks
// for.
const paceStep = 50 * time.Millisecond

// maxPaceSteps bounds the search: a day of arrivals for one batch.
const maxPaceSteps = 24 * 3600 * 20

// pacedTrigger plays the next batch as Options.Pace says: at its time, with its
// rows.
func (q *query) pacedTrigger() error {
	p, ok := q.o.Pace(q.next)
	if !ok {
		q.ended = true
		return nil
	}
	if q.runID == "" || p.NewRun && q.ofRun > 0 {
		return q.pacedStart(&p)
	}
	q.paced = &p
	q.now = fromMs(p.StartMs)
	f := q.faults()
	f.LoseExecutors += p.LoseExecutors
	q.setDevices(&f)
	if q.planned != nil {
		return q.run(&f, notRun, notRun)
	}
	q.paceSources(&f, p.Rows)
	_, took := q.poll()
	wal, err := q.planBatch()
	if err != nil {
		return err
	}
	return q.run(&f, took, wal)
}

// pacedStart begins a run shortly before its first batch, ending the one before
// in order.
func (q *query) pacedStart(p *Pace) error {
	if q.runID != "" {
		if err := q.pacedEnd(p); err != nil {
			return err
		}
	}
	q.now = max(q.now, fromMs(p.StartMs)-700*time.Millisecond)
	return q.start()
}

// pacedEnd ends a run, inside the next batch where that was planned.
func (q *query) pacedEnd(p *Pace) error {
	if p.Planned {
		f := q.faults()
		q.paceSources(&f, p.Rows)
		if err := q.planAnyway(); err != nil {
			return err
		}
	}
	return q.stop(nil)
}

// paceSources lets rows arrive until each source has as many as the batch read.
// A source's own clock may run ahead of the query's or behind it by that.
func (q *query) paceSources(f *fault.State, rows []int64) {
	for i, s := range q.source {
		var want int64
		if i < len(rows) {
			want = rows[i]
		}
		for range maxPaceSteps {
			if s.Poll().Available >= want {
				break
			}
			q.clocks[i] += paceStep
			s.Advance(ms(q.clocks[i]), q.conditions(f, i))
		}
	}
}

func (q *query) conditions(f *fault.State, i int) workload.Conditions {
	if i < len(f.Input) {
		return f.Input[i]
	}
	return workload.Normal()
}

// pace stretches the phases of a batch to the duration that it really had, and
// the operators' times with them, cutting each to milliseconds as before.
func (q *query) pace(p *phases) {
	if q.paced == nil {
		return
	}
	want := fromMs(q.paced.DurationMs)
	by := float64(want) / float64(max(p.total(), 1))
	for _, d := range p.all() {
		if *d > 0 {
			*d = time.Duration(float64(*d) * by)
		}
	}
	p.rest = 0
	p.rest = max(0, want-p.total())
	for _, s := range q.stages {
		s.stretch(by)
	}
	q.paced = nil
}

// stretch multiplies all times that the tasks of a stage report.
func (s *stage) stretch(by float64) {
	for n := range s.evaluation + 1 {
		for p := range s.evaluations[n] {
			stretch(&s.evaluations[n][p], by)
		}
	}
}

func stretch(r *operator.Result, by float64) {
	r.Update, r.Removal = scaleTime(r.Update, by), scaleTime(r.Removal, by)
	r.Commit, r.Load = scaleTime(r.Commit, by), scaleTime(r.Load, by)
	for _, id := range taskTimes {
		r.Custom[id] = math.Floor(r.Custom[id] * by)
	}
}

// taskTimes are the figures of customMetrics that are times of this batch.
var taskTimes = func() (out []event.MetricID) {
	for _, m := range event.Catalog() {
		if m.Scope == event.ScopeOperator && m.Unit == event.UnitSeconds && isCustom(m.ID) {
			out = append(out, m.ID)
		}
	}
	return out
}()

func isCustom(id event.MetricID) bool {
	for _, own := range ownFigures {
		if id == own {
			return false
		}
	}
	return true
}
