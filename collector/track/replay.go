package track

import "github.com/stategauge/stategauge/event"

// Replay brings the Tracker forward by an update that a Tracker made before and
// that was kept. From a saved state, the updates that followed it lead, in their
// order, to the state there was; what they bring about is appended to out and is
// what it was then. Nothing else may be applied in between.
//
// Events are judged at the time they were received, Origin.ReceivedMs, which must be
// the time that Apply was given. What time brought about is taken over as it stands,
// since nobody kept the ticks that changed nothing.
func (t *Tracker) Replay(u *event.Update, out []event.Update) []event.Update {
	if u.Event.Kind == event.KindTick {
		t.listened(u.Event.AtMs)
		return t.repeat(u, out)
	}
	t.listened(u.Origin.ReceivedMs)
	return t.Apply(u.Event, u.Origin.ReceivedMs, out)
}

// listened notes that the process was at work at nowMs, so that the next tick does
// not take the time before for a pause.
func (t *Tracker) listened(nowMs int64) {
	if t.tickMs != event.Absent {
		t.tickMs = max(t.tickMs, nowMs)
	}
}

// Listened says that a process was at work at nowMs, before a restart and after the state
// that was restored: silence up to there is silence. Unix milliseconds.
func (t *Tracker) Listened(nowMs int64) { t.tickMs = max(t.tickMs, nowMs) }

// Paused takes a time in which nobody listened out of every query's silence, as Tick
// does: for restored state that is older than the pause.
func (t *Tracker) Paused(fromMs, toMs int64) { t.stoodStill(t.order, fromMs, toMs) }

// repeat changes a query's state as an update without an event of its own did.
func (t *Tracker) repeat(u *event.Update, out []event.Update) []event.Update {
	q, nowMs := t.byID[u.Event.Query.ID], u.Event.AtMs
	switch {
	case q == nil:
		return out
	case u.State == event.StateRetired && u.Moved:
		return t.Release(func(id event.QueryID) bool { return id == q.ref.ID }, nowMs, out)
	case u.State == event.StateRetired:
		return t.retire(q, u.Successor, nowMs, out)
	case u.Missed > 0:
		return t.settleQuietly(q, nowMs, out)
	case u.State == q.state:
		return out
	}
	return t.change(q, u.State, nowMs, out)
}
