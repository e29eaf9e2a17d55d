package rules

import "github.com/stategauge/stategauge/event"

// Replay is Apply for an update of before a restart, which the loaded state of its query
// does not hold yet: it is heard at the time at which it was received, though the clock
// that was loaded stands later.
func (e *Engine) Replay(u *event.Update, out []Verdict) []Verdict {
	now := e.nowMs
	if at := heardAtMs(u); at > 0 {
		e.nowMs = at
	}
	out = e.Apply(u, out)
	e.advance(now)
	return out
}

// heardAtMs is when an update was heard: when its event was received, or when time
// brought it about. 0 where neither is known.
func heardAtMs(u *event.Update) int64 {
	if u.Origin.ReceivedMs <= 0 && u.Event != nil && u.Event.Kind == event.KindTick {
		return u.Event.AtMs
	}
	return u.Origin.ReceivedMs
}

// Listened says that a process was at work at a moment, before a restart and after the
// state that was loaded: silence up to there is silence. It judges nothing. Unix
// milliseconds.
func (e *Engine) Listened(nowMs int64) {
	e.ticked = max(e.ticked, nowMs)
	e.advance(nowMs)
}

// Paused takes a time in which nobody listened out of everybody's silence: that of the
// queries for which of says yes and, where others is set, that of applications and
// senders. Tick does so by itself for what it has seen; this is for loaded state that is
// older than the pause. A time too short to be a pause changes nothing.
func (e *Engine) Paused(fromMs, toMs int64, of func(event.QueryID) bool, others bool) {
	if toMs-fromMs < standstillTicks*e.opts.TickMs {
		return
	}
	if others {
		e.around.pause(fromMs, toMs)
	}
	for id, q := range e.queries {
		if of(id) {
			q.story.pause(fromMs, toMs)
		}
	}
}
