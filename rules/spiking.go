package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/rules/trend"
)

// spikingSpec is the detector `spiking`.
type spikingSpec struct {
	Over      Extent            `yaml:"over"`
	Factor    string            `yaml:"factor"` // least multiple of the median, default 3
	AtLeast   string            `yaml:"at_least"`
	MinSpikes int               `yaml:"min_spikes"`
	MinPoints int               `yaml:"min_points"`
	Rhythm    string            `yaml:"rhythm"`
	Beside    map[string]string `yaml:"beside"`
}

// spiking finds batches that stand far above the others again and again, and says
// whether they come at a rhythm, of batches or of the clock, and what else is
// higher on the same batches. See trend.Scratch.Periodicity for method, source and
// measured errors.
type spiking struct {
	spec    spikingSpec
	options trend.SpikeOptions
	names   []string // of beside, sorted
	ins     []*expression
}

var rhythms = []string{"any", "batches", "clock", "none"}

func (s *spikingSpec) compile(c *ruleCompiler, key string) detector {
	d := &spiking{spec: *s}
	d.defaults()
	must := func(ok bool, field, format string, args ...any) {
		if !ok {
			c.faultf([]any{key, field}, format, args...)
		}
	}
	factor, err := strconv.ParseFloat(d.spec.Factor, 64)
	must(err == nil && factor > 1 && factor < 1e6, "factor", "factor (%s) must be a number above 1", d.spec.Factor)
	must(d.spec.MinPoints >= leastMinPoints, "min_points", "min_points (%d) must be at least %d", d.spec.MinPoints, leastMinPoints)
	must(d.spec.Over.Batches == 0 || d.spec.Over.Batches >= d.spec.MinPoints, "over", "over (%s) must hold min_points (%d)", d.spec.Over, d.spec.MinPoints)
	must(d.spec.MinSpikes >= 4 && d.spec.MinSpikes <= 50, "min_spikes", "min_spikes (%d) must lie between 4 and 50", d.spec.MinSpikes)
	if err := oneOf("rhythm", d.spec.Rhythm, rhythms); err != nil {
		must(false, "rhythm", "%v", err)
	}
	must(len(s.Beside) <= maxEvidence, "beside", "%d figures, more than the %d allowed", len(s.Beside), maxEvidence)
	d.options = trend.SpikeOptions{Factor: factor, MinSpikes: d.spec.MinSpikes}
	if s.AtLeast != "" {
		d.options.AtLeast = c.quantity(s.AtLeast, []any{key, "at_least"})
	}
	d.names = slices.Sorted(maps.Keys(s.Beside))
	for _, name := range d.names {
		c.input(s.Beside[name], []any{key, "beside", name}, &d.ins)
	}
	return d
}

func (d *spiking) defaults() {
	s := &d.spec
	if s.Over.IsZero() {
		s.Over = Extent{Batches: 200, Ms: 2 * 3600 * 1000}
	}
	if s.Factor == "" {
		s.Factor = "3"
	}
	if s.MinSpikes == 0 {
		s.MinSpikes = 5
	}
	if s.MinPoints == 0 {
		s.MinPoints = defaultMinPoints
	}
	if s.Rhythm == "" {
		s.Rhythm = "any"
	}
}

func (d *spiking) name() string          { return "spiking" }
func (d *spiking) inputs() []*expression { return d.ins }
func (d *spiking) span() Extent          { return d.spec.Over }

// stride is long: a rhythm takes dozens of batches to show.
func (d *spiking) stride() int { return 16 }

func (d *spiking) describe() string {
	var b strings.Builder
	s := &d.spec
	fmt.Fprintf(&b, "%d spikes of %s times the median over %s, from %d batches on", s.MinSpikes, s.Factor, s.Over, s.MinPoints)
	if d.options.AtLeast > 0 {
		fmt.Fprintf(&b, ", at least %s above it", s.AtLeast)
	}
	switch s.Rhythm {
	case "any":
		b.WriteString(", at a rhythm")
	case "none":
		b.WriteString(", at no rhythm")
	default:
		fmt.Fprintf(&b, ", at a rhythm of %s", s.Rhythm)
	}
	if len(d.names) > 0 {
		fmt.Fprintf(&b, "; beside them %s", strings.Join(d.names, ", "))
	}
	return b.String()
}

func (d *spiking) newTracker(s *trend.Scratch) tracker {
	fine := newHistory(Extent{Batches: finePoints}, finePoints+2*fineSpare, 1+len(d.ins))
	fine.spare = fineSpare
	return &spikingTracker{d: d, s: s, fine: fine}
}

// newCoarse keeps the highest batches over all of the extent.
func (d *spiking) newCoarse() *history {
	h := newHistory(d.spec.Over, finePoints, 1+len(d.ins))
	h.peaks = true
	return h
}
