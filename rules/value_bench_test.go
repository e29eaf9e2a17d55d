package rules

import (
	"runtime"
	"testing"

	"github.com/stategauge/stategauge/rules/trend"
)

// judgedSeries feeds one series with batches, judged as the engine would judge it.
type judgedSeries struct {
	tr     tracker
	stride int
	in     []float64
	n      *noise
	at     int64
	found  int
	even   bool // inputs do not move
}

func newJudgedSeries(d detector, s *trend.Scratch) *judgedSeries {
	j := &judgedSeries{tr: d.newTracker(s), stride: quietStride, in: make([]float64, len(d.inputs())), n: newNoise(3)}
	_, j.even = d.(*shifted) // the version of Spark is among its inputs
	if p, ok := d.(paced); ok {
		j.stride = p.stride()
	}
	return j
}

func (j *judgedSeries) play(batches int) {
	for range batches {
		for k := range j.in {
			j.in[k] = 1000
			if !j.even {
				j.in[k] *= j.n.next()
			}
		}
		j.at++
		j.tr.push(trend.Point{Batch: j.at, AtMs: j.at * minuteMs, Value: 50 * j.n.next()}, j.in)
		if j.at%int64(j.stride) == 0 && j.tr.judge(nil).Said == SaidFound {
			j.found++
		}
	}
}

// BenchmarkValueDetectors is one batch of one series, windows full and judged at
// its stride; bytes is what a series keeps.
func BenchmarkValueDetectors(b *testing.B) {
	for name, spec := range specs {
		b.Run(name, func(b *testing.B) {
			j := newJudgedSeries(risingOf(b, spec), &trend.Scratch{})
			j.play(1000)
			b.ReportAllocs()
			b.ResetTimer()
			j.play(b.N)
			b.StopTimer()
			b.ReportMetric(float64(bytesOf(b, spec)), "bytes")
		})
	}
}

// bytesOf measures what a series of full windows keeps.
func bytesOf(tb testing.TB, spec string) uint64 {
	const series = 50
	d, s := risingOf(tb, spec), &trend.Scratch{}
	newJudgedSeries(d, s).play(600) // buffers that all share
	var before, after runtime.MemStats
	keep := make([]tracker, 0, series)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range series {
		j := newJudgedSeries(d, s)
		j.play(600)
		keep = append(keep, j.tr)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	return (after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)) / series
}

// TestValueDetectorsKeepLittle holds each series to its share of a query's memory.
func TestValueDetectorsKeepLittle(t *testing.T) {
	most := map[string]uint64{"above": 600, "below": 600, "pooled": 800, "stands": 400}
	for name, spec := range specs {
		limit := most[name]
		if limit == 0 {
			limit = 10 << 10 // alone; in an engine columns are shared
		}
		if got := bytesOf(t, spec); got > limit {
			t.Errorf("%s keeps %d bytes, more than %d", name, got, limit)
		}
	}
}

// BenchmarkReachesVersusPredictLinear is a forecast over 120 batches, judged at its
// stride, beside a least squares line over the same batches at each of them.
func BenchmarkReachesVersusPredictLinear(b *testing.B) {
	j := newJudgedSeries(risingOf(b, "reaches: {limit: 1000, over: 120 batches}"), &trend.Scratch{})
	j.play(300)
	p := &leastSquares{n: newNoise(3)}
	p.play(300)
	reportRatio(b, j.play, p.play)
	if p.met > 1e12 {
		b.Fatal(p.met)
	}
}

// leastSquares is what predict_linear does.
type leastSquares struct {
	n   *noise
	y   [120]float64
	at  int
	met float64
}

func (p *leastSquares) play(batches int) {
	for range batches {
		p.y[p.at%len(p.y)] = 50 * p.n.next()
		p.at++
		var x, y, xx, xy float64
		for i := range p.y {
			v := p.y[(p.at+i)%len(p.y)]
			x, y, xx, xy = x+float64(i), y+v, xx+float64(i*i), xy+float64(i)*v
		}
		n := float64(len(p.y))
		slope := (n*xy - x*y) / (n*xx - x*x)
		p.met += y/n + slope*n
	}
}
