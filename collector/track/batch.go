package track

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// progress judges a progress event: an executed batch or the copy of an idle query.
func (t *Tracker) progress(q *query, e *event.Event, at, nowMs, lost int64, u *event.Update) {
	b := e.Batch
	if b.Executed && b.ID != event.Absent && q.nameless(e.Run, at) && (q.cur.ended || q.cur.win.has(b.ID)) {
		q.begin("", at, &t.c)
		u.NewRun = true
	}
	r, where := t.place(q, e.Run, at, b.Executed)
	if where != placeCurrent {
		where.mark(u)
	}
	switch {
	case where == placeLate:
		u.Outcome = t.lateBatch(q, r, e, at)
	case !b.Executed:
		t.idleCopy(q, r, at, nowMs, u)
	default:
		t.executed(q, r, b, at, nowMs, lost > q.lostSeen, u)
	}
	if e.Envelope != nil {
		q.lostSeen = lost
	}
}

// lateBatch judges progress of a run that another one has followed. It is told
// from a repeat as far as possible, and never counted.
func (t *Tracker) lateBatch(q *query, r *run, e *event.Event, at int64) event.Outcome {
	if !e.Batch.Executed {
		return event.OutcomeLate
	}
	q.turn(e.Run, at, false)
	if r != nil && r.judge(e.Batch.ID, at, at, false, &t.c) == seen {
		return event.OutcomeDuplicate
	}
	return t.tooOld(q, e.Run, e.Batch.ID)
}

// tooOld asks the filter about an execution that the windows cannot judge.
func (t *Tracker) tooOld(q *query, id event.RunID, batch int64) event.Outcome {
	if t.filter == nil || batch == event.Absent {
		return event.OutcomeLate
	}
	k := t.keyOf(q, id, batch)
	if t.filter.Has(k) {
		return event.OutcomeDuplicate
	}
	t.filter.Add(k)
	return event.OutcomeLate
}

// keyOf returns a key that is valid until the next call.
func (t *Tracker) keyOf(q *query, id event.RunID, batch int64) *Key {
	t.key, t.scratch = keyOf(t.scratch, q.ref.ID, id, batch)
	return &t.key
}

// idleCopy takes the progress that an idle query repeats as a sign of life only.
func (t *Tracker) idleCopy(q *query, r *run, at, nowMs int64, u *event.Update) {
	u.Outcome = r.idleOutcome(at, event.OutcomeIdleCopy)
	if u.Outcome == event.OutcomeIdleCopy {
		t.rest(q, r, at, nowMs)
	}
	q.settle(nowMs, &t.c, u)
}

// idleOutcome tells an idle event from a repeat; undated ones cannot be told.
func (r *run) idleOutcome(at int64, fine event.Outcome) event.Outcome {
	if at == event.Absent {
		return fine
	}
	switch r.idles.note(at, idleStamps) {
	case seen:
		return event.OutcomeDuplicate
	case tooOld:
		return event.OutcomeLate
	}
	return fine
}

// rest notes that the query polled without finding work.
func (t *Tracker) rest(q *query, r *run, at, nowMs int64) {
	r.idleSeen = true
	q.idle++
	// An idle event that was overtaken by a batch says nothing about now.
	current := at == event.Absent || at >= r.newestMs
	r.touch(at)
	q.live(at, nowMs)
	if current && !r.ended {
		q.state = event.StateIdle
	}
}

// executed counts a batch that ran, unless it was counted before.
func (t *Tracker) executed(q *query, r *run, b *event.Batch, at, nowMs int64, senderLost bool, u *event.Update) {
	newest, first := r.newer(b.ID, at), r.executed == 0
	known := r.win.newest
	switch r.judge(b.ID, at, nowMs, senderLost, &t.c) {
	case seen:
		u.Outcome = event.OutcomeDuplicate
		return
	case tooOld:
		u.Outcome = t.tooOld(q, r.id, b.ID)
		return
	case absurd:
		u.Outcome = event.OutcomeUnjudgeable
		return
	}
	if newest {
		q.handed = false
	}
	t.remember(q, r, b.ID)
	u.Outcome, u.OutOfOrder = event.OutcomeExecuted, !newest
	u.Reexecuted = q.ranBefore(b.ID)
	if first {
		u.SegmentStart = true
		u.Rewound = b.ID != event.Absent && r.previous != event.Absent && b.ID <= r.previous-2
	}
	t.count(q, r, u)
	q.turn(r.id, at, first)
	if newest {
		q.learn(b, at, known)
	}
	r.touch(at)
	t.run(q, r, b, at, nowMs)
	q.settle(nowMs, &t.c, u)
}

func (t *Tracker) remember(q *query, r *run, batch int64) {
	if t.filter == nil || batch == event.Absent {
		return
	}
	t.filter.Add(t.keyOf(q, r.id, batch))
}

func (t *Tracker) count(q *query, r *run, u *event.Update) {
	r.executed++
	q.batches++
	if u.Reexecuted {
		q.reexecuted++
	}
	if q.turnLeft > 0 {
		q.turnLeft--
	}
}

// run notes that the query worked. Progress may overtake the end of its run;
// then it is counted and the run stays ended.
func (t *Tracker) run(q *query, r *run, b *event.Batch, at, nowMs int64) {
	if end := b.EndMs(); at != event.Absent && end != event.Absent && end-at < 30*day {
		r.endMs = max(r.endMs, end)
		at = end
	}
	q.live(at, nowMs)
	if !r.ended {
		q.state = event.StateRunning
	}
}

// settle reports holes that are old enough as missed batches.
func (q *query) settle(nowMs int64, c *Config, u *event.Update) {
	n, why := q.cur.settle(nowMs, c)
	u.Missed, u.MissedReason = int(n), why
}

// learn takes the newest batch of a run into what is inferred about its trigger.
// newest is the batch id before it.
func (q *query) learn(b *event.Batch, at, newest int64) {
	if b.Trigger != event.TriggerUnknown {
		q.told = trigger{b.Trigger, toldInterval(b)}
	}
	dur, _ := b.DurationMs()
	if at == event.Absent || !(dur >= 0) || dur > math.MaxInt32 {
		return
	}
	x := beat{startMs: at, durMs: int32(dur)}
	if q.beats.n > 0 && newest != event.Absent && b.ID == newest+1 {
		x.flags |= adjacent
	}
	if last := q.beats.last(); last != nil && afterPolling(b, at-last.startMs) {
		x.flags |= polled
	}
	if len(b.Percentiles) > 0 || explained(b) < dur/2 {
		x.flags |= hollow
	}
	q.beats.add(x)
	// The picture changes slowly: look at each of a run's first batches and at
	// every eighth afterwards.
	if q.beats.n < memory || q.beats.next%8 == 0 {
		q.infer()
	}
}

func (q *query) infer() {
	kind, ms := q.beats.infer(q.inferred.intervalMs)
	if kind != event.TriggerUnknown {
		q.inferred = trigger{kind, ms}
	}
}

func toldInterval(b *event.Batch) float64 {
	if b.Values.Has(event.TriggerIntervalMs) {
		return b.Values[event.TriggerIntervalMs]
	}
	return b.Values[event.TriggerBatchDurationMs]
}

// afterPolling reports whether the rate of b says that the trigger before it
// began a moment ago although the batch before it began sinceMs ago: Spark
// divides rows by the distance to the previous trigger, idle ones included.
func afterPolling(b *event.Batch, sinceMs int64) bool {
	rows, rate := b.Values[event.NumInputRows], b.Values[event.InputRowsPerSecond]
	if !(rows > 0) || !(rate > 0) {
		return false
	}
	gap := rows / rate * 1000
	return gap < polledMs && gap < float64(sinceMs)/2
}

// explained returns how much of a batch its phases explain, milliseconds.
func explained(b *event.Batch) float64 {
	sum := 0.0
	for id := event.FirstPhase; id <= event.LastPhase; id++ {
		if id != event.DurationTriggerExecution && b.Values.Has(id) {
			sum += b.Values[id]
		}
	}
	if sum == 0 {
		return math.Inf(1)
	}
	return sum
}
