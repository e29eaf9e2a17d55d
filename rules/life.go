package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// liveAlert is an alert that is pending or firing.
type liveAlert struct {
	state   AlertState
	labels  Labels
	finding Judgement // the newest one that found something
	before  []float64 // evidence before the finding began, taken when it was new
	// found and foundAt say since when the finding stands; clear and clearAt since
	// when it does not any more.
	found, clear     int
	foundAt, clearAt int64

	pendingAtMs, firingAtMs             int64
	firstBatch, firingBatch, judgedLast int64

	inhibitedBy string   // alert of the cause that speaks for this one
	raised      string   // severity taken over from what this alert inhibits
	members     []string // of a group
	total       int
}

// moment is when a judgement was made: the time that alerts are dated by, and one
// that only grows, for how long something lasts. For figures of batches both are
// the query's event time; for what happens to a query, the time it was heard.
type moment struct{ atMs, elapsedMs int64 }

func (q *queryState) moment() moment { return moment{atMs: q.atMs, elapsedMs: q.elapsedMs} }

// live moves the series' alert after a judgement:
//
//	found for `for`            inactive -> pending -> firing
//	not found while pending    pending -> inactive, and nothing is ever sent
//	clear for `keep_firing_for` firing -> resolved
//
// A firing alert that cannot be judged (too few points after a restart, load
// unknown) stays as it is.
func (e *Engine) live(q *queryState, ri int, s *series, at moment, out []Verdict) []Verdict {
	before := len(out)
	s.asOfMs = e.asOfMs
	out = e.move(q, ri, s, at, out)
	if e.pack.rules[ri].watch {
		return out[:before] // only other rules look at it
	}
	return out
}

// move is live, whoever may hear of it.
func (e *Engine) move(q *queryState, ri int, s *series, at moment, out []Verdict) []Verdict {
	a := s.alert
	found := s.judged.Said == SaidFound
	switch {
	case a == nil && !found:
		return out
	case a == nil:
		if !e.admit(ri) {
			return out
		}
		out = e.pend(q, ri, s, at, out)
	case found:
		a.found++
		a.clear = 0
		a.finding = s.judged.renewing(a.finding)
	case a.state == Pending:
		return e.cancel(q, ri, s, out)
	case s.judged.Said == SaidClear || s.judged.Said == SaidExplained:
		return e.recover(q, ri, s, at, out)
	}
	a = s.alert
	a.judgedLast = q.newestBatch()
	if a.state == Pending && found && e.pack.rules[ri].forExtent.Met(a.found, at.elapsedMs-a.foundAt) {
		a.state, a.firingAtMs, a.firingBatch = Firing, at.atMs, q.newestBatch()
		out = e.inhibit(q, ri, s, at, out)
		out = append(out, e.verdict(q, ri, s, Pending))
	}
	return out
}

// renewing is a finding that goes on from an earlier one: it is told from where
// that began, since windows move on and forget what was before.
func (j Judgement) renewing(first Judgement) Judgement {
	j.Start, j.Since = first.Start, first.Since
	j.Rise, j.Relative = j.End-j.Start, 0
	if j.Start > 0 {
		j.Relative = j.Rise / j.Start
	}
	return j
}

// admit reports whether one more alert may start, and counts where not.
func (e *Engine) admit(ri int) bool {
	r := e.pack.rules[ri]
	st := &e.rules[ri]
	group, most := e.groupOf(ri)
	switch {
	case r.limit > 0 && st.alerts >= r.limit:
		st.lastError = fmt.Sprintf("the rule's limit of %d alerts is reached", r.limit)
	case most > 0 && e.groupAlerts(group) >= most:
		st.lastError = fmt.Sprintf("the group's limit of %d alerts is reached", most)
	case e.alerts >= e.opts.MaxAlerts:
		st.lastError = fmt.Sprintf("the limit of %d alerts in all is reached", e.opts.MaxAlerts)
	default:
		return true
	}
	st.metrics.refused.Inc()
	return false
}

// groupOf returns the group of a rule and its limit.
func (e *Engine) groupOf(ri int) (*group, int) {
	for i := range e.pack.groups {
		if g := &e.pack.groups[i]; ri >= g.first && ri < g.last {
			return g, g.limit
		}
	}
	return nil, 0
}

func (e *Engine) groupAlerts(g *group) int {
	n := 0
	for i := g.first; i < g.last; i++ {
		n += e.rules[i].alerts
	}
	return n
}

// pend starts an alert.
func (e *Engine) pend(q *queryState, ri int, s *series, at moment, out []Verdict) []Verdict {
	a := &liveAlert{
		state: Pending, finding: s.judged, found: 1, foundAt: at.elapsedMs,
		pendingAtMs: at.atMs, firingAtMs: event.Absent, firingBatch: -1, judgedLast: q.newestBatch(),
	}
	a.firstBatch = max(-1, s.judged.Since-q.shift)
	a.before = s.evidence.before(s.judged.Since)
	s.alert = a
	a.labels = e.labels(q, ri, s)
	e.alerts++
	e.rules[ri].alerts++
	return append(out, e.verdict(q, ri, s, Inactive))
}

// cancel drops a pending alert. Nobody was told of it.
func (e *Engine) cancel(q *queryState, ri int, s *series, out []Verdict) []Verdict {
	s.alert.state = Inactive
	v := e.verdict(q, ri, s, Pending)
	v.Said = s.judged.Said
	e.forget(ri, s)
	return append(out, v)
}

// recover counts clear batches and resolves the alert once there are enough.
func (e *Engine) recover(q *queryState, ri int, s *series, at moment, out []Verdict) []Verdict {
	a := s.alert
	if a.clear == 0 {
		a.clearAt = at.elapsedMs
	}
	a.clear++
	a.judgedLast = q.newestBatch()
	if !e.pack.rules[ri].keep.Met(a.clear, at.elapsedMs-a.clearAt) {
		return out
	}
	return e.end(q, ri, s, recovery(e.pack.rules[ri], s), at.atMs, out)
}

// recovery says in words why the detector is clear.
func recovery(r *rule, s *series) string {
	f, now := s.alert.finding, s.judged.Value
	switch {
	case s.judged.Why != "":
		return s.judged.Why
	case s.judged.Said == SaidExplained:
		return "load explains it now"
	case f.Rise > 0 && now > f.Start+f.Rise/2 || f.Rise < 0 && now < f.Start+f.Rise/2:
		return fmt.Sprintf("the level of %s has lasted so long that it is the new baseline", quantity(now, r.signal.unit))
	}
	return fmt.Sprintf("it went back to %s", quantity(now, r.signal.unit))
}

// end takes an alert away: a firing one is resolved, a pending one never was.
func (e *Engine) end(q *queryState, ri int, s *series, reason string, atMs int64, out []Verdict) []Verdict {
	if s.alert == nil {
		return out
	}
	if e.pack.rules[ri].watch {
		e.forget(ri, s)
		return out
	}
	was := s.alert.state
	s.alert.state = Inactive
	if was == Firing {
		s.alert.state = Resolved
	}
	v := e.verdict(q, ri, s, was)
	v.Alert.Reason = reason
	if was == Firing {
		v.Alert.ResolvedAtMs = atMs
		v.Alert.Annotations = v.Alert.Annotations.with("resolved_because", reason)
	}
	e.forget(ri, s)
	out = append(out, v)
	if was == Firing {
		e.over = append(e.over, ended{q, ri})
	}
	return out
}

func (e *Engine) forget(ri int, s *series) {
	s.alert = nil
	e.alerts--
	e.rules[ri].alerts--
	if e.rules[ri].alerts == 0 {
		e.rules[ri].lastError = ""
	}
}

// resolveAll ends all alerts of a query and empties its windows.
func (e *Engine) resolveAll(q *queryState, reason string, atMs int64, out []Verdict) []Verdict {
	for ri, list := range q.rules {
		for _, s := range list {
			out = e.end(q, ri, s, reason, atMs, out)
		}
	}
	return out
}

// verdict describes the series' alert as it is now.
func (e *Engine) verdict(q *queryState, ri int, s *series, was AlertState) Verdict {
	a := e.alert(q, ri, s, true)
	return Verdict{Alert: &a, Was: was, Rule: e.pack.rules[ri].alert, Query: q.ref, Said: s.judged.Said}
}

// Alerts appends every pending and firing alert as it stands to out, in no
// particular order.
func (e *Engine) Alerts(out []Alert) []Alert {
	for _, q := range e.queries {
		for ri, list := range q.rules {
			for _, s := range list {
				if s.alert != nil && !e.pack.rules[ri].watch {
					out = append(out, e.alert(q, ri, s, false))
				}
			}
		}
	}
	for ri := range e.rules {
		for _, q := range e.rules[ri].groups {
			if s := q.rules[ri][0]; s.alert != nil {
				out = append(out, e.alert(q, ri, s, false))
			}
		}
	}
	return out
}
