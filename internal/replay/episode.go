package replay

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// Episode is one alert from the moment it fires to the moment it resolves. Its JSON
// form is one line of a backtest; times are RFC 3339 in UTC.
type Episode struct {
	Alert    string `json:"alertname"`
	Symptom  string `json:"symptom"`
	Severity string `json:"severity"`
	// Labels are all labels, the three above included. A severity that the alert
	// took over from what it inhibits replaces its own.
	Labels   map[string]string `json:"labels"`
	Pending  *string           `json:"pending_at"`
	Firing   *string           `json:"firing_at"`
	Resolved *string           `json:"resolved_at"` // null: it fires at the newest event
	// FirstBatch is where the finding began, null where it is none of batches.
	FirstBatch *int64 `json:"first_batch"`
	// FiringBatch is the query's newest executed batch when it fired, for an alert
	// about many queries the newest of theirs; 0 where none had been executed.
	FiringBatch int64 `json:"firing_batch"`
	LastBatch   int64 `json:"last_batch"` // newest executed batch that it was judged at
	// InhibitedBy is the alert that spoke for this one when it began to fire.
	InhibitedBy *string           `json:"inhibited_by"`
	Annotations map[string]string `json:"annotations"` // as they were when it fired

	PendingMs  int64  `json:"-"` // Unix milliseconds
	FiringMs   int64  `json:"-"`
	ResolvedMs int64  `json:"-"` // event.Absent while it fires
	Reason     string `json:"-"` // why it resolved
	key        string
}

// Query returns the query that the alert is about, as people call it; empty for an
// alert about many.
func (e *Episode) Query() string { return e.Labels["query_name"] }

// Recorder makes episodes of verdicts. Show it every update before the rules see
// it, and every verdict.
type Recorder struct {
	episodes []*Episode
	open     map[string]*Episode // newest by key
	newest   map[event.QueryID]*heard
}

// heard is what an alert about many queries needs to know of each.
type heard struct {
	name, cluster string
	batch         int64 // newest executed one, -1 before the first
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{open: map[string]*Episode{}, newest: map[event.QueryID]*heard{}}
}

// Update takes what the tracker made of an event.
func (r *Recorder) Update(u *event.Update) {
	id := u.Event.Query.ID
	if id == "" || u.Outcome != event.OutcomeExecuted && u.Outcome != event.OutcomeStarted {
		return
	}
	h := r.newest[id]
	if h == nil {
		h = &heard{batch: -1}
		r.newest[id] = h
	}
	h.name = u.Event.Query.Label()
	if u.Event.Cluster != "" {
		h.cluster = u.Event.Cluster
	}
	if u.Outcome == event.OutcomeExecuted && u.Event.Batch != nil && !u.OutOfOrder {
		h.batch = u.Event.Batch.ID
	}
}

// Verdict takes what the rules said.
func (r *Recorder) Verdict(v *rules.Verdict, _ int64) {
	a := v.Alert
	if a == nil {
		return
	}
	key := keyOf(a.Labels)
	e := r.open[key]
	switch {
	case a.State == rules.Firing && v.Was == rules.Pending:
		r.fired(key, a)
	case a.State == rules.Firing && v.Was == rules.Inactive && e != nil:
		e.raised(a) // resolved under the old severity, firing under the new one
	case a.State == rules.Resolved && e != nil:
		e.resolved(a)
	}
}

// keyOf tells alerts apart by their labels. The severity may be raised while an
// alert fires.
func keyOf(l rules.Labels) string {
	var b strings.Builder
	for i := range l {
		if l[i].Name != "severity" {
			b.WriteString(l[i].Name + "\xff" + l[i].Value + "\xff")
		}
	}
	return b.String()
}

func (r *Recorder) fired(key string, a *rules.Alert) {
	e := &Episode{
		key: key, PendingMs: a.PendingAtMs, FiringMs: a.FiringAtMs, ResolvedMs: event.Absent,
		FiringBatch: r.batchOf(a), Annotations: mapOf(a.Annotations),
		Pending: stampOf(a.PendingAtMs), Firing: stampOf(a.FiringAtMs),
	}
	if a.FirstBatch >= 0 {
		e.FirstBatch = &a.FirstBatch
	}
	if a.InhibitedBy != "" {
		e.InhibitedBy = &a.InhibitedBy
	}
	e.LastBatch = e.FiringBatch
	e.label(a)
	r.open[key] = e
	r.episodes = append(r.episodes, e)
}

// batchOf is the newest executed batch that the alert knows of.
func (r *Recorder) batchOf(a *rules.Alert) int64 {
	if a.FiringBatch >= 0 {
		return a.FiringBatch
	}
	newest := int64(0)
	if id := a.Labels.Get("query_id"); id != "" {
		if h := r.newest[event.QueryID(id)]; h != nil {
			newest = max(newest, h.batch)
		}
		return newest
	}
	cluster := a.Labels.Get("spark_cluster")
	for _, h := range r.newest {
		if slices.Contains(a.Members, h.name) || len(a.Members) == 0 && (cluster == "" || h.cluster == cluster) {
			newest = max(newest, h.batch)
		}
	}
	return newest
}

func (e *Episode) label(a *rules.Alert) {
	e.Labels = mapOf(a.Labels)
	e.Alert, e.Symptom, e.Severity = e.Labels["alertname"], e.Labels["symptom"], e.Labels["severity"]
}

func (e *Episode) raised(a *rules.Alert) {
	e.label(a)
	e.ResolvedMs, e.Resolved, e.Reason = event.Absent, nil, ""
}

func (e *Episode) resolved(a *rules.Alert) {
	e.ResolvedMs, e.Resolved, e.Reason = a.ResolvedAtMs, stampOf(a.ResolvedAtMs), a.Reason
	e.LastBatch = max(e.LastBatch, a.LastBatch)
}

// Episodes returns all episodes by the time they fired. Those that fire still are
// brought up to now from the engine.
func (r *Recorder) Episodes(engine *rules.Engine) []*Episode {
	alerts := engine.Alerts(nil)
	for i := range alerts {
		e := r.open[keyOf(alerts[i].Labels)]
		if e != nil && e.ResolvedMs == event.Absent {
			e.LastBatch = max(e.LastBatch, alerts[i].LastBatch)
		}
	}
	slices.SortStableFunc(r.episodes, func(a, b *Episode) int {
		return cmp.Or(cmp.Compare(a.FiringMs, b.FiringMs), strings.Compare(a.key, b.key))
	})
	return r.episodes
}

func mapOf(l rules.Labels) map[string]string {
	out := make(map[string]string, len(l))
	for i := range l {
		out[l[i].Name] = l[i].Value
	}
	return out
}

// stampOf is a time as JSON shows it, nil where it has not come to that.
func stampOf(ms int64) *string {
	if ms == event.Absent {
		return nil
	}
	s := stamp(ms)
	return &s
}

// line is the episode as one line of JSON.
func (e *Episode) line() ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return []byte(b.String()), err
}
