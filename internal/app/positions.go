package app

import (
	"context"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// place is one partition of a topic.
type place struct {
	topic     string
	partition int32
}

func placeOf(a *collector.Assignment) place { return place{a.Topic, a.Partition} }

// positions is what the daemon knows of Kafka's partitions: how far the history
// has each of them, and which it holds. It belongs to the source's hooks, which
// come one at a time, and is filled before they do.
type positions struct {
	stored map[place]int64 // the first offset that history does not have
	held   map[place]bool  // after a restart: those that known queries came from
}

// assigned decides where the reading of each partition begins.
//
// A partition that was kept goes on. One that history knows goes on there: history
// holds the offset together with what came before it, so it wins over the group's.
// Of any other, and of one that somebody else has read on, the past is read again
// as far back as rules look, up to where the group is: windows and alerts come back
// by it, and nothing is counted or said aloud.
func (a *App) assigned(ctx context.Context, got []collector.Assignment) ([]collector.Start, error) {
	start := make([]collector.Start, len(got))
	now := map[place]bool{}
	var gained []collector.Assignment
	for i := range got {
		now[placeOf(&got[i])] = true
		start[i] = collector.Start{Offset: event.Absent, Live: event.Absent}
		if !got[i].Kept {
			gained = append(gained, got[i])
		}
	}
	a.letGo(now)
	a.positions.held = now
	if len(gained) == 0 {
		return start, nil
	}
	back := a.lookBack(ctx, gained)
	for i := range got {
		if p := placeOf(&got[i]); !got[i].Kept {
			start[i] = startOf(&got[i], a.positions.after(p), back[p])
		}
	}
	a.takeOver(gained)
	return start, nil
}

// holdHomes takes the partitions of all known queries for held: of those that the
// group gives to others after a restart the queries have to go.
func (a *App) holdHomes() {
	a.positions.held = map[place]bool{}
	for _, s := range a.shards.all {
		for _, at := range s.homes {
			a.positions.held[at] = true
		}
	}
}

// after is the stored offset of a partition that has not been given away since.
func (p *positions) after(at place) int64 {
	next, known := p.stored[at]
	if !known {
		return event.Absent
	}
	delete(p.stored, at) // from here on the source knows
	return next
}

// startOf decides for one partition. stored is where history has it up to and back
// where rules begin to look, event.Absent where not known.
func startOf(got *collector.Assignment, stored, back int64) collector.Start {
	group := got.Committed
	switch {
	case stored != event.Absent && stored >= group:
		// The group is told after history, never before: nobody else was here.
		return collector.Start{Offset: stored, Live: stored}
	case stored != event.Absent && back == event.Absent:
		return collector.Start{Offset: stored, Live: group}
	case group == event.Absent || back == event.Absent || back >= group:
		return collector.Start{Offset: event.Absent, Live: event.Absent}
	}
	return collector.Start{Offset: back, Live: group}
}

// lookBack finds the offsets at which rules begin to look. Where the brokers do not
// tell, windows fill by themselves in time.
func (a *App) lookBack(ctx context.Context, of []collector.Assignment) map[place]int64 {
	out := map[place]int64{}
	source := a.kafkaSource()
	if source == nil {
		return out
	}
	at := a.opts.Now().Add(-a.lookback())
	offsets, err := source.OffsetsForTimes(ctx, of, at.UnixMilli())
	if err != nil {
		a.log.Warn("the past of some partitions cannot be found, their windows begin anew", "err", err)
	}
	for i := range of {
		out[placeOf(&of[i])] = offsets[i]
	}
	return out
}

// lookback is how far back the past of a partition is read that is taken over.
func (a *App) lookback() time.Duration {
	if k := a.config.Load().Kafka; k != nil && k.Lookback > 0 {
		return k.Lookback.Std()
	}
	return time.Duration(a.lookbackMs.Load()) * time.Millisecond
}

// takeOver lets the trackers know that others may have read what they did not see.
func (a *App) takeOver(gained []collector.Assignment) {
	at := map[place]bool{}
	for i := range gained {
		at[placeOf(&gained[i])] = true
	}
	a.ask(func(s *shard) {
		s.tracker.TakenOverWhere(func(id event.QueryID) bool {
			home, known := s.homes[id]
			return !known || at[home]
		})
	})
}

// letGo drops the queries of partitions that are another's now. Their series end
// at once, their alerts are neither sent nor resolved any more: the other goes on
// with them.
func (a *App) letGo(now map[place]bool) {
	lost := map[place]bool{}
	for p := range a.positions.held {
		if !now[p] {
			lost[p] = true
			delete(a.positions.stored, p) // what comes back later comes back whole
		}
	}
	if len(lost) == 0 {
		return
	}
	if a.journal != nil {
		a.journal.release(lost)
		return
	}
	a.ask(func(s *shard) {
		s.updates = a.release(s, lost, s.updates[:0])
		s.vacate(s.updates)
		a.publish(s.updates, stamp{shard: s.index})
	})
}

// release retires a shard's queries that live in the lost partitions.
func (a *App) release(s *shard, lost map[place]bool, out []event.Update) []event.Update {
	gone := func(id event.QueryID) bool {
		home, known := s.homes[id]
		return known && lost[home]
	}
	return s.tracker.Release(gone, a.opts.Now().UnixMilli(), out)
}
