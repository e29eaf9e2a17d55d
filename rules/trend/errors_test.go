package trend

import (
	"math"
	"testing"
)

// The bounds below are some three times what 60,000 batches gave (see Rising), as
// 8,000 batches hold only a few episodes; the seeds are fixed.
func TestFalseAlarmsOnHealthyNoiseAreRare(t *testing.T) {
	arithmeticOnly(t)
	const batches = 8_000
	cases := []struct {
		name               string
		noise              func(*noise) float64
		watch, both, level int     // most episodes
		share              float64 // most batches that the corrected test passes
	}{
		{"independent with outliers", iidNoise, 1, 0, 0, 0.004},
		{"memory .6", arNoise, 5, 1, 0, 0.01},
		{"memory .6 and spikes", spikyNoise, 3, 1, 0, 0.01},
		{"wandering by 10 %", wanderNoise, 8, 2, 1, 0.03},
		{"wandering by 20 %", wilderNoise, 20, 6, 3, 0.07},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := watchHealthy(newNoise(11, c.noise), batches)
			if r.watch.count > c.watch || r.both.count > c.both || r.level.count > c.level {
				t.Errorf("%d episodes over 120 batches, %d where 240 agree, %d of the level; at most %d, %d and %d",
					r.watch.count, r.both.count, r.level.count, c.watch, c.both, c.level)
			}
			if share := float64(r.passed) / batches; share > c.share {
				t.Errorf("%.4f of the batches pass, at most %.4f", share, c.share)
			}
		})
	}
}

type healthyRun struct {
	watch, both, level episodes
	passed             int
}

func watchHealthy(n *noise, batches int) healthyRun {
	short, long := NewWindow(Span{Batches: 120}, 0), NewWindow(Span{Batches: 240}, 0)
	level := NewLevelWindow(Span{Batches: 60}, Span{Batches: 500})
	run := healthyRun{watch: episodes{hold: 5}, both: episodes{hold: 20}, level: episodes{hold: 20}}
	o := DefaultRising()
	for i := range batches {
		p := Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: n.value(), Load: math.NaN()}
		short.Push(p)
		long.Push(p)
		level.Push(p)
		r := short.Rising(o)
		if r.Z > o.Z {
			run.passed++
		}
		found := r.Verdict == Found
		run.watch.see(found)
		run.both.see(found && long.Rising(o).Verdict == Found)
		run.level.see(level.Level(LevelOptions{By: 0.35}).Verdict == Found)
	}
	return run
}

func TestFaultsAreFoundInTime(t *testing.T) {
	arithmeticOnly(t)
	noises := []struct {
		name string
		next func(*noise) float64
	}{{"independent", iidNoise}, {"memory .6", arNoise}, {"wandering by 10 %", wanderNoise}, {"hardly any noise", cleanNoise}}
	faults := []struct {
		name   string
		factor func(k int) float64
		least  int // of 20
		within int // mean batches
	}{
		{"step by half", func(int) float64 { return 1.5 }, 12, 60},
		{"ramp of .5 % a batch", func(k int) float64 { return 1 + 0.005*float64(k) }, 17, 130},
	}
	for _, n := range noises {
		for _, f := range faults {
			found, delay := findFaults(n.next, f.factor)
			if found < f.least || delay > f.within {
				t.Errorf("%s in %s noise: %d of 20 found, after %d batches", f.name, n.name, found, delay)
			}
		}
	}
}

func cleanNoise(n *noise) float64 { return 1 + 0.02*n.rng.NormFloat64() }

// findFaults starts a fault at batch 200 of 20 runs and returns how many of them
// are found within 250 batches, and the mean delay.
func findFaults(next func(*noise) float64, fault func(k int) float64) (found, delay int) {
	for run := range uint64(20) {
		n, e := newNoise(100+run, next), episodes{hold: 5}
		w := NewWindow(Span{Batches: 120}, 0)
		for i := range 450 {
			v := n.value()
			if i >= 200 {
				v *= fault(i - 200)
			}
			w.Push(Point{Batch: int64(i), Value: v, Load: math.NaN()})
			e.see(i >= 200 && w.Rising(DefaultRising()).Verdict == Found)
			if e.count > 0 {
				found, delay = found+1, delay+i-200
				break
			}
		}
	}
	return found, delay / max(found, 1)
}

func TestCorrectedTestKeepsToItsLevelInSpiteOfMemory(t *testing.T) {
	arithmeticOnly(t)
	const windows = 800
	for _, c := range []struct{ r, plainAtLeast, correctedAtMost, heldAtLeast float64 }{
		{0, 0, 0.025, 0.86},
		{0.6, 0.07, 0.03, 0.83},
		{0.8, 0.15, 0.04, 0.80},
	} {
		plain, corrected, held := 0, 0, 0
		for seed := range uint64(windows) {
			n := newNoise(seed, nil)
			for range 50 {
				n.ar(c.r) // forget the start
			}
			x, y, s := ramp(120), make([]float64, 120), new(Scratch)
			for i := range y {
				y[i] = 10 + n.ar(c.r)
			}
			f, line := s.fit(x, y)
			if MannKendall(y).Z > ConfidenceZ(0.99) {
				plain++
			}
			if f.Z > ConfidenceZ(0.99) {
				corrected++
			}
			low, high := s.slopeRange(s.keptX, s.keptY, line.Slope, ConfidenceZ(0.95), MannKendall(s.keptY).VarS*f.VarianceFactor)
			if low <= 0 && 0 <= high {
				held++
			}
		}
		if share := float64(plain) / windows; share < c.plainAtLeast {
			t.Errorf("memory %v: only %.3f pass the plain test, the noise is too tame", c.r, share)
		}
		if share := float64(corrected) / windows; share > c.correctedAtMost {
			t.Errorf("memory %v: %.3f pass the corrected test", c.r, share)
		}
		if share := float64(held) / windows; share < c.heldAtLeast {
			t.Errorf("memory %v: the 90 %% interval holds the slope in %.3f", c.r, share)
		}
	}
}
