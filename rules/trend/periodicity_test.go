package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// beats describes a series with spikes for the tests.
type beats struct {
	period   int     // batches between spikes, 0 for none
	height   float64 // factor of a spike
	missed   float64 // share of spikes that do not come
	jitter   int     // batches by which a spike may come early or late
	atRandom float64 // chance of a spike at any batch
	memory   float64
}

func (b beats) series(seed uint64, n int) []float64 {
	noise := newNoise(seed, nil)
	y := make([]float64, n)
	for i := range y {
		y[i] = 100 * math.Exp(0.15*noise.ar(b.memory))
		if noise.rng.Float64() < b.atRandom {
			y[i] *= b.height
		}
	}
	if b.period == 0 {
		return y
	}
	for at := 3; at < n; at += b.period {
		if noise.rng.Float64() < b.missed {
			continue
		}
		k := at + noise.rng.IntN(2*b.jitter+1) - b.jitter
		if k >= 0 && k < n {
			y[k] *= b.height
		}
	}
	return y
}

// evenly returns batch ids and times of a batch each everyMs.
func evenly(n int, everyMs int64) (batch, at []int64) {
	for i := range int64(n) {
		batch, at = append(batch, 1000+i), append(at, 1_700_000_000_000+i*everyMs)
	}
	return batch, at
}

func TestPeriodicityErrorTable(t *testing.T) {
	arithmeticOnly(t)
	const runs = 400
	batch, at := evenly(200, 60_000)
	cases := []struct {
		name string
		beats
		least, most float64 // share found periodic
	}{
		{"exact, each 10th x5", beats{period: 10, height: 5}, 0.98, 1},
		{"exact, each 20th x5", beats{period: 20, height: 5}, 0.98, 1},
		{"exact, each 10th x5, memory .6", beats{period: 10, height: 5, memory: 0.6}, 0.95, 1},
		{"one in five missed", beats{period: 10, height: 5, missed: 0.2}, 0.8, 1},
		{"jitter of one in 20", beats{period: 20, height: 5, jitter: 1}, 0.8, 1},
		{"jitter of one in 10", beats{period: 10, height: 5, jitter: 1}, 0, 1},
		{"weak, x2", beats{period: 10, height: 2}, 0.8, 1},
		{"random, 5 %", beats{height: 5, atRandom: 0.05}, 0, 0.01},
		{"random, 10 %", beats{height: 5, atRandom: 0.10}, 0, 0.01},
		{"random, 20 %", beats{height: 5, atRandom: 0.20}, 0, 0.01},
		{"no spikes", beats{}, 0, 0.01},
		{"no spikes, memory .6", beats{memory: 0.6}, 0, 0.01},
	}
	s := new(Scratch)
	for _, c := range cases {
		found, right := 0, 0
		for seed := range uint64(runs) {
			r := s.Periodicity(batch, at, c.series(seed, 200), SpikeOptions{})
			if r.Axis == Irregular {
				continue
			}
			found++
			right += count(math.Abs(r.Batches-float64(c.period)) < 0.03*float64(c.period))
		}
		share := float64(found) / runs
		t.Logf("%-32s periodic in %.3f, with the right period in %.3f", c.name, share, float64(right)/runs)
		if share < c.least || share > c.most || float64(right) < 0.98*float64(found) && c.period > 0 {
			t.Errorf("%s: periodic in %.3f, right in %d of %d", c.name, share, right, found)
		}
	}
}

func TestAxisIsTheOneThatTheSpikesKeepTo(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	uneven := func() (batch, at []int64) { // batches of 20 to 120 s
		ms := int64(0)
		for i := range int64(240) {
			batch, at = append(batch, i), append(at, ms)
			ms += 20_000 + rng.Int64N(100_000)
		}
		return batch, at
	}
	right := map[Axis]int{}
	for range 50 {
		batch, at := uneven()
		counted, timed := make([]float64, 240), make([]float64, 240)
		next := at[0] + 600_000
		for i := range counted {
			counted[i], timed[i] = 100+rng.NormFloat64(), 100+rng.NormFloat64()
			if i%10 == 4 {
				counted[i] = 500
			}
			if at[i] >= next { // a timer of ten minutes, served by the next batch
				timed[i] = 500
				next += 600_000
			}
		}
		s := new(Scratch)
		if r := s.Periodicity(batch, at, counted, SpikeOptions{}); r.Axis == OnBatches {
			right[OnBatches]++
			near(t, "period", r.Batches, 10, 0.1)
		}
		if r := s.Periodicity(batch, at, timed, SpikeOptions{}); r.Axis == OnClock {
			right[OnClock]++
			near(t, "period", r.Ms, 600_000, 20_000)
		}
	}
	t.Logf("of 50: %d on batches, %d on the clock", right[OnBatches], right[OnClock])
	if right[OnBatches] < 48 || right[OnClock] < 40 {
		t.Errorf("%v of 50", right)
	}
}

func TestEvenBatchesDoNotTellTheAxesApart(t *testing.T) {
	batch, at := evenly(200, 60_000)
	r := new(Scratch).Periodicity(batch, at, beats{period: 10, height: 5}.series(1, 200), SpikeOptions{})
	if r.Axis != OnEither {
		t.Fatalf("%+v", r)
	}
	near(t, "period in batches", r.Batches, 10, 0.1)
	near(t, "period in milliseconds", r.Ms, 600_000, 6000)
	if r.Spikes != 20 || r.Height < 400 || r.Median > 120 || r.Threshold <= r.Median {
		t.Errorf("%+v", r)
	}
}

func TestPointsInARowAreOneSpike(t *testing.T) {
	y := make([]float64, 100)
	for i := range y {
		y[i] = 100 + wobble(i)
		if i%20 < 2 {
			y[i] = 500 + float64(i%20)
		}
	}
	batch, at := evenly(100, 1000)
	r := new(Scratch).Periodicity(batch, at, y, SpikeOptions{})
	if r.Spikes != 5 || r.Height != 501 {
		t.Errorf("%+v", r)
	}
}

func TestTooFewSpikesHaveNoRhythm(t *testing.T) {
	batch, at := evenly(100, 1000)
	y := beats{period: 25, height: 5}.series(1, 100)
	r := new(Scratch).Periodicity(batch, at, y, SpikeOptions{})
	if r.Spikes != 4 || r.Axis != Irregular {
		t.Errorf("%+v", r)
	}
}

func TestSpikesNeedFactorAndDistance(t *testing.T) {
	y := []float64{10, 11, 9, 10, 11, 9, 10, 25, 10, 60, math.NaN(), math.Inf(1)}
	s := new(Scratch)
	for _, c := range []struct {
		o    SpikeOptions
		want int
	}{{SpikeOptions{}, 2}, {SpikeOptions{Factor: 3}, 1}, {SpikeOptions{AtLeast: 30}, 1}, {SpikeOptions{AtLeast: 100}, 0}} {
		places, median, _ := s.Spikes(y, c.o, nil)
		if len(places) != c.want || median != 10 {
			t.Errorf("%+v: %v round %v", c.o, places, median)
		}
	}
	if places, _, _ := s.Spikes(nil, SpikeOptions{}, nil); len(places) != 0 {
		t.Error("spikes in nothing")
	}
}

func TestChanceOfAConcentrationIsAsSimulated(t *testing.T) {
	rng := rand.New(rand.NewPCG(73, 74))
	for _, c := range []struct {
		k int
		r float64
	}{{5, 0.7}, {10, 0.5}, {10, 0.6}, {20, 0.4}} {
		over := 0
		const runs = 40_000
		for range runs {
			var x, y float64
			for range c.k {
				a := 2 * math.Pi * rng.Float64()
				x, y = x+math.Cos(a), y+math.Sin(a)
			}
			over += count(math.Hypot(x, y)/float64(c.k) > c.r)
		}
		got, want := rayleighChance(float64(c.k), c.r), float64(over)/runs
		near(t, "chance", got, want, 0.15*want+0.001)
	}
}
