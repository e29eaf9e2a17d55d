package trend

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// sample is one sample of a time series.
type sample struct {
	ms    int64
	value float64
}

// deriv is PromQL's function of that name, in its own steps: simple linear regression
// over all samples of the window at each evaluation, sums compensated as Kahan and
// Neumaier do. Reading the samples out of their chunks, which PromQL does too and which
// costs it more than the sums, is left out.
func deriv(samples []sample) float64 {
	var n, sumX, cX, sumY, cY, sumXY, cXY, sumXX, cXX float64
	constant := true
	for _, s := range samples {
		constant = constant && s.value == samples[0].value
		n++
		x := float64(s.ms-samples[0].ms) / 1000
		sumX, cX = compensated(x, sumX, cX)
		sumY, cY = compensated(s.value, sumY, cY)
		sumXY, cXY = compensated(x*s.value, sumXY, cXY)
		sumXX, cXX = compensated(x*x, sumXX, cXX)
	}
	if constant {
		return 0
	}
	sumX, sumY, sumXY, sumXX = sumX+cX, sumY+cY, sumXY+cXY, sumXX+cXX
	return (sumXY - sumX*sumY/n) / (sumXX - sumX*sumX/n)
}

func compensated(by, sum, c float64) (newSum, newC float64) {
	t := sum + by
	switch {
	case math.IsInf(t, 0):
		c = 0
	case math.Abs(sum) >= math.Abs(by):
		c += (sum - t) + by
	default:
		c += (by - t) + sum
	}
	return t, c
}

func TestThePeerOfTheBenchmarkIsALeastSquaresLine(t *testing.T) {
	var samples []sample
	for i := range int64(100) {
		samples = append(samples, sample{i * 10_000, 7 + 0.25*float64(i*10)})
	}
	if got := deriv(samples); math.Abs(got-0.25) > 1e-12 {
		t.Errorf("slope %v a second, want 0.25", got)
	}
}

// BenchmarkMannKendallVersusDeriv is what one new batch costs for one series that is
// watched for a trend and judged at each batch, beside one evaluation of deriv over the
// samples of the same window: an hour at ten seconds, two hours at a minute. Sixty
// series share their batches, as those of a query do.
func BenchmarkMannKendallVersusDeriv(b *testing.B) {
	for _, window := range []struct {
		every, over time.Duration
	}{{10 * time.Second, time.Hour}, {time.Minute, 2 * time.Hour}} {
		b.Run(fmt.Sprintf("%v_of_%v", window.over, window.every), func(b *testing.B) {
			versusDeriv(b, window.every.Milliseconds(), window.over.Milliseconds())
		})
	}
}

func versusDeriv(b *testing.B, everyMs, overMs int64) {
	const series, rounds = 60, 20
	span := Span{Ms: overMs}
	c := NewColumns(series, ColumnsOptions{Longest: span})
	c.UseScratch(new(Scratch))
	n, row := newNoise(1, iidNoise), make([]float32, series)
	var numbers [series]int
	var paces [series]Pace
	for i := range numbers {
		numbers[i] = c.Watch(i, span)
	}
	width := int(overMs/everyMs) + 1
	samples := make([][]sample, series)
	o, batch := DefaultRising(), int64(0)
	next := func() {
		for i := range row {
			row[i] = float32(n.value())
		}
	}
	push := func() {
		c.Push(batch, batch*everyMs, row)
		batch++
		for i, number := range numbers {
			benchSink += c.RisingPaced(number, NoLoad, o, &paces[i]).RawZ
		}
	}
	for range 2 * width {
		next()
		push()
		for i := range samples {
			samples[i] = append(samples[i], sample{batch * everyMs, float64(row[i])})
		}
	}
	var ours, theirs time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for range rounds {
			next()
			at := time.Now()
			push()
			ours += time.Since(at)
		}
		at := time.Now()
		for i := range samples {
			benchSink += deriv(samples[i][len(samples[i])-width:])
		}
		theirs += rounds * time.Since(at)
	}
	b.ReportMetric(float64(ours)/float64(b.N)/(rounds*series), "ours_ns/series")
	b.ReportMetric(float64(theirs)/float64(b.N)/(rounds*series), "deriv_ns/series")
	b.ReportMetric(float64(theirs)/float64(ours), "x_peer")
}
