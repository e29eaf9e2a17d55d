package kafkasource

import (
	"sync"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// replays follows the partitions of which history is being read again, and tells
// when the last of them has come to its live offset.
type replays struct {
	source *Source

	mu       sync.Mutex
	running  int       // partitions
	since    time.Time // when the first of them began
	finished int       // partitions since then
	offsets  int64     // what those had to read again
}

func (r *replays) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running++; r.running == 1 {
		r.since, r.finished, r.offsets = r.source.now(), 0, 0
	}
	r.source.metrics.Replaying.Set(float64(r.running))
}

// end takes one partition off, after the given number of offsets; done says that it
// got through.
func (r *replays) end(offsets int64, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.source.metrics.Replaying.Set(float64(r.running))
	if done {
		r.finished++
		r.offsets += offsets
	}
	if r.running == 0 && r.finished > 0 {
		r.source.log.Info("kafka history is read again: from here on it is news", "partitions", r.finished,
			"offsets", r.offsets, "took", r.source.now().Sub(r.since).Round(time.Millisecond))
	}
}

// followReplay begins the worker's replay at the offset where it is first seen to
// be before the live one, and ends it there.
func (w *worker) followReplay(offset int64) {
	switch live := w.live.Load(); {
	case offset >= live:
		w.leaveReplay(true)
		w.live.Store(event.Absent)
	case !w.replaying:
		w.replaying, w.replayFrom = true, offset
		w.source.replays.begin()
	}
}

// doubt looks anew where a replay gets no messages any more: a log that has lost its
// end may never reach the live offset, and what is written to it is news.
func (w *worker) doubt(messages int) {
	if !w.replaying || messages > 0 {
		w.idle = 0
		return
	}
	if w.idle++; w.idle > patience {
		w.idle = 0
		w.dropReader()
	}
}

// endReplay makes everything from here on news.
func (w *worker) endReplay() {
	w.leaveReplay(false)
	w.live.Store(event.Absent)
}

// leaveReplay takes the worker off the list of those that replay; done says that
// it got through.
func (w *worker) leaveReplay(done bool) {
	if w.replaying {
		w.replaying = false
		w.source.replays.end(w.reached.Load()-w.replayFrom, done)
	}
}

// Progress says how far the reading of the assigned partitions has come.
type Progress struct {
	Joined    bool  // this process is a member of the group and knows its partitions
	Assigned  int   // partitions that it has
	Unread    int   // those of them that could not be read yet
	Replaying int   // those of which history is still being read again
	Left      int64 // offsets of history still to be read, in all partitions
}

// CaughtUp reports whether every assigned partition is read and no history is left:
// from here on windows are full and silence means something. A member that has no
// partition is caught up.
func (p Progress) CaughtUp() bool { return p.Joined && p.Unread == 0 && p.Replaying == 0 }

// Progress returns how far the reading has come. It may be called at any time.
func (s *Source) Progress() Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Progress{Joined: s.reading, Assigned: len(s.workers)}
	for _, w := range s.workers {
		switch reached, live := w.reached.Load(), w.live.Load(); {
		case !known(reached):
			p.Unread++
		case reached < live:
			p.Replaying++
			p.Left += live - reached
		}
	}
	return p
}

// leftover is where a partition was when its generation ended.
type leftover struct {
	generation int32
	at         collector.Start
}

// keep remembers where the workers of a generation were.
func (s *Source) keep(number int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.left)
	for p, w := range s.workers {
		at := collector.Start{Offset: w.reached.Load(), Live: w.live.Load()}
		if !known(at.Offset) {
			at.Offset = w.start
		}
		s.left[p] = leftover{number, at}
	}
}

// recall marks the assignments that this process had in the generation before, and
// forgets about all others.
func (s *Source) recall(number int32, got []collector.Assignment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[partition]leftover{}
	for i := range got {
		p := partitionOf(got[i])
		if old, ok := s.left[p]; ok && old.generation+1 == number && s.topology.fresh[p] != reborn {
			got[i].Kept = true
			kept[p] = leftover{number, old.at}
		}
	}
	s.left = kept
}

// resumed turns the hook's answer for a partition into a place to begin at: where
// it has no wish, a kept partition goes on where it was.
func (s *Source) resumed(p partition, wish collector.Start) collector.Start {
	old, kept := s.left[p]
	if !kept || known(wish.Offset) {
		return wish
	}
	if !known(wish.Live) {
		return old.at
	}
	return collector.Start{Offset: old.at.Offset, Live: wish.Live}
}
