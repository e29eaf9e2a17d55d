package rules

import "slices"

// judgeGroups judges the rules of many queries and moves their alerts. Groupers
// name every group that has queries: one that they no longer name has none, and
// its alert ends.
func (e *Engine) judgeGroups(out []Verdict) []Verdict {
	for ri := range e.rules {
		g := e.rules[ri].grouper
		if g == nil {
			continue
		}
		e.grouped = g.judge(e, e.nowMs, e.grouped[:0])
		for i := range e.grouped {
			out = e.judgeGroup(ri, &e.grouped[i], out)
		}
		out = e.dropGroups(ri, out)
		e.rules[ri].metrics.evaluations.Inc()
		e.rules[ri].lastMs = e.nowMs
	}
	return out
}

// dropGroups forgets the groups of a rule that were not judged this time.
func (e *Engine) dropGroups(ri int, out []Verdict) []Verdict {
	st := &e.rules[ri]
	named := func(q *queryState) bool {
		return slices.ContainsFunc(e.grouped, func(g Grouped) bool { return g.Key == q.group })
	}
	if len(st.groups) == len(e.grouped) {
		return out
	}
	for _, q := range slices.Clone(st.groups) {
		if !named(q) {
			out = e.end(q, ri, q.rules[ri][0], "none of its queries is left", e.nowMs, out)
		}
	}
	st.groups = slices.DeleteFunc(st.groups, func(q *queryState) bool { return !named(q) })
	return out
}

func (e *Engine) judgeGroup(ri int, g *Grouped, out []Verdict) []Verdict {
	q := e.group(ri, g)
	s := q.rules[ri][0]
	was := s.judged.Said
	s.judged = g.Judgement
	if g.Said != was && s.alert == nil && g.Said != SaidFound {
		out = append(out, Verdict{Rule: e.pack.rules[ri].alert, Query: q.ref, Said: g.Said})
	}
	if s.alert != nil && g.Said == SaidFound {
		s.alert.members, s.alert.total = slices.Clone(g.Members), g.Total
	}
	before, now := s.alert, e.asOfMs
	if g.AsOfMs != 0 {
		e.asOfMs = min(now, g.AsOfMs)
	}
	out = e.live(q, ri, s, e.moment(), out)
	if before == nil && s.alert != nil {
		s.alert.members, s.alert.total = slices.Clone(g.Members), g.Total
		out[len(out)-1] = e.verdict(q, ri, s, out[len(out)-1].Was)
	}
	e.asOfMs = now
	return out
}

// group finds the stand-in for a group's query, and makes it.
func (e *Engine) group(ri int, g *Grouped) *queryState {
	st := &e.rules[ri]
	for _, q := range st.groups {
		if q.group == g.Key {
			return q
		}
	}
	q := newQueryState(len(e.pack.rules))
	q.group, q.cluster, q.ref.Application = g.Key, g.Cluster, g.Application
	q.rules[ri] = []*series{{index: -1, judged: Judgement{Said: SaidTooFew, Since: -1}}}
	st.groups = append(st.groups, q)
	return q
}
