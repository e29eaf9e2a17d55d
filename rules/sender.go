package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// senderSpec is the detector `sender`: nothing is heard of an application with
// several queries, or of anybody.
type senderSpec struct {
	Queries int                 `yaml:"queries"`  // at least so many that should have been heard; default 2
	Factor  float64             `yaml:"factor"`   // times what is usual is too long; default 5
	AtLeast strictyaml.Duration `yaml:"at_least"` // and at least so long; default 10m
}

// senderLost finds applications of which nothing at all is heard, heartbeats
// neither, although several of their queries should have been. Where that is true
// of more than one application, and of nobody the contrary, it is one finding
// about everything: then the network or our own intake is likelier than them all.
//
// An application is told by its name and cluster; senders that do not say either
// are one.
type senderLost struct {
	spec      senderSpec
	atLeastMs float64
}

// everything is the key of the group of all queries.
const everything = "everything"

func (s *senderSpec) valueUnit() string { return "seconds" }

func (s *senderSpec) compile(c *ruleCompiler, key string) detector {
	d := &senderLost{spec: *s}
	if s.Queries == 0 {
		d.spec.Queries = 2
	}
	if s.Factor == 0 {
		d.spec.Factor = 5
	}
	if s.AtLeast == 0 {
		d.spec.AtLeast = strictyaml.Duration(10 * time.Minute)
	}
	if d.spec.Queries < 2 {
		c.faultf([]any{key, "queries"}, "queries (%d) must be at least 2: one silent query is a matter of silent", s.Queries)
	}
	if d.spec.Factor <= 1 || d.spec.Factor > 1000 {
		c.faultf([]any{key, "factor"}, "factor (%g) must be above 1 and at most 1000", s.Factor)
	}
	d.atLeastMs = float64(d.spec.AtLeast.Std().Milliseconds())
	return d
}

func (d *senderLost) name() string                      { return "sender" }
func (d *senderLost) inputs() []*expression             { return nil }
func (d *senderLost) span() Extent                      { return Extent{} }
func (d *senderLost) newWatcher() watcher               { return nil }
func (d *senderLost) newTracker(*trend.Scratch) tracker { return nil }
func (d *senderLost) newGroups() grouper                { return &senderGroups{d: d} }
func (d *senderLost) lasts() bool                       { return true }

func (d *senderLost) describe() string {
	return fmt.Sprintf("%d queries of an application silent for %g times what is usual, at least %s, and nothing heard of the others",
		d.spec.Queries, d.spec.Factor, shortDuration(d.spec.AtLeast.Std()))
}

// senderGroups counts anew each time: what was heard is kept with the queries.
type senderGroups struct {
	d      *senderLost
	groups []senderGroup // memory, sorted by driver
}

// senderGroup is one application while it is counted.
type senderGroup struct {
	driver  driver
	total   int      // queries that run
	silent  []string // those that should have been heard
	limitMs float64  // the shortest silence that is too long for one of those
	quietMs float64  // since anything was heard
}

func (g *senderGroups) observe(*queryState, *event.Update, int64) {}

// concerns reports whether a group's alert is about the query too.
func (g *senderGroups) concerns(key string, q *queryState) bool {
	return key == everything || key == q.driver().key()
}

// key names the driver among groups. A name cannot hold the mark between the two.
func (k driver) key() string { return k.cluster + "\x00" + k.application }

func (k driver) compare(o driver) int {
	return cmp.Or(strings.Compare(k.cluster, o.cluster), strings.Compare(k.application, o.application))
}

func (g *senderGroups) judge(e *Engine, nowMs int64, out []Grouped) []Grouped {
	g.groups = g.groups[:0]
	for _, q := range e.ordered() {
		g.add(e, q, nowMs)
	}
	all := senderGroup{quietMs: float64(nowMs - e.around.all.ms)}
	silentGroups := 0
	for i := range g.groups {
		x := &g.groups[i]
		all.total += x.total
		if len(x.silent) == 0 {
			continue
		}
		silentGroups++
		all.silent = append(all.silent, x.silent...)
		all.limitMs = shorter(all.limitMs, x.limitMs)
	}
	one := len(g.groups) > 1 && silentGroups > 1
	ofAll := g.d.judgement(&all, one)
	for i := range g.groups {
		out = append(out, g.d.grouped(&g.groups[i], ofAll.Said == SaidFound))
	}
	if len(g.groups) > 1 {
		out = append(out, Grouped{Key: everything, Judgement: ofAll, Members: all.silent, Total: all.total})
	}
	return out
}

func shorter(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// add counts one query with its application. A query that is not running, or whose
// trigger never reports, is no reason to hear anything.
func (g *senderGroups) add(e *Engine, q *queryState, nowMs int64) {
	k := q.driver()
	i, found := slices.BinarySearchFunc(g.groups, k, func(x senderGroup, k driver) int { return x.driver.compare(k) })
	if !found {
		quiet := 0.0
		if h := e.around.drivers[k]; h != nil && h.ms != event.Absent {
			quiet = float64(nowMs - h.ms)
		}
		g.groups = slices.Insert(g.groups, i, senderGroup{driver: k, quietMs: quiet})
	}
	x, s := &g.groups[i], &q.story
	if s.ended || s.heardMs == event.Absent || q.trigger == event.TriggerContinuous {
		return
	}
	x.total++
	if limit, known := g.d.limit(q); known && q.silence(nowMs) > limit {
		x.silent = append(x.silent, q.ref.Label())
		x.limitMs = shorter(x.limitMs, limit)
	}
}

// limit is the silence that is too long for a query: where heartbeats name it, as
// many as a sender that is gone has missed.
func (d *senderLost) limit(q *queryState) (ms float64, known bool) {
	s := &q.story
	if p := s.beats.sender; p != nil && s.beats.ms != event.Absent {
		least := min(d.atLeastMs, float64(leastWithHeartbeats.Milliseconds()))
		return max(least, beatsMissed*p.gapMs), true
	}
	return s.limitMs(d.spec.Factor, d.atLeastMs, q.facts[FactIntervalMs])
}

// grouped judges one application. While everything is silent that says more.
func (d *senderLost) grouped(x *senderGroup, allSilent bool) Grouped {
	out := Grouped{
		Key: x.driver.key(), Cluster: x.driver.cluster, Application: x.driver.application,
		Judgement: d.judgement(x, true), Members: x.silent, Total: x.total,
	}
	if allSilent {
		out.Judgement = noted(SaidCannotTell, "nothing is heard of anybody: that is one finding")
	}
	return out
}

// judgement is what a group's silence says; may is false where others speak for it.
func (d *senderLost) judgement(x *senderGroup, may bool) Judgement {
	j := noted(SaidClear, "its queries are heard")
	j.Value, j.Limit, j.Count, j.How = x.quietMs/1000, x.limitMs/1000, len(x.silent), howSilence
	switch {
	case x.total == 0:
		j.Why = "none of its queries runs any more"
	case x.total < d.spec.Queries:
		j.Said, j.Why = SaidTooFew, "too few points: fewer queries than the rule needs run"
	case may && len(x.silent) >= d.spec.Queries && x.quietMs > x.limitMs:
		j.Said = SaidFound
		j.Text, j.Why = "lost sender", fmt.Sprintf(
			"nothing was heard of any of %d queries for %s: the sender, its driver, the network or the intake", x.total, spell(x.quietMs))
	}
	return j
}
