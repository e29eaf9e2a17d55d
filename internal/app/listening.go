package app

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
)

const (
	// pauseFrom is the shortest time without a tick that is noted. Trackers and rules
	// decide themselves from which length on they take one for a pause.
	pauseFrom = time.Minute
	// pausesKept is how many pauses are remembered, and pauseKept how long: no query is
	// silent for longer before it is let go.
	pausesKept = 64
	pauseKept  = 8 * 24 * time.Hour
)

// listening is when the daemon was at work. Silence is measured by it, over restarts
// too: state that is saved may be much older than the crash, and the time between is not
// to be taken for a pause; a pause that came after it was saved is not to be taken for
// silence. It belongs to the first shard's goroutine.
type listening struct {
	clockMs int64 // the newest tick, 0 before the first
	pauses  []pause
}

// pause is a time without ticks, up to the tick of a step.
type pause struct {
	seq          uint64 // 0 while the step has none
	fromMs, toMs int64
}

// tick notes that the daemon is at work, and returns what a restart has to know of it.
// The commit of its step stamps that. paused says that there was a pause.
func (l *listening) tick(nowMs int64) (states []history.State, gone []carried, paused bool) {
	from := l.clockMs
	l.clockMs = nowMs
	states = []history.State{l.clockState()}
	if from == 0 || nowMs-from < pauseFrom.Milliseconds() {
		return states, nil, false
	}
	l.pauses = append(l.pauses, pause{fromMs: from, toMs: nowMs})
	for len(l.pauses) > pausesKept || nowMs-l.pauses[0].toMs > pauseKept.Milliseconds() {
		gone = append(gone, carried{l.pauses[0].state(), true})
		l.pauses = l.pauses[1:]
	}
	return append(states, l.pauses[len(l.pauses)-1].state()), gone, true
}

// moved notes that the daemon was at work when time moved an alert. Whether a pause ended
// then is left to the next tick: what trackers save before it does not hold the pause.
func (l *listening) moved(atMs int64) []history.State {
	if atMs <= l.clockMs || atMs-l.clockMs >= pauseFrom.Milliseconds() {
		return nil
	}
	l.clockMs = atMs
	return []history.State{l.clockState()}
}

func (l *listening) clockState() history.State {
	return history.State{Kind: stateClock, Key: "-", Body: saveJSON(l.clockMs)}
}

func (p pause) state() history.State {
	return history.State{Kind: statePause, Key: strconv.FormatInt(p.fromMs, 10), Body: saveJSON([2]int64{p.fromMs, p.toMs})}
}

// clock takes over the saved time of the newest tick.
func (l *listening) clock(st history.State) error { return json.Unmarshal(st.Body, &l.clockMs) }

// pause takes over a saved pause.
func (l *listening) pause(st history.State) error {
	var at [2]int64
	err := json.Unmarshal(st.Body, &at)
	l.pauses = append(l.pauses, pause{st.Seq, at[0], at[1]})
	return err
}

// resume tells trackers and rules when the daemon had listened: the pauses that came
// after their state was saved, and the one that ends now.
func (r *restorer) resume() {
	l := &r.listened
	slices.SortFunc(l.pauses, func(a, b pause) int { return cmp.Compare(a.seq, b.seq) })
	for _, p := range l.pauses {
		r.pause(p)
	}
	if l.clockMs == 0 {
		l.clockMs = r.heardMs // an older version noted no time
	}
	if l.clockMs == 0 {
		return // nothing was heard ever
	}
	now := r.app.opts.Now().UnixMilli()
	if states, gone, paused := l.tick(now); paused {
		r.commitPause(states, gone)
	}
	for _, s := range r.app.shards.all {
		s.tracker.Listened(now)
	}
	r.app.judge.engine.Listened(now)
	r.journal.listening = *l
}

// pause takes a pause out of the silence of all whose state was saved before it.
func (r *restorer) pause(p pause) {
	if p.seq > r.newest {
		for _, s := range r.app.shards.all {
			s.tracker.Paused(p.fromMs, p.toMs)
		}
	}
	r.app.judge.engine.Paused(p.fromMs, p.toMs, func(id event.QueryID) bool { return p.seq > r.rules[id] }, p.seq > r.others)
}

// commitPause puts the pause that ends now on disk, as a step of its own: what was saved
// before it does not hold the pause, what is saved from now on does. A disk that does not
// take it is no reason not to start.
func (r *restorer) commitPause(states []history.State, gone []carried) {
	j, p := r.journal, &r.listened.pauses[len(r.listened.pauses)-1]
	p.seq = j.next
	r.pause(*p)
	step := &history.Step{Seq: j.next}
	for _, st := range states {
		st.Seq = j.next
		step.States = append(step.States, st)
	}
	for _, c := range gone {
		step.Dropped = append(step.Dropped, c.State)
	}
	if err := r.store.Commit([]*history.Step{step}); err != nil {
		r.app.log.Warn("how long the daemon was down could not be noted", "err", err)
		return
	}
	j.next++
	r.app.judge.caughtUp(j.next)
}
