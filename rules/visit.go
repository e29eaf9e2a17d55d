package rules

import "github.com/stategauge/stategauge/event"

// asOf is the event time of what an update says: the end of a batch, else when the
// event happened, else now. A clock ahead of ours does not count.
func (e *Engine) asOf(u *event.Update) int64 {
	at := int64(event.Absent)
	if b := u.Event.Batch; b != nil {
		at = b.EndMs()
	}
	if at == event.Absent {
		at = u.Event.AtMs
	}
	if at == event.Absent || at > e.nowMs {
		return e.nowMs
	}
	return at
}

// Visit calls f for the newest judgement of every rule on every query, operator and
// group, in no particular order. It is what Status tells, without its sorting and
// its memory: j is f's until it returns.
func (e *Engine) Visit(f func(rule, signal string, j *Judged)) {
	var j Judged
	show := func(ri int, q *queryState, s *series) {
		j = Judged{Query: q.ref, Operator: s.operator, OperatorIndex: s.index, Batch: q.lastBatch, Group: q.group, Judgement: s.judged}
		if s.alert != nil {
			j.State = s.alert.state
		}
		f(e.pack.rules[ri].alert, e.pack.rules[ri].signal.name, &j)
	}
	for _, q := range e.queries {
		for ri, list := range q.rules {
			for _, s := range list {
				show(ri, q, s)
			}
		}
	}
	for ri := range e.rules {
		for _, q := range e.rules[ri].groups {
			show(ri, q, q.rules[ri][0])
		}
	}
}
