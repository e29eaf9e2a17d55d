package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// check verifies what must hold of a ring at any time.
func (r *ring) check(t *testing.T) {
	t.Helper()
	batches, last := 0, -1.0
	until := int64(math.MinInt64)
	for i := range r.n {
		m := &r.meta[r.at(i)]
		if m.x <= last {
			t.Fatalf("point %d: x %v after %v", i, m.x, last)
		}
		if m.fromMs < until || m.untilMs < m.fromMs {
			t.Fatalf("point %d: times %d to %d after %d", i, m.fromMs, m.untilMs, until)
		}
		if m.batches < 1 || float64(m.first) > m.x {
			t.Fatalf("point %d: %+v", i, *m)
		}
		batches, last, until = batches+int(m.batches), m.x, m.untilMs
	}
	if batches != r.batches || r.n > r.limit {
		t.Fatalf("%d batches counted as %d, in %d points of %d", batches, r.batches, r.n, r.limit)
	}
}

func TestRingHoldsTogetherOnAnyStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for trial := range 60 {
		w := NewWindow(Span{Batches: rng.IntN(600), Ms: rng.Int64N(3_000_000)}, 24+rng.IntN(100))
		if trial%3 == 0 {
			w.BreakAfter(200_000)
		}
		at, batch, pace := int64(0), int64(0), int64(1000)
		for i := range 1500 {
			if i%400 == 0 {
				pace = 1 + rng.Int64N(60_000) // the stream changes its pace
			}
			at += rng.Int64N(2*pace) - pace/20 // and its clock at times goes back
			batch += 1 + rng.Int64N(2)
			w.Push(Point{Batch: batch, AtMs: at, Value: rng.NormFloat64(), Load: rng.Float64()})
			w.ring.check(t)
		}
		compareWithNaive(t, w)
	}
}

func TestNoPointIsLostWhileBlocksGrow(t *testing.T) {
	w := NewWindow(Span{Batches: 100_000}, 30)
	for i := range int64(2000) {
		w.Push(Point{Batch: i, AtMs: i, Value: 1, Load: math.NaN()})
		if held := w.Batches() + int(w.ring.open.batches); held != int(i+1) {
			t.Fatalf("%d batches held of %d", held, i+1)
		}
	}
}

func TestLoadOfABlockIsTheMedianOfTheKnown(t *testing.T) {
	w := NewWindow(Span{Batches: 10_000}, 24)
	for i := range int64(240) {
		load := math.NaN()
		if i%3 == 0 {
			load = 7
		}
		w.Push(Point{Batch: i, AtMs: i, Value: 1, Load: load})
	}
	_, _, load := w.ring.copyTo(nil, nil, nil)
	for i, l := range load {
		if l != 7 {
			t.Errorf("load of point %d is %v", i, l)
		}
	}
}

func TestWindowAfterAResetEqualsANewOne(t *testing.T) {
	n := newNoise(8, arNoise)
	used, fresh := NewWindow(Span{Batches: 120}, 0), NewWindow(Span{Batches: 120}, 0)
	pushEvery(used, 0, 5000, 10)
	used.Reset()
	for i := range int64(300) {
		p := Point{Batch: i, AtMs: i * 1000, Value: n.value() * (1 + float64(i)/100), Load: math.NaN()}
		used.Push(p)
		fresh.Push(p)
		if a, b := used.Rising(DefaultRising()), fresh.Rising(DefaultRising()); a != b {
			t.Fatalf("at batch %d: %+v and %+v", i, a, b)
		}
	}
}

func TestSpansAddUp(t *testing.T) {
	if got := (Span{Batches: 60, Ms: 1000}).Plus(Span{Batches: 500, Ms: 7}); got != (Span{Batches: 560, Ms: 1007}) {
		t.Errorf("%+v", got)
	}
}

func TestSlowStreamHasTooFewPointsForAShortWindow(t *testing.T) {
	w := NewWindow(Span{Ms: 600_000}, 0)
	for i := range int64(50) {
		w.Push(Point{Batch: i, AtMs: i * 900_000, Value: float64(i), Load: math.NaN()})
	}
	if v := w.Rising(DefaultRising()).Verdict; v != TooFew {
		t.Errorf("one batch in 15 minutes over ten minutes: %q", v)
	}
}
