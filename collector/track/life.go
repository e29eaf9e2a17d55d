package track

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// started judges the first event of a run.
func (t *Tracker) started(q *query, e *event.Event, at, nowMs int64, u *event.Update) {
	if q.nameless(e.Run, at) && (q.cur.ended || q.cur.executed > 0) {
		q.begin("", at, &t.c)
		u.NewRun, u.SegmentStart = true, true
	}
	r, where := t.place(q, e.Run, at, false)
	if where != placeCurrent {
		where.mark(u)
	}
	switch {
	case where == placeLate && (r == nil || !r.started):
		u.Outcome = event.OutcomeLate
	case r.started:
		u.Outcome = event.OutcomeDuplicate
		return
	default:
		u.Outcome = event.OutcomeStarted
	}
	if r == nil {
		return
	}
	r.started = true
	r.touch(at)
	if where == placeLate {
		return
	}
	q.live(at, nowMs)
	if r.executed == 0 && !r.idleSeen && !r.ended {
		q.state = event.StateRunning
	}
}

// idle judges an idle event.
func (t *Tracker) idle(q *query, e *event.Event, at, nowMs int64, u *event.Update) {
	r, where := t.place(q, e.Run, at, false)
	where.mark(u)
	if where == placeLate {
		u.Outcome = event.OutcomeLate
		return
	}
	u.Outcome = r.idleOutcome(at, event.OutcomeIdle)
	if u.Outcome == event.OutcomeIdle {
		t.rest(q, r, at, nowMs)
	}
	q.settle(nowMs, &t.c, u)
}

// terminated judges the end of a run.
func (t *Tracker) terminated(q *query, e *event.Event, at, nowMs int64, u *event.Update) {
	if q.cur != nil && at == event.Absent && q.cur.id != e.Run && !q.gone() && q.earlierRun(e.Run) == nil {
		// Undated, of a run that we never saw, while another one is at work: the
		// end of an earlier run.
		u.Outcome = event.OutcomeLate
		return
	}
	r, where := t.place(q, e.Run, at, false)
	where.mark(u)
	if r == nil {
		u.Outcome = event.OutcomeLate
		return
	}
	if r.ended {
		u.Outcome = event.OutcomeDuplicate
		return
	}
	r.end(e.Failure)
	if where == placeLate {
		// A second driver that died before its first batch, while the first one works
		// on: a failure to tell of, which does not change what the query is doing.
		u.Outcome = event.OutcomeLate
		if r.failed && r.executed == 0 {
			u.Outcome = event.OutcomeFailed
		}
		return
	}
	r.touch(at)
	q.live(at, nowMs)
	q.state, u.Outcome = event.StateTerminated, event.OutcomeTerminated
	if r.failed {
		q.state, u.Outcome = event.StateFailed, event.OutcomeFailed
	}
	q.settle(nowMs, &t.c, u)
}

func (r *run) end(why *event.Failure) {
	r.ended, r.failed = true, why != nil
	if why != nil {
		kept := *why
		r.failure = &kept
	}
}

// heartbeat takes over what a sender says about its queries: one that polls is
// alive; one with a trigger under way may still hang, so its silence goes on
// counting.
func (t *Tracker) heartbeat(e *event.Event, nowMs int64, out []event.Update) []event.Update {
	if e.Envelope != nil {
		for i := range e.Envelope.Active {
			out = t.active(&e.Envelope.Active[i], nowMs, out)
		}
	}
	return append(out, blank(e, event.OutcomeHeartbeat))
}

// Follows reports whether what a heartbeat says of a query is about the run that the
// Tracker has for the present one. Nothing else of it counts.
func (t *Tracker) Follows(a *event.ActiveQuery) bool {
	q := t.byID[a.ID]
	return q != nil && (a.Run == "" || a.Run == q.cur.id)
}

func (t *Tracker) active(a *event.ActiveQuery, nowMs int64, out []event.Update) []event.Update {
	q := t.byID[a.ID]
	if !t.Follows(a) {
		return out
	}
	q.heartbeatMs, q.triggerActive = nowMs, a.TriggerActive
	if a.TriggerActive || q.cur.ended {
		return out
	}
	q.seenMs, q.aliveMs = nowMs, nowMs
	if q.state == event.StateOverdue {
		out = t.change(q, event.StateIdle, nowMs, out)
	}
	return out
}

// Tick lets time pass: queries fall overdue, are retired, and holes in their
// batch ids become missed batches. It is to be called every few seconds; a
// distance of Config.TickGapMs or more means that we stood still ourselves.
func (t *Tracker) Tick(nowMs int64, out []event.Update) []event.Update {
	t.stoodStill(t.order, t.tickMs, nowMs)
	t.tickMs = nowMs
	// Retiring a query takes it out of the order, so go through it by hand.
	for i := 0; i < len(t.order); {
		q := t.order[i]
		out = t.tickQuery(q, nowMs, out)
		if i < len(t.order) && t.order[i] == q {
			i++
		}
	}
	return out
}

func (t *Tracker) tickQuery(q *query, nowMs int64, out []event.Update) []event.Update {
	if q.cur.holeMs != event.Absent {
		out = t.settleQuietly(q, nowMs, out)
	}
	silence := nowMs - q.aliveMs
	if silence < min(t.c.OverdueFloorMs, t.c.RetireEndedMs) && q.state != event.StateTerminated && q.state != event.StateFailed {
		return out
	}
	overdue := q.state == event.StateOverdue || float64(silence) > q.overdueAfter(&t.c)
	if overdue || q.cur.ended {
		if next := t.successor(q); next != "" {
			return t.retire(q, next, nowMs, out)
		}
	}
	if overdue && q.state != event.StateOverdue {
		out = t.change(q, event.StateOverdue, nowMs, out)
	}
	if silence > q.retireAfter(&t.c) {
		return t.retire(q, "", nowMs, out)
	}
	return out
}

// settleQuietly reports missed batches without an event of the query.
func (t *Tracker) settleQuietly(q *query, nowMs int64, out []event.Update) []event.Update {
	u := t.tickUpdate(q, nowMs)
	if q.settle(nowMs, &t.c, &u); u.Missed == 0 {
		return out
	}
	t.finish(q, &u)
	return append(out, u)
}

// retireAfter returns the silence in milliseconds after which a query is let go.
func (q *query) retireAfter(c *Config) int64 {
	switch {
	case q.state == event.StateFailed || q.state == event.StateOverdue:
		return c.RetireTroubledMs
	case q.state != event.StateTerminated:
		return c.RetireSilentMs
	case !q.shortRuns():
		return c.RetireEndedMs
	}
	keep := max(c.RetireEndedMs, c.RetireSilentMs)
	if d := q.began.usual(); d == d {
		keep = max(keep, int64(math.Min(3*d, float64(c.RetireTroubledMs))))
	}
	return keep
}

// Forget drops a query because somebody asked for it. An unknown query changes
// nothing. Where another process takes it over, see Release.
func (t *Tracker) Forget(id event.QueryID, nowMs int64, out []event.Update) []event.Update {
	if q := t.byID[id]; q != nil {
		out = t.retire(q, "", nowMs, out)
	}
	return out
}

// change moves a query into a state without an event of its own.
func (t *Tracker) change(q *query, to event.State, nowMs int64, out []event.Update) []event.Update {
	u := t.tickUpdate(q, nowMs)
	q.state = to
	t.finish(q, &u)
	return append(out, u)
}

func (t *Tracker) tickUpdate(q *query, nowMs int64) event.Update {
	e := &event.Event{Kind: event.KindTick, Query: q.ref, Run: q.cur.id, AtMs: nowMs}
	return event.Update{Event: e, Outcome: event.OutcomeStateChange, Was: q.state}
}

// retire says good-bye to a query and frees what it took.
func (t *Tracker) retire(q *query, successor event.QueryID, nowMs int64, out []event.Update) []event.Update {
	out = t.change(q, event.StateRetired, nowMs, out)
	out[len(out)-1].Successor = successor
	t.c.Names.take(q.ref)
	delete(t.byID, q.ref.ID)
	for i := range t.order {
		if t.order[i] == q {
			t.order = append(t.order[:i], t.order[i+1:]...)
			break
		}
	}
	return out
}
