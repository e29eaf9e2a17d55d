package rules

import (
	"github.com/stategauge/stategauge/event"
)

const (
	// beatMs is how often listeners send heartbeats until we have seen it.
	beatMs = 30_000
	// beatWeight is how fast the usual distance follows.
	beatWeight = 0.2
	// beatsMissed is how many heartbeats in a row are missed by a sender that is gone,
	// and beatsUnnamed by how many a query that it no longer runs is not named.
	beatsMissed, beatsUnnamed = 5, 3
	// maxSenders bounds the table of senders, and senderKeptMs how long a silent one
	// stays in it.
	maxSenders   = 4096
	senderKeptMs = 8 * dayMs
)

// heard is when something was heard, by our clock; Absent before.
type heard struct{ ms int64 }

// hear never goes back: what is replayed after a restart was heard before.
func (h *heard) hear(nowMs int64) { h.ms = max(h.ms, nowMs) }

// heartbeats is what heartbeats say of one run of a query.
type heartbeats struct {
	ms     int64 // our clock at the newest one that names the run; Absent before
	active bool  // a trigger was running then
	sender *sender
}

// sender is one listener, known by its heartbeats.
type sender struct {
	name   string // empty once it was forgotten
	lastMs int64  // our clock at the newest heartbeat
	gapMs  float64
}

// beat notes a heartbeat. Those that waited on their way and come all at once say
// nothing about the rhythm.
func (p *sender) beat(nowMs int64) {
	if gap := float64(nowMs - p.lastMs); gap >= beatMs/10 && gap < 4*p.gapMs {
		p.gapMs += beatWeight * (gap - p.gapMs)
	}
	p.lastMs = max(p.lastMs, nowMs)
}

// driver is the application that queries belong to.
type driver struct{ cluster, application string }

func (q *queryState) driver() driver { return driver{q.cluster, q.ref.Application} }

// surroundings are what the engine heard of anybody. Queries point into them.
type surroundings struct {
	all     heard
	drivers map[driver]*heard
	senders map[string]*sender
}

func newSurroundings() surroundings {
	return surroundings{all: heard{event.Absent}, drivers: map[driver]*heard{}, senders: map[string]*sender{}}
}

// driverOf returns when the query's application was heard.
func (a *surroundings) driverOf(q *queryState) *heard {
	k := q.driver()
	h := a.drivers[k]
	if h == nil {
		h = &heard{event.Absent}
		a.drivers[k] = h
	}
	return h
}

// senderOf returns the sender of that name, nil where there are too many.
func (a *surroundings) senderOf(name string, nowMs int64) *sender {
	p := a.senders[name]
	if p == nil && name != "" && len(a.senders) < maxSenders {
		p = &sender{name: name, lastMs: nowMs, gapMs: beatMs}
		a.senders[name] = p
	}
	return p
}

// pause takes a time that we did not listen in out of everybody's silence.
func (a *surroundings) pause(fromMs, toMs int64) {
	put := func(at *int64) {
		if from := max(fromMs, *at); *at != event.Absent && from < toMs {
			*at += toMs - from
		}
	}
	put(&a.all.ms)
	for _, h := range a.drivers {
		put(&h.ms)
	}
	for _, p := range a.senders {
		put(&p.lastMs)
	}
}

// prune forgets senders that are silent for long, and applications without
// queries.
func (a *surroundings) prune(queries map[event.QueryID]*queryState, nowMs int64) {
	for name, p := range a.senders {
		if nowMs-p.lastMs > senderKeptMs {
			p.name = ""
			delete(a.senders, name)
		}
	}
	live := map[driver]bool{}
	for _, q := range queries {
		live[q.driver()] = true
	}
	for k := range a.drivers {
		if !live[k] {
			delete(a.drivers, k)
		}
	}
}

// hear tells the query's story of an update, and notes that its application lives.
func (e *Engine) hear(q *queryState, u *event.Update) {
	q.story.hear(u, e.nowMs)
	if isWord(u) {
		e.around.all.hear(e.nowMs)
		e.around.driverOf(q).hear(e.nowMs)
	}
}

// beat notes what a heartbeat says of the queries that it names.
func (e *Engine) beat(env *event.Envelope) {
	var p *sender
	for i := range env.Active {
		a := &env.Active[i]
		q := e.queries[a.ID]
		if q == nil {
			continue
		}
		if p == nil {
			if p = e.around.senderOf(env.Sender, e.nowMs); p == nil {
				return
			}
			e.around.all.hear(e.nowMs)
		}
		e.around.driverOf(q).hear(e.nowMs)
		q.story.named(a, p, e.nowMs)
	}
	if p = e.around.senders[env.Sender]; p != nil {
		p.beat(e.nowMs)
		e.around.all.hear(e.nowMs)
	}
}

// named takes in that a heartbeat names the query. One that polls is alive; while
// a trigger runs its silence goes on.
func (s *story) named(a *event.ActiveQuery, p *sender, nowMs int64) {
	if a.Run != "" && a.Run != s.run || s.ended {
		return
	}
	s.beats = heartbeats{ms: nowMs, active: a.TriggerActive, sender: p}
	if !a.TriggerActive {
		s.heardMs = max(s.heardMs, nowMs)
	}
}
