package app

import (
	"context"
	"hash/maphash"
	"runtime"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
)

// Commit makes updates durable together with the marks of the sources that
// brought them. nil means that durable is applied in memory: the daemon then
// keeps no disk state.
type Commit func(ctx context.Context, u []event.Update, marks []byte) error

// defaultShards is one tracker per processor: a shard is a goroutine that is
// never idle under load.
func defaultShards() int { return runtime.GOMAXPROCS(0) }

// shard owns one tracker and the exporter slots of its queries. Only its own
// goroutine touches them.
type shard struct {
	jobs    chan job
	tracker *track.Tracker
	updates []event.Update
}

// job is work for a shard's goroutine: its part of one step, or, where do is set,
// a question to the tracker.
type job struct {
	parts []part
	do    func()
	done  func(error)
}

// shards spreads queries over trackers by their id.
type shards struct {
	all  []*shard
	seed maphash.Seed
}

func (s *shards) of(id event.QueryID) int {
	return int(maphash.String(s.seed, string(id)) % uint64(len(s.all)))
}

// run works on jobs until jobs is closed, and looks at the tracker's clock now
// and then.
func (a *App) runShard(s *shard) {
	tick := time.NewTicker(a.opts.real(a.opts.TrackEvery))
	defer tick.Stop()
	for {
		select {
		case j, open := <-s.jobs:
			if !open {
				return
			}
			a.work(s, j)
		case <-tick.C:
			a.tickShard(s)
		}
	}
}

func (a *App) work(s *shard, j job) {
	if j.do != nil {
		j.do()
		j.done(nil)
		return
	}
	j.done(a.applyParts(s, j.parts))
}

// applyParts is the order of one event: track, commit, export, then the rules'
// own queue.
func (a *App) applyParts(s *shard, parts []part) error {
	s.updates = s.updates[:0]
	nowMs := a.opts.Now().UnixMilli()
	for _, p := range parts {
		from := len(s.updates)
		s.updates = s.tracker.Apply(p.item.Event, receivedMs(p.item, nowMs), s.updates)
		for i := from; i < len(s.updates); i++ {
			s.updates[i].Origin = p.item.Origin
		}
		if !p.echo {
			p.item.Outcome = outcomeOf(p.item.Event, s.updates[from:])
		}
	}
	if a.commit != nil {
		if err := a.commit(a.ctx, s.updates, nil); err != nil {
			return err
		}
	}
	a.publish(s.updates)
	return nil
}

// tickShard lets time pass for the queries of a shard.
func (a *App) tickShard(s *shard) {
	s.updates = s.tracker.Tick(a.opts.Now().UnixMilli(), s.updates[:0])
	a.publish(s.updates)
}

func (a *App) publish(updates []event.Update) {
	for i := range updates {
		a.exporter.Apply(&updates[i])
	}
	a.judge.offer(updates)
}

func receivedMs(it *collector.Item, nowMs int64) int64 {
	if it.Origin.ReceivedMs > 0 {
		return it.Origin.ReceivedMs
	}
	return nowMs
}

// outcomeOf returns what became of an event: the outcome of its own update, among
// those about other queries that it brought about.
func outcomeOf(e *event.Event, u []event.Update) event.Outcome {
	for i := range u {
		if u[i].Event == e {
			return u[i].Outcome
		}
	}
	return event.OutcomeUnjudgeable
}
