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
