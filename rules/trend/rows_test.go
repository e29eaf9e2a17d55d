package trend

import (
	"math"
	"testing"
)

func TestWithoutLoadTakesOutWhatLoadCosts(t *testing.T) {
	s := &Scratch{}
	var x, y, load []float64
	for i := range 100 {
		l := 100 + float64(i*37%50)
		x, load, y = append(x, float64(i)), append(load, l), append(y, 2*l)
	}
	out, known := s.WithoutLoad(nil, x, y, load)
	if !known || len(out) != len(y) {
		t.Fatalf("%d of %d values, known %v", len(out), len(y), known)
	}
	mid := s.Median(load)
	for i, v := range out {
		if math.Abs(v-2*mid) > 0.05*mid {
			t.Errorf("value %d is %v, want %v", i, v, 2*mid)
		}
	}
}

func TestWithoutLoadLeavesWhatLoadHasNoPartIn(t *testing.T) {
	s := &Scratch{}
	var x, y, load, none []float64
	for i := range 100 {
		x, y = append(x, float64(i)), append(y, 5+float64(i))
		load, none = append(load, 100), append(none, math.NaN())
	}
	if out, known := s.WithoutLoad(nil, x, y, load); !known || out[0] != 5 || out[99] != 104 {
		t.Errorf("an even load: %v to %v, known %v", out[0], out[99], known)
	}
	if out, known := s.WithoutLoad(nil, x, y, none); known || out[0] != 5 || out[99] != 104 {
		t.Errorf("an unknown load: %v to %v, known %v", out[0], out[99], known)
	}
}

func TestLikeLoadComparesWithBatchesOfTheSameLoad(t *testing.T) {
	s := &Scratch{}
	var y, load []float64
	for i := range 200 {
		l := float64(1 + i%2*9) // 1 and 10
		y, load = append(y, 3*l), append(load, l)
	}
	if got, known := s.LikeLoad(y, load, 10, false); !known || got != 30 {
		t.Errorf("at a load of 10: %v, known %v", got, known)
	}
	if got, known := s.LikeLoad(y, load, 20, false); !known || got != 60 {
		t.Errorf("at twice the highest load: %v, known %v", got, known)
	}
	for name, want := range map[string]float64{"absent": math.NaN(), "endless": math.Inf(1)} {
		if got, known := s.LikeLoad(y, load, want, false); known || !math.IsNaN(got) {
			t.Errorf("%s: %v, known %v", name, got, known)
		}
	}
	if _, known := s.LikeLoad(y, load[:5], 10, false); known {
		t.Error("loads of other batches were taken for these")
	}
}
