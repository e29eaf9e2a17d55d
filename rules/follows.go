package rules

import (
	"fmt"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// followsSpec is the detector `follows`.
type followsSpec struct {
	Driver             string             `yaml:"driver"`
	Rival              string             `yaml:"rival"`
	Over               Extent             `yaml:"over"`
	AtLeastCorrelation float64            `yaml:"at_least_correlation"`
	MinPoints          int                `yaml:"min_points"`
	Confidence         strictyaml.Percent `yaml:"confidence"`
}

// follows finds a signal that scales with a driver, and not with its rival: a
// commit that takes as long as the state is large, whatever comes in. Where the
// figures moved too much alike, or alike with time, it cannot separate them and says
// so. See trend.Scratch.PartialRank for method, source and measured errors.
type follows struct {
	spec    followsSpec
	options trend.PartialOptions
	ins     []*expression // driver, then rival where it is set
}

func (s *followsSpec) compile(c *ruleCompiler, key string) detector {
	d := &follows{spec: *s}
	d.defaults()
	must := func(ok bool, field, format string, args ...any) {
		if !ok {
			c.faultf([]any{key, field}, format, args...)
		}
	}
	f := &d.spec
	must(f.MinPoints >= leastForecast, "min_points", "min_points (%d) must be at least %d", f.MinPoints, leastForecast)
	must(f.Over.Batches == 0 || f.Over.Batches >= f.MinPoints, "over", "over (%s) must hold min_points (%d)", f.Over, f.MinPoints)
	must(f.AtLeastCorrelation >= 0.2 && f.AtLeastCorrelation < 1, "at_least_correlation",
		"at_least_correlation (%g) must lie between 0.2 and 1", f.AtLeastCorrelation)
	must(f.Confidence >= 0.9 && f.Confidence <= 0.999999, "confidence", "confidence (%s) must lie between 90%% and 99.9999%%", f.Confidence)
	d.options = trend.PartialOptions{MinPoints: 20, AtLeast: f.AtLeastCorrelation, Z: trend.ConfidenceZ(float64(f.Confidence))}
	if s.Driver == "" {
		c.faultf([]any{key}, "follows needs driver, an expression")
		return d
	}
	c.input(s.Driver, []any{key, "driver"}, &d.ins)
	if s.Rival != "" {
		c.input(s.Rival, []any{key, "rival"}, &d.ins)
	}
	return d
}

func (d *follows) defaults() {
	s := &d.spec
	if s.Over.IsZero() {
		s.Over = Extent{Batches: 200, Ms: 2 * 3600 * 1000}
	}
	if s.AtLeastCorrelation == 0 {
		s.AtLeastCorrelation = 0.4
	}
	if s.MinPoints == 0 {
		s.MinPoints = defaultMinPoints
	}
	if s.Confidence == 0 {
		s.Confidence = defaultConfidence
	}
}

func (d *follows) name() string          { return "follows" }
func (d *follows) inputs() []*expression { return d.ins }
func (d *follows) span() Extent          { return d.spec.Over }

// stride is long: what a figure scales with does not change from batch to batch.
func (d *follows) stride() int { return 32 }

func (d *follows) describe() string {
	var b strings.Builder
	s := &d.spec
	fmt.Fprintf(&b, "follows %s", s.Driver)
	if s.Rival != "" {
		fmt.Fprintf(&b, " and not %s", s.Rival)
	}
	fmt.Fprintf(&b, " over %s, from %d batches on, correlation %g, confidence %s", s.Over, s.MinPoints, s.AtLeastCorrelation, s.Confidence)
	return b.String()
}

func (d *follows) newTracker(s *trend.Scratch) tracker {
	return &followsTracker{d: d, s: s, past: newHistory(d.spec.Over, finePoints, 1+len(d.ins))}
}
