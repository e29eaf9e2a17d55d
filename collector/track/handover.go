package track

import "github.com/stategauge/stategauge/event"

// IntakePaused says that between two of our times nothing could come in: that
// span is not the queries' silence.
func (t *Tracker) IntakePaused(fromMs, toMs int64) {
	for _, q := range t.order {
		q.pause(fromMs, toMs)
	}
}

func (q *query) pause(fromMs, toMs int64) {
	if from := max(fromMs, q.aliveMs); from < toMs {
		q.aliveMs += toMs - from
	}
}

// stoodStill takes a distance between two ticks that is too long to be one as a
// pause of our own.
func (t *Tracker) stoodStill(queries []*query, fromMs, toMs int64) {
	if t.c.TickGapMs <= 0 || fromMs == event.Absent || toMs-fromMs < t.c.TickGapMs {
		return
	}
	for _, q := range queries {
		q.pause(fromMs, toMs)
	}
}

// TakenOver says that another process may have read events of these queries since
// their newest batches, as happens when partitions go to another member of a group
// and come back. What lies between a query's newest batch and the next is nobody's
// loss; holes that were open before stay open until they are filled or time out.
func (t *Tracker) TakenOver() { t.TakenOverWhere(func(event.QueryID) bool { return true }) }

// TakenOverWhere is TakenOver for some queries: those whose partition changed hands.
func (t *Tracker) TakenOverWhere(affected func(event.QueryID) bool) {
	for _, q := range t.order {
		if !affected(q.ref.ID) {
			continue
		}
		q.handed = true
		if q.cur != nil {
			q.cur.handed = true
		}
	}
}

// Release drops the queries that another process reads from now on, and says so
// with one update each: retired, and moved. Their open holes are the other's to
// count.
func (t *Tracker) Release(gone func(event.QueryID) bool, nowMs int64, out []event.Update) []event.Update {
	kept := t.order[:0]
	for _, q := range t.order {
		if !gone(q.ref.ID) {
			kept = append(kept, q)
			continue
		}
		out = t.change(q, event.StateRetired, nowMs, out)
		out[len(out)-1].Moved = true
		t.c.Names.take(q.ref)
		delete(t.byID, q.ref.ID)
	}
	clear(t.order[len(kept):])
	t.order = kept
	return out
}

// pass notes that somebody else read what lies between the newest batch and id.
func (r *run) pass(id int64) {
	if r.passTo > r.settled {
		// Handed over again while holes from before the last time are open: those are
		// told of now. One that comes after all is set off, as always.
		r.carried += r.gaps(r.settled, r.passTo)
		r.settled = r.passTo
	}
	r.base = max(r.base, r.passTo) // nothing up to there was ever counted as missed
	r.passFrom, r.passTo = r.win.newest, id-1
}

func (r *run) passed(id int64) bool { return id > r.passFrom && id <= r.passTo }

// gaps counts the ids in (from, to] that ought to have come and did not.
func (r *run) gaps(from, to int64) int64 {
	n := r.win.holes(from, to)
	if from, to = max(from, r.passFrom), min(to, r.passTo); from < to {
		n -= r.win.holes(from, to)
	}
	return n
}

// reordered returns the id up to which holes have become missed batches because
// the run is so many ids further. Ids that went by elsewhere are no progress.
func (r *run) reordered(batches int64) int64 {
	if own := r.win.newest - r.passTo; r.passTo != event.Absent && own <= batches {
		return r.passFrom - (batches - own)
	}
	return r.win.newest - batches
}
