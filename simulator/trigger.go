package simulator

import (
	"time"

	"github.com/stategauge/stategauge/simulator/fault"
)

// pollInterval is how often the default trigger looks for new data.
const pollInterval = 10 * time.Millisecond

// nextTrigger returns when the trigger after the one at start falls due: the
// next point of the interval's grid (which counts from 1970), or at once where
// that has passed by the time the trigger ended.
func nextTrigger(start, end, interval time.Duration) time.Duration {
	if interval <= 0 {
		return end
	}
	return max(end, start-start%interval+interval)
}

// idleStep is how long the default trigger may be skipped over while nothing
// arrives: every poll at first, wider steps in a long silence, where the moment
// of the next batch need not be exact to the poll.
func idleStep(idle time.Duration) time.Duration {
	switch {
	case idle < time.Second:
		return pollInterval
	case idle < time.Minute:
		return 10 * pollInterval
	}
	return 100 * pollInterval
}

// ms is a virtual time or a duration in whole milliseconds, as Spark's clocks
// have it.
func ms(d time.Duration) int64 { return int64(d / time.Millisecond) }

func fromMs(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// longestIdle is after how long a silence a query is given up: its sources will
// never send again.
const longestIdle = 30 * 24 * time.Hour

// trigger plays the next thing that happens to the query: a start, what faults
// do to it, a batch, or a trigger that finds nothing to do.
func (q *query) trigger() error {
	if q.o.Pace != nil {
		return q.pacedTrigger()
	}
	q.now = max(q.now, q.due)
	if q.runID == "" {
		return q.start()
	}
	if err := q.preload(); err != nil {
		return err
	}
	f := q.faults()
	q.mute = f.SenderLost
	if f.DriverFroze && !q.thaw(&f) {
		return nil
	}
	if acted, err := q.actOn(&f); acted || err != nil {
		return err
	}
	return q.decide(&f)
}

// actOn does what faults do to the query before this batch, once.
func (q *query) actOn(f *fault.State) (bool, error) {
	if q.turn <= q.acted || len(f.Before) == 0 {
		return false, nil
	}
	q.acted = q.turn
	for i := range f.Before {
		if q.ended {
			break
		}
		if err := q.act(&f.Before[i]); err != nil {
			return true, err
		}
	}
	return true, nil
}

// thaw lets the clock of a frozen driver jump to where it goes on; without a
// time it never does, and the query has said its last word.
func (q *query) thaw(f *fault.State) bool {
	if f.Hang <= 0 {
		q.note(message{endsApp: true})
		q.ended = true
		return false
	}
	q.now += f.Hang
	f.Hang, q.frozen = 0, true
	return true
}

// decide looks for a batch as Spark does: one with new rows, one without for the
// sake of the watermark or timeouts, or none.
func (q *query) decide(f *fault.State) error {
	q.setDevices(f)
	if q.planned != nil {
		return q.run(f, notRun, notRun)
	}
	if !q.arrived {
		q.arrive(ms(q.now) + q.readAheadMs())
		q.arrived = q.kind == triggerAvailableNow
	}
	available, took := q.poll()
	if available == 0 && !q.due0() && !(q.noData && q.conf.NoDataBatches) {
		return q.nothing(f, took)
	}
	wal, err := q.planBatch()
	if err != nil {
		return err
	}
	return q.run(f, took, wal)
}

// due0 reports whether the first batch of a checkpoint is due: it runs without
// rows too, where the source has an offset to begin at.
func (q *query) due0() bool { return q.next == 0 && q.sc.Query.Sources[0].Kind != "files" }

// readAheadMs is how much of what is yet to come a batch reads: in real-time mode
// all that arrives while it runs.
func (q *query) readAheadMs() int64 {
	if q.kind == triggerRealTime {
		return ms(q.every)
	}
	return 0
}

// nothing ends a trigger that found nothing to do.
func (q *query) nothing(f *fault.State, took time.Duration) error {
	if q.kind == triggerAvailableNow {
		return q.finishRun()
	}
	if q.idleFrom < 0 {
		q.idleFrom = q.now
	}
	if q.now-q.idleFrom > longestIdle {
		q.ended = true
		return nil
	}
	if q.idle.due(ms(q.now)) {
		q.sayIdle(took)
	}
	q.spendStopped(f)
	q.lastStart = ms(q.now)
	if every := q.interval(); every > 0 {
		q.due = nextTrigger(q.now, q.now+took, every)
	} else {
		q.due = q.now + idleStep(q.now-q.idleFrom)
	}
	return nil
}

// spendStopped counts the time in which a fault stops all input as batches that
// would have run, or the fault would never end.
func (q *query) spendStopped(f *fault.State) {
	for i := range f.Input {
		if !f.Input[i].StopInput {
			return
		}
	}
	every := max(q.interval(), 10*time.Second)
	before, after := (q.now-q.idleFrom)/every, (q.now-q.idleFrom+max(q.interval(), idleStep(q.now-q.idleFrom)))/every
	if after > before {
		q.turn++
		q.spent++
	}
}

// finishRun ends an available-now run that has read all there was, and sets the
// next one.
func (q *query) finishRun() error {
	if err := q.stop(nil); err != nil {
		return err
	}
	q.due = max(q.runStart+q.every, q.now+time.Second)
	return nil
}
