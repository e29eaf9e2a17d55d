package track

import "github.com/stategauge/stategauge/event"

// place is where an event stands among the runs of its query.
type place uint8

const (
	placeCurrent place = iota
	placeNew           // of a run never heard of: now the current one
	placeResumed       // of an earlier run that goes on: now the current one again
	placeLate          // of a run that another one has followed
)

// place finds the run of an event dated at. The run is nil where an event is
// late and its run unknown.
//
// Runs are ordered by when they began. An unknown run whose event is older than
// the beginning of the current run is an earlier one. An earlier run becomes the
// current one again if it demonstrably went on after it: if it ran a batch whose
// trigger is newer than all that the current run did, or, for what is no batch, if
// the current run has ended or fallen silent. So two drivers on one checkpoint take
// turns, and every batch of both counts.
func (t *Tracker) place(q *query, id event.RunID, at int64, ran bool) (*run, place) {
	switch {
	case q.cur == nil:
		return q.begin(id, at, &t.c), placeNew
	case q.cur.id == id:
		return q.cur, placeCurrent
	}
	if r := q.earlierRun(id); r != nil {
		if r.ended || !ran && !q.gone() || at == event.Absent || at <= q.cur.newestMs {
			return r, placeLate
		}
		q.resume(r)
		return r, placeResumed
	}
	if q.dropped.has(id) {
		return nil, placeLate
	}
	began := q.cur.startMs
	if at != event.Absent && began != event.Absent && at < began && q.state != event.StateOverdue {
		return nil, placeLate
	}
	return q.begin(id, at, &t.c), placeNew
}

// mark writes down in u what a change of run means.
func (p place) mark(u *event.Update) {
	u.NewRun = p == placeNew
	u.SegmentStart = p == placeNew || p == placeResumed
}

// nameless reports whether an event without a runId is later than all that the
// current run, which has none either, is known to have done. Such runs cannot be
// told apart by name, so a batch id that comes again, a second start, or a batch
// after the end is taken for a restart.
func (q *query) nameless(id event.RunID, at int64) bool {
	r := q.cur
	return r != nil && id == "" && r.id == "" && at != event.Absent && at > r.newestMs
}
