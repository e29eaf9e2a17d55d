package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
)

// remember lets a daemon with a history hear so many batches of so many queries, and
// leaves its state saved as it is a minute before a crash: the log after it has the
// newest batches of all of them.
func remember(b *testing.B, o Options, queries, batches int) {
	b.Helper()
	a, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	a.Start()
	f := newFleet(queries)
	pool := decode.NewPool(decode.DefaultLimits())
	for n := range batches {
		for range queries / 50 {
			offer(b, a, pool, f.body(50))
		}
		if n == batches-2 {
			a.judge.ask(a.judge.drain)
			a.journal.wholeSaves.Store(true)
			a.journal.save()
		}
	}
	a.judge.ask(a.judge.drain)
	a.drainAbruptly()
}

// drainAbruptly ends a daemon as a crash does, without saving.
func (a *App) drainAbruptly() {
	ctx := context.Background()
	for _, c := range a.cleanups() {
		if c.name != "history" {
			_ = c.do(ctx)
		}
	}
	_ = a.journal.store.Close()
}

// offer hands a body of events on as one step.
func offer(b *testing.B, a *App, pool *decode.Pool, body []byte) {
	b.Helper()
	step := collector.Step{Reached: event.Absent}
	d := pool.Get()
	defer pool.Put(d)
	d.Body(body, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		if rej != nil {
			b.Fatal(rej.Err)
		}
		step.Items = append(step.Items, collector.Item{Event: ev, Origin: event.Origin{Source: "http"}})
		return true
	})
	for !a.judge.room(len(step.Items)) {
		a.judge.ask(a.judge.drain)
	}
	if err := a.Handle(context.Background(), &step); err != nil {
		b.Fatal(err)
	}
	for i := range step.Items {
		pool.Release(step.Items[i].Event)
	}
}

// BenchmarkStartWithHistory is how long a daemon takes from nothing to being ready, by
// the queries it knows and the batches that it has kept of each. What it reads before
// that is its saved state and the log after it, not the batches.
func BenchmarkStartWithHistory(b *testing.B) {
	for _, c := range []struct {
		name             string
		queries, batches int
	}{{"queries=100/batches=30", 100, 30}, {"queries=100/batches=300", 100, 300}, {"queries=1000/batches=1440", 1000, 1440}} {
		b.Run(c.name, func(b *testing.B) {
			o := testOptions(b)
			o.Logger = slog.New(slog.DiscardHandler)
			o.StoragePath, o.SaveEvery = b.TempDir()+"/history", time.Hour
			remember(b, o, c.queries, c.batches)
			b.ResetTimer()
			for b.Loop() {
				a, err := New(o)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				a.drainAbruptly()
				b.StartTimer()
			}
		})
	}
}
