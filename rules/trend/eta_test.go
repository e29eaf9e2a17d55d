package trend

import (
	"math"
	"slices"
	"testing"
)

func TestTimeToLimitOfACleanLine(t *testing.T) {
	y := make([]float64, 100)
	for i := range y {
		y[i] = 100 + 2*float64(i)
	}
	r := new(Scratch).TimeToLimit(ramp(100), y, 398, LimitOptions{})
	if r.Reach != Ahead {
		t.Fatalf("%+v", r)
	}
	near(t, "time", r.ETA, 50, 1e-6)
	near(t, "now", r.Now, 298, 1e-6)
	near(t, "slope", r.Slope, 2, 1e-9)
	near(t, "horizon", r.Horizon, 396, 1e-9)
	if r.Low > 50 || r.High < 50 {
		t.Errorf("%v to %v", r.Low, r.High)
	}
}

func TestOutcomesOfAForecast(t *testing.T) {
	line := func(slope float64) []float64 {
		y := make([]float64, 100)
		for i := range y {
			y[i] = 1000 + slope*float64(i) + wobble(i)
		}
		return y
	}
	step := slices.Concat(slices.Repeat([]float64{100}, 50), slices.Repeat([]float64{200}, 50))
	for i := range step {
		step[i] += wobble(i)
	}
	cases := []struct {
		name  string
		y     []float64
		limit float64
		o     LimitOptions
		want  Reach
	}{
		{"few points", line(2)[:59], 2000, LimitOptions{}, NotEnough},
		{"no limit", line(2), math.NaN(), LimitOptions{}, NotEnough},
		{"flat", line(0), 2000, LimitOptions{}, Level},
		{"the other way", line(-2), 2000, LimitOptions{}, Level},
		{"ahead", line(2), 1500, LimitOptions{}, Ahead},
		{"beyond four windows", line(2), 3000, LimitOptions{}, Beyond},
		{"beyond one window", line(2), 1500, LimitOptions{Windows: 1}, Beyond},
		{"reached", line(2), 1100, LimitOptions{}, Reached},
		{"reached and flat", line(0), 900, LimitOptions{}, Reached},
		{"down", line(-2), 700, LimitOptions{Down: true}, Ahead},
		{"down, reached", line(-2), 900, LimitOptions{Down: true}, Reached},
		{"down, far above", line(2), 700, LimitOptions{Down: true}, Level},
		{"too small a move", line(2), 1500, LimitOptions{By: 0.5}, Level},
		{"a step that stays", step, 250, LimitOptions{}, Level},
	}
	s := new(Scratch)
	for _, c := range cases {
		r := s.TimeToLimit(ramp(len(c.y)), c.y, c.limit, c.o)
		if r.Reach != c.want {
			t.Errorf("%s: %q, want %q (%+v)", c.name, r.Reach, c.want, r)
		}
		if (r.Reach == Ahead || r.Reach == Reached) == math.IsNaN(r.ETA) {
			t.Errorf("%s: time is %v", c.name, r.ETA)
		}
	}
}

func TestForecastFollowsTheLineSinceItsBend(t *testing.T) {
	n := newNoise(9, nil)
	y := make([]float64, 240)
	for i := range y {
		y[i] = 100 + 2*max(0, float64(i-160)) + 2*n.ar(0)
	}
	r := new(Scratch).TimeToLimit(ramp(240), y, 358, LimitOptions{})
	if r.Reach != Ahead {
		t.Fatalf("%+v", r)
	}
	near(t, "time", r.ETA, 50, 6)
}

func TestTimeToLimitErrorTable(t *testing.T) {
	arithmeticOnly(t)
	const runs = 200
	for _, c := range []struct {
		name       string
		noise      func(*noise) float64
		perBatch   float64
		most, held float64 // median error of the middle; share of ranges that hold the truth
	}{
		{"+.8 %, independent with outliers", iidNoise, 0.008, 0.25, 0.85},
		{"+.3 %, independent with outliers", iidNoise, 0.003, 0.45, 0.85},
		{"+.8 %, memory .6", arNoise, 0.008, 0.3, 0.8},
		{"+.3 %, memory .6", arNoise, 0.003, 0.6, 0.7},
		{"+.8 %, memory .6 and spikes", spikyNoise, 0.008, 0.3, 0.8},
	} {
		s, errs, held, none := new(Scratch), []float64{}, 0, 0
		for seed := range uint64(runs) {
			n := newNoise(700+seed, c.noise)
			y := make([]float64, 120)
			for i := range y {
				y[i] = n.value() * (1 + c.perBatch*float64(i))
			}
			// The truth: the level's median reaches the limit 120 batches from now.
			limit := 1 + c.perBatch*239
			r := s.TimeToLimit(ramp(120), y, limit, LimitOptions{})
			if r.Reach != Ahead {
				none++
				continue
			}
			errs = append(errs, math.Abs(r.ETA-120)/120)
			held += count(r.Low <= 120 && 120 <= r.High)
		}
		if len(errs) < 10 {
			t.Errorf("%s: only %d of %d see it", c.name, len(errs), runs)
			continue
		}
		slices.Sort(errs)
		median, share := errs[len(errs)/2], float64(held)/float64(len(errs))
		t.Logf("%-34s off by %.0f %% (median), range holds it in %.2f; no time in %d of %d", c.name, 100*median, share, none, runs)
		if median > c.most || share < c.held {
			t.Errorf("%s: off by %.2f, held %.2f", c.name, median, share)
		}
	}
}

func TestHealthySeriesHaveNoTimeToALimit(t *testing.T) {
	for name, noise := range map[string]func(*noise) float64{"independent": iidNoise, "memory .6": arNoise, "spikes": spikyNoise} {
		s, said := new(Scratch), 0
		const runs = 1000
		for seed := range uint64(runs) {
			n := newNoise(900+seed, noise)
			y := make([]float64, 120)
			for i := range y {
				y[i] = n.value()
			}
			said += count(s.TimeToLimit(ramp(120), y, 2, LimitOptions{By: 0.1}).Reach == Ahead)
		}
		t.Logf("%s: a time in %d of %d windows", name, said, runs)
		if said > 8 {
			t.Errorf("%s: a time in %d of %d windows", name, said, runs)
		}
	}
}
