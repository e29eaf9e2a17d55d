package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// reachesSpec is the detector `reaches`.
type reachesSpec struct {
	Limit       string              `yaml:"limit"`
	Within      strictyaml.Duration `yaml:"within"`
	Over        Extent              `yaml:"over"`
	AgreeOver   Extent              `yaml:"agree_over"`
	MinPoints   int                 `yaml:"min_points"`
	By          strictyaml.Percent  `yaml:"by"`
	Confidence  strictyaml.Percent  `yaml:"confidence"`
	Detrend     string              `yaml:"detrend"` // daily, or nothing
	AdjustedFor string              `yaml:"adjusted_for"`
	RawAbove    string              `yaml:"raw_above"` // level from which load is not taken out
	Side        string              `yaml:"side"`      // up or down; default up
}

const (
	defaultWithin   = 24 * 3600 * 1000
	defaultMoveBy   = 0.1
	leastForecast   = 30
	forecastWindows = 4
)

// reaches finds values that will meet a limit soon if they go on as they do. It asks
// for a trend first, in two windows where agree_over is set, and draws its line at
// most four windows ahead. See trend.Scratch.TimeToLimit for method and measured
// errors.
type reaches struct {
	spec     reachesSpec
	withinMs float64
	options  trend.LimitOptions
	limit    bound
	rawAbove float64
	load     bool          // adjusted_for is set: the first input
	ins      []*expression // adjusted_for, and the limit where it is an expression
}

func (s *reachesSpec) compile(c *ruleCompiler, key string) detector {
	d := &reaches{spec: *s}
	d.defaults()
	d.check(c, key)
	d.withinMs = float64(d.spec.Within.Std().Milliseconds())
	d.options = trend.LimitOptions{
		MinPoints: leastMinPoints, Z: trend.ConfidenceZ(float64(d.spec.Confidence)), By: float64(d.spec.By),
		Down: d.spec.Side == "down", Windows: forecastWindows,
	}
	if s.AdjustedFor != "" {
		c.input(s.AdjustedFor, []any{key, "adjusted_for"}, &d.ins)
		d.load = true
	}
	if s.RawAbove != "" {
		d.rawAbove = c.quantity(s.RawAbove, []any{key, "raw_above"})
	}
	if s.Limit == "" {
		c.faultf([]any{key}, "reaches needs limit")
		return d
	}
	d.limit = c.bound(s.Limit, []any{key, "limit"}, &d.ins)
	return d
}

func (d *reaches) defaults() {
	s := &d.spec
	if s.Within == 0 {
		s.Within = strictyaml.Duration(defaultWithin * time.Millisecond)
	}
	if s.Over.IsZero() {
		s.Over = defaultOver
	}
	if s.MinPoints == 0 {
		s.MinPoints = defaultMinPoints
	}
	if s.By == 0 {
		s.By = defaultMoveBy
	}
	if s.Confidence == 0 {
		s.Confidence = defaultConfidence
	}
	if s.Side == "" {
		s.Side = "up"
	}
}

func (d *reaches) check(c *ruleCompiler, key string) {
	s := &d.spec
	must := func(ok bool, field, format string, args ...any) {
		if !ok {
			c.faultf([]any{key, field}, format, args...)
		}
	}
	must(s.MinPoints >= leastForecast, "min_points", "min_points (%d) must be at least %d", s.MinPoints, leastForecast)
	must(s.Over.Batches == 0 || s.Over.Batches >= s.MinPoints, "over", "over (%s) must hold min_points (%d)", s.Over, s.MinPoints)
	must(s.AgreeOver.IsZero() || s.AgreeOver.Longer(s.Over), "agree_over", "agree_over (%s) must be longer than over (%s)", s.AgreeOver, s.Over)
	must(s.Within > 0, "within", "within (%s) must be above 0s", shortDuration(s.Within.Std()))
	must(s.By > 0 && s.By < 10, "by", "by (%s) must lie between 0%% and 1000%%", s.By)
	must(s.Confidence >= 0.9 && s.Confidence <= 0.999999, "confidence", "confidence (%s) must lie between 90%% and 99.9999%%", s.Confidence)
	must(s.RawAbove == "" || s.AdjustedFor != "", "raw_above", "raw_above needs adjusted_for")
	if s.Detrend != "" {
		if err := oneOf("detrend", s.Detrend, []string{"daily"}); err != nil {
			must(false, "detrend", "%v", err)
		}
	}
	if err := oneOf("side", s.Side, []string{"up", "down"}); err != nil {
		must(false, "side", "%v", err)
	}
}

func (d *reaches) name() string          { return "reaches" }
func (d *reaches) inputs() []*expression { return d.ins }
func (d *reaches) span() Extent          { return d.spec.Over }

// stride is longer than the engine's: a line over two hours does not turn in minutes.
func (d *reaches) stride() int { return 12 }

func (d *reaches) describe() string {
	var b strings.Builder
	s := &d.spec
	fmt.Fprintf(&b, "reaches %s within %s", s.Limit, shortDuration(s.Within.Std()))
	if s.Side == "down" {
		b.WriteString(" from above")
	}
	fmt.Fprintf(&b, ", moving by %s over %s, from %d batches on, confidence %s", s.By, s.Over, s.MinPoints, s.Confidence)
	if !s.AgreeOver.IsZero() {
		fmt.Fprintf(&b, ", agreeing over %s", s.AgreeOver)
	}
	if d.load {
		fmt.Fprintf(&b, ", adjusted for %s", s.AdjustedFor)
	}
	if s.RawAbove != "" {
		fmt.Fprintf(&b, " below %s", s.RawAbove)
	}
	if s.Detrend != "" {
		b.WriteString(", without the daily cycle")
	}
	return b.String()
}

// reach is the longest span that it looks at.
func (d *reaches) reach() Extent {
	if d.spec.AgreeOver.IsZero() {
		return d.spec.Over
	}
	return d.spec.AgreeOver
}

func (d *reaches) adjusts() *expression {
	if !d.load {
		return nil
	}
	return d.ins[0]
}

// newTracker makes a tracker with columns of its own.
func (d *reaches) newTracker(s *trend.Scratch) tracker {
	var own ownColumns
	t := d.newSharer(s, own.of(d.load, s)).(*reachesTracker)
	t.own = own.sets
	return t
}

func (d *reaches) newSharer(s *trend.Scratch, columnOf func(Extent) *column) sharer {
	t := &reachesTracker{d: d, s: s, column: columnOf(d.reach())}
	if d.spec.Detrend != "" {
		t.day = &dailyCycle{}
	}
	t.reset()
	return t
}
