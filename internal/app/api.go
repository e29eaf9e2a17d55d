package app

import (
	"math"
	"net/http"
	"time"

	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
)

// reply is the envelope of Prometheus' own API.
type reply struct {
	Status string `json:"status"`
	Data   any    `json:"data,omitempty"`
	Error  string `json:"error,omitempty"`
}

type queriesData struct {
	AsOf    time.Time   `json:"as_of"`
	Queries []queryJSON `json:"queries"`
}

// queryJSON is one query of /api/v1/queries. Stale says that what is told is not
// the present: nothing was heard for longer than the query's usual distance
// between events allows.
type queryJSON struct {
	ID             string     `json:"id"`
	Name           string     `json:"name,omitempty"`
	Application    string     `json:"application,omitempty"`
	State          string     `json:"state"`
	Stale          bool       `json:"stale"`
	RunID          string     `json:"run_id,omitempty"`
	Runs           int64      `json:"runs"`
	Batches        int64      `json:"batches"`
	LastBatch      *int64     `json:"last_batch,omitempty"`
	FirstEvent     *time.Time `json:"first_event,omitempty"`
	LastEvent      *time.Time `json:"last_event,omitempty"`
	LastSeen       *time.Time `json:"last_seen,omitempty"`
	Trigger        string     `json:"trigger"`
	Interval       *float64   `json:"trigger_interval_seconds,omitempty"`
	IntervalOrigin string     `json:"trigger_interval_origin,omitempty"`
	Duplicates     int64      `json:"duplicates"`
	Late           int64      `json:"late"`
	Missed         int64      `json:"missed_batches"`
	Reexecuted     int64      `json:"reexecuted_batches"`
	ErrorClass     string     `json:"error_class,omitempty"`
	Error          string     `json:"error,omitempty"`
}

func (a *App) serveQueries(w http.ResponseWriter, _ *http.Request) {
	var all []track.QueryStatus
	a.ask(func(s *shard) { all = s.tracker.Queries(all) })
	now := a.opts.Now()
	data := queriesData{AsOf: now.UTC(), Queries: []queryJSON{}}
	for i := range all {
		data.Queries = append(data.Queries, queryOf(&all[i], now))
	}
	writeJSON(w, http.StatusOK, reply{Status: "success", Data: data})
}

func queryOf(q *track.QueryStatus, now time.Time) queryJSON {
	out := queryJSON{
		ID: string(q.Query.ID), Name: q.Query.Name, Application: q.Query.Application,
		State: q.State.String(), Stale: isStale(q, now), RunID: string(q.Run), Runs: q.Runs, Batches: q.Batches,
		FirstEvent: timeOf(q.FirstEventMs), LastEvent: timeOf(q.LastEventMs), LastSeen: timeOf(q.LastSeenMs),
		Trigger: q.Trigger.String(), Duplicates: q.Duplicates, Late: q.Late, Missed: q.Missed, Reexecuted: q.Reexecuted,
	}
	if q.LastBatch != event.Absent {
		out.LastBatch = &q.LastBatch
	}
	if !math.IsNaN(q.IntervalMs) && q.IntervalFrom != event.IntervalNone {
		seconds := q.IntervalMs / 1000
		out.Interval, out.IntervalOrigin = &seconds, q.IntervalFrom.String()
	}
	if q.Failure != nil {
		out.ErrorClass, out.Error = q.Failure.Class, q.Failure.Message
	}
	return out
}

// isStale reports whether what is known of a query may no longer hold.
func isStale(q *track.QueryStatus, now time.Time) bool {
	switch q.State {
	case event.StateRunning, event.StateIdle:
		return q.OverdueAfterMs == q.OverdueAfterMs && float64(now.UnixMilli()-q.LastSeenMs) > q.OverdueAfterMs
	}
	return true
}

func timeOf(ms int64) *time.Time {
	if ms == event.Absent {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}
