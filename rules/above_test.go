package rules

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTheLevelIsThatOfTheBatchThatCompletesTheCount(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, some := range []countOf{{1, 1}, {3, 3}, {3, 4}, {5, 10}, {10, 20}, {40, 40}, {1, 64}, {64, 64}} {
		for _, falling := range []bool{false, true} {
			tr := &aboveTracker{d: &above{spec: aboveSpec{Batches: some}, falling: falling}, newest: make([]looked, some.n)}
			var all []float64
			for i := range 200 {
				v := float64(r.IntN(50))
				all = append(all, v)
				tr.take(looked{int64(i), v}, false, false)
				newest := slices.Clone(all[max(0, len(all)-some.n):])
				slices.Sort(newest)
				if !falling {
					slices.Reverse(newest)
				}
				if got, want := tr.level(), newest[min(some.k, len(newest))-1]; got != want {
					t.Fatalf("%s, falling %v, %d batches: level %v, want %v", some, falling, i+1, got, want)
				}
			}
		}
	}
}
