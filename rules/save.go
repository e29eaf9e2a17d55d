package rules

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// Dropped is state that was saved and could not be taken over, because the rule that it
// is of is there no more or asks for something else now. Whoever loads must say so, and
// resolve the alerts that Firing names: nothing else will.
type Dropped struct {
	Rule  string         // name of the alert
	Query event.QueryRef // zero for a rule of many queries
	Why   string
	// Firing are the labels of the alerts that were firing, by which they were sent.
	Firing []Labels
}

// ErrKnown is what LoadQuery returns for a query that the engine judges already.
var ErrKnown = errors.New("the query is known already")

// Queries appends the ids of all queries that the engine keeps anything of to dst, in
// order. Each can be saved by itself.
func (e *Engine) Queries(dst []event.QueryID) []event.QueryID {
	for _, q := range e.ordered() {
		dst = append(dst, q.ref.ID)
	}
	return dst
}

// Knows reports whether the engine keeps anything of a query.
func (e *Engine) Knows(id event.QueryID) bool { return e.queries[id] != nil }

// SaveQuery appends everything that judging one query depends on to dst: its windows and
// baselines, the life of its alerts, what is known of it and what happened to it. It
// appends nothing for a query that is not known. What belongs to no single query, Save
// has. The form is versioned and holds a checksum; a query of three operators with full
// windows takes some 56 KB. O(size); the engine stays as it is.
func (e *Engine) SaveQuery(id event.QueryID, dst []byte) []byte {
	q := e.queries[id]
	if q == nil {
		return dst
	}
	return seal(dst, savedQuery, func(c *codec) {
		q.carry(c)
		e.saveTable(c, q)
		q.saveColumns(c)
		q.saveRings(c)
		for _, list := range q.rules {
			if len(list) > 0 {
				c.part(false, func(c *codec) { carrySeries(c, list) })
			}
		}
	})
}

// LoadQuery takes a query in that SaveQuery saved, as if the engine had judged it all
// along. Rules take over what they had under the same group and name if they still ask
// for the same; what others had is dropped and returned. Load comes first where there is
// something for it.
//
// A form that is broken or of a newer version, a query that is known (ErrKnown) and one
// beyond Options.MaxQueries are errors, and leave the engine as it was.
func (e *Engine) LoadQuery(data []byte) ([]Dropped, error) {
	q, dropped, err := e.readQuery(data)
	if err != nil {
		return nil, fmt.Errorf("load a query's rule state: %w", err)
	}
	switch {
	case e.queries[q.ref.ID] != nil:
		return nil, fmt.Errorf("load the rule state of query %q: %w", q.ref.ID, ErrKnown)
	case len(e.queries) >= e.opts.MaxQueries:
		return nil, fmt.Errorf("load the rule state of query %q: %d queries are judged already", q.ref.ID, len(e.queries))
	}
	e.enter(q)
	return dropped, nil
}

// enter makes a query that was read one of the engine's.
func (e *Engine) enter(q *queryState) {
	e.know(q)
	if q.held {
		e.held++
	}
	e.countAlerts(q)
	if p := q.story.beats.sender; p != nil {
		q.story.beats.sender = e.around.meet(*p)
	}
}

// countAlerts counts the alerts that came with a query.
func (e *Engine) countAlerts(q *queryState) {
	for ri, list := range q.rules {
		for _, s := range list {
			if s.alert != nil {
				e.alerts++
				e.rules[ri].alerts++
			}
		}
	}
}

// meet returns the sender of that name, with what is newest of it.
func (a *surroundings) meet(saved sender) *sender {
	p := a.senders[saved.name]
	if p == nil {
		p = &saved
		if saved.name != "" && len(a.senders) < maxSenders {
			a.senders[saved.name] = p
		}
		return p
	}
	if saved.lastMs > p.lastMs {
		*p = saved
	}
	return p
}

// savedRow is a rule in the table before its series.
type savedRow struct {
	group, alert  string
	window, dress uint64 // what its series learn, and what its alerts are labelled with
	series        []savedSeries
	ri            int // place of the rule that takes it over, -1 for none
}

type savedSeries struct {
	operator string
	index    int
	firing   Labels // of an alert that fires, nil without one
}

func (r *rule) row(ri int) savedRow {
	return savedRow{group: r.group, alert: r.alert, window: r.windowHash, dress: r.dressHash, ri: ri}
}

func (w *savedRow) carry(c *codec) {
	c.str(&w.group)
	c.str(&w.alert)
	c.fixed(&w.window)
	c.fixed(&w.dress)
}

// saveTable writes which rules have series of which operators.
func (e *Engine) saveTable(c *codec, q *queryState) {
	n := 0
	for _, list := range q.rules {
		n += int(truth(len(list) > 0))
	}
	c.items(&n)
	for ri, list := range q.rules {
		if len(list) == 0 {
			continue
		}
		row := e.pack.rules[ri].row(ri)
		row.carry(c)
		n := len(list)
		c.items(&n)
		for _, s := range list {
			x := savedSeries{operator: s.operator, index: s.index}
			if s.alert != nil && s.alert.state == Firing && !e.pack.rules[ri].watch {
				x.firing = s.alert.labels
			}
			x.carry(c)
		}
	}
}

func (x *savedSeries) carry(c *codec) {
	c.str(&x.operator)
	c.whole(&x.index)
	carryLabels(c, &x.firing)
}

// readTable reads the table and finds the rules that are still the same.
func (e *Engine) readTable(c *codec, q *queryState) (rows []savedRow, dropped []Dropped) {
	n := 0
	taken := make([]bool, len(e.pack.rules))
	for c.items(&n); n > 0 && c.err == nil; n-- {
		var row savedRow
		row.carry(c)
		series := 0
		c.items(&series)
		for ; series > 0 && c.err == nil; series-- {
			var x savedSeries
			x.carry(c)
			row.series = append(row.series, x)
		}
		e.match(&row, taken)
		if row.ri < 0 {
			dropped = append(dropped, e.dropped(&row, q.ref))
		} else if len(row.series) > e.opts.MaxOperators {
			c.Fail("rule %q has series of %d operators", row.alert, len(row.series))
		}
		rows = append(rows, row)
	}
	return rows, dropped
}

// match finds the rule that takes a row over.
func (e *Engine) match(row *savedRow, taken []bool) {
	row.ri = -1
	for ri, r := range e.pack.rules {
		if !taken[ri] && r.group == row.group && r.alert == row.alert && r.windowHash == row.window {
			row.ri, taken[ri] = ri, true
			return
		}
	}
}

func (e *Engine) dropped(row *savedRow, ref event.QueryRef) Dropped {
	d := Dropped{Rule: row.alert, Query: ref, Why: "the rule was removed"}
	if slices.ContainsFunc(e.pack.rules, func(r *rule) bool { return r.group == row.group && r.alert == row.alert }) {
		d.Why = "the rule was changed"
	}
	for _, x := range row.series {
		if x.firing != nil {
			d.Firing = append(d.Firing, x.firing)
		}
	}
	return d
}

// readQuery builds a query from its saved form. The engine does not know it yet.
func (e *Engine) readQuery(data []byte) (*queryState, []Dropped, error) {
	c, err := unseal(data, savedQuery)
	if err != nil {
		return nil, nil, err
	}
	q := newQueryState(len(e.pack.rules))
	q.around = &e.around
	q.carry(c)
	if c.err == nil && (q.ref.ID == "" || q.group != "") {
		c.Fail("the query has no id")
	}
	rows, dropped := e.readTable(c, q)
	for i := range rows {
		if c.err == nil && rows[i].ri >= 0 {
			e.readSeries(c, q, &rows[i])
		}
	}
	if c.err == nil {
		q.loadColumns(c, e.scratch)
		q.loadRings(c)
	}
	for _, row := range rows {
		if c.err == nil {
			c.part(row.ri < 0, func(c *codec) { carrySeries(c, q.rules[row.ri]) })
		}
	}
	if err := c.end(); err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		dropped = e.redress(q, &row, dropped)
	}
	return q, dropped, nil
}

// readSeries makes the series of a rule, empty.
func (e *Engine) readSeries(c *codec, q *queryState, row *savedRow) {
	if e.rules[row.ri].grouper != nil {
		c.Fail("rule %q judges many queries and has series of one", row.alert)
		return
	}
	for _, x := range row.series {
		if slices.ContainsFunc(q.rules[row.ri], func(s *series) bool { return s.index == x.index }) {
			c.Fail("rule %q has operator %d twice", row.alert, x.index)
			return
		}
		q.rules[row.ri] = append(q.rules[row.ri], e.newSeries(q, row.ri, x.index, x.operator))
	}
}

// redress gives alerts whose rule has other labels now their new ones. What was sent
// under the old ones is to be resolved.
func (e *Engine) redress(q *queryState, row *savedRow, dropped []Dropped) []Dropped {
	if row.ri < 0 || e.pack.rules[row.ri].dressHash == row.dress {
		return dropped
	}
	d := Dropped{Rule: row.alert, Query: q.ref, Why: "the rule's labels were changed"}
	for _, s := range q.rules[row.ri] {
		if s.alert == nil {
			continue
		}
		labels := e.labels(q, row.ri, s)
		if s.alert.state == Firing && !slices.Equal(labels, s.alert.labels) {
			d.Firing = append(d.Firing, s.alert.labels)
		}
		s.alert.labels = labels
	}
	if len(d.Firing) == 0 {
		return dropped
	}
	return append(dropped, d)
}

// carrySeries carries the state of a rule's series.
func carrySeries(c *codec, list []*series) {
	for _, s := range list {
		s.carry(c)
	}
}

func (s *series) carry(c *codec) {
	c.whole(&s.waited)
	c.ints(&s.judgedAt, &s.asOfMs)
	s.judged.carry(c)
	if present(c, &s.alert) {
		s.alert.carry(c)
	}
	if t, ok := s.tracker.(saved); ok {
		t.carry(c)
	}
}

// carryLabels carries labels, nil for none.
func carryLabels(c *codec, l *Labels) {
	n := len(*l)
	c.items(&n)
	if !c.writing && n > 0 {
		*l = make(Labels, n)
	}
	for i := range *l {
		c.str(&(*l)[i].Name)
		c.str(&(*l)[i].Value)
	}
}
