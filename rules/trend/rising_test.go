package trend

import (
	"math"
	"testing"
)

// series fills a window of 120 batches with value(i).
func series(n int, value func(i int) float64) *Window {
	w := NewWindow(Span{Batches: 120}, 0)
	for i := range n {
		w.Push(Point{Batch: int64(1000 + i), AtMs: int64(i) * 60_000, Value: value(i), Load: math.NaN()})
	}
	return w
}

// wobble is small noise that depends on i alone.
func wobble(i int) float64 { return math.Sin(float64(i*i)*1.7) + math.Sin(float64(i)*12.3) }

func TestVerdictNeedsTheLeastNumberOfPoints(t *testing.T) {
	steep := func(i int) float64 { return 100 + 5*float64(i) + wobble(i) }
	if v := series(59, steep).Rising(DefaultRising()).Verdict; v != TooFew {
		t.Errorf("59 points: %q", v)
	}
	if v := series(60, steep).Rising(DefaultRising()).Verdict; v != Found {
		t.Errorf("60 points: %q", v)
	}
	if v := series(9, steep).Rising(RisingOptions{MinPoints: 1}).Verdict; v != TooFew {
		t.Errorf("9 points with a minimum of 1: %q", v)
	}
	if v := NewWindow(Span{}, 0).Rising(RisingOptions{}).Verdict; v != TooFew {
		t.Errorf("no points: %q", v)
	}
}

func TestEqualValuesAreClearAndNoNumberIsNaN(t *testing.T) {
	for _, level := range []float64{0, 5, -5, 1e100, 1e-300} {
		for _, falling := range []bool{false, true} {
			o := DefaultRising()
			o.Falling, o.AdjustForLoad = falling, true
			r := series(120, func(int) float64 { return level }).Rising(o)
			if r.Verdict != Clear || r.RawZ != 0 {
				t.Errorf("level %v: %+v", level, r)
			}
		}
	}
}

func TestRampIsFoundWithItsNumbers(t *testing.T) {
	r := series(120, func(i int) float64 { return 100 + 0.5*float64(i) + wobble(i) }).Rising(DefaultRising())
	if r.Verdict != Found || r.Batches != 120 {
		t.Fatalf("%+v", r)
	}
	near(t, "slope", r.SlopePerBatch, 0.5, 0.01)
	near(t, "start", r.Start, 100, 1)
	near(t, "end", r.End, 159.5, 1)
	near(t, "rise", r.Rise, 59.5, 1)
	near(t, "relative", r.Relative, 0.595, 0.02)
	if r.RiseLow > r.Rise || r.RiseHigh < r.Rise || r.RiseHigh-r.RiseLow > 5 {
		t.Errorf("range %v to %v", r.RiseLow, r.RiseHigh)
	}
	if r.Since > 1020 {
		t.Errorf("since batch %d, the ramp began at 1000", r.Since)
	}
}

func TestFallIsARiseUpsideDown(t *testing.T) {
	up := func(i int) float64 { return 100 + 0.5*float64(i) + wobble(i) }
	down := func(i int) float64 { return 200 - 0.5*float64(i) - wobble(i) }
	o := DefaultRising()
	if v := series(120, down).Rising(o).Verdict; v != Clear {
		t.Errorf("a fall is %q as a rise", v)
	}
	o.Falling = true
	if v := series(120, up).Rising(o).Verdict; v != Clear {
		t.Errorf("a rise is %q as a fall", v)
	}
	r := series(120, down).Rising(o)
	if r.Verdict != Found || r.Rise > -55 || r.Z > -3 || r.SlopePerBatch >= 0 {
		t.Errorf("%+v", r)
	}
}

func TestBothFloorsMustBeMet(t *testing.T) {
	w := series(120, func(i int) float64 { return 100 + 0.3*float64(i) + wobble(i) }) // +36 %
	cases := []struct {
		by, atLeast float64
		want        Verdict
	}{
		{0.30, 0, Found},
		{0.40, 0, Clear},
		{0.30, 30, Found},
		{0.30, 40, Clear},
		{0, 30, Found},
		{0, 0, Found},
	}
	for _, c := range cases {
		o := DefaultRising()
		o.By, o.AtLeast = c.by, c.atLeast
		if v := w.Rising(o).Verdict; v != c.want {
			t.Errorf("by %v and at least %v: %q, want %q", c.by, c.atLeast, v, c.want)
		}
	}
}

func TestRiseFromNothingNeedsOnlyTheAbsoluteFloor(t *testing.T) {
	w := series(120, func(i int) float64 { return float64(i) - 5 })
	o := DefaultRising()
	o.AtLeast = 50
	r := w.Rising(o)
	if r.Verdict != Found || r.Relative != 0 {
		t.Errorf("%q, relative %v", r.Verdict, r.Relative)
	}
}

func TestSlopeCountsGapsInTheBatches(t *testing.T) {
	w := NewWindow(Span{Batches: 120}, 0)
	batch := int64(0)
	for i := range 120 {
		batch += int64(1 + i%4*3)
		w.Push(Point{Batch: batch, Value: 100 + 0.2*float64(batch) + wobble(i), Load: math.NaN()})
	}
	near(t, "slope", w.Rising(DefaultRising()).SlopePerBatch, 0.2, 0.005)
}

func TestSinceNamesTheBatchOfAStep(t *testing.T) {
	for _, at := range []int{40, 60, 75} {
		w := series(120, func(i int) float64 { return (100 + 5*wobble(i)) * stepSlow(at, 2)(i) })
		r := w.Rising(DefaultRising())
		if r.Verdict != Found {
			t.Errorf("step at %d: %q", at, r.Verdict)
		}
		near(t, "since", float64(r.Since), float64(1000+at), 0)
	}
}

func TestStepWithoutAnyNoiseIsBelieved(t *testing.T) {
	for _, at := range []int{20, 45, 60, 75, 100} {
		r := series(120, func(i int) float64 { return 100 * stepSlow(at, 1.5)(i) }).Rising(DefaultRising())
		if r.Verdict != Found || r.R1 > 0.1 || r.Since != int64(1000+at) {
			t.Errorf("step at %d: %+v", at, r)
		}
	}
}

func TestSmoothGrowthWithoutAnyNoiseIsBelieved(t *testing.T) {
	shapes := map[string]func(i int) float64{
		"line":        func(i int) float64 { return 100 + float64(i) },
		"exponential": func(i int) float64 { return 100 * math.Exp(float64(i)/120) },
		"square":      func(i int) float64 { return 100 + float64(i*i)/100 },
		"root":        func(i int) float64 { return 100 + 10*math.Sqrt(float64(i)) },
	}
	for name, f := range shapes {
		if r := series(120, f).Rising(DefaultRising()); r.Verdict != Found {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestSinceNamesTheBendOfALateRamp(t *testing.T) {
	w := series(120, func(i int) float64 { return 100 + 2*math.Max(0, float64(i-50)) + wobble(i) })
	r := w.Rising(DefaultRising())
	near(t, "since", float64(r.Since), 1050, 4)
}

func TestSpikesAreSetAsideAndCounted(t *testing.T) {
	w := series(120, func(i int) float64 {
		if i%10 == 5 {
			return 900
		}
		return 100 + 0.5*float64(i) + wobble(i)
	})
	r := w.Rising(DefaultRising())
	if r.Verdict != Found || r.Outliers != 12 || r.N != 108 {
		t.Errorf("%q, %d outliers, %d kept", r.Verdict, r.Outliers, r.N)
	}
}

func TestMemoryTakesAFindingBack(t *testing.T) {
	// A slow swing of half a period looks like a trend to a test for independent points.
	gated, found := 0, 0
	for seed := range uint64(200) {
		n := newNoise(seed, nil)
		r := series(120, func(int) float64 { return 100 * math.Exp(0.3*n.ar(0.9)) }).Rising(DefaultRising())
		if math.Abs(r.RawZ) > 3.09 {
			gated++
		}
		if r.Verdict == Found {
			found++
		}
	}
	if gated < 30 || found > gated/4 {
		t.Errorf("%d windows pass the plain test and %d the corrected one", gated, found)
	}
}

func TestVerdictsSpeak(t *testing.T) {
	want := map[Verdict]string{
		TooFew: "too few points", Clear: "clear", Found: "found",
		Explained: "explained by load", CannotTell: "cannot tell", 99: "unknown",
	}
	for v, s := range want {
		if v.String() != s {
			t.Errorf("%d says %q", v, v)
		}
	}
}

func FuzzWindowNeverPanicsOrSaysNaN(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 4, 5}, uint8(30), int64(0))
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255}, uint8(1), int64(5000))
	f.Add([]byte("a long text rises and falls and rises again, as values do, until it ends"), uint8(20), int64(100))
	f.Fuzz(func(t *testing.T, data []byte, batches uint8, ms int64) {
		w := NewWindow(Span{Batches: int(batches), Ms: ms % 1_000_000}, 24)
		lw := NewLevelWindow(Span{Batches: int(batches) / 4}, Span{Batches: int(batches)})
		o := RisingOptions{By: 0.01, AdjustForLoad: true, Z: 0.5, GateZ: 0.1}
		batch := int64(0)
		for i, b := range data {
			batch += int64(b % 5)
			v := math.Ldexp(float64(int8(b)), int(b)*3-400)
			p := Point{Batch: batch, AtMs: int64(b)*1000 + int64(i)*ms, Value: v, Load: float64(b / 3)}
			w.Push(p)
			lw.Push(p)
			o.Falling = i%2 == 0
			r := w.Rising(o)
			l := lw.Level(LevelOptions{By: 0.1, AdjustForLoad: true, Falling: o.Falling})
			for _, v := range []float64{r.RawZ, r.Z, r.Rise, r.Relative, r.RiseLow, r.RiseHigh, r.Load.PerUnit, r.Load.Adjusted.Z, l.Recent, l.Before, l.Expected} {
				if math.IsNaN(v) {
					t.Fatalf("NaN in %+v or %+v", r, l)
				}
			}
		}
		if w.Len() > 24 {
			t.Fatalf("%d points", w.Len())
		}
		compareWithNaive(t, w)
	})
}
