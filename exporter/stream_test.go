package exporter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// randomUpdate makes an update of any kind, with figures that may be absurd.
func randomUpdate(r *rand.Rand, s *stream) *event.Update {
	switch r.IntN(12) {
	case 0:
		return s.started()
	case 1:
		return s.idle()
	case 2:
		return s.update(event.OutcomeTerminated, event.KindTerminated, event.StateTerminated)
	case 3:
		return s.state(event.States()[r.IntN(6)])
	case 4:
		s.run = event.RunID(fmt.Sprint("run-", r.IntN(3)))
	}
	u := s.executed(func(b *event.Batch) { randomBatch(r, b) })
	if r.IntN(3) == 0 {
		u.Outcome = []event.Outcome{event.OutcomeDuplicate, event.OutcomeLate, event.OutcomeIdleCopy, event.OutcomeUnjudgeable}[r.IntN(4)]
	}
	u.Missed, u.NewRun = r.IntN(3), r.IntN(9) == 0
	return u
}

func randomBatch(r *rand.Rand, b *event.Batch) {
	odd := func() float64 {
		return []float64{0, 1, 7, 1000, -1, math.NaN(), math.Inf(1), 1e300, -1e300, float64(r.IntN(1e6))}[r.IntN(10)]
	}
	b.ID = int64(r.IntN(50))
	for id := range b.Values {
		b.Values[id] = odd()
	}
	b.Operators = b.Operators[:0]
	for range r.IntN(4) {
		o := operator(b, []string{"", "a", "b", "globalLimit"}[r.IntN(4)])
		for id := range o.Values {
			o.Values[id] = odd()
		}
		o.SnapshotMin, o.Stores = int64(r.IntN(60)-1), int32(r.IntN(4))
		o.Provider = event.Provider(r.IntN(4))
		o.Unknown = []event.KV{{Key: fmt.Sprint("rocksdbNew", r.IntN(5), "Ms"), Value: odd()}}
	}
	for range r.IntN(3) {
		b.AddSource().Rows = int64(r.IntN(100)) - 1
	}
	b.UnknownPhases = []event.KV{{Key: fmt.Sprint("p", r.IntN(30)), Value: odd()}}
	b.Observed = []event.Observed{{Name: "o", Column: fmt.Sprint(r.IntN(200)), Value: odd()}}
}

// monotone is what must not fall: counters and the parts of histograms.
func monotone(t *testing.T, x *Exporter) facts {
	t.Helper()
	sc := x.acquire()
	defer x.release(sc)
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.snapshot(sc)
	out := facts{}
	for _, f := range x.families {
		for i := range f.series {
			s := &f.series[i]
			key := f.name + string(s.labels.text)
			if s.extra != nil {
				key += string(s.extra.text)
			}
			switch f.kind {
			case counter:
				if v := f.scale.of(sc.value(s)); v == v {
					out.put(t, key, nil, v)
				}
			case histogram:
				h := sc.hist(s)
				out.put(t, key+"_sum", nil, h.sum)
				for b, n := range h.counts {
					out.put(t, fmt.Sprint(key, "_bucket", b), nil, float64(n))
				}
			}
		}
	}
	return out
}

func TestCountersNeverFallWhateverComes(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := New(Options{UnknownKeys: 3, Phases: 3, Observed: 3, SeriesPerQuery: 150 + int(seed)*30})
		streams := []*stream{newStream("a"), newStream("b")}
		was := facts{}
		for range 120 {
			s := streams[r.IntN(2)]
			x.Apply(randomUpdate(r, s))
			if r.IntN(10) == 0 {
				x.Expire(s.nowMs + int64(r.IntN(5_000))) // within the grace time
			}
			now := monotone(t, x)
			for key, v := range was {
				if got, ok := now[key]; !ok || got < v || math.IsInf(got, 0) {
					t.Fatalf("seed %d: %s was %g and is %g (there: %t)", seed, key, v, got, ok)
				}
			}
			was = now
		}
		if n := x.total.Load(); n != int64(recount(x)) {
			t.Errorf("seed %d: %d series booked, %d there", seed, n, recount(x))
		}
	}
}

func recount(x *Exporter) int {
	n := 0
	for _, f := range x.families {
		n += len(f.series) * int(f.weight())
	}
	return n
}

// The series of a query are the same after many restarts, each with its own run
// and application.
func TestRestartsMakeNoSeries(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	cycle := func(i int) {
		s.run, s.ref.Application = event.RunID(fmt.Sprint("run-", i)), fmt.Sprint("app-", i)
		x.Apply(s.started())
		x.Apply(s.executed(full(int64(i))))
		x.Apply(s.executed(full(int64(i + 1))))
		x.Apply(s.update(event.OutcomeTerminated, event.KindTerminated, event.StateTerminated))
	}
	cycle(0)
	want := x.total.Load()
	for i := range 200 {
		cycle(i + 1)
	}
	if got := x.total.Load(); got != want {
		t.Errorf("%d series after 200 restarts, %d after one", got, want)
	}
	if p := text(t, x); strings.Contains(p, "app-199") || strings.Contains(p, "run-") || !strings.Contains(p, `application="app-200"`) {
		t.Error("old identities are still there")
	}
	wantValue(t, x, "402", "batches_total", `kind="data"`)
}

func TestShortLivedQueriesLeaveNothingBehind(t *testing.T) {
	x := New(Options{})
	stay := newStream("stay")
	x.Apply(stay.executed(full(1)))
	x.Apply(stay.executed(full(2)))
	want := x.total.Load()
	before := heap()
	for i := range 2000 {
		s := newStream(fmt.Sprint("q", i))
		x.Apply(s.executed(full(int64(i))))
		x.Apply(s.state(event.StateRetired))
		x.Expire(t0)
		x.Expire(t0 + 3_600_000)
	}
	if got := x.total.Load(); got != want || x.live.Load() != 1 || len(x.queries) > 3 || len(x.ids) != 1 || len(x.byID) != 1 {
		t.Errorf("%d series of %d, %d queries, %d places", got, want, x.live.Load(), len(x.queries))
	}
	if grown := int64(heap()) - int64(before); grown > 2<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if got := recount(x); int64(got) != want {
		t.Errorf("families hold %d series of %d", got, want)
	}
	wantValue(t, x, "2", "batches_total", `"stay"`, `kind="data"`)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A series is small: the labels are shared, and no format keeps a copy.
func TestASeriesTakesLittleMemory(t *testing.T) {
	before := heap()
	x := loaded(t, benchSeries)
	x.release(x.acquire())
	per := float64(heap()-before) / float64(x.total.Load())
	t.Logf("%.0f bytes per series", per)
	if per > 300 {
		t.Errorf("%.0f bytes per series", per)
	}
	runtime.KeepAlive(x)
}

func TestUpdatesOfExistingSeriesDoNotAllocate(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	u := s.executed(full(1))
	x.Apply(u)
	x.Apply(s.executed(full(1)))
	if n := testing.AllocsPerRun(100, func() { x.Apply(u) }); n != 0 {
		t.Errorf("%g allocations per update", n)
	}
}

func TestScrapesDoNotAllocatePerSeries(t *testing.T) {
	x := loaded(t, 20_000)
	for _, f := range []expfmt.Format{expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtProtoDelim} {
		var w discard
		if err := x.Write(&w, f); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(5, func() { _ = x.Write(&w, f) }); n > 20 {
			t.Errorf("%s: %g allocations per page", f, n)
		}
	}
}

// Each update adds 1 to three series; a page on which they differ has seen half
// an update.
func TestAScrapeNeverSeesHalfAnUpdate(t *testing.T) {
	x := New(Options{})
	var updates, scrapes sync.WaitGroup
	stop := make(chan struct{})
	for i := range 2 {
		updates.Go(func() {
			s := newStream(fmt.Sprint("q", i))
			for range 1500 {
				x.Apply(s.executed(func(b *event.Batch) {
					b.Values[event.SinkNumOutputRows] = 1
					b.Operators[0].Values[event.NumRowsUpdated] = 1
				}))
			}
		})
	}
	for _, f := range []expfmt.Format{expfmt.FmtText, expfmt.FmtProtoDelim} {
		scrapes.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					checkWhole(t, x, f)
				}
			}
		})
	}
	scrapes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				x.Expire(t0)
				slot := x.Slot("stategauge_alerts", "Alerts.", event.Label{Name: "n", Value: fmt.Sprint(i % 7)})
				x.Set(slot, 1)
				x.Drop(slot)
			}
		}
	})
	updates.Wait()
	close(stop)
	scrapes.Wait()
	wantValue(t, x, "1500", "batches_total", `"q0"`, `kind="data"`)
}

func checkWhole(t *testing.T, x *Exporter, f expfmt.Format) {
	var all facts
	if f == expfmt.FmtText {
		all = factsOf(t, parseText(t, page(t, x, f)), false)
	} else {
		all = factsOf(t, parseProto(t, page(t, x, f)), false)
	}
	for _, q := range []string{"q0", "q1"} {
		labels := fmt.Sprintf(`query_id=%q,query_name="orders"`, q)
		a := all[`spark_streaming_batches_total{application="shop",kind="data",`+labels+`}`]
		b := all[`spark_streaming_sink_output_rows_total{application="shop",`+labels+`}`]
		c := all[`spark_streaming_batch_duration_seconds_count{application="shop",`+labels+`}`]
		d := all[`spark_streaming_state_rows_updated_total{application="shop",operator="stateStoreSave",operator_index="0",`+labels+`}`]
		if a != b || a != c || a != d {
			t.Errorf("%s: %g batches, %g rows out, %g durations, %g rows updated", q, a, b, c, d)
		}
	}
}

func TestUpdatesThatAreNoNewsMakeNothing(t *testing.T) {
	x := New(Options{})
	x.Apply(nil)
	x.Apply(&event.Update{})
	s := newStream("q")
	for _, o := range event.Outcomes() {
		if isNews(o) && o != event.OutcomeStateChange {
			continue
		}
		u := s.executed(nil)
		u.Outcome = o
		x.Apply(u)
	}
	nameless := s.executed(nil)
	nameless.Event.Query.ID = ""
	x.Apply(nameless)
	if got := text(t, x); got != "" {
		t.Errorf("got %s", got)
	}
}

// While a scrape renders, and a new query waits for it to end, updates of the
// series that there are go on.
func TestUpdatesDoNotWaitForScrapes(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	u := s.executed(nil)
	x.Apply(u)
	slot := x.Slot("stategauge_alerts", "Alerts.")
	x.mu.RLock() // a scrape
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.Apply(newStream("new").started())
	}()
	for x.mu.TryRLock() { // until the new query waits
		x.mu.RUnlock()
		runtime.Gosched()
	}
	x.Apply(u)
	x.Apply(s.idle())
	x.Set(slot, 1)
	x.mu.RUnlock()
	<-done
	wantValue(t, x, "2", "batches_total", `query_id="q"`)
}
