package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
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

// split is one step taken apart by shard, with the waits for its pieces.
type split struct {
	kind    stepKind
	pieces  []piece
	tracked sync.WaitGroup // every shard has said what it makes of its piece
	shown   sync.WaitGroup // and has told the exporter and the rules

	// Where a journal is kept:
	seq      uint64 // in the store; known when the step is committed
	mark     history.Offset
	replayed bool
	lost     map[place]bool // of a release
	paused   bool           // of a tick: a pause ends with it
	judgedMs int64          // of what time has moved: when it did
}

// stepKind is what shards do with a step.
type stepKind uint8

const (
	stepEvents  stepKind = iota // take in what a source brought
	stepTick                    // let time pass
	stepMoved                   // note that time has passed for the rules
	stepRelease                 // let queries go that are another's now
	stepSave                    // say what has to outlive the process
)

// piece is what one shard makes of a step. It is kept until the step is on disk.
type piece struct {
	parts   []part
	updates []event.Update
	records []history.Record
	body    []byte // the memory of the records
	begins  []int  // where each record begins in it
	states  []history.State
}

func (s *split) reset(kind stepKind) {
	s.kind, s.mark, s.replayed = kind, history.Offset{}, false
	for i := range s.pieces {
		p := &s.pieces[i]
		clear(p.updates)
		p.parts, p.updates, p.records = p.parts[:0], p.updates[:0], p.records[:0]
		p.body, p.begins, p.states = p.body[:0], p.begins[:0], p.states[:0]
	}
}

// part is an item of a step as one shard sees it. A heartbeat speaks of queries of
// every shard, so all get it; echo marks it for those that do not answer for it.
type part struct {
	item *collector.Item
	echo bool
}

func newIntake(limit, shards int) *intake {
	in := &intake{limit: int64(limit)}
	in.splits.New = func() any { return &split{pieces: make([]piece, shards)} }
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
	a.spread(step)
	if !step.Replayed {
		a.count(step)
	}
	return nil
}

// spread hands each shard its piece of the step and waits for all of them, so that
// the events may be reused when it returns.
func (a *App) spread(step *collector.Step) {
	s := a.intake.splits.Get().(*split)
	defer a.intake.splits.Put(s)
	s.reset(stepEvents)
	s.replayed = step.Replayed
	for i := range step.Items {
		it := &step.Items[i]
		own := a.shards.of(it.Event.Query.ID)
		for at := range s.pieces {
			if at == own || it.Event.Kind == event.KindHeartbeat {
				s.pieces[at].parts = append(s.pieces[at].parts, part{it, at != own})
			}
		}
	}
	if a.journal != nil {
		s.mark = markOf(step)
		a.journal.send(s)
		s.shown.Wait()
		return
	}
	for i := range s.pieces {
		if len(s.pieces[i].parts) == 0 {
			continue
		}
		s.shown.Add(1)
		a.shards.all[i].jobs <- job{split: s, piece: &s.pieces[i], show: true}
	}
	s.shown.Wait()
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
	a.drainJournal()
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
		s.jobs <- job{do: func() { f(s); close(done) }}
		<-done
	}
}
