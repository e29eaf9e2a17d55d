package track

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// shared is how many executed batches after a turn the runs of a query still
// count as taking turns.
const shared = 16

// query is all that is kept of one query: about 3 KiB with the default window,
// whatever it sends.
type query struct {
	ref     event.QueryRef
	state   event.State
	cur     *run
	earlier []*run // newest first
	dropped ghosts // runs that were followed by too many others to be kept

	firstMs, lastMs int64 // oldest and newest event, by the sender's clock
	filedMs         int64 // firstMs as the table of names has it
	seenMs          int64 // our clock at the newest sign of life
	aliveMs         int64 // the same, put off by pauses of our own
	handed          bool  // others may have read events since the newest batch
	heartbeatMs     int64
	triggerActive   bool
	lifeMs          int64 // sender's time of the newest sign of life in this run

	runs, batches, duplicates, late, missed, reexecuted, idle int64
	lostSeen                                                  int64 // what its sender had lost at the newest batch

	turnRun  event.RunID // run that executed the newest trigger
	turnMs   int64       // start of that trigger
	turns    uint8       // how often an older run came back
	turnLeft uint8

	gaps     spacing
	beats    beats
	began    starts
	strikes  uint8   // overdue silences in a row
	usualMs  float64 // last known median distance between events
	shorts   uint8   // runs in a row that ended cleanly well before the next began
	manyOf   bool    // one of those had more than one batch
	inferred trigger
	told     trigger
	config   trigger
}

type trigger struct {
	kind       event.TriggerKind
	intervalMs float64
}

var noTrigger = trigger{intervalMs: math.NaN()}

func newQuery(ref event.QueryRef, nowMs int64) *query {
	return &query{
		ref: ref, seenMs: nowMs, aliveMs: nowMs, firstMs: event.Absent, lastMs: event.Absent, heartbeatMs: event.Absent, lifeMs: event.Absent,
		turnMs: event.Absent, usualMs: math.NaN(), inferred: noTrigger, told: noTrigger, config: noTrigger,
	}
}

// earlierRun finds one of the runs before the current one.
func (q *query) earlierRun(id event.RunID) *run {
	for _, r := range q.earlier {
		if r.id == id {
			return r
		}
	}
	return nil
}

// ranBefore reports whether an earlier run executed the batch.
func (q *query) ranBefore(batch int64) bool {
	if batch == event.Absent {
		return false
	}
	for _, r := range q.earlier {
		if r.win.has(batch) {
			return true
		}
	}
	return false
}

// gone reports whether the current run ended or fell silent.
func (q *query) gone() bool { return q.cur.ended || q.state == event.StateOverdue }

// begin starts a run. The run before moves to the earlier ones, whose oldest
// gives its memory to the new one.
func (q *query) begin(id event.RunID, at int64, c *Config) *run {
	r := &run{win: window{}}
	previous := int64(event.Absent)
	if old := q.cur; old != nil {
		q.judgeShort(old, at)
		previous = old.newestBatch()
		r = q.retireRun(old, c)
	}
	if r.win.bits == nil {
		r.win = newWindow(c.WindowBatches)
	}
	r.reset(id, at, previous)
	r.handed = q.handed
	q.cur = r
	q.runs++
	q.beats.reset()
	q.gaps.reset()
	q.lifeMs, q.turns = event.Absent, 0
	if at != event.Absent {
		q.began.add(at)
	}
	return r
}

// newestBatch returns the newest batch id that the run or those before executed.
func (r *run) newestBatch() int64 {
	if r.win.newest == event.Absent {
		return r.previous
	}
	return r.win.newest
}

// retireRun puts old in front of the earlier runs and returns a run to reuse.
func (q *query) retireRun(old *run, c *Config) *run {
	spare := &run{}
	if len(q.earlier) >= c.RunsKept {
		spare = q.earlier[len(q.earlier)-1]
		q.dropped.add(spare.id)
		q.earlier = q.earlier[:len(q.earlier)-1]
	}
	q.earlier = append(q.earlier, nil)
	copy(q.earlier[1:], q.earlier)
	q.earlier[0] = old
	return spare
}

// resume makes an earlier run the current one again: the run that took its place
// is gone, and it goes on.
func (q *query) resume(r *run) {
	for i, e := range q.earlier {
		if e == r {
			q.earlier[i], q.cur = q.cur, r
		}
	}
	q.beats.reset()
	q.gaps.reset()
	q.lifeMs = event.Absent
}

// judgeShort looks at a run when the next begins: a job of short runs ends each
// cleanly, never idles, and pauses before the next.
func (q *query) judgeShort(r *run, next int64) {
	end := max(r.endMs, r.newestMs)
	if !r.ended || r.failed || r.idleSeen || next == event.Absent || end == event.Absent {
		if r.idleSeen {
			q.shorts = 0
		}
		return
	}
	if pause, span := next-end, end-r.startMs; pause < max(minute, span/10) || r.executed == 0 {
		q.shorts = 0
		return
	}
	q.shorts = min(q.shorts+1, 100)
	q.manyOf = q.manyOf || r.executed > 1
}

// turn notes which run executed the newest trigger, and counts when that is an
// older one again.
func (q *query) turn(id event.RunID, at int64, fresh bool) {
	if at == event.Absent || at <= q.turnMs {
		return
	}
	if id != q.turnRun && q.turnMs != event.Absent && !fresh {
		q.turns = min(q.turns+1, 100)
		q.turnLeft = shared
	}
	q.turnRun, q.turnMs = id, at
}

func (q *query) sharedRuns() bool { return q.turns >= 2 && q.turnLeft > 0 }

// trigger returns what is believed of the query's trigger: the configuration
// before the query's own word before inference.
func (q *query) trigger() (event.TriggerKind, float64, event.IntervalOrigin) {
	switch {
	case q.config.kind != event.TriggerUnknown:
		return q.config.with(event.IntervalConfig)
	case q.told.kind != event.TriggerUnknown:
		return q.told.with(event.IntervalListener)
	case q.shorts >= 2 && !q.cur.idleSeen && q.manyOf:
		return event.TriggerAvailableNow, math.NaN(), event.IntervalNone
	case q.shorts >= 2 && !q.cur.idleSeen:
		return event.TriggerOnce, math.NaN(), event.IntervalNone
	}
	return q.inferred.with(event.IntervalInferred)
}

func (t trigger) with(from event.IntervalOrigin) (event.TriggerKind, float64, event.IntervalOrigin) {
	if !(t.intervalMs > 0) {
		return t.kind, math.NaN(), event.IntervalNone
	}
	return t.kind, t.intervalMs, from
}

// shortRuns reports whether the query is, or may still turn out to be, a job of
// short runs, whose clean end is no farewell.
func (q *query) shortRuns() bool {
	switch kind, _, _ := q.trigger(); kind {
	case event.TriggerAvailableNow, event.TriggerOnce:
		return true
	case event.TriggerInterval, event.TriggerRealTime, event.TriggerContinuous:
		return false
	}
	return !q.cur.idleSeen && q.config.kind == event.TriggerUnknown && q.told.kind == event.TriggerUnknown
}

// overdueAfter returns the silence in milliseconds after which the query is
// overdue; infinite where silence says nothing.
func (q *query) overdueAfter(c *Config) float64 {
	kind, interval, _ := q.trigger()
	short := kind == event.TriggerAvailableNow || kind == event.TriggerOnce
	if q.cur.ended {
		if d := q.began.usual(); short && !q.cur.failed && d == d {
			return max(c.RunFactor*d, float64(c.OverdueFloorMs))
		}
		return math.Inf(1)
	}
	if kind == event.TriggerContinuous {
		return math.Inf(1)
	}
	return q.silenceLimit(c, interval)
}

func (q *query) silenceLimit(c *Config, interval float64) float64 {
	limit := float64(c.OverdueFloorMs)
	for _, usual := range [...]float64{q.usual(), q.beats.medianDuration(), interval} {
		if usual == usual {
			limit = max(limit, c.OverdueFactor*usual)
		}
	}
	limit = max(limit, 2*q.gaps.longest())
	if q.cur.executed == 0 || q.gaps.n < 3 && q.usualMs != q.usualMs {
		limit = max(limit, float64(c.FirstBatchMs))
	}
	return limit
}

// usual returns the usual distance between events in milliseconds: that of this
// run, or that of the runs before while it is young. NaN if unknown.
func (q *query) usual() float64 {
	if q.gaps.n < 3 {
		return q.usualMs
	}
	return q.gaps.median()
}

// live notes a sign of life at a time of the sender's.
func (q *query) live(at, nowMs int64) {
	q.seenMs, q.aliveMs = nowMs, nowMs
	q.span(at)
	if at == event.Absent {
		return
	}
	if q.lifeMs != event.Absent {
		q.space(at - q.lifeMs)
	}
	q.lifeMs = max(q.lifeMs, at)
}

// space learns a distance between events. A silence that was found overdue is no
// usual one, unless little is known yet or it happens again and again: then the
// rhythm has changed.
func (q *query) space(ms int64) {
	if q.state != event.StateOverdue {
		q.strikes = 0
	} else if q.strikes = min(q.strikes+1, 100); q.gaps.n >= 8 && q.strikes < 3 {
		return
	}
	q.gaps.add(ms)
	if q.gaps.n >= 3 {
		q.usualMs = q.gaps.median()
	}
}

func (q *query) span(at int64) {
	if at == event.Absent {
		return
	}
	if q.firstMs == event.Absent || at < q.firstMs {
		q.firstMs = at
	}
	q.lastMs = max(q.lastMs, at)
}

// status describes the query.
func (q *query) status(c *Config) QueryStatus {
	kind, interval, from := q.trigger()
	after := q.overdueAfter(c)
	if math.IsInf(after, 1) {
		after = math.NaN()
	}
	return QueryStatus{
		Query: q.ref, State: q.state, Run: q.cur.id, Runs: q.runs, Batches: q.batches, LastBatch: q.cur.win.newest,
		FirstEventMs: q.firstMs, LastEventMs: q.lastMs, LastSeenMs: q.seenMs, HeartbeatMs: q.heartbeatMs,
		TriggerActive: q.triggerActive, Trigger: kind, IntervalMs: interval, IntervalFrom: from,
		UsualMs: q.usual(), OverdueAfterMs: after,
		Duplicates: q.duplicates, Late: q.late, Missed: q.missed, Reexecuted: q.reexecuted, Idle: q.idle,
		StartedSeen: q.cur.started, SharedRuns: q.sharedRuns(), Failure: q.cur.failure,
	}
}
