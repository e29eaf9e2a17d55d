package track

import "github.com/stategauge/stategauge/event"

// QueryStatus is what a Tracker knows of one query. Times are Unix milliseconds,
// event.Absent where unknown.
type QueryStatus struct {
	Query event.QueryRef
	State event.State
	Run   event.RunID
	// Runs is how many runs were seen; Batches how many executed batches were
	// counted, over all runs.
	Runs, Batches int64
	LastBatch     int64 // newest executed batch id of the current run, event.Absent before the first
	FirstEventMs  int64 // oldest event, by the sender's clock
	LastEventMs   int64 // newest event, by the sender's clock
	LastSeenMs    int64 // arrival of the newest sign of life, by our clock
	HeartbeatMs   int64 // arrival of the newest heartbeat that names the query
	// TriggerActive is what that heartbeat said: a trigger was running.
	TriggerActive bool
	Trigger       event.TriggerKind
	IntervalMs    float64 // NaN where there is none or it is not known
	IntervalFrom  event.IntervalOrigin
	// UsualMs is the usual distance between the query's events, OverdueAfterMs the
	// silence after which it is overdue; NaN while they are not known.
	UsualMs, OverdueAfterMs                    float64
	Duplicates, Late, Missed, Reexecuted, Idle int64
	StartedSeen, SharedRuns                    bool
	// Failure is why the current run died, nil otherwise. It is shared: do not change it.
	Failure *event.Failure
}
