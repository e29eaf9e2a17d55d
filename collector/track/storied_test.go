package track

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// storied returns a tracker whose queries have been through what a snapshot must
// carry: a hole that is open, a restart, a failure, two runs that take turns, an
// idle query, a trigger that was told and one that was inferred. It is the same
// whenever it is made: saved forms of it lie under testdata.
func storied(c Config) *Tracker {
	tr := New(c, nil)
	now := epoch
	do := func(e *event.Event) {
		now += 7_000
		tr.Apply(e, now, nil)
	}
	named := func(e *event.Event, name string) *event.Event {
		e.Query.Name, e.Query.Application = name, "etl"
		return e
	}
	for i := range int64(40) {
		do(named(batchEvent("hole", "h1", i, now), "hole"))
		if i < 12 {
			do(batchEvent("turns", event.RunID(fmt.Sprint("t", i%2)), i/2, now+i))
		}
		if i == 20 || i == 30 {
			do(&event.Event{Kind: event.KindIdle, Query: event.QueryRef{ID: "idle"}, Run: "i1", AtMs: now})
		}
	}
	do(batchEvent("hole", "h1", 43, now))
	do(batchEvent("hole", "h2", 42, now+1))
	do(batchEvent("hole", "h2", 46, now+2))
	do(named(batchEvent("dead", "d1", 3, now), "dead"))
	do(&event.Event{
		Kind: event.KindTerminated, Query: event.QueryRef{ID: "dead"}, Run: "d1", AtMs: now,
		Failure: &event.Failure{Class: "SparkException", Message: "job aborted"},
	})
	told := batchEvent("told", "r", 0, now)
	told.Batch.Trigger, told.Batch.Values[event.TriggerIntervalMs] = event.TriggerInterval, 60_000
	do(told)
	tr.Tick(now+1000, nil)
	return tr
}
