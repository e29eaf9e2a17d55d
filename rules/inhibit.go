package rules

import (
	"slices"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// inhibitSpec says whose alerts speak for others: of the same query, and where
// either side judges many queries at once, of the same cluster.
type inhibitSpec struct {
	Causes       []string `yaml:"causes"`       // symptoms
	Consequences []string `yaml:"consequences"` // symptoms
}

// symptom is the rule's label of that name, as the file writes it.
func (r *rule) symptom() string { return r.label("symptom") }

func (r *rule) label(name string) string {
	for i := range r.labels {
		if r.labels[i].name == name {
			return r.labels[i].text
		}
	}
	return ""
}

// compileInhibits resolves the symptoms of all files to rules.
func (b *packLoader) compileInhibits(p *Pack) {
	p.causes, p.consequences = make([][]int, len(p.rules)), make([][]int, len(p.rules))
	var known []string
	of := map[string][]int{}
	for i, r := range p.rules {
		if s := r.symptom(); s != "" {
			of[s] = append(of[s], i)
			known = append(known, s)
		}
	}
	slices.Sort(known)
	for _, l := range b.files {
		for i := range l.file.Inhibit {
			l.inhibits(p, i, of, slices.Compact(known))
		}
	}
}

func (l *loader) inhibits(p *Pack, i int, of map[string][]int, known []string) {
	spec := &l.file.Inhibit[i]
	check := func(key string, symptoms []string) {
		for k, s := range symptoms {
			if len(of[s]) == 0 {
				l.fault(l.pos.Faultf(strictyaml.Path("inhibit", i, key, k), "inhibit: no rule has the symptom %q%s", s, strictyaml.DidYouMean(s, known)))
			}
		}
		if len(symptoms) == 0 {
			l.fault(l.pos.Faultf(strictyaml.Path("inhibit", i), "inhibit needs %s", key))
		}
	}
	check("causes", spec.Causes)
	check("consequences", spec.Consequences)
	for _, cause := range spec.Causes {
		for _, c := range of[cause] {
			for _, consequence := range spec.Consequences {
				for _, t := range of[consequence] {
					if c != t && !slices.Contains(p.causes[t], c) {
						p.causes[t] = append(p.causes[t], c)
						p.consequences[c] = append(p.consequences[c], t)
					}
				}
			}
		}
	}
}

// severity is the severity that an alert has now.
func (a *liveAlert) severity() string { return a.labels.Get("severity") }

// rank orders severities; what is unknown ranks lowest.
func rank(severity string) int { return slices.Index(severities, severity) }

// inhibit looks for a firing alert that names the cause of the one that begins to
// fire. That one then speaks for both, and takes over the higher severity. Alerts
// for information neither inhibit nor are inhibited.
func (e *Engine) inhibit(q *queryState, ri int, s *series, at moment, out []Verdict) []Verdict {
	if rank(s.alert.severity()) <= rank("info") {
		return out
	}
	for _, ci := range e.pack.causes[ri] {
		cq, cause := e.firing(ci, q)
		if cause == nil || rank(cause.alert.severity()) <= rank("info") {
			continue
		}
		s.alert.inhibitedBy = e.pack.rules[ci].alert
		if rank(s.alert.severity()) > rank(cause.alert.severity()) {
			out = e.raise(cq, ci, cause, s.alert.severity(), at, out)
		}
		return out
	}
	return out
}

// firing finds a firing alert of a rule that concerns the same query, or the same
// cluster where the rule or q stands for many, and that nothing inhibits itself
// unless nothing better is there.
func (e *Engine) firing(ri int, q *queryState) (*queryState, *series) {
	if e.rules[ri].grouper != nil {
		for _, g := range e.rules[ri].groups {
			if s := g.rules[ri][0]; s.alert != nil && s.alert.state == Firing && e.concerns(ri, g, q) {
				return g, s
			}
		}
		return nil, nil
	}
	for _, s := range q.rules[ri] {
		if s.alert != nil && s.alert.state == Firing {
			return q, s
		}
	}
	return nil, nil
}

// concerns reports whether a group's alert is about the query too.
func (e *Engine) concerns(ri int, g, q *queryState) bool {
	if d, ok := e.rules[ri].grouper.(interface {
		concerns(key string, q *queryState) bool
	}); ok {
		return d.concerns(g.group, q)
	}
	return g.cluster == q.cluster
}

// raise gives a firing alert a higher severity: the old one is resolved, the new
// one fires at once.
func (e *Engine) raise(q *queryState, ri int, s *series, severity string, at moment, out []Verdict) []Verdict {
	s.alert.raised = severity
	return e.swapLabels(q, ri, s, e.labels(q, ri, s), at.atMs, "a consequence of it is more severe", out)
}

// ended is a firing alert that was resolved: of a query, by a rule.
type ended struct {
	q  *queryState
	ri int
}

// settle looks after what resolved alerts spoke for, once everything that an
// update changes is known: several causes often end with the same batch, and none
// of them is to take over from another on its last breath.
func (e *Engine) settle(out []Verdict) []Verdict {
	for len(e.over) > 0 {
		x := e.over[0]
		e.over = e.over[1:]
		out = e.release(x.q, x.ri, out)
	}
	e.over = e.over[:0]
	return out
}

// release lets the alerts that a resolved one spoke for speak for themselves, if
// no other cause does.
func (e *Engine) release(q *queryState, ri int, out []Verdict) []Verdict {
	name := e.pack.rules[ri].alert
	for _, ti := range e.pack.consequences[ri] {
		for _, tq := range e.affected(ti, q) {
			for _, s := range tq.rules[ti] {
				if s.alert == nil || s.alert.state != Firing || s.alert.inhibitedBy != name {
					continue
				}
				s.alert.inhibitedBy = ""
				if out = e.inhibit(tq, ti, s, tq.moment(), out); s.alert.inhibitedBy == "" {
					out = append(out, e.verdict(tq, ti, s, Firing))
				}
			}
		}
	}
	return out
}

// affected lists the queries whose alerts an alert of q may have inhibited.
func (e *Engine) affected(ti int, q *queryState) []*queryState {
	switch {
	case e.rules[ti].grouper != nil:
		return e.rules[ti].groups
	case q.group == "":
		return []*queryState{q}
	}
	return slices.Clone(e.ordered())
}
