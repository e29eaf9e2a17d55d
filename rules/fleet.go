package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// fleetSpec is the detector `fleet`: many queries of one cluster that another rule
// finds something in at once.
type fleetSpec struct {
	Of      string              `yaml:"of"`      // name of the other rule
	Queries int                 `yaml:"queries"` // at least so many; default 5
	Share   strictyaml.Percent  `yaml:"share"`   // and such a share of those that it judges; default 30%
	Within  strictyaml.Duration `yaml:"within"`  // that began so close together; default 1h, 0 does not apply
}

// fleet counts, per spark_cluster, the queries in which another rule has a finding
// now and began to have it at about the same time. One cause that they share is
// then likelier than many of their own.
type fleet struct {
	spec     fleetSpec
	withinMs int64
}

func (s *fleetSpec) valueUnit() string { return "count" }

func (s *fleetSpec) compile(c *ruleCompiler, key string) detector {
	d := &fleet{spec: *s, withinMs: s.Within.Std().Milliseconds()}
	if d.spec.Queries == 0 {
		d.spec.Queries = 5
	}
	if d.spec.Share == 0 {
		d.spec.Share = 0.3
	}
	if d.withinMs == 0 {
		d.withinMs = 3600_000
	}
	if s.Of == "" {
		c.faultf([]any{key}, "fleet needs of, the name of the rule whose findings it counts")
	}
	if d.spec.Queries < 2 {
		c.faultf([]any{key, "queries"}, "queries (%d) must be at least 2", s.Queries)
	}
	if d.spec.Share < 0 || d.spec.Share > 1 {
		c.faultf([]any{key, "share"}, "share (%s) must lie between 0%% and 100%%", s.Share)
	}
	return d
}

func (d *fleet) name() string          { return "fleet" }
func (d *fleet) inputs() []*expression { return nil }
func (d *fleet) span() Extent          { return Extent{} }
func (d *fleet) newWatcher() watcher   { return nil }
func (d *fleet) newGroups() grouper    { return &fleetGroups{d: d} }

func (d *fleet) newTracker(*trend.Scratch) tracker { return nil }

func (d *fleet) describe() string {
	return fmt.Sprintf("%s in %d queries and %s of a cluster, begun within %s", d.spec.Of, d.spec.Queries, d.spec.Share, shortDuration(d.spec.Within.Std()))
}

// fleetGroups counts anew each time: findings live with their series.
type fleetGroups struct {
	d        *fleet
	clusters []*fleetCount
}

// fleetCount is one cluster while it is counted.
type fleetCount struct {
	cluster string
	queries int // that the other rule looks at
	total   int // of them that it has judged
	members []member
}

type member struct {
	name      string
	pendingMs int64
	asOfMs    int64
}

func (g *fleetGroups) observe(*queryState, *event.Update, int64) {}

func (g *fleetGroups) judge(e *Engine, _ int64, out []Grouped) []Grouped {
	for _, c := range g.clusters {
		c.queries, c.total, c.members = 0, 0, c.members[:0]
	}
	for _, q := range e.ordered() {
		g.add(e, q)
	}
	g.clusters = slices.DeleteFunc(g.clusters, func(c *fleetCount) bool { return c.queries == 0 })
	for _, c := range g.clusters {
		out = append(out, g.d.count(c))
	}
	return out
}

// add counts one query: in all where the other rule has judged it, and as a member
// where it finds something.
func (g *fleetGroups) add(e *Engine, q *queryState) {
	looked, judged, found, since, asOf := false, false, false, int64(math.MaxInt64), int64(0)
	for ri, list := range q.rules {
		if e.pack.rules[ri].alert != g.d.spec.Of {
			continue
		}
		for _, s := range list {
			looked = true
			judged = judged || s.judged.Said != SaidTooFew
			if s.alert != nil {
				found, since, asOf = true, min(since, s.alert.pendingAtMs), max(asOf, s.asOfMs)
			}
		}
	}
	if !looked {
		return
	}
	c := g.of(q.cluster)
	c.queries++
	if !judged {
		return
	}
	c.total++
	if found {
		c.members = append(c.members, member{q.ref.Label(), since, asOf})
	}
}

func (g *fleetGroups) of(cluster string) *fleetCount {
	i, found := slices.BinarySearchFunc(g.clusters, cluster, func(c *fleetCount, name string) int { return strings.Compare(c.cluster, name) })
	if !found {
		g.clusters = slices.Insert(g.clusters, i, &fleetCount{cluster: cluster})
	}
	return g.clusters[i]
}

// count finds the largest set of members that began together.
func (d *fleet) count(c *fleetCount) Grouped {
	slices.SortStableFunc(c.members, func(a, b member) int { return int(a.pendingMs - b.pendingMs) })
	best, from := 0, 0
	for i, j := 0, 0; i < len(c.members); i++ {
		for c.members[i].pendingMs-c.members[j].pendingMs > d.withinMs {
			j++
		}
		if i-j+1 > best {
			best, from = i-j+1, j
		}
	}
	out := Grouped{Key: c.cluster, Cluster: c.cluster, Total: c.total}
	for _, m := range c.members[from : from+best] {
		out.Members = append(out.Members, m.name)
		out.AsOfMs = max(out.AsOfMs, m.asOfMs)
	}
	slices.Sort(out.Members)
	out.Judgement = Judgement{
		Said: SaidClear, Value: float64(best), Limit: float64(d.spec.Queries), Count: best, Since: -1, How: "fleet",
		EtaMs: math.NaN(), EtaLowMs: math.NaN(), EtaHighMs: math.NaN(),
	}
	switch {
	case c.total < d.spec.Queries:
		out.Said = SaidTooFew
	case best >= d.spec.Queries && float64(best) >= float64(d.spec.Share)*float64(c.total):
		out.Said = SaidFound
	}
	return out
}

// checkFleets finds fleets of rules that are not there, once all files are read.
func (b *packLoader) checkFleets(p *Pack) {
	var known []string
	for _, r := range p.rules {
		if !r.ofEvents() {
			known = append(known, r.alert)
		}
	}
	slices.Sort(known)
	for _, r := range p.rules {
		if d, ok := r.detector.(*fleet); ok && !slices.Contains(known, d.spec.Of) {
			b.fault(strictyaml.Fault{File: r.file, Err: fmt.Errorf("rule %q: fleet: no rule of queries is called %q%s", r.alert, d.spec.Of, strictyaml.DidYouMean(d.spec.Of, known))})
		}
	}
}
