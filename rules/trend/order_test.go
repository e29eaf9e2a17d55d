package trend

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestInversionsEqualACountOverAllPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	s := new(Scratch)
	for range 300 {
		v := make([]float64, rng.IntN(150))
		for i := range v {
			v[i] = float64(rng.IntN(40))
		}
		want := 0
		for i := range v {
			for j := range i {
				if v[j] > v[i] {
					want++
				}
			}
		}
		sorted := slices.Clone(v)
		if got := s.countInversions(sorted); got != want {
			t.Fatalf("%d inversions of %d values, want %d", got, len(v), want)
		}
		if !slices.IsSorted(sorted) {
			t.Fatal("values are not sorted afterwards")
		}
	}
}

func TestSelectionOfSortedAndEqualValuesIsNoTrap(t *testing.T) {
	const n = 20_000
	up, down, equal := ramp(n), ramp(n), make([]float64, n)
	slices.Reverse(down)
	for name, v := range map[string][]float64{"rising": up, "falling": down} {
		if got := selectInPlace(v, 777); got != 777 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := selectInPlace(equal, n/2); got != 0 {
		t.Errorf("equal: %v", got)
	}
}

func TestNothingAboveTheSelectedStandsInFront(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	for range 200 {
		v := make([]float64, 1+rng.IntN(100))
		for i := range v {
			v[i] = float64(rng.IntN(20))
		}
		k := rng.IntN(len(v))
		got := selectInPlace(v, k)
		for i, u := range v {
			if i < k && u > got || i > k && u < got {
				t.Fatalf("%v at place %d, selected %v of place %d", u, i, got, k)
			}
		}
	}
}

func TestMedianOfAnEvenCountIsTheMiddleOfTwo(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{
		{[]float64{4}, 4},
		{[]float64{4, 1}, 2.5},
		{[]float64{9, 1, 5}, 5},
		{[]float64{1, 100, 3, 2}, 2.5},
		{[]float64{-1e100, 1e100}, 0},
		{[]float64{0.1, 0.1}, 0.1},
	} {
		near(t, "median", medianInPlace(slices.Clone(c.v)), c.want, 0)
	}
}
