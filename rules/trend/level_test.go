package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

func levels(n int, value func(i int) (v, load float64)) *LevelWindow {
	w := NewLevelWindow(Span{Batches: 60}, Span{Batches: 500})
	for i := range n {
		v, load := value(i)
		w.Push(Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: v, Load: load})
	}
	return w
}

func plain(f func(i int) float64) func(int) (float64, float64) {
	return func(i int) (float64, float64) { return f(i), math.NaN() }
}

func TestLevelComparesSixtyBatchesWithFiveHundredBefore(t *testing.T) {
	step := func(by float64) func(int) float64 {
		return func(i int) float64 {
			if i >= 540 {
				return by * (100 + wobble(i))
			}
			return 100 + wobble(i)
		}
	}
	cases := []struct {
		name string
		n    int
		by   float64
		want Verdict
	}{
		{"559 batches are too few", 559, 1, TooFew},
		{"560 are enough", 560, 1, Clear},
		{"a third of the recent ones at half as much again", 560, 1.5, Clear},
		{"most of the recent ones at half as much again", 580, 1.5, Found},
		{"a step of three in ten is below the floor", 600, 1.3, Clear},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := levels(c.n, plain(step(c.by)))
			r := w.Level(LevelOptions{By: 0.35})
			if r.Verdict != c.want || w.Full() != (c.want != TooFew) {
				t.Errorf("%+v, full %v", r, w.Full())
			}
			if c.want == TooFew {
				return
			}
			if r.RecentBatches != 60 || r.BeforeBatches != 500 || r.Since != int64(c.n-60) {
				t.Errorf("%d against %d batches since %d", r.RecentBatches, r.BeforeBatches, r.Since)
			}
		})
	}
}

func TestLevelMediansAreExact(t *testing.T) {
	w := levels(900, plain(func(i int) float64 { return float64(i * 7 % 1000) }))
	var all []float64
	for i := 340; i < 900; i++ {
		all = append(all, float64(i*7%1000))
	}
	r := w.Level(LevelOptions{})
	near(t, "recent", r.Recent, sortedMedian(all[500:]), 0)
	near(t, "before", r.Before, sortedMedian(all[:500]), 0)
	near(t, "ratio", r.Ratio, r.Recent/r.Before, 1e-12)
}

func TestLevelOfAFastStreamIsJudgedInBlocks(t *testing.T) {
	w := NewLevelWindow(Span{Batches: 60, Ms: 3_600_000}, Span{Batches: 500, Ms: 4 * 3_600_000})
	for i := range int64(40_000) {
		v := 100.0
		if i >= 37_000 {
			v = 150
		}
		w.Push(Point{Batch: i, AtMs: i * 1000, Value: v, Load: math.NaN()})
	}
	r := w.Level(LevelOptions{By: 0.35})
	if r.Verdict != Found || w.Len() > levelPoints || w.Batches() < 18_000 {
		t.Errorf("%+v of %d points, %d batches", r, w.Len(), w.Batches())
	}
	if r.RecentBatches < 3600 || r.RecentBatches > 3800 || r.BeforeBatches < 14_000 {
		t.Errorf("%d against %d batches", r.RecentBatches, r.BeforeBatches)
	}
}

func TestLevelIsFullForEverOnAnySpacing(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	w := NewLevelWindow(Span{Batches: 20, Ms: 600_000}, Span{Batches: 100, Ms: 3_600_000})
	at := int64(0)
	for i := range int64(5000) {
		at += 1 + rng.Int64N(60_000)
		w.Push(Point{Batch: i, AtMs: at, Value: 1, Load: math.NaN()})
		if i > 1000 && !w.Full() {
			t.Fatalf("not full at batch %d", i)
		}
	}
}

func TestLevelLooksAtBatchesOfLikeLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	// Of 640 batches, the last 160 see twice the load.
	day := func(i int) float64 {
		l := 1000.0
		if i%640 >= 480 {
			l = 2000
		}
		return l * math.Exp(0.1*rng.NormFloat64())
	}
	cases := []struct {
		name string
		n    int
		f    func(i int) (v, load float64)
		want Verdict
	}{
		{"the day of a daily cycle", 1280, func(i int) (float64, float64) { l := day(i); return l, l }, Explained},
		{"a slow day", 1280, func(i int) (float64, float64) {
			l := day(i)
			if i > 1200 {
				return 1.6 * l, l
			}
			return l, l
		}, Found},
		{"more load than ever, in proportion", 600, func(i int) (float64, float64) {
			l := 1000 * math.Exp(0.1*rng.NormFloat64())
			if i > 520 {
				l *= 2
			}
			return l, l
		}, Explained},
		{"a step at the same load", 600, func(i int) (float64, float64) {
			v := 100 + wobble(i)
			if i > 520 {
				v *= 1.6
			}
			return v, 1000 * math.Exp(0.2*rng.NormFloat64())
		}, Found},
		{"a step with the load unknown", 600, func(i int) (float64, float64) {
			if i > 520 {
				return 200, math.NaN()
			}
			return 100, math.NaN()
		}, CannotTell},
		{"no step with the load unknown", 600, func(int) (float64, float64) { return 100, math.NaN() }, Clear},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := levels(c.n, c.f).Level(LevelOptions{By: 0.35, AdjustForLoad: true})
			if r.Verdict != c.want {
				t.Errorf("%+v, want %q", r, c.want)
			}
		})
	}
}

func TestLowerLevelIsFoundOnlyWhenAskedFor(t *testing.T) {
	w := levels(600, plain(func(i int) float64 {
		if i > 520 {
			return 50 + wobble(i)
		}
		return 100 + wobble(i)
	}))
	if v := w.Level(LevelOptions{By: 0.35}).Verdict; v != Clear {
		t.Errorf("as a rise: %q", v)
	}
	if v := w.Level(LevelOptions{By: 0.35, Falling: true}).Verdict; v != Found {
		t.Errorf("as a fall: %q", v)
	}
	if v := w.Level(LevelOptions{By: 0.35, AtLeast: 60, Falling: true}).Verdict; v != Clear {
		t.Errorf("below the absolute floor: %q", v)
	}
}

func TestLowerLevelOfALowerLoadIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		value func(load float64) float64
		want  Verdict
	}{
		"in proportion":      {func(l float64) float64 { return l }, Explained},
		"far more than that": {func(l float64) float64 { return l * l / 1000 }, Found},
	} {
		rng := rand.New(rand.NewPCG(25, 26))
		w := levels(600, func(i int) (float64, float64) {
			l := 1000 * math.Exp(0.05*rng.NormFloat64())
			if i > 520 {
				l /= 2
			}
			return c.value(l), l
		})
		r := w.Level(LevelOptions{By: 0.35, AdjustForLoad: true, Falling: true})
		if r.Verdict != c.want {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestSlowDriftIsFoundByTheLevel(t *testing.T) {
	found := false
	w := NewLevelWindow(Span{Batches: 60}, Span{Batches: 500})
	for i := range 1500 {
		drift := math.Min(math.Max(float64(i-600), 0), 500)
		w.Push(Point{Batch: int64(i), Value: (100 + 5*wobble(i)) * (1 + 0.002*drift), Load: math.NaN()})
		found = found || w.Level(LevelOptions{By: 0.35}).Verdict == Found
	}
	if !found {
		t.Error("a drift of .2 % a batch over 500 batches was not found")
	}
}

func TestLevelWindowBreaksAndResets(t *testing.T) {
	w := levels(600, plain(func(i int) float64 { return 1 }))
	w.BreakAfter(3_600_000)
	w.UseScratch(new(Scratch))
	w.Push(Point{Batch: 600, AtMs: 1 << 40, Value: 1, Load: math.NaN()})
	if w.Len() != 1 {
		t.Errorf("%d points after a pause", w.Len())
	}
	w.Reset()
	if w.Len() != 0 || w.Batches() != 0 || w.Level(LevelOptions{}).Since != -1 {
		t.Error("something is left after a reset")
	}
}
