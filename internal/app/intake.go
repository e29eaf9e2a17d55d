package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// errStopped is what sources are told once the daemon is on its way down.
var errStopped = errors.New("the daemon is stopping")

// intake spreads steps over the shards and waits for them. It never blocks on a
// full queue: a slow collector must never slow a query, so the source is told at
// once and tries again.
type intake struct {
	limit    int64
	inFlight atomic.Int64 // events accepted and not yet applied
	gate     sync.RWMutex // held for reading while a step is under way
	closed   bool
	splits   sync.Pool
}

// split is one step taken apart by shard, with the wait for its parts.
type split struct {
	parts [][]part
	wg    sync.WaitGroup
	mu    sync.Mutex
	errs  []error
}

// part is an item of a step as one shard sees it. A heartbeat speaks of queries of
// every shard, so all get it; echo marks it for those that do not answer for it.
type part struct {
	item *collector.Item
	echo bool
}

func newIntake(limit, shards int) *intake {
	in := &intake{limit: int64(limit)}
	in.splits.New = func() any { return &split{parts: make([][]part, shards)} }
	return in
}

// Handle applies one step; it is the collector.Handler of every source.
func (a *App) Handle(ctx context.Context, step *collector.Step) error {
	in := a.intake
	in.gate.RLock()
	defer in.gate.RUnlock()
	if in.closed {
		return errStopped
	}
	// Once handed over, a step is waited for whatever becomes of ctx: its events are
	// shared with the shards until then.
	if err := ctx.Err(); err != nil {
		return err
	}
	n := int64(len(step.Items))
	if in.inFlight.Add(n) > in.limit || !a.judge.room(len(step.Items)) {
		in.inFlight.Add(-n)
		a.metrics.refused.Inc()
		return collector.ErrFull
	}
	defer in.inFlight.Add(-n)
	err := a.spread(step)
	if err == nil {
		a.count(step)
	}
	return err
}

// spread hands each shard its part of the step and waits for all of them, so that
// the events may be reused when it returns.
func (a *App) spread(step *collector.Step) error {
	s := a.intake.splits.Get().(*split)
	defer a.intake.splits.Put(s)
	s.errs = s.errs[:0]
	for i := range s.parts {
		s.parts[i] = s.parts[i][:0]
	}
	for i := range step.Items {
		it := &step.Items[i]
		own := a.shards.of(it.Event.Query.ID)
		for at := range s.parts {
			if at == own || it.Event.Kind == event.KindHeartbeat {
				s.parts[at] = append(s.parts[at], part{it, at != own})
			}
		}
	}
	for i, parts := range s.parts {
		if len(parts) == 0 {
			continue
		}
		s.wg.Add(1)
		a.shards.all[i].jobs <- job{parts: parts, done: s.done}
	}
	s.wg.Wait()
	return errors.Join(s.errs...)
}

func (s *split) done(err error) {
	if err != nil {
		s.mu.Lock()
		s.errs = append(s.errs, err)
		s.mu.Unlock()
	}
	s.wg.Done()
}

// count keeps the books of what came in. It reads the events, so it runs before
// the source takes them back.
func (a *App) count(step *collector.Step) {
	for i := range step.Items {
		it := &step.Items[i]
		c := a.metrics.bySource(it.Origin.Source)
		c.outcomes[it.Outcome].Inc()
		if it.Outcome != event.OutcomeExecuted || it.Event.Batch == nil {
			continue
		}
		b := it.Event.Batch
		if end := b.EndMs(); end != event.Absent && it.Origin.ReceivedMs > 0 {
			c.delay.Observe(float64(it.Origin.ReceivedMs-end) / 1000)
		}
		if b.Missing != 0 {
			a.metrics.countMissing(b.Missing)
		}
	}
}

// closeIntake refuses new steps and waits for those under way.
func (a *App) closeIntake() {
	a.intake.gate.Lock()
	a.intake.closed = true
	a.intake.gate.Unlock()
	for _, s := range a.shards.all {
		close(s.jobs)
	}
}

// ask runs f on every shard's goroutine in turn and waits.
func (a *App) ask(f func(s *shard)) {
	a.intake.gate.RLock()
	defer a.intake.gate.RUnlock()
	if a.intake.closed {
		return
	}
	for _, s := range a.shards.all {
		done := make(chan struct{})
		s.jobs <- job{do: func() { f(s) }, done: func(error) { close(done) }}
		<-done
	}
}
