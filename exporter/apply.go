package exporter

import (
	"github.com/stategauge/stategauge/event"
)

// apply works u out on q's private values. The caller owns q.
func (x *Exporter) apply(q *query, u *event.Update) {
	if u.Outcome != event.OutcomeStateChange {
		x.touch(q, u)
	}
	x.setState(q, u.State)
	q.known.learn(u.Event.Envelope)
	if !q.begun && (u.StartedSeen || u.Outcome == event.OutcomeStarted) {
		x.begin(q)
	}
	if u.NewRun && !q.stands(u) {
		q.ran = false
	}
	if u.Missed > 0 {
		// Without a reason it is a gap within a run: the listener bus dropped events.
		d := defMissed
		if u.MissedReason > event.MissedDropped {
			d += defID(u.MissedReason - event.MissedDropped)
		}
		x.count(q, q.base, min(d, defMissedEnd-1), float64(u.Missed))
	}
	if u.Outcome == event.OutcomeExecuted && u.Event.Batch != nil && !q.stands(u) {
		x.measure(q, u)
	}
	if !q.retired { // nothing new is to be said of it, and its gauges have gone
		x.setInterval(q, u)
		x.setInfo(q, u)
	}
	if u.Outcome != event.OutcomeStateChange {
		q.bornMs = max(q.bornMs, u.Origin.ReceivedMs)
	}
}

// stands reports whether u counts nothing and is about the newest batch: then its
// levels are there, and what it repeats is known.
func (q *query) stands(u *event.Update) bool {
	b := u.Event.Batch
	return q.quiet && q.ran && b != nil && b.Run == q.run && b.ID == q.newest && b.StartMs == q.newestMs
}

// touch notes that q is alive. An idle query's levels hold on, so its operators
// and sources are as fresh as when it ran.
func (x *Exporter) touch(q *query, u *event.Update) {
	at := u.Origin.ReceivedMs
	if at <= 0 {
		return
	}
	if u.Outcome == event.OutcomeIdle || u.Outcome == event.OutcomeIdleCopy {
		q.refresh(at)
	}
	q.lastMs = at
	x.set(q, q.base, defLastEvent, float64(at))
}

// refresh moves the time of everything that the newest batch named.
func (q *query) refresh(at int64) {
	for _, e := range q.operators {
		if e.lastMs == q.batchMs {
			e.lastMs = at
		}
	}
	for _, e := range q.sources {
		if e.lastMs == q.batchMs {
			e.lastMs = at
		}
	}
	q.batchMs = at
}

// setState shows the present state, and ends the gauges of a query that retires.
func (x *Exporter) setState(q *query, s event.State) {
	if s == event.StateUnknown {
		return
	}
	// All states are there, so that a change leaves no series behind and a query by
	// state always has an answer.
	for i := range defStateEnd - defState {
		v := 0.0
		if s == event.StateRunning+event.State(i) {
			v = 1
		}
		x.set(q, q.base, defState+i, v)
	}
	retired := s == event.StateRetired
	if retired && !q.retired {
		x.clearAll(q)
	}
	if !retired {
		q.retiredAtMs = 0
	}
	q.state, q.retired = s, retired
}

// begin gives the counters of a run whose start was seen their zero.
func (x *Exporter) begin(q *query) {
	for _, d := range []defID{defBatchesData, defBatchesNoData, defMissed, defMissed + 1, defMissed + 2, defUnaccounted} {
		x.count(q, q.base, d, 0)
	}
	for _, id := range x.plan.begin {
		x.count(q, q.base, defID(id), 0)
	}
	x.slot(q, q.base, defBatchHist)
	q.begun = true
}

// setInterval shows the trigger interval under the origin that it has now.
func (x *Exporter) setInterval(q *query, u *event.Update) {
	for i := range defIntervalEnd - defInterval {
		v := absent
		if u.IntervalFrom == event.IntervalInferred+event.IntervalOrigin(i) && u.IntervalMs > 0 && plausible(u.IntervalMs) {
			v = u.IntervalMs
		}
		x.set(q, q.base, defInterval+i, v)
	}
}
