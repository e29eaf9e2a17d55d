package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTheilSenEqualsTheMedianOfAllSlopes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for trial := range 400 {
		x, y := randomSeries(rng, 2+rng.IntN(90), trial%2 == 0)
		got, want := TheilSen(x, y, 0, 0).Slope, naiveTheilSen(x, y)
		near(t, "slope", got, want, 1e-7*math.Max(1, math.Abs(want)))
	}
}

// randomSeries has gaps in x and heavy tails in y, or nothing but ties.
func randomSeries(rng *rand.Rand, n int, tied bool) (x, y []float64) {
	at := 0.0
	for range n {
		at += 1 + float64(rng.IntN(3))
		v := rng.NormFloat64() * math.Exp(3*rng.NormFloat64())
		if tied {
			v = float64(rng.IntN(4))
		}
		x, y = append(x, at), append(y, v)
	}
	return x, y
}

func naiveTheilSen(x, y []float64) float64 { return sortedMedian(allSlopes(x, y)) }

func allSlopes(x, y []float64) []float64 {
	var slopes []float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
		}
	}
	slices.Sort(slopes)
	return slopes
}

func sortedMedian(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return v[n/2-1] + (v[n/2]-v[n/2-1])/2
}

func TestEverySlopeIsFoundByItsRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := new(Scratch)
	for trial := range 20 {
		x, y := randomSeries(rng, 40, trial%2 == 0)
		for k, want := range allSlopes(x, y) {
			near(t, "slope of a rank", s.kthSlopes(x, y, k, k), want, 1e-7*math.Max(1, math.Abs(want)))
		}
	}
}

// TestSlopesOfManyPointsAreFoundByTheirRank goes beyond what all slopes are looked at for.
func TestSlopesOfManyPointsAreFoundByTheirRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s := new(Scratch)
	for trial := range 6 {
		x, y := randomSeries(rng, allSlopesUpTo+trial-2, trial%2 == 0)
		slopes := allSlopes(x, y)
		for k := trial; k < len(slopes); k += 331 {
			near(t, "slope of a rank", s.kthSlopes(x, y, k, k), slopes[k], 1e-7*math.Max(1, math.Abs(slopes[k])))
		}
	}
}

func TestSlopeOfEqualValuesIsZero(t *testing.T) {
	l := TheilSen(ramp(50), slices.Repeat([]float64{3}, 50), 2.4, 1000)
	if l != (Line{Intercept: 3}) {
		t.Errorf("line is %+v", l)
	}
}

func TestLineThroughFewPoints(t *testing.T) {
	if l := TheilSen(nil, nil, 0, 0); l.Slope != 0 {
		t.Errorf("slope of nothing is %v", l.Slope)
	}
	if l := TheilSen([]float64{4}, []float64{9}, 2, 5); l.Slope != 0 || l.Intercept != 9 {
		t.Errorf("line through one point is %+v", l)
	}
	if l := TheilSen([]float64{1, 3}, []float64{5, 9}, 0, 0); l.Slope != 2 || l.Intercept != 3 {
		t.Errorf("line through two points is %+v", l)
	}
}

func TestAQuarterOfWildPointsDoesNotMoveTheLine(t *testing.T) {
	x, y := ramp(100), ramp(100)
	for i := range y {
		y[i] = 5 + 0.5*y[i]
		if i%4 == 0 {
			y[i] = 1e6
		}
	}
	near(t, "slope", TheilSen(x, y, 0, 0).Slope, 0.5, 0.05)
}

func TestSlopeIntervalHoldsTheTruthMostly(t *testing.T) {
	const runs, slope = 300, 0.02
	rng := rand.New(rand.NewPCG(7, 8))
	held := 0
	for range runs {
		x, y := ramp(60), make([]float64, 60)
		for i := range y {
			y[i] = slope*x[i] + rng.NormFloat64()
		}
		l := TheilSen(x, y, 1.96, MannKendall(y).VarS)
		if l.Low <= slope && slope <= l.High {
			held++
		}
		if l.Low > l.Slope || l.High < l.Slope {
			t.Fatalf("interval %v to %v leaves out the slope %v", l.Low, l.High, l.Slope)
		}
	}
	if held < runs*90/100 || held > runs*99/100 {
		t.Errorf("a 95 %% interval held the truth in %d of %d runs", held, runs)
	}
}

func TestIrregularSpacingFromOneToSixtySeconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var x, y []float64
	at := 0.0
	for range 120 {
		at += 1 + 59*rng.Float64()
		x, y = append(x, at), append(y, 0.001*at+0.05*rng.NormFloat64())
	}
	near(t, "slope", TheilSen(x, y, 0, 0).Slope, 0.001, 0.0001)
}

func TestSelectionEqualsSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		v := make([]float64, 1+rng.IntN(200))
		for i := range v {
			v[i] = float64(rng.IntN(30))
		}
		k := rng.IntN(len(v))
		sorted := slices.Clone(v)
		slices.Sort(sorted)
		near(t, "median", new(Scratch).median(v), sortedMedian(v), 0)
		near(t, "value of a rank", selectInPlace(v, k), sorted[k], 0)
	}
	if m := medianInPlace(nil); !math.IsNaN(m) {
		t.Errorf("median of nothing is %v", m)
	}
}
