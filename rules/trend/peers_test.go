package trend

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"
	"time"
)

// versus runs ours and peer in turns and reports how many times longer the peer takes,
// in the median of the rounds: on a shared machine the mean is that of the neighbours.
// units is how many evaluations a round makes.
func versus(b *testing.B, units int, ours, peer func()) {
	b.Helper()
	for range 3 {
		ours()
		peer()
	}
	b.ReportAllocs()
	mine, theirs := make([]float64, 0, 1<<16), make([]float64, 0, 1<<16)
	for b.Loop() {
		t0 := time.Now()
		ours()
		t1 := time.Now()
		peer()
		t2 := time.Now()
		if len(mine) < cap(mine) {
			mine, theirs = append(mine, float64(t1.Sub(t0))), append(theirs, float64(t2.Sub(t1)))
		}
	}
	m, p := medianInPlace(mine), medianInPlace(theirs)
	b.ReportMetric(m/float64(units), "ns/ours")
	b.ReportMetric(p/m, "x_peer")
	b.ReportMetric(0, "ns/op")
}

// benchSeries is a series with memory, a slow climb and a spike each tenth batch.
func benchSeries(n int) (x, y, other []float64, batch, at []int64) {
	w := newNoise(1, spikyNoise)
	for i := range n {
		x = append(x, float64(i))
		y = append(y, w.value()*(1+0.004*float64(i)))
		other = append(other, math.Exp(w.rng.NormFloat64()))
	}
	batch, at = evenly(n, 60_000)
	return x, y, other, batch, at
}

func eachSize(b *testing.B, bench func(b *testing.B, n int)) {
	for _, n := range []int{120, 240} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) { bench(b, n) })
	}
}

// promSample is a sample as a query engine holds it.
type promSample struct {
	t int64
	v float64
}

// promDeriv is what deriv() computes of a range: a least squares slope with
// compensated sums, from scratch at each evaluation.
func promDeriv(samples []promSample) float64 {
	var n, sx, cx, sy, cy, sxy, cxy, sxx, cxx float64
	first := samples[0].t
	for _, s := range samples {
		x := float64(s.t-first) / 1e3
		n++
		sx, cx = kahan(x, sx, cx)
		sy, cy = kahan(s.v, sy, cy)
		sxy, cxy = kahan(x*s.v, sxy, cxy)
		sxx, cxx = kahan(x*x, sxx, cxx)
	}
	sx, sy, sxy, sxx = sx+cx, sy+cy, sxy+cxy, sxx+cxx
	return (sxy - sx*sy/n) / (sxx - sx*sx/n)
}

func kahan(inc, sum, c float64) (newSum, newC float64) {
	t := sum + inc
	if math.Abs(sum) >= math.Abs(inc) {
		c += (sum - t) + inc
	} else {
		c += (inc - t) + sum
	}
	return t, c
}

// BenchmarkMannKendallPerBatchVersusDeriv judges each batch, the push of the value
// included, against a least squares slope over the same window. It is the arithmetic
// alone: a query engine's parsing, selecting and decoding come on top. "gate" is the
// cheap test, "paced" the whole judgement of a healthy series with memory, the dear
// tests that it needs among it.
func BenchmarkMannKendallPerBatchVersusDeriv(b *testing.B) {
	o := DefaultRising()
	shut := o
	shut.Z, shut.GateZ = 1e9, 1e9
	for _, kind := range []struct {
		name string
		o    RisingOptions
	}{{"gate", shut}, {"paced", o}} {
		b.Run(kind.name, func(b *testing.B) {
			eachSize(b, func(b *testing.B, n int) { perBatch(b, n, kind.o) })
		})
	}
}

func perBatch(b *testing.B, n int, o RisingOptions) {
	const columns = 25 // what an operator has
	c := NewColumns(columns, ColumnsOptions{Fine: n, Longest: Span{Batches: n}})
	w, row, paces := newNoise(1, arNoise), make([]float32, columns), make([]Pace, columns)
	values, samples := make([]float32, 4096), make([]promSample, 4096)
	for i := range values {
		v := w.value()
		values[i], samples[i] = float32(v), promSample{int64(i) * 60_000, v}
	}
	for i := range columns {
		c.Watch(i, Span{Batches: n})
	}
	next, at := int64(0), 0
	ours := func() {
		for i := range row {
			row[i] = values[(next+int64(i)*163)%4096]
		}
		c.Push(next, next*60_000, row)
		for i := range columns {
			benchSink += c.RisingPaced(i, NoLoad, o, &paces[i]).RawZ
		}
		next++
	}
	for range 2 * n {
		ours()
	}
	versus(b, columns, ours, func() {
		for range columns {
			at = (at + 1) % 3800
			benchSink += promDeriv(samples[at : at+n])
		}
	})
}

// BenchmarkColumnsVersusWindows pushes one batch of 25 watched figures into a store
// and into windows.
func BenchmarkColumnsVersusWindows(b *testing.B) {
	const columns = 25
	c := NewColumns(columns, ColumnsOptions{Longest: Span{Batches: 240}})
	var windows [columns]*Window
	for i := range windows {
		c.Watch(i, Span{Batches: 120})
		windows[i] = NewWindow(Span{Batches: 120}, 0)
	}
	w, row := newNoise(1, arNoise), make([]float32, columns)
	next, at := int64(0), int64(0)
	values := make([]float64, 4096)
	for i := range values {
		values[i] = w.value()
	}
	versus(b, columns, func() {
		for i := range row {
			row[i] = float32(values[(next+int64(i)*163)%4096])
		}
		c.Push(next, next*60_000, row)
		next++
	}, func() {
		for i := range windows {
			windows[i].Push(Point{Batch: at, AtMs: at * 60_000, Value: values[(at+int64(i)*163)%4096], Load: math.NaN()})
		}
		at++
	})
	b.ReportMetric(float64(c.Bytes())/columns, "B/column")
}

func BenchmarkMannKendallVersusAllPairs(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		_, y, _, _, _ := benchSeries(n)
		s := new(Scratch)
		versus(b, 1, func() { benchSink += s.mannKendall(y).Z }, func() { benchSink += float64(recomputedS(y)) })
	})
}

func BenchmarkCUSUMVersusRecomputation(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		_, y, _, _, _ := benchSeries(n)
		s, c := new(Scratch), NewCUSUM(DefaultCUSUM())
		c.Freeze(s.Baseline(y, 0))
		versus(b, 100, func() {
			for i := range 100 {
				c.Push(int64(i), y[i])
				benchSink += c.Alarm().Sum
			}
		}, func() {
			for range 100 {
				sum := 0.0
				for _, v := range y {
					sum = max(0, sum+min(c.base.Score(v), 3)-1)
				}
				benchSink += sum
			}
		})
	})
}

func BenchmarkRankSumVersusAllPairs(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		_, y, _, _, _ := benchSeries(n)
		s := new(Scratch)
		before, recent := SplitRecent(y, n/6, 10)
		versus(b, 1, func() { benchSink += s.RankSum(before, recent, RankSumOptions{}).Z },
			func() { u, v := naiveMannWhitney(before, recent); benchSink += u / v })
	})
}

func BenchmarkLocateVersusAllSplits(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		x, y, _, _, _ := benchSeries(n)
		s := new(Scratch)
		versus(b, 1, func() { benchSink += s.Locate(x, y).Gain }, func() {
			best := math.Inf(1)
			for i := leastSide; i <= n-leastSide; i++ {
				best = min(best, naiveDeviations(y[:i])+naiveDeviations(y[i:]))
			}
			benchSink += best
		})
	})
}

func BenchmarkPeriodicityVersusPeriodGrid(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		_, y, _, batch, at := benchSeries(n)
		s := new(Scratch)
		versus(b, 1, func() { benchSink += s.Periodicity(batch, at, y, SpikeOptions{}).RBatches }, func() {
			places, _, _ := s.Spikes(y, SpikeOptions{}, nil)
			best := 0.0
			for step := 160; step <= 480; step++ { // 8 to 24 batches, on both axes
				for range 2 {
					var sin, cos float64
					for _, i := range places {
						u, v := math.Sincos(2 * math.Pi * float64(i) * 20 / float64(step))
						sin, cos = sin+u, cos+v
					}
					best = max(best, math.Hypot(sin, cos))
				}
			}
			benchSink += best
		})
	})
}

func BenchmarkPartialRankVersusSortedCopies(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		x, y, other, _, _ := benchSeries(n)
		s := new(Scratch)
		rival := slices.Clone(other)
		slices.Reverse(rival)
		versus(b, 1, func() { benchSink += s.PartialRank(y, other, rival, nil, PartialOptions{}).Driver }, func() {
			a, d, r, t := copiedRanks(y), copiedRanks(other), copiedRanks(rival), copiedRanks(x)
			benchSink += pearson(a, d) + pearson(a, r) + pearson(a, t) + pearson(d, r) + pearson(d, t) + pearson(r, t)
		})
	})
}

// copiedRanks ranks with a sorted copy and a search for each value.
func copiedRanks(v []float64) []float64 {
	sorted := slices.Clone(v)
	sort.Float64s(sorted)
	out := make([]float64, len(v))
	for i, x := range v {
		lo := sort.SearchFloat64s(sorted, x)
		hi := sort.Search(len(sorted), func(k int) bool { return sorted[k] > x })
		out[i] = float64(lo+hi+1) / 2
	}
	return out
}

func BenchmarkElasticityVersusAllSlopes(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		_, y, other, _, _ := benchSeries(n)
		s := new(Scratch)
		versus(b, 1, func() { benchSink += s.Elasticity(y, other).Value },
			func() { benchSink += medianInPlace(logSlopes(y, other)) })
	})
}

func logSlopes(y, x []float64) []float64 {
	var slopes []float64
	for i := range y {
		for j := range i {
			slopes = append(slopes, (math.Log(y[i])-math.Log(y[j]))/(math.Log(x[i])-math.Log(x[j])))
		}
	}
	return slopes
}

func BenchmarkTimeToLimitVersusAllSlopes(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		x, y, _, _, _ := benchSeries(n)
		s := new(Scratch)
		versus(b, 1, func() { benchSink += s.TimeToLimit(x, y, 1000, LimitOptions{}).Slope },
			func() { benchSink += sortedMedian(allSlopes(x, y)) })
	})
}

func BenchmarkBaselineVersusSorting(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		_, y, _, _, _ := benchSeries(n)
		s := new(Scratch)
		left := make([]float64, n)
		versus(b, 1, func() { benchSink += s.Baseline(y, 0).Spread }, func() {
			mid := sortedMedian(y)
			for i, v := range y {
				left[i] = math.Abs(v - mid)
			}
			benchSink += sortedMedian(left)
		})
	})
}
