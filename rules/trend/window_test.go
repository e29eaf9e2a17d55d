package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSStaysExactAsPointsComeAndGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, span := range []Span{{Batches: 30}, {Batches: 10, Ms: 40_000}, {Ms: 25_000}, {Batches: 200}} {
		w := NewWindow(span, 60)
		at, batch := int64(0), int64(0)
		for i := range 3000 {
			at += rng.Int64N(2000)
			batch += 1 + rng.Int64N(3)
			w.Push(Point{Batch: batch, AtMs: at, Value: float64(rng.IntN(12)), Load: math.NaN()})
			if i%7 == 0 {
				compareWithNaive(t, w)
			}
		}
	}
}

func compareWithNaive(t *testing.T, w *Window) {
	t.Helper()
	_, y, _ := w.ring.copyTo(nil, nil, nil)
	s, tie := naiveKendall(y)
	if s != w.rank.s || tie != w.rank.tieTerm {
		t.Fatalf("S %d, ties %d after %d points, naive says %d and %d", w.rank.s, w.rank.tieTerm, len(y), s, tie)
	}
}

func naiveKendall(y []float64) (s, tieTerm int64) {
	groups := map[float64]int64{}
	for i := range y {
		groups[y[i]]++
		for j := range i {
			switch {
			case y[j] < y[i]:
				s++
			case y[j] > y[i]:
				s--
			}
		}
	}
	for _, n := range groups {
		tieTerm += n * (n - 1) * (2*n + 5)
	}
	return s, tieTerm
}

// pushEvery pushes n points, one each everyMs, and returns the next batch.
func pushEvery(w interface{ Push(Point) bool }, from int64, n int, everyMs int64) int64 {
	for i := range int64(n) {
		w.Push(Point{Batch: from + i, AtMs: (from + i) * everyMs, Value: 1, Load: math.NaN()})
	}
	return from + int64(n)
}

func TestWindowReachesBackTheLargerOfBatchesAndTime(t *testing.T) {
	cases := []struct {
		name    string
		span    Span
		everyMs int64
		batches int
		spanMs  int64
	}{
		{"slow stream: batches count", Span{Batches: 120, Ms: 7_200_000}, 900_000, 120, 119 * 900_000},
		{"one a minute: time asks for one more", Span{Batches: 120, Ms: 7_200_000}, 60_000, 121, 7_200_000},
		{"batches only", Span{Batches: 50}, 10, 50, 490},
		{"time only", Span{Ms: 60_000}, 1000, 61, 60_000},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := NewWindow(c.span, 0)
			pushEvery(w, 0, 1000, c.everyMs)
			if w.Batches() != c.batches || w.SpanMs() != c.spanMs || w.Len() != c.batches || !w.Full() {
				t.Errorf("%d batches over %d ms in %d points, full %v", w.Batches(), w.SpanMs(), w.Len(), w.Full())
			}
			if w.LastBatch() != 999 || w.FirstBatch() != 1000-int64(c.batches) {
				t.Errorf("batches %d to %d", w.FirstBatch(), w.LastBatch())
			}
		})
	}
}

func TestFastStreamKeepsItsTwoHoursInBlocks(t *testing.T) {
	w := NewWindow(Span{Batches: 120, Ms: 7_200_000}, 240)
	for i := range int64(30_000) {
		w.Push(Point{Batch: i, AtMs: i * 1000, Value: float64(i), Load: float64(2 * i)})
		if w.Len() > 240 {
			t.Fatalf("%d points kept", w.Len())
		}
		if i > 10_000 && !w.Full() {
			t.Fatalf("window not full after %d batches: %d ms", i, w.SpanMs())
		}
	}
	if w.Len() < 80 || w.SpanMs() > 7_300_000 {
		t.Errorf("%d points over %d ms", w.Len(), w.SpanMs())
	}
	x, y, load := w.ring.copyTo(nil, nil, nil)
	first := float64(w.ring.meta[w.ring.head].x)
	for i := range x {
		near(t, "median of a block of a straight line", y[i], first+x[i], 1e-6)
		near(t, "load of a block", load[i], 2*y[i], 1e-6)
	}
}

func TestBlocksShedSpikes(t *testing.T) {
	w := NewWindow(Span{Batches: 2000}, 240)
	for i := range int64(4000) {
		v := 1.0
		if i%10 == 0 {
			v = 50
		}
		w.Push(Point{Batch: i, AtMs: i, Value: v, Load: math.NaN()})
	}
	_, y, _ := w.ring.copyTo(nil, nil, nil)
	for i, v := range y {
		if v != 1 {
			t.Errorf("point %d is %v", i, v)
		}
	}
}

func TestBlocksShrinkAgainWhenAStreamSlowsDown(t *testing.T) {
	w := NewWindow(Span{Batches: 60, Ms: 3_600_000}, 120)
	next := pushEvery(w, 0, 7200, 1000)
	at := next * 1000
	for i := range int64(400) {
		w.Push(Point{Batch: next + i, AtMs: at + i*60_000, Value: 1, Load: math.NaN()})
	}
	if w.Len() < 20 || !w.Full() {
		t.Errorf("%d points stand for %d batches after the stream slowed down", w.Len(), w.Batches())
	}
}

func TestMemoryStaysBoundedOnAnEndlessSpan(t *testing.T) {
	w := NewWindow(Span{Batches: math.MaxInt}, 24)
	pushEvery(w, 0, 500_000, 1)
	if w.Len() > 24 || cap(w.ring.openVals) > 2*maxBlock {
		t.Errorf("%d points and an open block of %d", w.Len(), cap(w.ring.openVals))
	}
}

func TestWhatIsNoMeasurementIsNotTaken(t *testing.T) {
	w := NewWindow(Span{Batches: 10}, 0)
	w.Push(Point{Batch: 5, Value: 1})
	for _, p := range []Point{
		{Batch: 6, Value: math.NaN()},
		{Batch: 6, Value: math.Inf(1)},
		{Batch: 6, Value: -1e200},
		{Batch: 5, Value: 2},
		{Batch: 4, Value: 2},
		{Batch: -1, Value: 2},
		{Batch: math.MaxInt64, Value: 2},
	} {
		if w.Push(p) {
			t.Errorf("%+v was taken", p)
		}
	}
	if w.Len() != 1 {
		t.Errorf("%d points", w.Len())
	}
}

func TestLongPauseStartsTheWindowAfresh(t *testing.T) {
	w := NewWindow(Span{Batches: 100}, 0)
	w.BreakAfter(3_600_000)
	pushEvery(w, 0, 80, 60_000)
	pause := int64(80*60_000 + 7_200_000)
	for i := range int64(3) {
		w.Push(Point{Batch: 80 + i, AtMs: pause + i*60_000, Value: 50, Load: math.NaN()})
	}
	if w.Len() != 3 {
		t.Errorf("%d points, want the 3 after the pause", w.Len())
	}
	if v := w.Rising(DefaultRising()).Verdict; v != TooFew {
		t.Errorf("verdict %q", v)
	}
}

func TestResetForgetsAll(t *testing.T) {
	w := NewWindow(Span{Batches: 300}, 60)
	pushEvery(w, 0, 299, 1000)
	w.Reset()
	if w.Len() != 0 || w.Batches() != 0 || w.SpanMs() != 0 || w.Full() || w.FirstBatch() != -1 || w.LastBatch() != -1 {
		t.Errorf("something is left: %+v", w.ring)
	}
	if !w.Push(Point{Batch: 0, Value: 3}) {
		t.Error("an earlier batch must be taken after a reset")
	}
	compareWithNaive(t, w)
}

func TestSendersWrongClockDoesNotFreezeTheWindow(t *testing.T) {
	w := NewWindow(Span{Batches: 30, Ms: 1_800_000}, 60)
	pushEvery(w, 0, 100, 60_000)
	w.Push(Point{Batch: 100, AtMs: 1 << 50, Value: 1, Load: math.NaN()})
	for i := range int64(100) {
		w.Push(Point{Batch: 101 + i, AtMs: (101 + i) * 60_000, Value: 1, Load: math.NaN()})
	}
	if !w.Full() || w.Batches() != 31 {
		t.Errorf("%d batches over %d ms, full %v", w.Batches(), w.SpanMs(), w.Full())
	}
}

func TestFullWindowPushesWithoutAllocation(t *testing.T) {
	for _, span := range []Span{{Batches: 120}, {Batches: 5000}} {
		w := NewWindow(span, 0)
		next := pushEvery(w, 0, 20_000, 1000)
		allocs := testing.AllocsPerRun(2000, func() {
			next = pushEvery(w, next, 1, 1000)
		})
		if allocs != 0 {
			t.Errorf("%v allocations a push over %+v", allocs, span)
		}
	}
}

func TestSharedScratchJudgesWithoutAllocation(t *testing.T) {
	s := new(Scratch)
	windows := []*Window{risingWindow(1), risingWindow(2)}
	o := DefaultRising()
	o.AdjustForLoad = true
	for _, w := range windows {
		w.UseScratch(s)
		if w.Rising(o).Verdict != Found {
			t.Fatal("the ramp was not found")
		}
	}
	allocs := testing.AllocsPerRun(50, func() {
		for _, w := range windows {
			w.Rising(o)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func risingWindow(seed uint64) *Window {
	return workload{1000, 0, flatLoad, rampSlow(1)}.window(seed)
}
