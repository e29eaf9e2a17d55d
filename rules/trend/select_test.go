package trend

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSelectionAgreesWithSorting tries few values, many equal ones and all lengths up
// to where pivots are medians of nine.
func TestSelectionAgreesWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v, kinds := make([]float64, 1+r.IntN(120)), 1+r.IntN(200)
		for i := range v {
			v[i] = float64(r.IntN(kinds))
		}
		k, sorted := r.IntN(len(v)), slices.Sorted(slices.Values(v))
		got := SelectInPlace(v, k)
		if got != sorted[k] {
			t.Fatalf("place %d of %v: got %v", k, sorted, got)
		}
		if k > 0 && slices.Max(v[:k]) > got || slices.Min(v[k:]) < got {
			t.Fatalf("%v is not parted at place %d", v, k)
		}
		slices.Sort(v)
		if !slices.Equal(v, sorted) {
			t.Fatalf("selection changed the values to %v", v)
		}
	}
}

func TestSelectionOfWhatIsOrderedTakesNoSquareOfTime(t *testing.T) {
	const n = 1 << 17
	for name, at := range map[string]func(i int) float64{
		"rising":  func(i int) float64 { return float64(i) },
		"falling": func(i int) float64 { return float64(-i) },
		"equal":   func(int) float64 { return 7 },
		"saw":     func(i int) float64 { return float64(i % 3) },
	} {
		v := make([]float64, n)
		for i := range v {
			v[i] = at(i)
		}
		sorted := slices.Sorted(slices.Values(v))
		if got := SelectInPlace(v, n/2); got != sorted[n/2] {
			t.Errorf("%s: got %v, want %v", name, got, sorted[n/2])
		}
	}
}
