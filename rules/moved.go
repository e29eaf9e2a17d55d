package rules

import "github.com/stategauge/stategauge/event"

// letMove forgets a query that another process judges from now on, with its alerts:
// nothing is over, so nobody is told of a resolve.
func (e *Engine) letMove(q *queryState) {
	for ri, list := range q.rules {
		for _, s := range list {
			if s.alert != nil {
				e.forget(ri, s)
			}
		}
	}
	e.lose(q)
}

// LetMove forgets a query that another process judges from now on, without a
// resolve, as an update that says it moved does. An unknown one changes nothing.
func (e *Engine) LetMove(id event.QueryID) {
	if q := e.queries[id]; q != nil {
		e.letMove(q)
	}
}
