package rules

import (
	"slices"

	"github.com/stategauge/stategauge/event"
)

// Reload makes p the rules from now on and appends to out what that changes. A
// rule whose detector and signal did not change keeps its windows and its pending
// and firing alerts; a rule that went, or that learns something else now, resolves
// its alerts. Where only labels changed, the old alert is resolved and the same
// alert under its new labels follows right after it. nowMs dates what is resolved.
func (e *Engine) Reload(p *Pack, nowMs int64, out []Verdict) []Verdict {
	if p == nil {
		p = &Pack{}
	}
	from, gone := match(e.pack, p)
	before := e.pack
	for _, q := range e.queries {
		out = e.resolveGone(q, gone, nowMs, out)
	}
	for ri := range e.rules {
		for _, q := range e.rules[ri].groups {
			out = e.resolveGone(q, gone, nowMs, out)
		}
	}
	out = e.settle(out)
	old := e.rules
	e.adopt(p)
	for ni, oi := range from {
		if oi >= 0 {
			e.rules[ni].alerts, e.rules[ni].lastMs, e.rules[ni].groups = old[oi].alerts, old[oi].lastMs, old[oi].groups
		}
	}
	e.opts.Metrics.dropGone(before, p)
	like := e.likes()
	for _, q := range e.queries {
		q.rearrange(from)
		q.renew(like)
		out = e.relabel(q, nowMs, out)
	}
	for ri := range e.rules {
		for _, q := range e.rules[ri].groups {
			q.rearrange(from)
			out = e.relabel(q, nowMs, out)
		}
	}
	return out
}

// match finds for each new rule the old one whose windows it takes over, -1 for
// none, and says of each old rule why it goes, empty where it stays.
func match(old, p *Pack) (from []int, gone []string) {
	from = make([]int, len(p.rules))
	gone = make([]string, len(old.rules))
	for i, r := range old.rules {
		gone[i] = "the rule was removed"
		if slices.ContainsFunc(p.rules, func(n *rule) bool { return n.key == r.key }) {
			gone[i] = "the rule was changed"
		}
	}
	for ni, n := range p.rules {
		from[ni] = -1
		for oi, o := range old.rules {
			if gone[oi] != "" && n.group == o.group && n.alert == o.alert && n.windowKey == o.windowKey {
				from[ni], gone[oi] = oi, ""
				break
			}
		}
	}
	return from, gone
}

// resolveGone ends the alerts of the rules that do not stay.
func (e *Engine) resolveGone(q *queryState, gone []string, nowMs int64, out []Verdict) []Verdict {
	for ri, why := range gone {
		if why == "" {
			continue
		}
		for _, s := range q.rules[ri] {
			out = e.end(q, ri, s, why, nowMs, out)
		}
	}
	return out
}

// rearrange moves the series to their rules' new places.
func (q *queryState) rearrange(from []int) {
	rules := make([][]*series, len(from))
	for ni, oi := range from {
		if oi >= 0 {
			rules[ni], q.rules[oi] = q.rules[oi], nil
		}
	}
	for _, gone := range q.rules {
		for _, s := range gone {
			s.release(q)
		}
	}
	q.rules = rules
}

// likes are what stands for the same in the new pack: rules by the values of columns,
// loads by their keys, and plans of evidence by their hashes.
type likes struct {
	rules map[uint64]*rule
	loads map[uint64]*expression
	plans map[uint64]*evidencePlan
}

func (e *Engine) likes() *likes {
	h := &likes{rules: map[uint64]*rule{}, loads: map[uint64]*expression{}, plans: map[uint64]*evidencePlan{}}
	for i, r := range e.pack.rules {
		if p := e.rules[i].evidence; p != nil {
			h.plans[p.hash] = p
		}
		d := e.rules[i].share
		if d == nil {
			continue
		}
		h.rules[r.columnKey] = r
		if x := d.adjusts(); x != nil {
			h.loads[hashOf(x.key)] = x
		}
	}
	return h
}

// renew has the query's columns and evidence evaluated by the new pack's expressions,
// so that they share its places; what has no like there goes on with its own. A plan that
// gathers anything else now has no like.
func (q *queryState) renew(h *likes) {
	for _, set := range q.columns {
		for _, c := range set.list {
			switch {
			case c == nil:
			case c.rule != nil && h.rules[c.key.values] != nil:
				c.rule = h.rules[c.key.values]
			case c.input != nil && h.loads[c.key.values] != nil:
				c.input = h.loads[c.key.values]
			}
		}
	}
	for _, r := range q.rings {
		if p := h.plans[r.plan.hash]; p != nil && slices.Equal(p.hashes, r.plan.hashes) {
			r.plan = p
		}
	}
}

// relabel gives alerts whose labels changed their new ones.
func (e *Engine) relabel(q *queryState, nowMs int64, out []Verdict) []Verdict {
	for ri, list := range q.rules {
		for _, s := range list {
			if s.alert == nil {
				continue
			}
			labels := e.labels(q, ri, s)
			if slices.Equal(labels, s.alert.labels) {
				continue
			}
			out = e.swapLabels(q, ri, s, labels, nowMs, "the rule's labels were changed", out)
		}
	}
	return out
}

func (e *Engine) swapLabels(q *queryState, ri int, s *series, labels Labels, nowMs int64, why string, out []Verdict) []Verdict {
	if s.alert.state == Firing {
		v := e.verdict(q, ri, s, Firing)
		v.Alert.State, v.Alert.ResolvedAtMs, v.Alert.Reason = Resolved, nowMs, why
		v.Alert.Annotations = v.Alert.Annotations.with("resolved_because", v.Alert.Reason)
		out = append(out, v)
	}
	s.alert.labels = labels
	return append(out, e.verdict(q, ri, s, Inactive))
}

// eventMs dates an update by the sender's clock, else by ours.
func eventMs(u *event.Update) int64 {
	if u.Event.AtMs != event.Absent {
		return u.Event.AtMs
	}
	return u.Origin.ReceivedMs
}
