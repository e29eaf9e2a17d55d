package device

import (
	"math"
	"slices"
	"testing"
	"time"
)

func node(t testing.TB, m Model, n Noise, name Name) *Node {
	t.Helper()
	out, err := NewNode(m, n, name)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// still is a model whose requests are all alike.
func still() Model {
	m := DefaultModel()
	m.StoreSigma, m.StoreTailShare = 0, 0
	return m
}

// works is one piece of work for every step, with everything in it that the step charges.
func works() [NumSteps]Work {
	return [NumSteps]Work{
		StepGet: {Ops: 1000, CacheMisses: 10}, StepPut: {Ops: 1000, BytesOut: 1e5},
		StepScan: {Ops: 1e4, BytesIn: 1e6, CacheMisses: 5}, StepCode: {Rows: 1e4}, StepHeap: {Ops: 1e4},
		StepGC: {BytesIn: 1e9}, StepWriteBatch: {Ops: 1000, BytesOut: 1e5},
		StepFlush: {BytesOut: 1e6, Files: 1}, StepCompact: {BytesIn: 2e6, BytesOut: 1e6, Files: 1},
		StepBackground: {BytesIn: 2e6, BytesOut: 1e6, Files: 1}, StepCheckpoint: {Files: 12},
		StepZip: {BytesIn: 1e5}, StepUpload: {Requests: 4, RemoteOut: 1e6}, StepChangelog: {Requests: 1, RemoteOut: 1e5},
		StepDownload: {Requests: 6, RemoteIn: 1e7}, StepOpen: {Files: 8}, StepReplay: {Ops: 5000, RemoteIn: 1e6, Requests: 5},
		StepList: {Requests: 2, Files: 1500}, StepLog: {Requests: 1, RemoteOut: 800},
		StepSourceList: {Requests: 2}, StepSourceRead: {Rows: 1e4, RemoteIn: 1e6}, StepPlan: {Ops: 3},
		StepSchedule: {}, StepShuffle: {Rows: 1e4, BytesIn: 1e6}, StepSink: {Rows: 1e4, Requests: 1},
	}
}

func TestEveryStepTakesTimeAndMoreOfItTakesLonger(t *testing.T) {
	n := node(t, still(), Noise{}, Name{Seed: 1})
	for s, w := range works() {
		once := n.End(Step(s), n.Begin(Step(s)), w)
		if once <= 0 || once > 10*time.Second {
			t.Errorf("step %d took %v", s, once)
		}
		if twice := w; Step(s) != StepSchedule {
			twice.Add(w)
			if got := n.End(Step(s), 0, twice); got <= once {
				t.Errorf("step %d took %v, and with twice the work %v", s, once, got)
			}
		}
	}
}

func TestConditionsSlowTheirStepsAndNoOthers(t *testing.T) {
	slow := func(set func(*Conditions)) []Step {
		var out []Step
		healthy, sick := node(t, still(), Noise{}, Name{Seed: 1}), node(t, still(), Noise{}, Name{Seed: 1})
		c := Normal()
		set(&c)
		sick.SetBatch(0, 0, c)
		for s, w := range works() {
			a, b := healthy.End(Step(s), 0, w), sick.End(Step(s), 0, w)
			if b < a {
				t.Errorf("step %d is faster under a fault: %v, %v", s, a, b)
			}
			if b > a {
				out = append(out, Step(s))
			}
		}
		return out
	}
	store := []Step{StepUpload, StepChangelog, StepDownload, StepReplay, StepLog}
	f := func(what string, set func(*Conditions), want ...Step) {
		t.Helper()
		slices.Sort(want)
		if got := slow(set); !slices.Equal(got, want) {
			t.Errorf("%s slows steps %v, want %v", what, got, want)
		}
	}
	f("store latency", func(c *Conditions) { c.StoreLatency = 3 }, append([]Step{StepList}, store...)...)
	f("store throughput", func(c *Conditions) { c.StoreThroughput = 3 }, store...)
	f("throttling", func(c *Conditions) { c.StoreThrottled = 1 }, append([]Step{StepList}, store...)...)
	f("slow listing", func(c *Conditions) { c.ListLatency = 3 }, StepList)
	f("slow source", func(c *Conditions) { c.SourceLatency = 3 }, StepSourceList)
	f("slow disk", func(c *Conditions) { c.Disk = 3 },
		StepGet, StepScan, StepWriteBatch, StepFlush, StepCompact, StepBackground, StepCheckpoint, StepOpen)
	f("slow code", func(c *Conditions) { c.Code = 3 }, StepCode)
	f("slow network", func(c *Conditions) { c.Network = 3 }, StepSourceRead, StepShuffle)
	f("slow cores", func(c *Conditions) { c.CPU = 3 }, StepGet, StepPut, StepScan, StepCode, StepHeap, StepGC,
		StepWriteBatch, StepFlush, StepCompact, StepBackground, StepZip, StepOpen, StepReplay, StepList,
		StepSourceRead, StepPlan, StepSchedule, StepShuffle, StepSink)
}

func TestWorkIsChargedAtTheModelsPrices(t *testing.T) {
	m := still()
	n := node(t, m, Noise{}, Name{Seed: 1})
	f := func(s Step, w Work, want time.Duration) {
		t.Helper()
		if got := n.End(s, 0, w); got != want {
			t.Errorf("step %d with %+v took %v, want %v", s, w, got, want)
		}
	}
	f(StepGet, Work{Ops: 1000}, 1000*m.Get)
	f(StepGet, Work{Ops: 1000, CacheMisses: 100}, 1000*m.Get+100*m.DiskRead)
	f(StepUpload, Work{Requests: 3}, 3*m.StoreLatency)
	f(StepUpload, Work{RemoteOut: 80e6}, time.Second)
	f(StepCheckpoint, Work{Files: 10}, 10*m.Link+m.Fsync)
	f(StepLog, Work{Requests: 1}, m.StoreLatency)
	f(StepSchedule, Work{}, m.TaskLaunch)
	f(StepFlush, Work{BytesOut: 4e6, Files: 1}, m.FlushBase+m.Fsync+10*time.Millisecond+4000*m.SSTByte)
	f(NumSteps, Work{Ops: 1}, 0)
}

func TestNoWorkOfAnySizeGivesANegativeOrEndlessTime(t *testing.T) {
	n := node(t, DefaultModel(), DefaultNoise(), Name{Seed: 1})
	huge := Work{
		Rows: math.MaxInt64, Ops: math.MaxInt64, BytesIn: math.MaxInt64, BytesOut: math.MaxInt64,
		Files: math.MaxInt64, Requests: math.MaxInt64, RemoteIn: math.MaxInt64 / 2, CacheMisses: math.MaxInt64,
	}
	for s := range NumSteps {
		if got := n.End(s, 0, huge); got < 0 || got > maxStep {
			t.Errorf("step %d took %v", s, got)
		}
		if got := n.End(s, 0, Work{Rows: -5, Ops: -5, BytesIn: -5, Requests: -5, RemoteIn: -5}); got < 0 {
			t.Errorf("step %d took %v", s, got)
		}
	}
}

func TestThrottledRequestsAreTriedAgainAfterPausesThatDouble(t *testing.T) {
	m := still()
	mean := func(share float64) float64 {
		n := node(t, m, Noise{}, Name{Seed: 3})
		c := Normal()
		c.StoreThrottled = share
		n.SetBatch(0, 0, c)
		var sum time.Duration
		for range 4000 {
			sum += n.End(StepChangelog, 0, Work{Requests: 1})
		}
		return sum.Seconds() / 4000
	}
	// One refusal in ten: mostly a single pause of 100 ms.
	if extra := mean(0.1) - mean(0); extra < 0.012 || extra > 0.025 {
		t.Errorf("a tenth refused costs %.4f s a request", extra)
	}
	// All refused: every retry used, with pauses from 0.1 s to 12.8 s.
	if all := mean(1); all < 22 || all > 30 {
		t.Errorf("all refused costs %.1f s a request", all)
	}
}

func TestRequestsHaveAHeavyTail(t *testing.T) {
	f := func(tail, share, wantP999 float64) {
		t.Helper()
		m := DefaultModel()
		m.StoreTail, m.StoreTailShare = tail, share
		n := node(t, m, Noise{}, Name{Seed: 9})
		var all []float64
		for range 50_000 {
			all = append(all, n.End(StepLog, 0, Work{Requests: 1}).Seconds())
		}
		slices.Sort(all)
		median, p999 := all[len(all)/2], all[len(all)*999/1000]
		if math.Abs(median-0.035) > 0.002 {
			t.Errorf("median %.4f s", median)
		}
		if got := p999 / median; got < wantP999/1.35 || got > wantP999*1.35 {
			t.Errorf("tail %v of %v: the slowest of a thousand takes %.1f medians, want about %.1f", tail, share, got, wantP999)
		}
		if all[len(all)-1]/median > slowLongest*5 {
			t.Errorf("slowest takes %.0f medians", all[len(all)-1]/median)
		}
	}
	f(3, 0, 2.2)
	f(3, 0.02, 5.6) // 2 * 20^(1/3)
	f(1.5, 0.02, 15)
}

func TestManyRequestsCostAsMuchAsTheirMean(t *testing.T) {
	n := node(t, DefaultModel(), Noise{}, Name{Seed: 2})
	var few, many time.Duration
	for range 500 {
		few += n.End(StepLog, 0, Work{Requests: 10})
		many += n.End(StepLog, 0, Work{Requests: 10_000})
	}
	if got := many.Seconds() / few.Seconds(); got < 900 || got > 1100 {
		t.Errorf("a thousand times the requests took %.0f times as long", got)
	}
}

func TestWhatANodeDrawsDependsOnNameBatchAndTaskOnly(t *testing.T) {
	run := func(name Name, batch int64, tasks ...int) map[int]time.Duration {
		n := node(t, DefaultModel(), DefaultNoise(), name)
		out := map[int]time.Duration{}
		n.SetBatch(batch, 0, Normal())
		for _, p := range tasks {
			n.SetTask(0, p)
			out[p] = n.End(StepUpload, 0, Work{Requests: 7})
		}
		return out
	}
	a, b := run(Name{Seed: 1}, 4, 1, 2, 3), run(Name{Seed: 1}, 4, 3, 1)
	if a[1] != b[1] || a[3] != b[3] {
		t.Errorf("tasks took %v, and in another order %v", a, b)
	}
	for what, other := range map[string]map[int]time.Duration{
		"seed":  run(Name{Seed: 2}, 4, 1),
		"query": run(Name{Seed: 1, Query: 1}, 4, 1),
		"node":  run(Name{Seed: 1, Node: Driver}, 4, 1),
		"batch": run(Name{Seed: 1}, 5, 1),
	} {
		if other[1] == a[1] {
			t.Errorf("another %s draws the same", what)
		}
	}
}

func TestCollectorTakesLongerAsTheHeapFills(t *testing.T) {
	pause := func(live, memory float64) time.Duration {
		m := still()
		m.MemoryBytes = memory
		return node(t, m, Noise{}, Name{}).End(StepGC, 0, Work{BytesIn: int64(live)})
	}
	half, most, over := pause(1e9, 2e9), pause(1e9, 1.1e9), pause(1e9, 0.5e9)
	if half >= most || most >= over {
		t.Errorf("pauses %v, %v, %v do not grow with the heap", half, most, over)
	}
	if got := over.Seconds() / pause(1e9, 1e15).Seconds(); math.Abs(got-30) > 0.1 {
		t.Errorf("a full heap takes %.2f times as long", got)
	}
}

func TestStoresOfOneExecutorShareItsHeap(t *testing.T) {
	m := still()
	m.MemoryBytes = 1e9
	n := node(t, m, Noise{}, Name{})
	batch := func() (sum time.Duration) {
		for range 8 {
			sum += n.End(StepGC, 0, Work{BytesIn: 1e8})
		}
		return sum
	}
	first := batch()
	n.SetBatch(1, 0, Normal())
	second := batch()
	// Eight stores of 10 % leave 20 %: five times the price from the first store on.
	if want := 8e8 * float64(m.GCByte) / 1e6 * 5; math.Abs(float64(second)-want) > want/1000 {
		t.Errorf("second batch collects for %v, want %v", second, time.Duration(want))
	}
	if first >= second {
		t.Errorf("first batch collects for %v, second for %v", first, second)
	}
}

func TestModelThatCannotTellTimeIsRefused(t *testing.T) {
	f := func(set func(*Model), want string) {
		t.Helper()
		m := DefaultModel()
		set(&m)
		_, err := NewNode(m, Noise{}, Name{})
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f(func(m *Model) { m.DiskBytesPerSecond = 0 }, "disk bytes per second (0) must be above 0")
	f(func(m *Model) { m.CoreSpeed = math.NaN() }, "core speed (NaN) must be above 0")
	f(func(m *Model) { m.StoreTailShare = 2 }, "store tail share (2) must be from 0 to 1")
	f(func(m *Model) { m.Fsync = -1; m.StoreTail = 0 },
		"store tail (0) must be above 0\nstore latency, store sigma and fsync must not be below 0")
}

func TestNodesDrawWithoutMemory(t *testing.T) {
	n := node(t, DefaultModel(), DefaultNoise(), Name{Seed: 1})
	got := testing.AllocsPerRun(100, func() {
		n.SetBatch(5, 0, Normal())
		n.SetTask(1, 2)
		n.End(StepUpload, n.Begin(StepUpload), Work{Requests: 4, RemoteOut: 1e6})
	})
	if got != 0 {
		t.Errorf("a task allocates %v times", got)
	}
}

func TestLiveMeterReadsTheClock(t *testing.T) {
	l := NewLive()
	m := l.Begin(StepGet)
	first := l.End(StepGet, m, Work{Ops: 1e12})
	second := l.End(StepGet, m, Work{})
	if first < 0 || second < first || second > time.Minute {
		t.Errorf("the clock says %v, then %v", first, second)
	}
}

func BenchmarkStep(b *testing.B) {
	n := node(b, DefaultModel(), DefaultNoise(), Name{Seed: 1})
	for b.Loop() {
		n.End(StepUpload, n.Begin(StepUpload), Work{Requests: 4, RemoteOut: 1e6})
	}
}
