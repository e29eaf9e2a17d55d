package trend

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestMannKendallOnSeriesWorkedByHand(t *testing.T) {
	cases := []struct {
		name string
		y    []float64
		s    int64
		varS float64
		tau  float64
	}{
		// 360 values in order: the variance is 360*359*725/18.
		{"a pure rise", ramp(360), 64620, 5205500, 1},
		{"a pure fall", []float64{5, 4, 3, 2, 1}, -10, 5 * 4 * 15 / 18.0, -1},
		{"equal values", []float64{7, 7, 7, 7}, 0, 0, 0},
		// Hollander and Wolfe's tuna: quality by rising lightness, 26 pairs agree and 10 do not.
		{"Hollander and Wolfe's tuna", []float64{2.5, 4.0, 2.6, 3.6, 2.8, 3.1, 5.2, 5.0, 3.8}, 16, 9 * 8 * 23 / 18.0, 16 / 36.0},
		// 1 2 2 3: five pairs rise, one is tied; 4*3*13 - 2*1*9 = 138.
		{"one tie", []float64{1, 2, 2, 3}, 5, 138 / 18.0, 5 / 6.0},
		// 2 1 2 1 2: three pairs rise, three fall, ties of 3 and 2: 300 - 66 - 18.
		{"two groups of ties", []float64{2, 1, 2, 1, 2}, 0, 216 / 18.0, 0},
		{"two values", []float64{1, 2}, 1, 0, 0},
		{"nothing", nil, 0, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := MannKendall(c.y)
			if got.S != c.s || got.N != len(c.y) {
				t.Errorf("S is %d of %d points, want %d of %d", got.S, got.N, c.s, len(c.y))
			}
			near(t, "variance", got.VarS, c.varS, 1e-9)
			near(t, "tau", got.Tau, c.tau, 1e-12)
		})
	}
}

func ramp(n int) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = float64(i)
	}
	return y
}

func TestContinuityCorrectionGoesTowardsZero(t *testing.T) {
	near(t, "z of +10", standardize(10, 81), 1, 1e-12)
	near(t, "z of -10", standardize(-10, 81), -1, 1e-12)
	near(t, "z of 0", standardize(0, 81), 0, 0)
	near(t, "z without variance", standardize(3, 0), 0, 0)
}

func TestConfidenceZIsTheNormalQuantile(t *testing.T) {
	for p, z := range map[float64]float64{0.5: 0, 0.9: 1.281552, 0.95: 1.644854, 0.99: 2.326348, 0.999: 3.090232, 0.001: -3.090232} {
		near(t, "quantile", ConfidenceZ(p), z, 1e-6)
	}
	for _, p := range []float64{0, 1, -1, 2, math.NaN()} {
		if z := ConfidenceZ(p); !math.IsNaN(z) {
			t.Errorf("ConfidenceZ(%v) is %v, want NaN", p, z)
		}
	}
}

func TestVarianceFactorEqualsTheSumOverLags(t *testing.T) {
	for _, r := range []float64{0.05, 0.3, 0.6, 0.95} {
		for _, n := range []int{2, 10, 120, 240} {
			sum := 1.0
			for k := 1; k < n; k++ {
				sum += 2 * (1 - float64(k)/float64(n)) * math.Pow(r, float64(k))
			}
			near(t, "factor", AR1VarianceFactor(r, n), sum, 1e-9*sum)
		}
	}
	near(t, "factor of negative memory", AR1VarianceFactor(-0.4, 100), 1, 0)
	near(t, "factor of NaN", AR1VarianceFactor(math.NaN(), 100), 1, 0)
	near(t, "factor beyond the bound", AR1VarianceFactor(0.999, 50), AR1VarianceFactor(0.95, 50), 0)
}

func TestMemoryIsMeasuredWithoutTrendOrOutliers(t *testing.T) {
	for _, r := range []float64{0, 0.3, 0.6} {
		sum := 0.0
		const runs = 60
		for seed := range uint64(runs) {
			n := newNoise(seed, nil)
			var x, y []float64
			for i := range 240 {
				v := 10 + 0.1*float64(i) + n.ar(r)
				if i%10 == 9 {
					v += 40
				}
				x, y = append(x, float64(i)), append(y, v)
			}
			s := new(Scratch)
			f, _ := s.fit(x, y)
			if f.Outliers < 20 || f.Outliers > 30 {
				t.Fatalf("%d outliers set aside, 24 were put in", f.Outliers)
			}
			sum += f.R1
		}
		// Clamping at 0 lifts the mean where there is no memory.
		near(t, "mean correlation", sum/runs, r, 0.06)
	}
}

func TestGapsDoNotMakeNeighbours(t *testing.T) {
	// Pairs agree perfectly, but a long gap follows each pair.
	var x, y []float64
	at := 0.0
	for i := range 40 {
		v := float64(1 - 2*((i/2)%2))
		if i%2 == 0 {
			at += 50
		}
		at++
		x, y = append(x, at), append(y, v)
	}
	s := &Scratch{keptX: x, keptY: y, residual: y}
	for i := range x {
		s.index = append(s.index, i)
	}
	if r := s.lagOne(); r < 0.9 {
		t.Errorf("correlation is %v: the gaps were taken for neighbours", r)
	}
}

func TestHampelMarksWhatLiesFarOff(t *testing.T) {
	got := Hampel([]float64{10, 11, 9, 10, 50, 10, 12, -30}, 3.5, 0)
	want := []bool{false, false, false, false, true, false, false, true}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d marked %v", i, got[i])
		}
	}
}

func TestHampelFloorKeepsWholeMillisecondsIn(t *testing.T) {
	flat := []float64{100, 100, 100, 101, 100, 100, 99, 100}
	if got := Hampel(flat, 3.5, 0); !got[3] {
		t.Error("without a floor a step of one is an outlier of a flat series")
	}
	for i, marked := range Hampel(flat, 3.5, 1) {
		if marked {
			t.Errorf("value %d is marked in spite of the floor", i)
		}
	}
}

func TestHampelOfNothing(t *testing.T) {
	if got := Hampel(nil, 3.5, 0); len(got) != 0 {
		t.Error("marks in an empty series")
	}
}
