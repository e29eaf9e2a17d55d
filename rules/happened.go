package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// runOf returns the run that an update is about.
func runOf(u *event.Update) event.RunID {
	if u.Event.Run == "" && u.Event.Batch != nil {
		return u.Event.Batch.Run
	}
	return u.Event.Run
}

// batch takes in the figures of an executed batch that has its place.
func (s *story) batch(q *queryState, u *event.Update) {
	b, at := u.Event.Batch, s.timeOf(u)
	s.share(u, at, q.position)
	if u.Rewound {
		s.note(changeRewound, occurrence{
			atMs: at, batch: q.position, count: float64(max(0, s.newest-b.ID+1)), text: "restored checkpoint",
			why: fmt.Sprintf("batch %d came again after batch %d", b.ID, s.newest),
		})
	}
	s.newest, s.place = b.ID, q.position
	s.repaired(b, at, q.position)
	s.pushFirst(b, u.StartedSeen, at, q.position)
	s.pushShape(b, at, q.position)
	s.pushReload(q, b, at)
}

// share notes that two runs take turns.
func (s *story) share(u *event.Update, at, position int64) {
	if u.SharedRuns && !s.changes.standing[changeShared] {
		s.note(changeShared, occurrence{
			atMs: at, batch: position, count: 2, text: "two runs",
			why: "two runs of the query execute batches in turns: two drivers work on one checkpoint",
		})
	}
	s.changes.standing[changeShared] = u.SharedRuns
}

// repaired notes snapshots that Spark passed over because they were damaged.
func (s *story) repaired(b *event.Batch, at, position int64) {
	n := 0.0
	for _, id := range [...]event.MetricID{event.RocksDBNumSnapshotsAutoRepaired, event.HDFSNumSnapshotsAutoRepaired} {
		if x := sumOf(b, id); x > 0 {
			n += x
		}
	}
	if n > 0 {
		s.note(changeRepaired, occurrence{
			atMs: at, batch: position, count: n, text: "damaged snapshot",
			why: several(int(n), "snapshot", "snapshots") + " could not be read; older ones and their changelogs were used",
		})
	}
}
