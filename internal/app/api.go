package app

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
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

// alertJSON is an alert in the form of Prometheus' API.
type alertJSON struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
	ActiveAt    *time.Time        `json:"activeAt,omitempty"`
	Value       string            `json:"value"`
}

func (a *App) serveAlerts(w http.ResponseWriter, _ *http.Request) {
	out := []alertJSON{}
	a.judge.ask(func() { out = a.alertsJSON() })
	writeJSON(w, http.StatusOK, reply{Status: "success", Data: map[string]any{"alerts": out}})
}

// alertsJSON runs on the judging goroutine.
func (a *App) alertsJSON() []alertJSON {
	out := []alertJSON{}
	for _, al := range a.decorate(a.judge.engine.Alerts(nil)) {
		out = append(out, alertOf(&al))
	}
	return out
}

func alertOf(al *rules.Alert) alertJSON {
	return alertJSON{
		Labels: mapOf(al.Labels), Annotations: mapOf(al.Annotations), State: al.State.String(),
		ActiveAt: timeOf(al.PendingAtMs), Value: strconv.FormatFloat(al.Value, 'e', -1, 64),
	}
}

func mapOf(l rules.Labels) map[string]string {
	out := make(map[string]string, len(l))
	for _, x := range l {
		out[x.Name] = x.Value
	}
	return out
}

// The shapes below are those of Prometheus' /api/v1/rules, with the judgement of
// each query added.
type groupJSON struct {
	Name     string     `json:"name"`
	File     string     `json:"file"`
	Interval float64    `json:"interval"` // seconds between looks at the clock; judging itself follows the batches
	Limit    int        `json:"limit"`
	Rules    []ruleJSON `json:"rules"`
}

type ruleJSON struct {
	Name          string            `json:"name"`
	Type          string            `json:"type"`
	Query         string            `json:"query"` // the detector's condition on the signal
	Duration      float64           `json:"duration"`
	KeepFiringFor float64           `json:"keepFiringFor"`
	For           string            `json:"for"`
	Labels        map[string]string `json:"labels"`
	Annotations   map[string]string `json:"annotations"`
	State         string            `json:"state"`
	Health        string            `json:"health"`
	LastError     string            `json:"lastError,omitempty"`
	LastEval      *time.Time        `json:"lastEvaluation,omitempty"`
	Alerts        []alertJSON       `json:"alerts"`
	Judgements    []judgementJSON   `json:"judgements"`
}

type judgementJSON struct {
	QueryID       string   `json:"query_id"`
	QueryName     string   `json:"query_name"`
	Operator      string   `json:"operator,omitempty"`
	OperatorIndex *int     `json:"operator_index,omitempty"`
	Batch         int64    `json:"batch"`
	Said          string   `json:"said"`
	Points        int      `json:"points"`
	Value         *float64 `json:"value,omitempty"`
	SlopePerBatch *float64 `json:"slope_per_batch,omitempty"`
}

func (a *App) serveRules(w http.ResponseWriter, _ *http.Request) {
	groups := []groupJSON{}
	a.judge.ask(func() {
		byName := map[string][]alertJSON{}
		for _, al := range a.alertsJSON() {
			byName[al.Labels["alertname"]] = append(byName[al.Labels["alertname"]], al)
		}
		for _, g := range a.judge.engine.Status(true).Groups {
			groups = append(groups, a.groupOf(&g, byName))
		}
	})
	writeJSON(w, http.StatusOK, reply{Status: "success", Data: map[string]any{"groups": groups}})
}

func (a *App) groupOf(g *rules.GroupStatus, alerts map[string][]alertJSON) groupJSON {
	out := groupJSON{Name: g.Name, File: g.File, Interval: a.opts.JudgeEvery.Seconds(), Limit: g.Limit, Rules: []ruleJSON{}}
	for i := range g.Rules {
		out.Rules = append(out.Rules, ruleOf(&g.Rules[i], alerts[g.Rules[i].Alert]))
	}
	return out
}

func ruleOf(r *rules.RuleStatus, alerts []alertJSON) ruleJSON {
	out := ruleJSON{
		Name: r.Alert, Type: "alerting", Query: r.Condition, For: r.For.String(),
		Duration: float64(r.For.Ms) / 1000, KeepFiringFor: float64(r.KeepFiringFor.Ms) / 1000,
		Labels: mapOf(r.Labels), Annotations: mapOf(r.Annotations), State: stateOf(r),
		Health: r.Health, LastError: r.LastError, LastEval: timeOf(r.LastMs),
		Alerts: alerts, Judgements: []judgementJSON{},
	}
	if out.Alerts == nil {
		out.Alerts = []alertJSON{}
	}
	for i := range r.Judgements {
		out.Judgements = append(out.Judgements, judgementOf(&r.Judgements[i]))
	}
	return out
}

func stateOf(r *rules.RuleStatus) string {
	switch {
	case r.Firing > 0:
		return rules.Firing.String()
	case r.Pending > 0:
		return rules.Pending.String()
	}
	return rules.Inactive.String()
}

func judgementOf(j *rules.Judged) judgementJSON {
	out := judgementJSON{
		QueryID: string(j.Query.ID), QueryName: j.Query.Label(), Batch: j.Batch, Said: j.Said.String(), Points: j.Points,
		Value: finite(j.Value), SlopePerBatch: finite(j.SlopePerBatch),
	}
	if j.OperatorIndex >= 0 {
		index := j.OperatorIndex
		out.Operator, out.OperatorIndex = j.Operator, &index
	}
	return out
}

// finite returns nil for what JSON has no number for.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
