package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDeviationsFromARunningMedianEqualThoseOfTheSortedValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(81, 82))
	for range 50 {
		var m medianSum
		var v []float64
		m.reset(nil)
		for range 60 {
			x := float64(rng.IntN(30)) - 10
			m.add(x)
			v = append(v, x)
			near(t, "deviations", m.deviations(), naiveDeviations(v), 1e-9)
		}
	}
}

func naiveDeviations(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	mid, sum := sortedMedian(v), 0.0
	for _, x := range v {
		sum += math.Abs(x - mid)
	}
	return sum
}

func TestSplitIsTheBestOfAllSplits(t *testing.T) {
	rng, s := rand.New(rand.NewPCG(83, 84)), new(Scratch)
	for range 100 {
		s.y = s.y[:0]
		for range 12 + rng.IntN(80) {
			s.y = append(s.y, float64(rng.IntN(50)))
		}
		total, _, got := s.bestSplit()
		want := math.Inf(1)
		for i := leastSide; i <= len(s.y)-leastSide; i++ {
			want = min(want, naiveDeviations(s.y[:i])+naiveDeviations(s.y[i:]))
		}
		near(t, "deviations left", got, want, 1e-9)
		near(t, "all deviations", total, naiveDeviations(s.y), 1e-9)
	}
}

func TestStepIsLocatedWithItsLevels(t *testing.T) {
	y := slices.Concat(slices.Repeat([]float64{10}, 40), slices.Repeat([]float64{16}, 30))
	y[20], y[55] = 500, -500
	c := new(Scratch).Locate(ramp(70), y)
	if !c.Enough || c.Bend || c.Index != 40 || c.Low != 40 || c.High != 40 || c.Before != 10 || c.After != 16 {
		t.Errorf("%+v", c)
	}
}

func TestBendIsLocatedWithItsSlope(t *testing.T) {
	n := newNoise(4, nil)
	y := make([]float64, 120)
	for i := range y {
		y[i] = 100 + max(0, float64(i-50))*2 + n.ar(0)
		if i%11 == 0 {
			y[i] += 900
		}
	}
	c := new(Scratch).Locate(ramp(120), y)
	if !c.Bend {
		t.Fatalf("%+v", c)
	}
	near(t, "place", float64(c.Index), 50, 6)
	near(t, "slope", c.Slope, 2, 0.25)
	near(t, "level before", c.Before, 100, 4)
	near(t, "level at the end", c.After, 238, 8)
	if c.Low > 50 || c.High < 50 {
		t.Errorf("%d to %d", c.Low, c.High)
	}
}

func TestNothingIsLocatedWhereNothingMoves(t *testing.T) {
	s := new(Scratch)
	for name, y := range map[string][]float64{
		"equal": make([]float64, 50), "few": ramp(9), "none": nil,
		"no measurements": slices.Repeat([]float64{math.NaN()}, 50),
	} {
		if c := s.Locate(ramp(len(y)), y); c != (ChangePoint{}) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestPlacesCountThePointsThatAreNoMeasurements(t *testing.T) {
	y := slices.Concat([]float64{math.NaN(), math.NaN()}, slices.Repeat([]float64{10}, 20), []float64{math.Inf(1)}, slices.Repeat([]float64{20}, 20))
	if c := new(Scratch).Locate(ramp(len(y)), y); c.Index != 23 {
		t.Errorf("%+v", c)
	}
}

func TestLocateErrorTable(t *testing.T) {
	const runs = 400
	for _, c := range []struct {
		name  string
		noise func(*noise) float64
		by    float64
		most  float64 // median distance, batches
		held  float64 // least share of ranges that hold the truth
	}{
		{"x1.5, independent with outliers", iidNoise, 1.5, 2, 0.85},
		{"x2, independent with outliers", iidNoise, 2, 1, 0.9},
		{"x1.5, memory .6", arNoise, 1.5, 4, 0.6},
		{"x2, memory .6 and spikes", spikyNoise, 2, 2, 0.6},
	} {
		s, off, held, bent := new(Scratch), []float64{}, 0, 0
		for seed := range uint64(runs) {
			n := newNoise(500+seed, c.noise)
			at := 30 + int(seed%60)
			y := make([]float64, 120)
			for i := range y {
				y[i] = n.value()
				if i >= at {
					y[i] *= c.by
				}
			}
			p := s.Locate(ramp(120), y)
			off = append(off, math.Abs(float64(p.Index-at)))
			held += count(p.Low <= at && at <= p.High)
			bent += count(p.Bend)
		}
		slices.Sort(off)
		t.Logf("%-32s off by %v batches (median), %v (9 of 10); range holds it in %.2f, taken for a bend in %.2f", c.name, off[runs/2], off[runs*9/10], float64(held)/runs, float64(bent)/runs)
		if off[runs/2] > c.most || float64(held)/runs < c.held {
			t.Errorf("%s: off by %v, held in %d of %d", c.name, off[runs/2], held, runs)
		}
	}
}
