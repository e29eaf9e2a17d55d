// Package track judges each event once: which query and run it belongs to,
// whether its batch was counted before, what is missing, and in what state the
// query is. It is pure: no goroutine, clock or network; time comes in as an
// argument. One goroutine owns a Tracker.
//
// A query is its id, a run its runId, an execution the pair of runId and batchId
// of a batch that ran. An execution is counted once, whatever is delivered again
// and by whom: exactly among a run's newest batches (Config.WindowBatches), and
// what is older is never counted. Whatever arrives of a run that another one has
// followed is late; it changes nothing about the current run.
//
// Each query costs a bounded amount of memory, about 3 KiB by default.
package track

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// Tracker follows the queries of one shard. It is not safe for concurrent use.
type Tracker struct {
	c      Config
	filter Filter
	byID   map[event.QueryID]*query
	order  []*query // by first appearance, so that ticks speak in a fixed order
	tickMs int64    // time of the newest tick, event.Absent before the first
	// key and scratch are reused for every question to the filter.
	key     Key
	scratch []byte
}

// New returns an empty Tracker. seen may be nil; shards share one Filter. It
// panics on a Config that Validate refuses.
func New(c Config, seen Filter) *Tracker {
	if err := c.Validate(); err != nil {
		panic(fmt.Errorf("track: %w", err))
	}
	if c.Senders == nil {
		c.Senders = NewSenders()
	}
	if c.Names == nil {
		c.Names = NewNames()
	}
	return &Tracker{
		c: c, filter: seen, tickMs: event.Absent,
		byID: map[event.QueryID]*query{},
	}
}

// Apply judges one event at our time nowMs and appends what follows to out. The
// event's own update comes last; before it may come changes of other queries'
// state that a heartbeat brought about, with events of KindTick. The caller fills
// in Origin.
//
// The event's Query is completed with the name and application that are known,
// because idle and terminated events carry none. Heartbeats concern all shards
// and must be given to each; they are only read.
func (t *Tracker) Apply(e *event.Event, nowMs int64, out []event.Update) []event.Update {
	lost := t.c.Senders.Observe(e.Envelope, nowMs)
	if e.Kind == event.KindHeartbeat {
		return t.heartbeat(e, nowMs, out)
	}
	at := believable(timeOf(e), nowMs)
	if !judgeable(e, at) {
		return append(out, blank(e, event.OutcomeUnjudgeable))
	}
	q, isNew := t.find(e, nowMs, lost)
	if q == nil {
		return append(out, blank(e, event.OutcomeRefused))
	}
	u := event.Update{Event: e, NewQuery: isNew, Was: q.state}
	t.judge(q, e, at, nowMs, lost, &u)
	t.finish(q, &u)
	return append(out, u)
}

func (t *Tracker) judge(q *query, e *event.Event, at, nowMs, lost int64, u *event.Update) {
	switch e.Kind {
	case event.KindProgress:
		t.progress(q, e, at, nowMs, lost, u)
	case event.KindStarted:
		t.started(q, e, at, nowMs, u)
	case event.KindIdle:
		t.idle(q, e, at, nowMs, u)
	case event.KindTerminated:
		t.terminated(q, e, at, nowMs, u)
	}
	switch u.Outcome {
	case event.OutcomeDuplicate:
		q.duplicates++
	case event.OutcomeLate:
		q.late++
	case event.OutcomeUnjudgeable:
	default:
		t.adopt(q, e)
	}
}

// finish fills in what every update of a query says.
func (t *Tracker) finish(q *query, u *event.Update) {
	u.State = q.state
	u.StartedSeen = q.cur.started
	u.SharedRuns = q.sharedRuns()
	u.Trigger, u.IntervalMs, u.IntervalFrom = q.trigger()
	u.Event.Query = q.ref
	if u.Event.Batch != nil {
		u.Event.Batch.Query = q.ref
	}
	q.missed += int64(u.Missed)
}

func blank(e *event.Event, o event.Outcome) event.Update {
	return event.Update{Event: e, Outcome: o, IntervalMs: noTrigger.intervalMs}
}

// timeOf returns the event's own time.
func timeOf(e *event.Event) int64 {
	if e.Kind == event.KindProgress && e.Batch != nil {
		return e.Batch.StartMs
	}
	return e.AtMs
}

// believable drops times that would spoil every later comparison: a clock more
// than a day ahead of ours, or none at all.
func believable(at, nowMs int64) int64 {
	if at <= 0 || at > nowMs+day {
		return event.Absent
	}
	return at
}

// judgeable reports whether e carries what identity needs.
func judgeable(e *event.Event, at int64) bool {
	if e.Query.ID == "" {
		return false
	}
	switch e.Kind {
	case event.KindProgress:
		return e.Batch != nil && (!e.Batch.Executed || e.Batch.ID != event.Absent || at != event.Absent)
	case event.KindStarted, event.KindIdle, event.KindTerminated:
		return true
	}
	return false
}

// find returns the query of e, made if need be; nil where there is no room.
func (t *Tracker) find(e *event.Event, nowMs, lost int64) (q *query, isNew bool) {
	if q = t.byID[e.Query.ID]; q != nil {
		return q, false
	}
	if len(t.order) >= t.c.Queries {
		return nil, false
	}
	q = newQuery(event.QueryRef{ID: e.Query.ID}, nowMs)
	q.lostSeen = lost
	t.byID[e.Query.ID] = q
	t.order = append(t.order, q)
	t.configure(q)
	return q, true
}

// adopt takes over the name and application that the newest event gives.
func (t *Tracker) adopt(q *query, e *event.Event) {
	ref := q.ref
	if e.Query.Name != "" {
		ref.Name = e.Query.Name
	}
	if e.Query.Application != "" {
		ref.Application = e.Query.Application
	}
	renamed := ref != q.ref
	t.file(q, ref)
	if renamed {
		t.configure(q)
	}
}

func (t *Tracker) configure(q *query) {
	if t.c.TriggerFor != nil {
		q.config.kind, q.config.intervalMs = t.c.TriggerFor(q.ref)
	}
}

// Reconfigure replaces the func that says which trigger is configured and asks
// it about every query.
func (t *Tracker) Reconfigure(triggerFor func(event.QueryRef) (event.TriggerKind, float64)) {
	t.c.TriggerFor = triggerFor
	for _, q := range t.order {
		q.config = noTrigger
		t.configure(q)
	}
}

// Len returns how many queries are kept.
func (t *Tracker) Len() int { return len(t.order) }

// Queries appends the status of every query to out, in the order in which they
// appeared.
func (t *Tracker) Queries(out []QueryStatus) []QueryStatus {
	for _, q := range t.order {
		out = append(out, q.status(&t.c))
	}
	return out
}

// Status returns the status of one query, false where it is not known.
func (t *Tracker) Status(id event.QueryID) (QueryStatus, bool) {
	q := t.byID[id]
	if q == nil {
		return QueryStatus{}, false
	}
	return q.status(&t.c), true
}
