package trend

import (
	"math"
	"testing"
)

func TestBaselineIsMedianAndScaledDeviation(t *testing.T) {
	b := new(Scratch).Baseline([]float64{10, 12, 8, 11, 9, 1000, math.NaN(), math.Inf(1)}, 0)
	if b.N != 6 || !b.Known() {
		t.Fatalf("%+v", b)
	}
	near(t, "level", b.Level, 10.5, 1e-12)
	near(t, "spread", b.Spread, madScale*1.5, 1e-12)
	near(t, "score", b.Score(10.5+3*b.Spread), 3, 1e-12)
}

func TestBaselineOfFlatValuesHasTheFloorForASpread(t *testing.T) {
	s := new(Scratch)
	flat := []float64{200, 200, 200, 200}
	near(t, "a hundredth of the level", s.Baseline(flat, 0).Spread, 2, 1e-12)
	near(t, "the caller's floor", s.Baseline(flat, 5).Spread, 5, 1e-12)
	if b := s.Baseline(make([]float64, 4), 0); !b.Known() || math.IsNaN(b.Score(0)) {
		t.Errorf("%+v", b)
	}
}

func TestBaselineOfNothingScoresNothing(t *testing.T) {
	b := new(Scratch).Baseline([]float64{math.NaN()}, 1)
	if b.Known() || b.Score(5) != 0 {
		t.Errorf("%+v", b)
	}
	if known := (Baseline{N: 5, Level: 1, Spread: 1}); known.Score(math.NaN()) != 0 || known.Score(math.Inf(1)) != 0 {
		t.Error("what is no measurement has a score")
	}
}
