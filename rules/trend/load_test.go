package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// workload makes a series whose value has a fixed part and a part per unit of
// load, times a slowdown.
type workload struct {
	fixed, perUnit float64
	load           func(i int, rng *rand.Rand) float64
	slow           func(i int) float64
}

func (k workload) window(seed uint64) *Window {
	rng := rand.New(rand.NewPCG(seed, 5))
	w := NewWindow(Span{Batches: 120}, 0)
	for i := range 120 {
		l := k.load(i, rng)
		v := (k.fixed + k.perUnit*l) * k.slow(i) * math.Exp(0.10*rng.NormFloat64())
		w.Push(Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: v, Load: l})
	}
	return w
}

func steady(int) float64 { return 1 }

func flatLoad(_ int, rng *rand.Rand) float64 { return 1000 * math.Exp(0.2*rng.NormFloat64()) }

func growingLoad(i int, rng *rand.Rand) float64 {
	return 1000 * (1 + float64(i)/120) * math.Exp(0.2*rng.NormFloat64())
}

func smoothlyGrowingLoad(i int, rng *rand.Rand) float64 {
	return 1000 * (1 + float64(i)/120) * math.Exp(0.01*rng.NormFloat64())
}

func steppingLoad(by float64) func(int, *rand.Rand) float64 {
	return func(i int, rng *rand.Rand) float64 {
		if i >= 60 {
			return by * flatLoad(i, rng)
		}
		return flatLoad(i, rng)
	}
}

// morning is the flank of a daily cycle that doubles from night to noon.
func morning(i int, rng *rand.Rand) float64 {
	return 1000 * (1.5 - 0.5*math.Cos(math.Pi*float64(i)/120)) * math.Exp(0.03*rng.NormFloat64())
}

func stepSlow(at int, by float64) func(int) float64 {
	return func(i int) float64 {
		if i >= at {
			return by
		}
		return 1
	}
}

func rampSlow(by float64) func(int) float64 {
	return func(i int) float64 { return 1 + by*float64(i)/120 }
}

func TestLoadExplainsWhatItCausesAndNoMore(t *testing.T) {
	cases := []struct {
		name string
		workload
		want Verdict
	}{
		{"no slowdown at a steady load is clear", workload{0, 1, flatLoad, steady}, Clear},
		{"a step at the same load is found", workload{0, 1, flatLoad, stepSlow(60, 1.6)}, Found},
		{"a ramp at the same load is found", workload{0, 1, flatLoad, rampSlow(1)}, Found},
		{"a ramp at a load that costs nothing is found", workload{1000, 0, flatLoad, rampSlow(1)}, Found},
		{"a load that doubles explains a value in proportion", workload{0, 1, growingLoad, steady}, Explained},
		{"a load that doubles explains a value with a fixed part", workload{500, 1, growingLoad, steady}, Explained},
		{"a load that doubles smoothly explains a value in proportion", workload{0, 1, smoothlyGrowingLoad, steady}, Explained},
		{"a morning's flank explains a value in proportion", workload{0, 1, morning, steady}, Explained},
		{"a step of the load explains a step", workload{0, 1, steppingLoad(1.8), steady}, Explained},
		{"a load that doubles does not excuse a value that doubles on top", workload{0, 1, growingLoad, rampSlow(1)}, Found},
		{"a smooth load that doubles does not excuse a value that doubles on top", workload{0, 1, smoothlyGrowingLoad, rampSlow(1)}, Found},
		{"a morning does not excuse a value that doubles on top", workload{0, 1, morning, stepSlow(60, 2)}, Found},
		{"a tenth more load does not excuse a step that comes with it", workload{0, 1, steppingLoad(1.1), stepSlow(60, 1.8)}, Found},
		{"a noisy load that grows does not excuse a ramp it does not cost", workload{1000, 0, growingLoad, rampSlow(1)}, Found},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			right := 0
			const seeds = 40
			for seed := range uint64(seeds) {
				o := DefaultRising()
				o.AdjustForLoad = true
				r := c.window(seed).Rising(o)
				if r.Verdict == c.want {
					right++
				} else if testing.Verbose() {
					t.Logf("%v %+v", r.Verdict, r)
				}
			}
			if right < seeds*9/10 {
				t.Errorf("%v in %d of %d runs", c.want, right, seeds)
			}
		})
	}
}

// loaded fills a window of 120 batches.
func loaded(f func(i int) (value, load float64)) *Window {
	w := NewWindow(Span{Batches: 120}, 0)
	for i := range 120 {
		v, l := f(i)
		w.Push(Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: v, Load: l})
	}
	return w
}

func adjusted() RisingOptions {
	o := DefaultRising()
	o.AdjustForLoad = true
	return o
}

func TestUnknownLoadCannotTell(t *testing.T) {
	rise := func(i int) float64 { return 100 + float64(i) + wobble(i) }
	known := func(every int) *Window {
		return loaded(func(i int) (float64, float64) {
			if i%every != 0 {
				return rise(i), math.NaN()
			}
			return rise(i), 1000 + 100*wobble(i*3)
		})
	}
	for every, want := range map[int]Verdict{1: Found, 2: Found, 3: CannotTell, 1000: CannotTell} {
		if v := known(every).Rising(adjusted()).Verdict; v != want {
			t.Errorf("load of each %d. batch known: %q, want %q", every, v, want)
		}
	}
	none := loaded(func(i int) (float64, float64) { return rise(i), math.Inf(1) })
	if v := none.Rising(adjusted()).Verdict; v != CannotTell {
		t.Errorf("no load known: %q", v)
	}
	if v := none.Rising(DefaultRising()).Verdict; v != Found {
		t.Errorf("load not asked for: %q", v)
	}
}

func TestLoadThatHardlyVariesExplainsNothing(t *testing.T) {
	r := loaded(func(i int) (float64, float64) {
		return 100 + float64(i) + wobble(i), 1000 + float64(i)/10
	}).Rising(adjusted())
	if r.Verdict != Found || r.Load != (LoadFit{}) {
		t.Errorf("%q, %+v", r.Verdict, r.Load)
	}
}

func TestLoadOfZeroOrLessIsNoTrap(t *testing.T) {
	for name, load := range map[string]func(i int) float64{
		"zero":              func(int) float64 { return 0 },
		"negative":          func(i int) float64 { return -float64(i) },
		"zero at the start": func(i int) float64 { return math.Max(0, float64(i-50)) },
		"every second":      func(i int) float64 { return float64(i % 2 * 1000) },
	} {
		r := loaded(func(i int) (float64, float64) { return 100 + float64(i) + wobble(i), load(i) }).Rising(adjusted())
		for _, v := range []float64{r.Load.PerUnit, r.Load.Elasticity, r.Load.Adjusted.Z, r.Load.Adjusted.Rise} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%s: %+v", name, r.Load)
			}
		}
		if name != "zero at the start" && r.Verdict != Found {
			t.Errorf("%s: %q", name, r.Verdict)
		}
	}
}

func TestFallingLoadExplainsAFallingValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	w := loaded(func(i int) (float64, float64) {
		l := 2000 * (1 - float64(i)/240) * math.Exp(0.2*rng.NormFloat64())
		return l * math.Exp(0.05*rng.NormFloat64()), l
	})
	o := adjusted()
	o.Falling = true
	if v := w.Rising(o).Verdict; v != Explained {
		t.Errorf("%q", v)
	}
	o.AdjustForLoad = false
	if v := w.Rising(o).Verdict; v != Found {
		t.Errorf("without load: %q", v)
	}
}

func TestSlowdownBehindAFallingLoadIsWorseThanItLooks(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	r := loaded(func(i int) (float64, float64) {
		l := 2000 * (1 - float64(i)/480) * math.Exp(0.1*rng.NormFloat64())
		return l * (1 + float64(i)/60), l
	}).Rising(adjusted())
	if r.Verdict != Found || r.Load.Adjusted.Relative <= r.Relative {
		t.Errorf("%q, relative rise %v, adjusted %v", r.Verdict, r.Relative, r.Load.Adjusted.Relative)
	}
}

func TestCostOfAUnitIsMeasured(t *testing.T) {
	for _, c := range []struct{ fixed, perUnit, elasticity float64 }{{0, 2, 1}, {3000, 1, 0.33}, {1500, 1, 0.5}} {
		sum, elasticity := 0.0, 0.0
		for seed := range uint64(20) {
			r := workload{c.fixed, c.perUnit, growingLoad, rampSlow(0.6)}.window(seed).Rising(adjusted())
			sum, elasticity = sum+r.Load.PerUnit/20, elasticity+r.Load.Elasticity/20
		}
		// The slowdown makes a unit dearer by .3 on average.
		near(t, "cost of a unit", sum, 1.3*c.perUnit, 0.45*c.perUnit)
		near(t, "elasticity", elasticity, c.elasticity, 0.25)
	}
}

func TestUnitMayNotCostMuchMoreThanAtTheStart(t *testing.T) {
	s := new(Scratch)
	y := []float64{10, 10, 10, 50, 50, 50, 50, 50, 50}
	load := []float64{10, 10, 10, 10, 10, 10, 10, 10, 10}
	near(t, "most", s.unitCost(y, load), unitSlack, 1e-12)
	near(t, "most without load", s.unitCost(y, make([]float64, 9)), 0, 0)
	late := []float64{0, 0, 0, 0, 0, 0, 0, 25, 50}
	near(t, "most where load begins late", s.unitCost(y, late), 2*unitSlack, 1e-12)
}

func TestHuberSlopeIgnoresSpikes(t *testing.T) {
	rng := rand.New(rand.NewPCG(55, 56))
	var x, y, load []float64
	for i := range 120 {
		l := 100 + 20*rng.NormFloat64()
		v := 50 + 3*l + 0.5*float64(i) + rng.NormFloat64()
		if i%10 == 0 {
			v += 5000
		}
		x, y, load = append(x, float64(i)), append(y, v), append(load, l)
	}
	s := new(Scratch)
	near(t, "slope with time", s.huberSlope(x, y, load, spreadOf(s, load), true), 3, 0.1)
	for i := range y {
		y[i] -= 0.5 * x[i]
	}
	near(t, "slope without time", s.huberSlope(x, y, load, spreadOf(s, load), false), 3, 0.1)
}

func TestHuberSlopeOfAPerfectFit(t *testing.T) {
	x := ramp(20)
	var y, load []float64
	for i := range x {
		load = append(load, float64(i%5))
		y = append(y, 2*load[i]+x[i])
	}
	s := new(Scratch)
	near(t, "slope", s.huberSlope(x, y, load, spreadOf(s, load), true), 2, 1e-9)
	near(t, "slope where load is time", s.huberSlope(x, x, x, spreadOf(s, x), true), 1, 1e-9)
	near(t, "slope of no load", s.huberSlope(x, y, make([]float64, 20), 0, true), 0, 0)
}

// A day of 480 batches in which load and duration double, four times over.
func TestDailyCycleIsNoFindingOnceLoadIsKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(57, 58))
	w := NewWindow(Span{Batches: 120}, 0)
	raw, found := 0, 0
	for i := range 4 * 480 {
		l := 1000 * (1.5 - 0.5*math.Cos(2*math.Pi*float64(i)/480)) * math.Exp(0.1*rng.NormFloat64())
		v := (300 + l) * math.Exp(0.1*rng.NormFloat64())
		w.Push(Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: v, Load: l})
		switch w.Rising(adjusted()).Verdict {
		case Found:
			found++
			raw++
		case Explained:
			raw++
		}
	}
	if raw < 100 || found > raw/50 {
		t.Errorf("%d raw findings, %d left with load", raw, found)
	}
}

// What load may excuse and what it may not, as a table: a fault of so much over the
// window beside a load that grows by so much, with a load that is noisy or smooth.
func TestLoadAdjustmentErrorTable(t *testing.T) {
	arithmeticOnly(t)
	const seeds = 60
	for _, smooth := range []bool{false, true} {
		for _, growth := range []float64{0.1, 0.5, 1, 4} {
			for _, fault := range []float64{0, 0.25, 0.5, 1} {
				said := map[Verdict]int{}
				for seed := range uint64(seeds) {
					load := func(i int, rng *rand.Rand) float64 {
						sd := 0.2
						if smooth {
							sd = 0.01
						}
						return 1000 * (1 + growth*float64(i)/120) * math.Exp(sd*rng.NormFloat64())
					}
					said[workload{200, 1, load, rampSlow(fault)}.window(seed).Rising(adjusted()).Verdict]++
				}
				found := float64(said[Found]) / seeds
				t.Logf("load +%3.0f %% (smooth %-5v) fault +%3.0f %%: found %.2f, explained by load %.2f", 100*growth, smooth, 100*fault, found, float64(said[Explained])/seeds)
				if fault == 0 && found > 0.05 || fault == 1 && found < 0.95 {
					t.Errorf("load +%v, smooth %v, fault +%v: found in %.2f", growth, smooth, fault, found)
				}
			}
		}
	}
}

func spreadOf(s *Scratch, load []float64) float64 {
	_, spread := s.loadSpread(load)
	return spread
}
