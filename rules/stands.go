package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// standsSpec is the detector `stands`: a figure that should move and does not.
type standsSpec struct {
	Over  Extent `yaml:"over"`
	While string `yaml:"while"`
	// Beyond makes the longest time that the figure ever stood and then moved the
	// least: that share of it, in batches and in time.
	Beyond strictyaml.Percent `yaml:"beyond"`
}

const (
	// leastStanding is how many batches must say the same: less is chance.
	leastStanding = 5
	// movingShare of the batches must show a new value of what else moves.
	movingShare = 0.25
)

// stands finds a figure that has been exactly the same over an extent, while another
// one moved. O(1) a batch. It takes equality for standing still: a figure that
// trembles never stands, and one that is rounded may seem to.
type stands struct {
	spec standsSpec
	ins  []*expression // while, where it is set
}

func (s *standsSpec) compile(c *ruleCompiler, key string) detector {
	d := &stands{spec: *s}
	if d.spec.Over.IsZero() {
		d.spec.Over = Extent{Batches: 50, Ms: 30 * 60 * 1000}
	}
	if n := d.spec.Over.Batches; n > 0 && n < leastStanding {
		c.faultf([]any{key, "over"}, "over (%s) must hold %d batches", d.spec.Over, leastStanding)
	}
	if s.Beyond != 0 && !(s.Beyond >= 1) {
		c.faultf([]any{key, "beyond"}, "beyond (%s) must be at least 100%%", s.Beyond)
	}
	if s.While != "" {
		if x := c.expression(s.While, aNumber, c.signal.of, c.path+"."+strictyaml.Path(key, "while")); x != nil {
			d.ins = append(d.ins, x)
		}
	}
	return d
}

func (d *stands) name() string          { return "stands" }
func (d *stands) inputs() []*expression { return d.ins }
func (d *stands) span() Extent          { return d.spec.Over }

// stride is 1: each batch is judged.
func (d *stands) stride() int { return 1 }

func (d *stands) describe() string {
	text := fmt.Sprintf("stands for %s", d.spec.Over)
	if d.spec.Beyond > 0 {
		text += fmt.Sprintf(", and %s of the longest before", d.spec.Beyond)
	}
	if d.spec.While != "" {
		text += fmt.Sprintf(" while %s moves", d.spec.While)
	}
	return text
}

func (d *stands) newTracker(*trend.Scratch) tracker { return &standsTracker{d: d} }

// standsTracker is the state of `stands` for one series.
type standsTracker struct {
	d       *stands
	clock   steadyClock
	value   float64
	changed bool // since the reset
	seen    int
	same    int   // batches in a row with the value
	since   int64 // first of them
	sinceMs int64 // of the clock
	// while: how many of those batches had a value, and how many a new one.
	other        float64
	known, moved int
	// The longest that it stood and then moved. A reset leaves it: it is how the query is.
	longest   int
	longestMs int64
}

func (t *standsTracker) push(p trend.Point, in []float64) {
	if !t.clock.step(p) {
		return
	}
	t.seen++
	if t.seen == 1 || p.Value != t.value {
		if t.changed = t.seen > 1; t.changed {
			t.longest, t.longestMs = max(t.longest, t.same), max(t.longestMs, t.clock.elapsedMs-t.sinceMs)
		}
		t.value, t.same, t.since, t.sinceMs = p.Value, 0, p.Batch, t.clock.elapsedMs
		t.known, t.moved = 0, 0
	}
	t.same++
	if len(in) == 0 || in[0] != in[0] {
		return
	}
	if t.known > 0 && in[0] != t.other {
		t.moved++
	}
	t.known, t.other = t.known+1, in[0]
}

func (t *standsTracker) judge(*Judgement) Judgement {
	j := t.verdict()
	j.Points, j.Count, j.SpanMs = t.seen, t.same, t.clock.elapsedMs-t.sinceMs
	if t.seen > 0 {
		j.Value = t.value
		j.rise(t.value, t.value)
	}
	return j
}

func (t *standsTracker) verdict() Judgement {
	over, ms := t.d.spec.Over, t.clock.elapsedMs-t.sinceMs
	switch {
	case t.same < leastStanding || !over.Met(t.same, ms):
		if t.changed {
			return judgement(SaidClear, "it moves")
		}
		return tooFew(t.same, ms, Extent{Batches: max(over.Batches, leastStanding), Ms: over.Ms})
	case t.d.spec.While == "":
	case 2*t.known < t.same:
		return unknown("what should move", t.d.spec.While)
	case float64(t.moved) < movingShare*float64(t.known):
		return judgement(SaidClear, "%s stands too", t.d.spec.While)
	}
	if x := float64(t.d.spec.Beyond); float64(t.same) < x*float64(t.longest) || float64(ms) < x*float64(t.longestMs) {
		return judgement(SaidClear, "it stood for %d batches before, and then moved", t.longest)
	}
	j := judgement(SaidFound, "the same in %d batches", t.same)
	j.How, j.Since = "stands", t.since
	return j
}

func (t *standsTracker) points() int { return t.seen }

func (t *standsTracker) reset() {
	*t = standsTracker{d: t.d, longest: t.longest, longestMs: t.longestMs}
}
