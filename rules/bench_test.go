package rules

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/expr-lang/expr"

	"github.com/stategauge/stategauge/event"
)

// steady plays healthy batches to the default pack until its windows are full.
func steady(tb testing.TB, operators int) (*stream, *noise) {
	tb.Helper()
	s, n := newStream(New(defaultPack(tb), Options{})), newNoise(1)
	for range 1000 {
		s.play(figures{duration: 2000 * n.next(), rows: 1000 * n.next(), sync: 100 * n.next(), operators: operators})
	}
	return s, n
}

// BenchmarkApplyDefaultPack is one batch of three operators through the default
// pack, windows full.
func BenchmarkApplyDefaultPack(b *testing.B) {
	s, n := steady(b, 3)
	updates := make([]event.Update, 64)
	batches := make([]event.Batch, len(updates))
	for i := range updates {
		updates[i] = s.update(figures{duration: 2000 * n.next(), rows: 1000 * n.next(), sync: 100 * n.next(), operators: 3})
		batches[i].CopyFrom(updates[i].Event.Batch)
		updates[i].Event.Batch = &batches[i]
	}
	var out []Verdict
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		u := &updates[i%len(updates)]
		u.Event.Batch.ID, u.Event.Batch.StartMs = s.next, s.nowMs
		s.next++
		s.nowMs += 10_000
		out = s.e.Apply(u, out[:0])
	}
}

// BenchmarkSignalVersusExpr evaluates a signal as a closure and on the virtual
// machine of the library that parses it.
func BenchmarkSignalVersusExpr(b *testing.B) {
	const text = "rocksdbCommitFileSyncLatencyMs / 1000 / numStateStoreInstances"
	ours, err := compileExpression(text, aNumber, noSignals(OfOperator))
	if err != nil {
		b.Fatal(err)
	}
	batch := event.Batch{}
	batch.Reset()
	o := batch.AddOperator()
	o.Values[event.RocksDBCommitFileSyncLatency], o.Values[event.NumStateStoreInstances] = 4000, 4
	env := map[string]any{"rocksdbCommitFileSyncLatencyMs": 4000.0, "numStateStoreInstances": 4.0}
	program, err := expr.Compile(text, expr.Env(env), expr.AsFloat64())
	if err != nil {
		b.Fatal(err)
	}
	sum := 0.0
	mine := func(n int) {
		for range n {
			sum += ours.eval(&o.Values, &batch, o, &unknownFacts)
		}
	}
	theirs := func(n int) {
		for range n {
			x, err := expr.Run(program, env)
			if err != nil {
				b.Fatal(err)
			}
			sum += x.(float64)
		}
	}
	reportRatio(b, mine, theirs)
	if sum == 0 {
		b.Fatal("nothing was evaluated")
	}
}

// reportRatio runs both alternately and reports how often ours goes into theirs.
func reportRatio(b *testing.B, ours, theirs func(n int)) {
	const rounds = 10
	n := max(1, b.N/rounds)
	var mine, other time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for range rounds {
		at := time.Now()
		ours(n)
		mine += time.Since(at)
		at = time.Now()
		theirs(n)
		other += time.Since(at)
	}
	b.ReportMetric(float64(mine.Nanoseconds())/float64(rounds*n), "ours_ns")
	b.ReportMetric(float64(other)/float64(mine), "x_peer")
}

func TestASteadyStreamCostsNoAllocation(t *testing.T) {
	s, _ := steady(t, 3)
	u := s.update(figures{operators: 3})
	var out []Verdict
	allocs := testing.AllocsPerRun(500, func() {
		u.Event.Batch.ID, u.Event.Batch.StartMs = s.next, s.nowMs
		s.next++
		s.nowMs += s.everyMs
		out = s.e.Apply(&u, out[:0])
	})
	if allocs != 0 {
		t.Errorf("got %v allocations a batch, want none", allocs)
	}
}

func TestASignalCostsNoAllocation(t *testing.T) {
	x, err := compileExpression("min(rocksdbGetCount, 5) > 1 and stores > 0 ? rocksdbGetLatency / stores : 0 ?? 1", aNumber, noSignals(OfOperator))
	if err != nil {
		t.Fatal(err)
	}
	b := event.Batch{}
	b.Reset()
	o := b.AddOperator()
	o.Values[event.RocksDBGetCount], o.Values[event.RocksDBGetLatency] = 10, 20
	if n := testing.AllocsPerRun(100, func() { x.at(&b, o, &unknownFacts) }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// noSignals is a scope with the built-in names only.
func noSignals(of SignalOf) *scope {
	return &scope{of: of, signal: func(string) (*signal, bool, error) { return nil, false, nil }}
}

// BenchmarkMemoryPerQuery is what the default pack keeps of a query of three
// operators once its windows are full.
func BenchmarkMemoryPerQuery(b *testing.B) {
	for b.Loop() {
		const queries = 20
		e := New(defaultPack(b), Options{})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		n := newNoise(1)
		for i := range queries {
			s := newStream(e)
			s.id = fmt.Sprint("q", i)
			for range 700 {
				s.play(figures{duration: 2000 * n.next(), sync: 100 * n.next(), operators: 3})
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/queries, "B/query")
		runtime.KeepAlive(e)
	}
}
