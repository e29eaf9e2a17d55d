package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// Save appends everything that belongs to no single query to dst: the clock, who was
// heard, what queries left to those that take over their names, and the rules of many
// queries with their alerts.
func (e *Engine) Save(dst []byte) []byte {
	return seal(dst, savedRest, func(c *codec) {
		c.ints(&e.ticked, &e.nowMs, &e.asOfMs, &e.prunedMs)
		e.around.carry(c)
		e.saveHeirs(c)
		n := len(e.rules)
		c.items(&n)
		for ri := range e.rules {
			row := e.pack.rules[ri].row(ri)
			row.carry(c)
			e.rules[ri].carry(c, nil)
		}
	})
}

// Load takes in what Save saved, into an engine that has judged nothing yet; before or
// after the queries. What a rule of many queries had that is gone or was changed is
// dropped and returned.
//
// A form that is broken or of a newer version is an error and leaves the engine as it
// was.
func (e *Engine) Load(data []byte) ([]Dropped, error) {
	c, err := unseal(data, savedRest)
	if err != nil {
		return nil, fmt.Errorf("load rule state: %w", err)
	}
	var r rest
	r.read(c, e)
	if err := c.end(); err != nil {
		return nil, fmt.Errorf("load rule state: %w", err)
	}
	return r.adopt(e), nil
}

// rest is what Load has read.
type rest struct {
	clock   [4]int64 // ticked, nowMs, asOfMs, prunedMs
	around  surroundings
	heirs   map[event.QueryID]*predecessor
	rows    []savedRow
	states  []ruleState
	dropped []Dropped
}

func (r *rest) read(c *codec, e *Engine) {
	c.ints(&r.clock[0], &r.clock[1], &r.clock[2], &r.clock[3])
	r.around = newSurroundings()
	r.around.carry(c)
	r.heirs = readHeirs(c)
	n, taken := 0, make([]bool, len(e.rules))
	for c.items(&n); n > 0 && c.err == nil; n-- {
		var row savedRow
		var state ruleState
		row.carry(c)
		e.match(&row, taken)
		state.carry(c, &groupReader{e: e, ri: row.ri})
		if d := e.dropped(&row, event.QueryRef{}); row.ri < 0 && len(state.groups) > 0 {
			d.Firing = firingOf(state.groups)
			r.dropped = append(r.dropped, d)
		}
		if row.ri >= 0 {
			r.rows, r.states = append(r.rows, row), append(r.states, state)
		}
	}
}

// firingOf lists the labels of alerts about groups that fire.
func firingOf(groups []*queryState) []Labels {
	var out []Labels
	for _, q := range groups {
		for _, list := range q.rules {
			for _, s := range list {
				if s.alert != nil && s.alert.state == Firing {
					out = append(out, s.alert.labels)
				}
			}
		}
	}
	return out
}

// adopt gives the engine what was read.
func (r *rest) adopt(e *Engine) []Dropped {
	e.ticked, e.prunedMs = max(e.ticked, r.clock[0]), max(e.prunedMs, r.clock[3])
	e.advance(r.clock[1])
	e.asOfMs = max(e.asOfMs, r.clock[2])
	e.around.take(&r.around)
	for id, p := range r.heirs {
		if len(e.heirs) < maxHeirs {
			e.heirs[id] = p
		}
	}
	for i, row := range r.rows {
		st := &e.rules[row.ri]
		st.lastMs = max(st.lastMs, r.states[i].lastMs)
		if st.grouper == nil {
			continue
		}
		st.groups = r.states[i].groups
		for _, q := range st.groups {
			e.countAlerts(q)
			r.dropped = e.redress(q, &row, r.dropped)
			if g, ok := st.grouper.(*fleetGroups); ok {
				g.of(q.cluster)
			}
		}
	}
	return r.dropped
}

// take adds what was heard of others; pointers to senders stay good.
func (a *surroundings) take(saved *surroundings) {
	a.all.ms = max(a.all.ms, saved.all.ms)
	for k, h := range saved.drivers {
		if known := a.drivers[k]; known != nil {
			h.ms = max(h.ms, known.ms)
		}
		a.drivers[k] = h
	}
	for _, p := range saved.senders {
		a.meet(*p)
	}
}

func (a *surroundings) carry(c *codec) {
	c.Int(&a.all.ms)
	n := len(a.drivers)
	c.items(&n)
	if c.writing {
		for _, k := range slices.SortedFunc(maps.Keys(a.drivers), driver.compare) {
			k.carry(c, a.drivers[k])
		}
	}
	for ; n > 0 && !c.writing && c.err == nil; n-- {
		var k driver
		var h heard
		k.carry(c, &h)
		a.drivers[k] = &h
	}
	n = len(a.senders)
	c.Count(&n, maxSenders)
	if c.writing {
		for _, name := range slices.Sorted(maps.Keys(a.senders)) {
			a.senders[name].carry(c)
		}
	}
	for ; n > 0 && !c.writing && c.err == nil; n-- {
		var p sender
		p.carry(c)
		a.senders[p.name] = &p
	}
}

func (k *driver) carry(c *codec, h *heard) {
	c.str(&k.cluster)
	c.str(&k.application)
	c.Int(&h.ms)
}

func (e *Engine) saveHeirs(c *codec) {
	n := len(e.heirs)
	c.items(&n)
	for _, id := range slices.Sorted(maps.Keys(e.heirs)) {
		text(c, &id)
		e.heirs[id].carry(c)
	}
}

func readHeirs(c *codec) map[event.QueryID]*predecessor {
	n := 0
	c.Count(&n, maxHeirs)
	heirs := map[event.QueryID]*predecessor{}
	for ; n > 0 && c.err == nil; n-- {
		var id event.QueryID
		p := &predecessor{}
		text(c, &id)
		p.carry(c)
		heirs[id] = p
	}
	return heirs
}

// groupReader makes what stands for the groups of a rule while they are read.
type groupReader struct {
	e  *Engine
	ri int // -1 for a rule that is gone
}

func (r *groupReader) group() *queryState {
	q := newQueryState(max(len(r.e.rules), 1))
	q.rules[max(r.ri, 0)] = []*series{{index: -1}}
	return q
}

// maxGroups bounds the groups of a rule that are read: a cluster or an application each.
const maxGroups = 1 << 16

// carry carries a rule's newest judgement and its groups.
func (st *ruleState) carry(c *codec, r *groupReader) {
	c.Int(&st.lastMs)
	n := len(st.groups)
	if c.items(&n); n > maxGroups {
		c.Fail("%d groups of one rule", n)
		return
	}
	for k := 0; k < n && c.err == nil; k++ {
		if !c.writing {
			st.groups = append(st.groups, r.group())
		}
		q := st.groups[k]
		q.carry(c)
		for _, list := range q.rules {
			carrySeries(c, list)
		}
	}
}
