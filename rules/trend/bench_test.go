package trend

import (
	"math"
	"testing"
	"time"
)

var benchSink float64

// BenchmarkPushVersusRecomputation measures a Push with the gate's verdict against
// a Mann-Kendall test over all pairs at each batch, the two in turns.
func BenchmarkPushVersusRecomputation(b *testing.B) {
	w := NewWindow(Span{Batches: 120}, 0)
	n := newNoise(1, arNoise)
	values := make([]float64, 4096)
	for i := range values {
		values[i] = n.value()
	}
	batch := int64(0)
	push := func() {
		w.Push(Point{Batch: batch, Value: values[batch%4096], Load: math.NaN()})
		batch++
		benchSink += kendallOf(w.ring.n, w.rank.s, w.rank.tieTerm).Z
	}
	for range 200 {
		push()
	}
	b.ReportAllocs()
	var ours, peer time.Duration
	for b.Loop() {
		t0 := time.Now()
		for range 50 {
			push()
		}
		t1 := time.Now()
		for range 50 {
			benchSink += float64(recomputedS(values[batch%3900:][:120]))
			batch++
		}
		ours += t1.Sub(t0)
		peer += time.Since(t1)
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(50*b.N), "ns/push")
	b.ReportMetric(float64(peer)/float64(ours), "x_peer")
}

func recomputedS(y []float64) (s int) {
	for i := range y {
		for _, u := range y[:i] {
			switch {
			case u < y[i]:
				s++
			case u > y[i]:
				s--
			}
		}
	}
	return s
}

// BenchmarkTheilSenVersusAllSlopes measures the slope by bisection against the
// median of all slopes by selection.
func BenchmarkTheilSenVersusAllSlopes(b *testing.B) {
	n := newNoise(1, arNoise)
	x, y := ramp(240), make([]float64, 240)
	for i := range y {
		y[i] = n.value() + 0.01*x[i]
	}
	s, slopes := new(Scratch), make([]float64, 0, 240*239/2)
	var ours, peer time.Duration
	b.ReportAllocs()
	for b.Loop() {
		t0 := time.Now()
		benchSink += s.line(x, y).Slope
		t1 := time.Now()
		slopes = slopes[:0]
		for i := range x {
			for j := i + 1; j < len(x); j++ {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
		benchSink += medianInPlace(slopes)
		ours += t1.Sub(t0)
		peer += time.Since(t1)
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/line")
	b.ReportMetric(float64(peer)/float64(ours), "x_peer")
}

// BenchmarkRising measures a judgement: behind the gate, and past it with load.
func BenchmarkRising(b *testing.B) {
	o := DefaultRising()
	o.AdjustForLoad = true
	for name, w := range map[string]*Window{
		"clear": workload{0, 1, flatLoad, steady}.window(3),
		"found": risingWindow(3),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				benchSink += w.Rising(o).Z
			}
		})
	}
}

// BenchmarkLevel measures a judgement of 60 against 500 batches.
func BenchmarkLevel(b *testing.B) {
	n := newNoise(1, arNoise)
	w := levels(600, plain(func(int) float64 { return n.value() }))
	b.ReportAllocs()
	for b.Loop() {
		benchSink += w.Level(LevelOptions{By: 0.35}).Ratio
	}
}
