package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// evidencePlan is the evidence of all rules that look at the same batches in blocks of
// the same size: one ring of a query or operator serves them.
type evidencePlan struct {
	hash    uint64   // of what tells it from others
	hashes  []uint64 // of keys
	columns []evidenceColumn
	keys    []string // of the columns' values
	over    Extent
}

// planEvidence gives each rule its plan and the places of its own evidence in it.
func (e *Engine) planEvidence() {
	plans := map[string]*evidencePlan{}
	for i, r := range e.pack.rules {
		if len(r.evidence) == 0 || r.ofEvents() {
			continue
		}
		over := evidenceOver(r.detector.span())
		key := r.evidenceKey(over)
		p := plans[key]
		if p == nil {
			p = &evidencePlan{hash: hashOf(key), over: over}
			plans[key] = p
		}
		e.rules[i].evidence, e.rules[i].places = p, p.places(r.evidence)
	}
}

// evidenceKey says in words which batches a rule's evidence is from. What a query does
// beside is the same story whatever batches a rule looks at; figures of an operator are
// only put beside those of the batches that are judged.
func (r *rule) evidenceKey(over Extent) string {
	key := fmt.Sprint(r.signal.of, r.inWarmUp, r.acrossRuns, r.acrossPauses, over)
	for _, guard := range []*expression{r.signal.when, r.when} {
		if guard != nil && r.signal.of == OfOperator {
			key += "\x00when " + guard.key
		}
	}
	return key
}

// evidenceOver is the stretch that evidence is gathered over: the detector's, or up to
// half of it, so that rules with windows that differ little share their blocks.
func evidenceOver(e Extent) Extent {
	var out Extent
	if e.Batches > 0 {
		for out.Batches = 15; 2*out.Batches <= e.Batches; out.Batches *= 2 {
			continue
		}
	}
	if e.Ms > 0 {
		for out.Ms = dayMs / 96; 2*out.Ms <= e.Ms; out.Ms *= 2 {
			continue
		}
	}
	return out
}

// places adds what the plan does not have yet, and returns where each column is in it.
func (p *evidencePlan) places(columns []evidenceColumn) []int {
	out := make([]int, 0, len(columns))
	for _, c := range columns {
		key := c.expr.key
		if key == "" {
			key = "phase " + c.expr.text
		}
		at := 0
		for at < len(p.keys) && p.keys[at] != key {
			at++
		}
		if at == len(p.keys) {
			p.keys, p.hashes, p.columns = append(p.keys, key), append(p.hashes, hashOf(key)), append(p.columns, c)
		}
		out = append(out, at)
	}
	return out
}

// sharedRing is a ring and who gathers evidence in it.
type sharedRing struct {
	*evidenceRing
	plan     *evidencePlan
	operator string
	index    int // of the operator, -1 for the query
	users    int
	batch    int64 // position of the newest batch in it
}

// evidenceView is one series' part of a ring.
type evidenceView struct {
	ring   *sharedRing
	places []int
}

// evidenceOf returns the ring of a rule's plan for a query or operator.
func (e *Engine) evidenceOf(q *queryState, ri, index int, name string) evidenceView {
	s := &e.rules[ri]
	if s.evidence == nil {
		return evidenceView{}
	}
	for _, r := range q.rings {
		if r.plan == s.evidence && r.operator == name && r.index == index {
			r.users++
			return evidenceView{r, s.places}
		}
	}
	r := &sharedRing{evidenceRing: newEvidenceRing(len(s.evidence.columns), s.evidence.over), plan: s.evidence, operator: name, index: index, users: 1, batch: -1}
	q.rings = append(q.rings, r)
	return evidenceView{r, s.places}
}

// push takes one batch in, unless another series did.
func (v evidenceView) push(q *queryState, b *event.Batch, o *event.Operator, m *memo) {
	r := v.ring
	if r == nil || r.batch == q.position {
		return
	}
	r.batch = q.position
	r.evidenceRing.push(r.plan.columns, q.position, q.atMs, b, o, &q.facts, m)
}

// before are the series' figures before a batch, nil where it has none.
func (v evidenceView) before(since int64) []float64 {
	if v.ring == nil {
		return nil
	}
	return v.pick(v.ring.before(since, nil))
}

// after are its newest figures, nil where it has none.
func (v evidenceView) after() []float64 {
	if v.ring == nil {
		return nil
	}
	return v.pick(v.ring.after(nil))
}

func (v evidenceView) pick(all []float64) []float64 {
	out := make([]float64, 0, len(v.places))
	for _, at := range v.places {
		out = append(out, all[at])
	}
	return out
}

// reset forgets all batches.
func (v evidenceView) reset() {
	if v.ring != nil {
		v.ring.reset()
	}
}

// leave gives the ring back.
func (v evidenceView) leave(q *queryState) {
	if v.ring == nil {
		return
	}
	if v.ring.users--; v.ring.users > 0 {
		return
	}
	for i, r := range q.rings {
		if r == v.ring {
			q.rings = append(q.rings[:i], q.rings[i+1:]...)
			return
		}
	}
}
