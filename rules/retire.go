package rules

import (
	"slices"

	"github.com/stategauge/stategauge/event"
)

const (
	// heldMs is how long a query is kept after it was last heard if it is retired
	// while an alert of it says that it failed or fell silent. Its own silence must
	// not be what resolves that.
	heldMs = 7 * dayMs
	// standstillTicks is how many ticks must be missed for us to have stood still:
	// nobody's silence counts then.
	standstillTicks = 8
	// pruneEveryMs is how often what is kept of senders is looked through.
	pruneEveryMs = 3600 * 1000
)

// retire resolves the query's alerts and forgets it. Alerts that last keep the
// query, unless another one took over its name.
func (e *Engine) retire(q *queryState, u *event.Update, out []Verdict) []Verdict {
	if u.Moved {
		e.letMove(q)
		return out
	}
	at := eventMs(u)
	if u.Successor != "" {
		e.bequeath(q, u.Successor)
		return e.drop(q, "the query was retired: "+string(u.Successor)+" took over its name", at, out)
	}
	if !e.lasts(q) || e.nowMs-q.story.heardMs >= heldMs {
		return e.drop(q, silentTooLong, at, out)
	}
	for ri, list := range q.rules {
		if e.pack.rules[ri].lasts() {
			continue
		}
		for _, s := range list {
			out = e.end(q, ri, s, silentTooLong, at, out)
		}
	}
	e.hold(q, true)
	return out
}

const silentTooLong = "the query was retired: nothing was heard of it for too long"

// lasts reports whether the rule's alerts outlive their query.
func (r *rule) lasts() bool {
	d, ok := r.detector.(lasting)
	return ok && d.lasts()
}

// lasts reports whether an alert about the query outlives it.
func (e *Engine) lasts(q *queryState) bool {
	for ri, r := range e.pack.rules {
		if !r.lasts() {
			continue
		}
		if _, s := e.firing(ri, q); s != nil {
			return true
		}
	}
	return false
}

func (e *Engine) hold(q *queryState, held bool) {
	if q.held == held {
		return
	}
	q.held = held
	if held {
		e.held++
	} else {
		e.held--
	}
}

// back takes a query that was kept for its alerts among the living again, and lets
// those go whose name it took over in the meantime.
func (e *Engine) back(q *queryState, out []Verdict) []Verdict {
	e.hold(q, false)
	if e.held == 0 || q.ref.Name == "" || q.story.heardMs != event.Absent {
		return out
	}
	for _, o := range slices.Clone(e.ordered()) {
		if o.held && o.ref.Name == q.ref.Name && o.ref.Application == q.ref.Application {
			e.bequeath(o, q.ref.ID)
			out = e.drop(o, "the query was retired: "+string(q.ref.ID)+" took over its name", e.nowMs, out)
		}
	}
	return out
}

// letGo drops the queries that were kept long enough.
func (e *Engine) letGo(out []Verdict) []Verdict {
	if e.held == 0 {
		return out
	}
	for _, q := range slices.Clone(e.ordered()) {
		if q.held && e.nowMs-q.story.heardMs >= heldMs {
			out = e.drop(q, silentTooLong, e.nowMs, out)
		}
	}
	return out
}

// Forget resolves all alerts of a query because somebody asked for it, and
// forgets the query. An unknown one changes nothing. nowMs dates what is resolved,
// Unix milliseconds.
func (e *Engine) Forget(id event.QueryID, nowMs int64, out []Verdict) []Verdict {
	q := e.queries[id]
	if q == nil {
		return out
	}
	e.advance(nowMs)
	return e.settle(e.drop(q, "the query was forgotten on request", nowMs, out))
}

// drop resolves the query's alerts and forgets it.
func (e *Engine) drop(q *queryState, reason string, atMs int64, out []Verdict) []Verdict {
	out = e.resolveAll(q, reason, atMs, out)
	e.lose(q)
	return out
}

// standstill takes a time in which nobody was listening out of all silences.
func (e *Engine) standstill(fromMs, toMs int64) {
	e.Paused(fromMs, toMs, func(event.QueryID) bool { return true }, true)
}

// prune keeps what is known of senders small.
func (e *Engine) prune() {
	if e.nowMs-e.prunedMs < pruneEveryMs {
		return
	}
	e.prunedMs = e.nowMs
	e.around.prune(e.queries, e.nowMs)
}
