package scenario

import (
	"slices"
	"strings"
	"time"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Limits keep a file with a slip of the pen from asking for more than a machine has.
const (
	maxBatches    = 10_000_000
	maxQueries    = 1_000
	maxExecutors  = 1_000
	maxPartitions = 10_000
	maxRows       = 1e7 // per second
	maxSize       = 1_000
)

// checker collects faults of a scenario, each with its place in the file.
type checker struct {
	sc     *Scenario
	pos    *strictyaml.Positions
	faults strictyaml.Faults
}

func check(sc *Scenario, pos *strictyaml.Positions) error {
	c := &checker{sc: sc, pos: pos}
	version := c.version()
	c.top()
	c.query(version)
	c.cluster()
	c.conf("conf", sc.Conf, version)
	c.faultList(version)
	c.truth()
	return c.faults.Err()
}

func (c *checker) bad(path, format string, args ...any) {
	c.faults = append(c.faults, c.pos.Faultf(path, format, args...))
}

// given reports whether the file, or the code that made the scenario, sets a field.
func (c *checker) given(path string, nonzero bool) bool { return nonzero || c.pos.Has(path) }

// word checks that a value is one of those that exist.
func (c *checker) word(path, what, value string, words []string) bool {
	if slices.Contains(words, value) {
		return true
	}
	hint := strictyaml.DidYouMean(value, words)
	if hint == "" && len(words) <= 8 {
		hint = "; want one of " + strings.Join(words, ", ")
	}
	if value == "" {
		c.bad(path, "%s is missing%s", what, hint)
		return false
	}
	c.bad(path, "unknown %s %q%s", what, value, hint)
	return false
}

// number is what ranges are checked of.
type number interface{ ~int | ~int64 | ~float64 }

// within checks that a value lies in a closed range.
func within[T number](c *checker, path string, value, low, high T) bool {
	if value >= low && value <= high {
		return true
	}
	c.bad(path, "%s (%v) must be from %v to %v", last(path), value, low, high)
	return false
}

// share checks that a part of a whole is one.
func (c *checker) share(path string, p strictyaml.Percent) {
	if p < 0 || p > 1 {
		c.bad(path, "%s (%v) must be from 0%% to 100%%", last(path), p)
	}
}

// last is the key that a path ends with.
func last(path string) string { return path[strings.LastIndexAny(path, ".]")+1:] }

func (c *checker) top() {
	s := c.sc
	if strings.ContainsAny(s.Description, "\n\r") {
		c.bad("description", "description must be one line: it stands in lists")
	}
	within(c, "batches", s.Batches, 1, maxBatches)
	within(c, "queries", s.Queries, 1, maxQueries)
	if _, err := time.Parse(time.RFC3339, s.Start); err != nil {
		c.bad("start", "start (%q) must be a time such as %s", s.Start, DefaultStart)
	}
}

func (c *checker) cluster() {
	l := &c.sc.Cluster
	within(c, "cluster.executors", l.Executors, 1, maxExecutors)
	within(c, "cluster.cores", l.Cores, 1, 256)
	within(c, "cluster.memory", int64(l.Memory), 1<<20, 1<<44)
	within(c, "cluster.overhead", int64(l.Overhead), 0, 1<<44)
	within(c, "cluster.real_stores", l.RealStores, 0, maxPartitions)
	within(c, "cluster.core_speed", l.CoreSpeed, 0.01, 100)
	within(c, "cluster.memtable_bytes", int64(l.MemtableBytes), 64<<10, 64<<20)
	within(c, "cluster.disk.bytes_per_second", int64(l.Disk.BytesPerSecond), 1<<10, 1<<40)
	within(c, "cluster.store.bytes_per_second", int64(l.Store.BytesPerSecond), 1<<10, 1<<40)
	c.share("cluster.store.tail_share", l.Store.TailShare)
	if l.Store.Tail <= 1 {
		c.bad("cluster.store.tail", "tail (%v) must be above 1: below, requests have no mean duration", l.Store.Tail)
	}
	c.noise(&l.Noise)
}

func (c *checker) noise(n *Noise) {
	if !c.word("cluster.noise.kind", "noise kind", n.Kind, noiseKinds) {
		return
	}
	within(c, "cluster.noise.sigma", n.Sigma, 0, 2)
	within(c, "cluster.noise.correlation", n.Correlation, 0, 0.999)
	if n.Kind != "ar1" && c.given("cluster.noise.correlation", n.Correlation != 0) {
		c.bad("cluster.noise.correlation", "correlation means nothing to noise of kind %s, only to ar1", n.Kind)
	}
	if n.Kind != "wander" && c.given("cluster.noise.batches", n.Batches != 0) {
		c.bad("cluster.noise.batches", "batches means nothing to noise of kind %s, only to wander", n.Kind)
	}
	if n.Kind == "wander" {
		within(c, "cluster.noise.batches", n.Batches, 1, 1e6)
	}
}

func (c *checker) truth() {
	s := c.sc
	if s.Healthy && len(s.Expect) > 0 {
		c.bad("healthy", "a healthy scenario expects no symptom: leave out healthy or expect")
	}
	for i := range s.Expect {
		e, path := &s.Expect[i], expectPath(c.pos, i)
		c.word(path+".symptom", "symptom", e.Symptom, symptoms)
		within(c, path+".query", e.Query, 0, s.Queries)
		if e.CannotTell && e.Optional {
			c.bad(path+".optional", "what cannot be told is no alert, so it cannot be optional")
		}
		if e.FromBatch < 0 || e.FromBatch >= s.Batches {
			c.bad(path+".from_batch", "from_batch (%d) must be one of the %d batches", e.FromBatch, s.Batches)
		}
	}
}
