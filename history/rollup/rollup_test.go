package rollup

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantilesLieLinearlyBetweenValues(t *testing.T) {
	upTo := func(n int) (out []float64) {
		for i := range n {
			out = append(out, float64(i+1))
		}
		return out
	}
	for _, c := range []struct {
		name        string
		values      []float64
		median, p95 float64
	}{
		{"one value", []float64{7}, 7, 7},
		{"two values", []float64{1, 3}, 2, 2.9},
		{"1 to 4", upTo(4), 2.5, 3.85},
		{"1 to 5", upTo(5), 3, 4.8},
		{"1 to 10", upTo(10), 5.5, 9.55},
		{"1 to 21", upTo(21), 11, 20},
		{"1 to 101", upTo(101), 51, 96},
		{"not in order", []float64{40, 10, 30, 20}, 25, 38.5},
		{"all alike", []float64{0.1, 0.1, 0.1}, 0.1, 0.1},
		{"below zero", []float64{-1, -3}, -2, -1.1},
		{"as far apart as can be", []float64{-math.MaxFloat64, math.MaxFloat64}, 0, 0.9 * math.MaxFloat64},
	} {
		h, ok := Of(0, slices.Clone(c.values))
		if !ok || !close(h.Median, c.median) || !close(h.P95, c.p95) {
			t.Errorf("%s: median %v and 95th percentile %v, want %v and %v", c.name, h.Median, h.P95, c.median, c.p95)
		}
		if err := h.check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func close(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }

func TestAnHourHoldsWhatCame(t *testing.T) {
	got, ok := Of(5*HourMs, []float64{4, 9, 1, 6})
	if want := (Hour{StartMs: 5 * HourMs, Count: 4, Min: 1, Median: 5, P95: 8.55, Max: 9, Last: 6}); !ok || !cmp.Equal(got, want, approx) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, ok := Of(0, nil); ok {
		t.Error("an hour without values was summed up")
	}
}

func TestMomentsBelongToTheHourBeforeThem(t *testing.T) {
	for at, want := range map[int64]int64{
		0: 0, 1: 0, HourMs - 1: 0, HourMs: HourMs, HourMs + 1: HourMs,
		-1: -HourMs, -HourMs: -HourMs, -HourMs - 1: -2 * HourMs,
		1_930_000_000_000: 1_929_999_600_000,
	} {
		if got := Start(at); got != want {
			t.Errorf("%d lies in the hour from %d, want %d", at, got, want)
		}
	}
}

// An hour of any values is in order, and its quantiles part the values as they say.
func TestQuantilesPartTheValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		values := make([]float64, 1+rng.IntN(400))
		for i := range values {
			values[i] = math.Exp(rng.NormFloat64())
			if rng.IntN(3) == 0 {
				values[i] = math.Round(values[i])
			}
		}
		h, _ := Of(0, values)
		if err := h.check(); err != nil {
			t.Fatal(err)
		}
		for q, v := range map[float64]float64{0.5: h.Median, 0.95: h.P95} {
			below, above := 0, 0
			for _, x := range values {
				if x < v {
					below++
				}
				if x > v {
					above++
				}
			}
			n := float64(len(values) - 1)
			if float64(below) > n*q+1 || float64(above) > n*(1-q)+1 {
				t.Fatalf("quantile %v of %d values has %d below and %d above", q, len(values), below, above)
			}
		}
	}
}
