package app

import (
	"runtime"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
)

// defaultShards is one tracker per processor: a shard is a goroutine that is
// never idle under load.
func defaultShards() int { return runtime.GOMAXPROCS(0) }

// shard owns one tracker and the exporter slots of its queries. Only its own
// goroutine touches them.
type shard struct {
	index   int
	jobs    chan job
	tracker *track.Tracker
	updates []event.Update
	homes   map[event.QueryID]place // the partitions that queries came from last
	changed map[event.QueryID]bool  // since their counters were saved, where a journal is kept
	beats   beats
}

// job is work for a shard's goroutine: its piece of one step, or, where do is set,
// a question. Without a journal a piece is tracked and shown at once; with one it
// comes a second time, to be shown, when it is on disk.
type job struct {
	split *split
	piece *piece
	show  bool
	do    func()
}

// shards spreads queries over trackers by their id.
type shards struct{ all []*shard }

func (s *shards) of(id event.QueryID) int { return track.ShardOf(id, len(s.all)) }

// run works on jobs until jobs is closed, and looks at the tracker's clock now
// and then. A journal keeps that clock itself: time that passes is a step like any
// other.
func (a *App) runShard(s *shard) {
	tick := time.NewTicker(a.opts.real(a.opts.TrackEvery))
	defer tick.Stop()
	if a.journal != nil {
		tick.Stop()
	}
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
		return
	}
	if a.journal == nil || !j.show {
		a.trackPiece(s, j.split, j.piece)
	}
	if j.show {
		a.showPiece(s, j.split, j.piece)
		j.split.shown.Done()
		return
	}
	j.split.tracked.Done()
}

// trackPiece lets the tracker judge a piece once.
func (a *App) trackPiece(s *shard, st *split, p *piece) {
	switch st.kind {
	case stepEvents:
		a.applyParts(s, st, p)
	case stepTick:
		nowMs := a.opts.Now().UnixMilli()
		p.updates = s.tracker.Tick(nowMs, p.updates)
		a.journal.note(s, p, 0, false)
		if s.index == 0 {
			states, gone, paused := a.journal.listening.tick(nowMs)
			p.states, st.paused = append(p.states, states...), paused
			a.journal.later(gone...)
		}
	case stepMoved:
		if s.index == 0 {
			p.states = append(p.states, a.journal.listening.moved(st.judgedMs)...)
		}
	case stepRelease:
		p.updates = a.release(s, st.lost, p.updates)
		a.journal.note(s, p, 0, false)
	case stepSave:
		p.states = append(p.states, a.journal.shardStates(s)...)
	}
	s.vacate(p.updates)
	if a.journal != nil {
		p.seal()
		a.journal.touchHours(p, a.opts.Now().UnixMilli())
	}
}

func (a *App) applyParts(s *shard, st *split, p *piece) {
	nowMs := a.opts.Now().UnixMilli()
	for _, part := range p.parts {
		from := len(p.updates)
		at := receivedMs(part.item, nowMs)
		p.updates = s.tracker.Apply(part.item.Event, at, p.updates)
		for i := from; i < len(p.updates); i++ {
			p.updates[i].Origin = part.item.Origin
			p.updates[i].Origin.ReceivedMs = at
		}
		s.locate(part)
		if !part.echo {
			part.item.Outcome = outcomeOf(part.item.Event, p.updates[from:])
		}
		if a.journal != nil {
			a.journal.note(s, p, from, st.replayed)
		}
	}
}

// locate notes which partition a query's events come from.
func (s *shard) locate(p part) {
	if o := &p.item.Origin; o.Topic != "" && !p.echo && p.item.Event.Query.ID != "" {
		if at := (place{o.Topic, o.Partition}); s.homes[p.item.Event.Query.ID] != at {
			s.homes[p.item.Event.Query.ID] = at
		}
	}
}

// vacate forgets where retired queries came from.
func (s *shard) vacate(updates []event.Update) {
	for i := range updates {
		if updates[i].State == event.StateRetired {
			delete(s.homes, updates[i].Event.Query.ID)
			s.beats.forget(updates[i].Event.Query.ID)
		}
	}
}

// showPiece tells the exporter and the rules what the tracker said.
func (a *App) showPiece(s *shard, st *split, p *piece) {
	if st.kind == stepSave {
		a.journal.later(a.journal.counters(s, st.seq)...)
		a.judge.mark(s.index, st.seq)
		return
	}
	a.publish(p.updates, stamp{shard: s.index, seq: st.seq, replayed: st.replayed})
	if st.paused { // what is saved of the rules from now on holds it
		a.judge.mark(s.index, st.seq)
	}
	if a.journal != nil {
		s.remember(p.updates)
	}
}

// tickShard lets time pass for the queries of a shard.
func (a *App) tickShard(s *shard) {
	s.updates = s.tracker.Tick(a.opts.Now().UnixMilli(), s.updates[:0])
	s.vacate(s.updates)
	a.publish(s.updates, stamp{shard: s.index})
}

func (a *App) publish(updates []event.Update, at stamp) {
	for i := range updates {
		if at.replayed {
			a.exporter.Show(&updates[i])
			continue
		}
		a.exporter.Apply(&updates[i])
	}
	a.judge.offer(updates, at)
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
