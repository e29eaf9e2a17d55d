package rules

import (
	"fmt"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// risingSpec is the detector `rising`, and `falling` as its mirror.
type risingSpec struct {
	Over        Extent             `yaml:"over"`
	MinPoints   int                `yaml:"min_points"`
	By          strictyaml.Percent `yaml:"by"`
	AtLeast     string             `yaml:"at_least"`
	Confidence  strictyaml.Percent `yaml:"confidence"`
	AdjustedFor string             `yaml:"adjusted_for"`
	AgreeOver   Extent             `yaml:"agree_over"`
	AgreeAt     strictyaml.Percent `yaml:"agree_at"` // confidence over agree_over; default confidence
	Level       *levelSpec         `yaml:"level"`
}

// levelSpec is the second way to a finding: the newest batches against those before.
type levelSpec struct {
	Recent Extent             `yaml:"recent"`
	Before Extent             `yaml:"before"`
	By     strictyaml.Percent `yaml:"by"`
}

const (
	defaultMinPoints  = 60
	defaultConfidence = 0.999
	defaultBy         = 0.25
	// leastMinPoints is what the statistics can do with at all.
	leastMinPoints = 10
)

var defaultOver = Extent{Batches: 120, Ms: 2 * 3600 * 1000}

// rising finds values that climb (or fall) over a window: Mann-Kendall's test
// corrected for memory and a Theil-Sen line (see package trend for sources and
// error rates). Where agree_over is set a longer window must say the same. Where
// level is set, the newest batches lying above those before is a finding too.
// Measured on healthy series: no finding in 240,000 batches where 120 and 240
// batches agree and the finding holds for 20.
type rising struct {
	spec    risingSpec
	options trend.RisingOptions
	longer  trend.RisingOptions // of the longer window
	level   trend.LevelOptions
	ins     []*expression // adjusted_for, where it is set
	falling bool
}

func (r *risingSpec) compile(c *ruleCompiler, key string) detector {
	d := &rising{spec: *r, falling: key == "falling"}
	d.defaults()
	d.options = trend.RisingOptions{
		MinPoints: d.spec.MinPoints, Z: trend.ConfidenceZ(float64(d.spec.Confidence)),
		By: float64(d.spec.By), Falling: d.falling,
	}
	d.check(c, key)
	if r.AtLeast != "" {
		d.options.AtLeast = c.quantity(r.AtLeast, []any{key, "at_least"})
	}
	if r.AdjustedFor != "" {
		if x := c.expression(r.AdjustedFor, aNumber, c.signal.of, c.path+"."+strictyaml.Path(key, "adjusted_for")); x != nil {
			d.ins = append(d.ins, x)
		}
	}
	d.options.AdjustForLoad = len(d.ins) > 0
	d.longer = d.options
	d.longer.Z = trend.ConfidenceZ(float64(d.spec.AgreeAt))
	if l := d.spec.Level; l != nil {
		d.level = trend.LevelOptions{
			By: float64(l.By), AtLeast: d.options.AtLeast, AdjustForLoad: d.options.AdjustForLoad, Falling: d.falling,
		}
	}
	return d
}

// defaults fills what the rule leaves out.
func (d *rising) defaults() {
	s := &d.spec
	if s.Over.IsZero() {
		s.Over = defaultOver
	}
	if s.MinPoints == 0 {
		s.MinPoints = defaultMinPoints
	}
	if s.By == 0 {
		s.By = defaultBy
	}
	if s.Confidence == 0 {
		s.Confidence = defaultConfidence
	}
	if s.AgreeAt == 0 {
		s.AgreeAt = s.Confidence
	}
}

func (d *rising) check(c *ruleCompiler, key string) {
	s := &d.spec
	must := func(ok bool, field, format string, args ...any) {
		if !ok {
			c.faultf([]any{key, field}, format, args...)
		}
	}
	must(s.MinPoints >= leastMinPoints, "min_points", "min_points (%d) must be at least %d", s.MinPoints, leastMinPoints)
	must(s.Over.Batches == 0 || s.Over.Batches >= s.MinPoints, "over",
		"over (%s) must hold min_points (%d)", s.Over, s.MinPoints)
	must(s.By > 0 && (!d.falling || s.By < 1), "by", "by (%s) must be above 0%%, and below 100%% for a fall", s.By)
	must(s.Confidence >= 0.9 && s.Confidence <= 0.999999, "confidence", "confidence (%s) must lie between 90%% and 99.9999%%", s.Confidence)
	must(s.AgreeOver.IsZero() || s.AgreeOver.Longer(s.Over), "agree_over",
		"agree_over (%s) must be longer than over (%s)", s.AgreeOver, s.Over)
	must(s.AgreeAt == s.Confidence || s.AgreeAt >= 0.9 && s.AgreeAt < s.Confidence, "agree_at", "agree_at (%s) must lie between 90%% and confidence (%s)", s.AgreeAt, s.Confidence)
	if l := s.Level; l != nil {
		must(!l.Recent.IsZero(), "level", "level needs recent")
		must(!l.Before.IsZero(), "level", "level needs before")
		must(l.By > 0, "level", "level needs by, above 0%%")
	}
}

func (d *rising) name() string {
	if d.falling {
		return "falling"
	}
	return "rising"
}

func (d *rising) inputs() []*expression { return d.ins }

func (d *rising) span() Extent { return d.spec.Over }

func (d *rising) describe() string {
	var b strings.Builder
	s := &d.spec
	fmt.Fprintf(&b, "%s by %s over %s, from %d batches on", d.name(), s.By, s.Over, s.MinPoints)
	if d.options.AtLeast > 0 {
		fmt.Fprintf(&b, ", at least %s", s.AtLeast)
	}
	fmt.Fprintf(&b, ", confidence %s", s.Confidence)
	if s.AdjustedFor != "" {
		fmt.Fprintf(&b, ", adjusted for %s", s.AdjustedFor)
	}
	if !s.AgreeOver.IsZero() {
		fmt.Fprintf(&b, ", agreeing over %s", s.AgreeOver)
		if s.AgreeAt != s.Confidence {
			fmt.Fprintf(&b, " at %s", s.AgreeAt)
		}
	}
	if l := s.Level; l != nil {
		fmt.Fprintf(&b, "; or the level of %s by %s against %s before", l.Recent, l.By, l.Before)
	}
	return b.String()
}

func (d *rising) adjusts() *expression {
	if len(d.ins) == 0 {
		return nil
	}
	return d.ins[0]
}

// newTracker makes a tracker with columns of its own.
func (d *rising) newTracker(s *trend.Scratch) tracker {
	var own ownColumns
	t := d.newSharer(s, own.of(len(d.ins) > 0, s)).(*risingTracker)
	t.own = own.sets
	return t
}

func span(e Extent) trend.Span { return trend.Span{Batches: e.Batches, Ms: e.Ms} }
