package trend

import (
	"math"
	"testing"
)

// sketched counts windows that pass the gate: those whose fit passes, those that a sketch
// calls worth a fit, and fits that pass where the sketch saw nothing.
type sketched struct{ gated, passing, near, missed int }

// sketches slides a window over a stream whose fault begins after its first length.
func (c *sketched) sketches(s *Scratch, n *noise, length, batches int, fault func(k int) float64) {
	o, x, y := DefaultRising(), ramp(length), make([]float64, batches)
	for i := range y {
		y[i] = n.value()
		if i >= length {
			y[i] *= fault(i - length)
		}
	}
	for at := length; at < batches; at += 3 {
		w := y[at-length : at]
		if s.mannKendall(w).Z <= o.GateZ {
			continue
		}
		c.gated++
		fit, _ := s.fit(x, w)
		passes := o.passes(fit, o.Z)
		sketch := s.sketch(x, w)
		near := o.near(&sketch)
		c.passing += count(passes)
		c.near += count(near)
		c.missed += count(passes && !near)
	}
}

func TestASketchHardlyEverMissesWhatAFitFinds(t *testing.T) {
	arithmeticOnly(t)
	var all sketched
	for name, fault := range map[string]func(k int) float64{
		"step by half": func(int) float64 { return 1.5 }, "ramp of .5 % a batch": func(k int) float64 { return 1 + 0.005*float64(k) },
	} {
		for _, noise := range []func(*noise) float64{iidNoise, arNoise, spikyNoise, wanderNoise} {
			var c sketched
			for seed := range uint64(8) {
				c.sketches(new(Scratch), newNoise(700+seed, noise), 120, 240, fault)
			}
			t.Logf("%s: %d windows past the gate, %d fits pass, %d sketches are near, %d missed", name, c.gated, c.passing, c.near, c.missed)
			all.passing, all.missed = all.passing+c.passing, all.missed+c.missed
		}
	}
	if all.passing < 500 || 100*all.missed > all.passing {
		t.Errorf("%d of %d fits that pass were missed", all.missed, all.passing)
	}
}

func TestASketchSparesFitsOfHealthySeriesWithMemory(t *testing.T) {
	arithmeticOnly(t)
	var c sketched
	c.sketches(new(Scratch), newNoise(900, arNoise), 120, 12_000, func(int) float64 { return 1 })
	t.Logf("%d windows past the gate, %d fits pass, %d sketches are near, %d missed", c.gated, c.passing, c.near, c.missed)
	if c.gated < 200 || 2*c.near > c.gated {
		t.Errorf("%d of %d sketches ask for a fit", c.near, c.gated)
	}
}

func TestAResistantLineGoesThroughPointsOnALine(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 8, 120} {
		x, y := ramp(n), make([]float64, n)
		for i := range y {
			y[i] = 5 + 3*x[i]
		}
		if n > 20 {
			y[2], y[n-4] = 1e6, -1e6
		}
		l := new(Scratch).resistant(x, y)
		if n > 1 && math.Abs(l.Slope-3) > 0.1 {
			t.Errorf("%d points: slope %v, want 3", n, l.Slope)
		}
	}
}

// BenchmarkSketchVersusFit is what a sketch costs beside the fit that it spares.
func BenchmarkSketchVersusFit(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		x, y, _, _, _ := benchSeries(n)
		s := new(Scratch)
		versus(b, 1, func() { benchSink += s.sketch(x, y).Z }, func() {
			f, _ := s.fit(x, y)
			benchSink += f.Z
		})
	})
}
