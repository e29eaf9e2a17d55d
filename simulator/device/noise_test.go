package device

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
)

const batches = 5000

// shape is what a series of batch durations looks like.
type shape struct{ mad, p99, memory float64 }

func shapeOf(x []float64) shape {
	sorted := slices.Sorted(slices.Values(x))
	median := sorted[len(x)/2]
	off := make([]float64, len(x))
	for i, v := range x {
		off[i] = math.Abs(v - median)
	}
	slices.Sort(off)
	return shape{off[len(x)/2] / median, sorted[len(x)*99/100] / median, memory(x, 1)}
}

// memory is the correlation of ranks at a lag.
func memory(x []float64, lag int) float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(math.Copysign(1, x[a]-x[b])) })
	ranks := make([]float64, len(x))
	for r, i := range order {
		ranks[i] = float64(r)
	}
	return stat.Correlation(ranks[lag:], ranks[:len(x)-lag], nil)
}

// play is the durations of batches of a query with sixteen partitions on four
// executors of two cores: planning, logs and one stage of tasks that read, write
// and commit.
func play(t *testing.T, noise Noise, seed uint64, count int) []float64 {
	t.Helper()
	driver := node(t, DefaultModel(), noise, Name{Seed: seed, Node: Driver})
	var executors []*Node
	for e := range 4 {
		executors = append(executors, node(t, DefaultModel(), noise, Name{Seed: seed, Node: e}))
	}
	var out []float64
	for b := range int64(count) {
		now := 1_780_000_000_000 + b*10_000
		driver.SetBatch(b, now, Normal())
		sum := driver.End(StepPlan, 0, Work{Ops: 2}) + driver.End(StepLog, 0, Work{Requests: 2})
		for _, e := range executors {
			e.SetBatch(b, now, Normal())
		}
		var cores [4][2]time.Duration
		for p := range 16 {
			e := executors[p%4]
			e.SetTask(0, p)
			took := e.End(StepSchedule, 0, Work{}) + e.End(StepGet, 0, Work{Ops: 2000}) +
				e.End(StepCode, 0, Work{Rows: 2000}) + e.End(StepFlush, 0, Work{BytesOut: 2e5, Files: 1}) +
				e.End(StepUpload, 0, Work{Requests: 3, RemoteOut: 3e5})
			c := &cores[p%4]
			first := 0
			if c[1] < c[0] {
				first = 1
			}
			c[first] += took
		}
		var last time.Duration
		for _, c := range cores {
			last = max(last, c[0], c[1])
		}
		sum += last
		out = append(out, sum.Seconds())
	}
	return out
}

func TestDefaultNoiseLooksLikeRealBatches(t *testing.T) {
	for seed := range uint64(5) {
		x := play(t, DefaultNoise(), seed, batches)
		got := shapeOf(x)
		t.Logf("seed %d: %+v", seed, got)
		if got.mad < 0.11 || got.mad > 0.37 {
			t.Errorf("seed %d: the middle half deviates by %.3f of the median", seed, got.mad)
		}
		if got.p99 < 1.5 || got.p99 > 3.4 {
			t.Errorf("seed %d: one in a hundred takes %.2f medians", seed, got.p99)
		}
		if got.memory < -0.12 || got.memory > 0.18 {
			t.Errorf("seed %d: ranks correlate by %.3f from batch to batch", seed, got.memory)
		}
	}
}

func TestNoiseKindsDiffer(t *testing.T) {
	f := func(n Noise, mad, p99, lag1, lag50 float64) {
		t.Helper()
		l := newLevel(n, 4, 5)
		x := make([]float64, 20_000)
		for b := range x {
			x[b] = l.at(int64(b))
		}
		got, far := shapeOf(x), memory(x, 50)
		if math.Abs(got.mad-mad) > 0.15*mad || math.Abs(got.p99-p99) > 0.1*p99 ||
			math.Abs(got.memory-lag1) > 0.05 || math.Abs(far-lag50) > 0.1 {
			t.Errorf("%+v: %+v, at lag 50 %.3f; want %v %v %v %v", n, got, far, mad, p99, lag1, lag50)
		}
	}
	// The middle of a normal law is 0.674 wide, its 99th percentile 2.33 away.
	f(Noise{Kind: Lognormal, Sigma: 0.2}, 0.134, 1.59, 0, 0)
	f(Noise{Kind: AR1, Sigma: 0.2, Correlation: 0.6}, 0.134, 1.59, 0.58, 0)
	// Of the one in a hundred all are outliers: the upper third of them, from 1.5 * 3^(1/3).
	f(Noise{Kind: HeavyTail, Sigma: 0.2}, 0.138, 2.22, 0, 0)
	f(Noise{Kind: Wander, Sigma: 0.2, Batches: 200}, 0.150, 1.68, 0.78, 0.60)
}

func TestNoNoiseIsNone(t *testing.T) {
	m := DefaultModel()
	m.StoreSigma, m.StoreTailShare = 0, 0
	n := node(t, m, Noise{Kind: NoNoise, Sigma: 3}, Name{Seed: 1})
	for b := range int64(100) {
		n.SetBatch(b, b*60_000, Normal())
		if got := n.End(StepLog, 0, Work{Requests: 1}); got != m.StoreLatency {
			t.Fatalf("batch %d: %v", b, got)
		}
	}
}

func TestNoiseOfABatchDoesNotDependOnWhatWasAskedBefore(t *testing.T) {
	for _, n := range []Noise{
		{Kind: Lognormal, Sigma: 0.2},
		{Kind: AR1, Sigma: 0.2, Correlation: 0.9},
		{Kind: HeavyTail, Sigma: 0.2},
		{Kind: Wander, Sigma: 0.2, Batches: 1000},
	} {
		inOrder, jumping := newLevel(n, 1), newLevel(n, 1)
		want := map[int64]float64{}
		for b := range int64(300) {
			want[b] = inOrder.at(b)
		}
		for _, b := range []int64{299, 3, 3, 150, 0, 298, 4} {
			if got := jumping.at(b); got != want[b] {
				t.Errorf("%+v: batch %d has %v, in order %v", n, b, got, want[b])
			}
		}
	}
}

func TestFarBatchesCostABoundedWalk(t *testing.T) {
	l := newLevel(Noise{Kind: AR1, Sigma: 0.2, Correlation: 0.5}, 1)
	if got := l.at(1<<50 + 3); got <= 0 || math.IsNaN(got) {
		t.Errorf("level %v", got)
	}
}

func TestNodesOfAQueryShareMostOfTheNoise(t *testing.T) {
	levels := func(name Name) []float64 {
		n := node(t, DefaultModel(), Noise{Kind: Lognormal, Sigma: 0.3}, name)
		var out []float64
		for b := range int64(3000) {
			n.SetBatch(b, 0, Normal())
			out = append(out, math.Log(n.level))
		}
		return out
	}
	mine := levels(Name{Seed: 1})
	if got := stat.Correlation(mine, levels(Name{Seed: 1, Node: 1}), nil); math.Abs(got-0.8) > 0.05 {
		t.Errorf("two executors correlate by %.2f", got)
	}
	if got := stat.Correlation(mine, levels(Name{Seed: 1, Query: 1}), nil); math.Abs(got) > 0.07 {
		t.Errorf("two queries correlate by %.2f", got)
	}
}

func TestQueriesShareTheCheckpointStoresWeather(t *testing.T) {
	latency := func(query int) []float64 {
		n := node(t, still(), Noise{Kind: Lognormal, Sigma: 0.3}, Name{Seed: 1, Query: query})
		var out []float64
		for b := range int64(3000) {
			n.SetBatch(b, b*60_000, Normal())
			out = append(out, math.Log(float64(n.End(StepLog, 0, Work{Requests: 1}))/n.level))
		}
		return out
	}
	a, b := latency(0), latency(1)
	if got := stat.Correlation(a, b, nil); got < 0.999 {
		t.Errorf("requests of two queries at the same minutes correlate by %.3f", got)
	}
	if sd := stat.StdDev(a, nil); math.Abs(sd-0.15) > 0.01 {
		t.Errorf("the weather varies by %.3f", sd)
	}
}

func TestNoiseKindsHaveTheNamesOfScenarios(t *testing.T) {
	for k, name := range noiseNames {
		if got, err := ParseNoise(name); err != nil || got != NoiseKind(k) {
			t.Errorf("%s is %d, %v", name, got, err)
		}
	}
	if _, err := ParseNoise("pink"); err == nil || err.Error() != `noise kind "pink" is none of ["none" "lognormal" "ar1" "heavy_tail" "wander"]` {
		t.Errorf("error %v", err)
	}
}

func BenchmarkSetBatchWithMemory(b *testing.B) {
	n, err := NewNode(DefaultModel(), Noise{Kind: Wander, Sigma: 0.2, Batches: 500}, Name{})
	if err != nil {
		b.Fatal(err)
	}
	batch := int64(0)
	for b.Loop() {
		n.SetBatch(batch, batch*int64(time.Second/time.Millisecond), Normal())
		batch++
	}
}
