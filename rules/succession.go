package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// maxHeirs is how many queries that took over a name are kept until they come.
const maxHeirs = 1024

// predecessor is what a query knows of the one whose name it took over.
type predecessor struct {
	id           event.QueryID
	lastBatch    int64
	lastMs       int64   // sender's time of its newest word
	backlog      float64 // offsets that it had not read, NaN where not told
	rowsASecond  float64 // that it used to read, NaN unknown
	acknowledged bool
}

// firstBatch is the oldest batch of a query that was heard of.
type firstBatch struct {
	id       int64 // Absent before
	startMs  int64
	rows     float64
	backlog  float64
	position int64
	from     *predecessor // whose name it took over, nil if that of none
}

// testament is what a query leaves to the one that takes over its name.
func (q *queryState) testament() *predecessor {
	p := &predecessor{id: q.ref.ID, lastBatch: q.lastBatch, lastMs: q.story.lastMs, backlog: q.story.backlog}
	p.rowsASecond = q.story.rows / (q.spacingMs / 1000) // 0/0 is NaN: unknown
	return p
}

// bequeath tells the query that took over a name whose it was, now or when it
// comes.
func (e *Engine) bequeath(q *queryState, successor event.QueryID) {
	if successor == "" || q.lastBatch == event.Absent {
		return
	}
	if next := e.queries[successor]; next != nil {
		if from := next.story.first.from; from != nil && from.id == q.ref.ID {
			return // told before a restart, and told again after it
		}
		next.story.first.from = q.testament()
		next.story.succeed()
		return
	}
	if len(e.heirs) >= maxHeirs {
		clear(e.heirs)
	}
	e.heirs[successor] = q.testament()
}

// inherit gives a new query what was left to it.
func (e *Engine) inherit(q *queryState, id event.QueryID) {
	if p := e.heirs[id]; p != nil {
		q.story.first.from = p
		delete(e.heirs, id)
	}
}

// pushFirst keeps the query's oldest batch, and what is usual of the newest.
func (s *story) pushFirst(b *event.Batch, startedSeen bool, at, position int64) {
	rows := b.Values[event.NumInputRows]
	s.backlog = backlog(b)
	if s.first.id == event.Absent {
		s.first.id, s.first.startMs, s.first.rows, s.first.backlog, s.first.position = b.ID, at, rows, s.backlog, position
		if b.ID > 0 && !(startedSeen && b.ID <= 2) {
			s.first.from = nil // it had a history of its own
		}
	}
	if s.first.from != nil && !s.first.from.acknowledged {
		s.succeed()
	}
	switch {
	case !(rows >= 0):
	case s.rows == 0:
		s.rows = rows
	default:
		s.rows += spacingWeight * (rows - s.rows)
	}
}

// succeed notes that the history began anew, once both sides are known.
func (s *story) succeed() {
	f := &s.first
	if f.id == event.Absent || f.from == nil || f.from.acknowledged {
		return
	}
	f.from.acknowledged = true
	if f.id > 2 {
		return
	}
	p := f.from
	s.note(changeReset, occurrence{
		atMs: f.startMs, batch: f.position, count: 1, text: string(p.id),
		why: fmt.Sprintf("the query had come to batch %d as %s, and began anew with batch %d; %s", p.lastBatch, p.id, f.id, f.gap()),
	})
}

const (
	// fewer and more than so much of what was to be read are no accident of rates.
	fewer, more = 0.5, 1.5
)

// gap says how many offsets were skipped or are replayed, as far as the figures
// tell: those that waited and those that came meanwhile against those that the new
// query found.
func (f *firstBatch) gap() string {
	p := f.from
	due := p.backlog + p.rowsASecond*float64(f.startMs-p.lastMs)/1000
	found := f.rows + f.backlog
	switch {
	case !finite(due) || !finite(found) || f.startMs == event.Absent || p.lastMs == event.Absent:
		return "how many offsets it skipped or replays its sources do not say"
	case due < 1 && found < 1:
		return "nothing was skipped as far as its sources tell"
	case found > more*due:
		return fmt.Sprintf("about %s offsets are read again", humanize(found-due))
	case found < fewer*due:
		return fmt.Sprintf("about %s offsets were skipped", humanize(due-found))
	}
	return fmt.Sprintf("it found about as many offsets (%s) as were due", humanize(found))
}
