package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Pack is a set of compiled rules. It is immutable and may be shared.
type Pack struct {
	rules  []*rule
	groups []group
	// watches is true where a rule judges what happens to queries.
	watches bool
	// places are those of its expressions.
	places *places
	// causes lists for each rule those whose alerts speak for its own; consequences is
	// the other way round.
	causes, consequences [][]int
}

// group is a named list of rules of one file.
type group struct {
	file, name  string
	limit       int
	first, last int // rules[first:last]
}

// Len returns the number of rules.
func (p *Pack) Len() int { return len(p.rules) }

// RulesOf returns the number of rules that come from the file of that name.
func (p *Pack) RulesOf(file string) int {
	n := 0
	for _, r := range p.rules {
		if r.file == file {
			n++
		}
	}
	return n
}

// rule is one compiled rule.
type rule struct {
	file, group, alert string
	signal             *signal
	detector           detector
	when               *expression
	forExtent, keep    Extent
	evidence           []evidenceColumn
	acrossRuns         bool
	acrossPauses       bool
	inWarmUp           bool // batches of a run's warm-up are judged too
	watch              bool // a finding that is no alert
	labels             []labelTemplate
	annotations        []annotation
	limit              int
	// windowKey tells two rules that learn the same from the same batches.
	windowKey string
	// columnKey tells two rules that judge the same values; windowHash is that of
	// windowKey, and dressHash that of what labels are made from.
	columnKey, windowHash, dressHash uint64
	// key tells the rule from the others of the pack, over reloads.
	key string
}

// compileGroups adds the file's groups to p.
func (l *loader) compileGroups(p *Pack) {
	seen := map[string]bool{}
	for gi := range l.file.Groups {
		g := &l.file.Groups[gi]
		path := strictyaml.Path("groups", gi)
		switch {
		case g.Name == "":
			l.fault(l.pos.Faultf(path, "group %d has no name", gi+1))
		case seen[g.Name]:
			l.fault(l.pos.Faultf(path+".name", "group %q is there twice", g.Name))
		}
		seen[g.Name] = true
		if g.Limit < 0 {
			l.fault(l.pos.Faultf(path+".limit", "limit (%d) must not be below 0", g.Limit))
		}
		first := len(p.rules)
		for ri := range g.Rules {
			if r := l.compileRule(g, ri, strictyaml.Path("groups", gi, "rules", ri)); r != nil {
				p.add(r)
			}
		}
		p.groups = append(p.groups, group{file: l.pos.File(), name: g.Name, limit: g.Limit, first: first, last: len(p.rules)})
	}
}

// add gives the rule its key: file-independent, so that moving a group to another
// file forgets nothing.
func (p *Pack) add(r *rule) {
	n := 0
	for _, other := range p.rules {
		if other.group == r.group && other.alert == r.alert {
			n++
		}
	}
	r.key = fmt.Sprintf("%s/%s/%d", r.group, r.alert, n)
	p.rules = append(p.rules, r)
	p.watches = p.watches || r.ofEvents()
}

// compileRule compiles one rule, nil where it has faults.
func (l *loader) compileRule(g *groupSpec, ri int, path string) *rule {
	spec := &g.Rules[ri]
	before := len(l.faults)
	r := &rule{
		file: l.pos.File(), group: g.Name, alert: spec.Alert, forExtent: spec.For, keep: spec.KeepFiringFor,
		acrossRuns: spec.AcrossRuns, acrossPauses: spec.AcrossPauses, inWarmUp: spec.InWarmUp, limit: spec.Limit,
	}
	if spec.Watch != "" {
		r.watch = true
		if spec.Alert != "" {
			l.fault(l.pos.Faultf(path, "rule %q: it is an alert or a watch, not both", spec.Alert))
		}
		spec.Alert, r.alert = spec.Watch, spec.Watch
	}
	l.checkAlertName(spec.Alert, path)
	if spec.Limit < 0 {
		l.fault(l.pos.Faultf(path+".limit", "rule %q: limit (%d) must not be below 0", spec.Alert, spec.Limit))
	}
	if r.signal = spec.Detectors.ofEvents(); r.signal == nil {
		r.signal = l.signalOf(spec, path)
	} else {
		l.checkEventRule(spec, path)
	}
	if r.signal == nil {
		return nil
	}
	c := &ruleCompiler{loader: l, path: path, signal: r.signal}
	r.detector = c.detector(spec)
	if spec.When != "" {
		r.when = l.expression(spec.When, aTruth, r.signal.of, path+".when")
	}
	r.evidence = c.evidence(spec)
	r.labels = c.labels(spec)
	r.annotations = c.annotations(spec)
	c.dryRun(r)
	if len(l.faults) > before {
		return nil
	}
	r.windowKey, r.columnKey = spec.windowKey(r), hashOf(r.valueKey())
	r.windowHash, r.dressHash = hashOf(r.windowKey), r.dress()
	return r
}

// dress is a hash of what the labels of its alerts are made from.
func (r *rule) dress() uint64 {
	var texts []string
	for _, l := range r.labels {
		texts = append(texts, l.name, l.text)
	}
	return hashOf(texts...)
}

// ofEvents reports whether the rule judges what happens to a query, not a figure.
func (r *rule) ofEvents() bool {
	_, ok := r.detector.(eventDetector)
	return ok
}

// checkEventRule finds what makes no sense where there are no values and no
// batches to count.
func (l *loader) checkEventRule(spec *ruleSpec, path string) {
	must := func(ok bool, key, why string) {
		if !ok {
			l.fault(l.pos.Faultf(path+"."+key, "rule %q: %s %s", spec.Alert, key, why))
		}
	}
	must(spec.Signal == "", "signal", "is not looked at by this detector")
	must(spec.When == "", "when", "is not looked at by this detector")
	must(len(spec.Evidence) == 0, "evidence", "needs a signal")
	must(spec.For.Batches == 0, "for", "takes a duration: there may be no batches to count")
	must(spec.KeepFiringFor.Batches == 0, "keep_firing_for", "takes a duration: there may be no batches to count")
}

func (l *loader) checkAlertName(name, path string) {
	switch {
	case name == "":
		l.fault(l.pos.Faultf(path, "the rule has no alert name"))
	case !alertName.MatchString(name):
		l.fault(l.pos.Faultf(path+".alert", "alert %q: a name has letters, digits and underscores only", name))
	}
}

// signalOf finds the rule's signal.
func (l *loader) signalOf(spec *ruleSpec, path string) *signal {
	if spec.Signal == "" {
		l.fault(l.pos.Faultf(path, "rule %q needs a signal", spec.Alert))
		return nil
	}
	s, ok, err := l.lookup(spec.Signal)
	if !ok {
		known := slices.Sorted(maps.Keys(l.signals))
		l.fault(l.pos.Faultf(path+".signal", "rule %q: signal %q is not defined%s", spec.Alert, spec.Signal,
			strictyaml.DidYouMean(spec.Signal, known)))
		return nil
	}
	if err != nil {
		return nil // reported where the signal stands
	}
	return s
}

// detector compiles the rule's only detector.
func (c *ruleCompiler) detector(spec *ruleSpec) detector {
	found := spec.Detectors.list()
	switch len(found) {
	case 1:
		return found[0].spec.compile(c, found[0].key)
	case 0:
		c.fault(c.pos.Faultf(c.path, "rule %q needs a detector, one of %s", spec.Alert, strings.Join(detectorNames(), ", ")))
	default:
		c.fault(c.pos.Faultf(c.path, "rule %q has two detectors, %s and %s: write two rules", spec.Alert, found[0].key, found[1].key))
	}
	return nil
}

// windowKey says in words everything that decides what the windows hold.
func (s *ruleSpec) windowKey(r *rule) string {
	parts := []string{r.signal.key(), r.detector.describe(), fmt.Sprint(s.AcrossRuns, s.AcrossPauses, s.InWarmUp)}
	for _, x := range r.detector.inputs() {
		parts = append(parts, x.key)
	}
	if r.when != nil {
		parts = append(parts, "when "+r.when.key)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Evidence)) {
		parts = append(parts, name, s.Evidence[name])
	}
	return strings.Join(parts, "\x00")
}
