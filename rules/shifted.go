package rules

import (
	"fmt"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// shiftedSpec is the detector `shifted`.
type shiftedSpec struct {
	Recent      Extent             `yaml:"recent"`
	Baseline    Extent             `yaml:"baseline"`
	By          strictyaml.Percent `yaml:"by"`
	AtLeast     string             `yaml:"at_least"`
	Confidence  strictyaml.Percent `yaml:"confidence"`
	AdjustedFor string             `yaml:"adjusted_for"`
	Early       bool               `yaml:"early"`
	Side        string             `yaml:"side"` // up or down; default up
}

// shifted finds newest batches that lie off the query's own baseline. The baseline
// is learned from quiet batches and frozen: a fault does not become normal while it
// lasts, and is still seen after a restart. A capped CUSUM watches each batch; a
// rank-sum test of the newest against the baseline must agree, unless early says that
// the watch is enough. Sources, costs and measured errors are at trend.CUSUM and
// trend.RankSum.
type shifted struct {
	spec    shiftedSpec
	atLeast float64
	z       float64
	falling bool
	load    bool
	ins     []*expression // adjusted_for where it is set, then the version of Spark
}

func (s *shiftedSpec) compile(c *ruleCompiler, key string) detector {
	d := &shifted{spec: *s, falling: s.Side == "down"}
	d.defaults()
	d.check(c, key)
	if s.AtLeast != "" {
		d.atLeast = c.quantity(s.AtLeast, []any{key, "at_least"})
	}
	if s.AdjustedFor != "" {
		c.input(s.AdjustedFor, []any{key, "adjusted_for"}, &d.ins)
		d.load = true
	}
	d.z = trend.ConfidenceZ(float64(d.spec.Confidence))
	d.ins = append(d.ins, sparkVersionFact)
	return d
}

// sparkVersionFact tells when Spark was changed: figures of two versions are not
// compared.
var sparkVersionFact = func() *expression {
	name := FactSpark.String()
	return &expression{text: name, key: name, eval: factLeaves()[name].eval}
}()

func (d *shifted) defaults() {
	s := &d.spec
	if s.Recent.IsZero() {
		s.Recent = Extent{Batches: 20, Ms: 20 * 60 * 1000}
	}
	if s.Baseline.IsZero() {
		s.Baseline = Extent{Batches: 100, Ms: 2 * 3600 * 1000}
	}
	if s.By == 0 {
		s.By = defaultBy
	}
	if s.Confidence == 0 {
		s.Confidence = defaultConfidence
	}
	if s.Side == "" {
		s.Side = "up"
	}
}

func (d *shifted) check(c *ruleCompiler, key string) {
	s := &d.spec
	must := func(ok bool, field, format string, args ...any) {
		if !ok {
			c.faultf([]any{key, field}, format, args...)
		}
	}
	must(s.Recent.Batches >= leastRecent, "recent", "recent (%s) must hold %d batches", s.Recent, leastRecent)
	must(s.Baseline.Batches >= leastBaseline, "baseline", "baseline (%s) must hold %d batches", s.Baseline, leastBaseline)
	must(s.Baseline.Longer(s.Recent), "baseline", "baseline (%s) must be longer than recent (%s)", s.Baseline, s.Recent)
	must(s.By > 0 && (!d.falling || s.By < 1), "by", "by (%s) must be above 0%%, and below 100%% for a fall", s.By)
	must(s.Confidence >= 0.9 && s.Confidence <= 0.999999, "confidence", "confidence (%s) must lie between 90%% and 99.9999%%", s.Confidence)
	if err := oneOf("side", s.Side, []string{"up", "down"}); err != nil {
		must(false, "side", "%v", err)
	}
}

const (
	// leastRecent and leastBaseline are what a comparison of ranks can do with.
	leastRecent   = 5
	leastBaseline = 20
)

func (d *shifted) name() string          { return "shifted" }
func (d *shifted) inputs() []*expression { return d.ins }
func (d *shifted) span() Extent          { return d.spec.Baseline }

func (d *shifted) describe() string {
	var b strings.Builder
	s := &d.spec
	fmt.Fprintf(&b, "shifted %s by %s, %s against a baseline of %s", s.Side, s.By, s.Recent, s.Baseline)
	if d.atLeast > 0 {
		fmt.Fprintf(&b, ", at least %s", s.AtLeast)
	}
	if s.Early {
		b.WriteString(", early")
	} else {
		fmt.Fprintf(&b, ", confidence %s", s.Confidence)
	}
	if d.load {
		fmt.Fprintf(&b, ", adjusted for %s", s.AdjustedFor)
	}
	return b.String()
}

func (d *shifted) newTracker(s *trend.Scratch) tracker {
	t := &shiftedTracker{d: d, s: s, recent: newHistory(d.spec.Recent, recentPoints, d.columns())}
	o := trend.DefaultCUSUM()
	if d.falling {
		o.Side = trend.Downward
	}
	t.cusum = trend.NewCUSUM(o)
	t.forget()
	return t
}

// newBaseline is a baseline that is to be learned.
func (d *shifted) newBaseline() *history {
	return newHistory(d.spec.Baseline, baselinePoints, d.columns())
}

// columns of a history: the value, and the load where it is looked at.
func (d *shifted) columns() int { return 1 + int(truth(d.load)) }
