package rules

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// advance moves the engine's clock on. It never goes back.
func (e *Engine) advance(nowMs int64) { e.nowMs = max(e.nowMs, nowMs) }

func (e *Engine) moment() moment { return moment{atMs: e.nowMs, elapsedMs: e.nowMs} }

// watch shows an update to the query's watchers and judges what they make of it.
func (e *Engine) watch(q *queryState, u *event.Update, out []Verdict) []Verdict {
	for _, ri := range e.happenings {
		if g := e.rules[ri].grouper; g != nil {
			g.observe(q, u, e.nowMs)
			continue
		}
		var s *series
		s, out = e.series(q, ri, nil, out)
		s.watcher.observe(q, u, e.nowMs)
		e.rules[ri].metrics.evaluations.Inc()
		out = e.judgeEvents(q, ri, s, out)
	}
	return out
}

// heartbeat shows a heartbeat to the watchers of the queries that it names.
func (e *Engine) heartbeat(u *event.Update, out []Verdict) []Verdict {
	if u.Event.Envelope == nil {
		return out
	}
	e.beat(u.Event.Envelope)
	for ri := range e.rules {
		if g := e.rules[ri].grouper; g != nil {
			g.observe(nil, u, e.nowMs)
		}
	}
	for i := range u.Event.Envelope.Active {
		if q := e.queries[u.Event.Envelope.Active[i].ID]; q != nil {
			q.facts.tell(u.Event.Envelope)
			out = e.watch(q, u, out)
		}
	}
	return out
}

// watchAll judges what time passing makes of every query.
func (e *Engine) watchAll(out []Verdict) []Verdict {
	if !e.pack.watches {
		return out
	}
	out = e.judgeGroups(out) // first: they speak for the queries
	for _, q := range e.ordered() {
		for _, ri := range e.happenings {
			if e.rules[ri].grouper != nil {
				continue
			}
			var s *series
			s, out = e.series(q, ri, nil, out)
			e.rules[ri].taken++
			if w, ok := s.watcher.(patient); ok && s.alert == nil && w.waits(q, e.nowMs, &s.judged) {
				s.asOfMs, e.rules[ri].lastMs = e.asOfMs, e.nowMs
				continue
			}
			out = e.judgeEvents(q, ri, s, out)
		}
	}
	for _, ri := range e.happenings {
		e.count(ri)
	}
	return out
}

// judgeEvents asks a watcher and moves its alert.
func (e *Engine) judgeEvents(q *queryState, ri int, s *series, out []Verdict) []Verdict {
	was := s.judged.Said
	e.rules[ri].lastMs = e.nowMs
	if w, ok := s.watcher.(settled); !ok || !w.stays(q, &s.judged) {
		s.judged = s.watcher.judge(q, e.nowMs)
	} else if s.alert == nil { // most are: nothing to move
		s.asOfMs = e.asOfMs
		return out
	}
	if s.judged.Said != was && s.alert == nil && s.judged.Said != SaidFound {
		out = append(out, Verdict{Rule: e.pack.rules[ri].alert, Query: q.ref, Said: s.judged.Said})
	}
	return e.live(q, ri, s, e.moment(), out)
}

// ordered lists the queries by id: what two engines say of the same updates must
// come in the same order.
func (e *Engine) ordered() []*queryState {
	if len(e.order) > 0 {
		return e.order
	}
	for _, q := range e.queries {
		e.order = append(e.order, q)
	}
	slices.SortFunc(e.order, func(a, b *queryState) int { return strings.Compare(string(a.ref.ID), string(b.ref.ID)) })
	return e.order
}
