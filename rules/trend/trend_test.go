package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestExactSUnderPushAndEvict(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, span := range []Span{{Batches: 30}, {Batches: 10, Ms: 40_000}, {Ms: 25_000}} {
		w := NewWindow(span, 60)
		at, batch := int64(0), int64(0)
		for i := range 3000 {
			at += rng.Int64N(2000)
			batch += 1 + rng.Int64N(3)
			w.Push(Point{Batch: batch, AtMs: at, Value: float64(rng.IntN(12)), Load: math.NaN()})
			if i%7 == 0 {
				compareWithNaive(t, w)
			}
		}
	}
}

func compareWithNaive(t *testing.T, w *Window) {
	t.Helper()
	_, y, _ := w.ring.copyTo(nil, nil, nil)
	s, tie := naiveKendall(y)
	if s != w.rank.s || tie != w.rank.tieTerm {
		t.Fatalf("S %d, ties %d after %d points, naive says %d and %d", w.rank.s, w.rank.tieTerm, len(y), s, tie)
	}
}

func naiveKendall(y []float64) (s, tieTerm int64) {
	groups := map[float64]int64{}
	for i := range y {
		groups[y[i]]++
		for j := range i {
			switch {
			case y[j] < y[i]:
				s++
			case y[j] > y[i]:
				s--
			}
		}
	}
	for _, n := range groups {
		tieTerm += n * (n - 1) * (2*n + 5)
	}
	return s, tieTerm
}

func naiveTheilSen(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
		}
	}
	return sortedMedian(slopes)
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

func TestTheilSenEqualsTheMedianOfAllSlopes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for trial := range 400 {
		n := 2 + rng.IntN(90)
		x, y := make([]float64, n), make([]float64, n)
		at := 0.0
		for i := range n {
			at += 1 + float64(rng.IntN(3))
			x[i] = at
			y[i] = rng.NormFloat64() * math.Exp(3*rng.NormFloat64())
			if trial%2 == 0 { // heavy ties
				y[i] = float64(rng.IntN(4))
			}
		}
		got, want := TheilSen(x, y, 0, 0).Slope, naiveTheilSen(x, y)
		if math.Abs(got-want) > 1e-7*math.Max(1, math.Abs(want)) {
			t.Fatalf("trial %d, n %d: slope %v, all pairs say %v", trial, n, got, want)
		}
	}
}
