package app

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// alertJSON is an alert in the form of Prometheus' API, with what a batch-wise
// judgement knows besides.
type alertJSON struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
	ActiveAt    *time.Time        `json:"activeAt,omitempty"`
	Value       string            `json:"value"`

	FiringAt    *time.Time `json:"firing_at,omitempty"`
	FirstBatch  *int64     `json:"first_batch,omitempty"`
	FiringBatch *int64     `json:"firing_batch,omitempty"`
	LastBatch   *int64     `json:"last_batch,omitempty"`
	InhibitedBy string     `json:"inhibited_by,omitempty"`
	Withheld    string     `json:"withheld,omitempty"` // why it is not delivered: inhibited, muted, replayed, old
}

func (a *App) serveAlerts(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r.URL.Query())
	out := []alertJSON{}
	a.judge.ask(func() { out = a.alertsJSON(&f) })
	writeJSON(w, http.StatusOK, reply{Status: "success", Data: map[string]any{"alerts": out}})
}

// alertsJSON runs on the judging goroutine.
func (a *App) alertsJSON(f *filter) []alertJSON {
	out := []alertJSON{}
	o, now := a.overrides.Load(), a.opts.Now()
	for _, al := range a.decorate(a.judge.engine.Alerts(nil)) {
		if f.wantsRule(al.Labels.Get("alertname")) && f.wantsQuery(queryOfAlert(&al)) {
			j := alertOf(&al)
			j.Withheld = a.delivery.seems(&al, o, now)
			out = append(out, j)
		}
	}
	return out
}

func alertOf(al *rules.Alert) alertJSON {
	return alertJSON{
		Labels: mapOf(al.Labels), Annotations: mapOf(al.Annotations), State: al.State.String(),
		ActiveAt: timeOf(al.PendingAtMs), Value: strconv.FormatFloat(al.Value, 'e', -1, 64),
		FiringAt: timeOf(al.FiringAtMs), FirstBatch: batchOf(al.FirstBatch), FiringBatch: batchOf(al.FiringBatch),
		LastBatch: batchOf(al.LastBatch), InhibitedBy: al.InhibitedBy,
	}
}

func batchOf(id int64) *int64 {
	if id < 0 {
		return nil
	}
	return &id
}

func mapOf(l rules.Labels) map[string]string {
	out := make(map[string]string, len(l))
	for _, x := range l {
		out[x.Name] = x.Value
	}
	return out
}

// filter is what a request asks for; empty fields ask for everything.
type filter struct {
	rules, groups, files []string
	query                string // id or name
	alerting             bool   // whether alerting rules are wanted: there are no others
	brief                bool   // without judgements
}

// filterOf reads the parameters that Prometheus' API has too, and two of our own:
// query, and judgements=false.
func filterOf(v url.Values) filter {
	t := v.Get("type")
	return filter{
		rules: slices.Concat(v["rule_name[]"], v["rule"]), groups: v["rule_group[]"], files: v["file[]"],
		query: v.Get("query"), alerting: t == "" || t == "alert", brief: v.Get("judgements") == "false",
	}
}

func wants(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }

func (f *filter) wantsRule(name string) bool { return f.alerting && wants(f.rules, name) }

func (f *filter) wantsQuery(q event.QueryRef) bool {
	return f.query == "" || f.query == string(q.ID) || f.query == q.Name
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
	Signal        string            `json:"signal,omitempty"`
	Expression    string            `json:"expression,omitempty"`
	Unit          string            `json:"unit,omitempty"`
	Detector      string            `json:"detector"`
	Duration      float64           `json:"duration"`
	KeepFiringFor float64           `json:"keepFiringFor"`
	For           string            `json:"for"`
	Labels        map[string]string `json:"labels"`
	Annotations   map[string]string `json:"annotations"`
	State         string            `json:"state"`
	Health        string            `json:"health"`
	LastError     string            `json:"lastError,omitempty"`
	LastEval      *time.Time        `json:"lastEvaluation,omitempty"`
	Reproduce     string            `json:"reproduce"` // command that judges recorded events by the same rules
	Alerts        []alertJSON       `json:"alerts"`
	Judgements    []judgementJSON   `json:"judgements"`
}

// judgementJSON is what a rule last said of one query, operator or group, with the
// numbers that it rests on, in the signal's unit. What a detector does not use, or
// has no value for, is left out.
type judgementJSON struct {
	QueryID       string   `json:"query_id,omitempty"`
	QueryName     string   `json:"query_name,omitempty"`
	Operator      string   `json:"operator,omitempty"`
	OperatorIndex *int     `json:"operator_index,omitempty"`
	Group         string   `json:"group,omitempty"`
	Batch         *int64   `json:"batch,omitempty"`
	State         string   `json:"state"`
	Said          string   `json:"said"`
	Why           string   `json:"why,omitempty"`
	How           string   `json:"how,omitempty"`
	Text          string   `json:"text,omitempty"`
	Points        int      `json:"points"`
	SpanSeconds   float64  `json:"span_seconds,omitempty"`
	Value         *float64 `json:"value,omitempty"`
	Start         *float64 `json:"start,omitempty"`
	End           *float64 `json:"end,omitempty"`
	Rise          *float64 `json:"rise,omitempty"`
	Relative      *float64 `json:"relative,omitempty"`
	SlopePerBatch *float64 `json:"slope_per_batch,omitempty"`
	Since         *int64   `json:"since_batch,omitempty"`
	Limit         *float64 `json:"limit,omitempty"`
	Eta           *float64 `json:"eta_seconds,omitempty"`
	EtaLow        *float64 `json:"eta_low_seconds,omitempty"`
	EtaHigh       *float64 `json:"eta_high_seconds,omitempty"`
	Period        *float64 `json:"period,omitempty"`
	PeriodIn      string   `json:"period_in,omitempty"` // batches or milliseconds
	Count         int      `json:"count,omitempty"`
}

func (a *App) serveRules(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r.URL.Query())
	groups := []groupJSON{}
	a.judge.ask(func() {
		byName := map[string][]alertJSON{}
		for _, al := range a.alertsJSON(&f) {
			byName[al.Labels["alertname"]] = append(byName[al.Labels["alertname"]], al)
		}
		for _, g := range a.judge.engine.Status(!f.brief).Groups {
			if out := a.groupOf(&g, &f, byName); len(out.Rules) > 0 {
				groups = append(groups, out)
			}
		}
	})
	writeJSON(w, http.StatusOK, reply{Status: "success", Data: map[string]any{"groups": groups}})
}

func (a *App) groupOf(g *rules.GroupStatus, f *filter, alerts map[string][]alertJSON) groupJSON {
	out := groupJSON{Name: g.Name, File: g.File, Interval: a.opts.JudgeEvery.Seconds(), Limit: g.Limit, Rules: []ruleJSON{}}
	if !wants(f.groups, g.Name) || !wants(f.files, g.File) {
		return out
	}
	for i := range g.Rules {
		if r := &g.Rules[i]; f.wantsRule(r.Alert) {
			j := ruleOf(r, f, alerts[r.Alert])
			j.Reproduce = a.reproduce()
			out.Rules = append(out.Rules, j)
		}
	}
	return out
}

// reproduce is the command that judges recorded events by the rules in force.
func (a *App) reproduce() string {
	words := []string{"stategauge", "backtest", "--all"}
	for _, f := range a.opts.RuleFiles {
		words = append(words, quoted("--rules="+f))
	}
	return strings.Join(append(words, "EVENTS"), " ")
}

// quoted writes a word as a shell reads it.
func quoted(s string) string {
	if strings.ContainsAny(s, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func ruleOf(r *rules.RuleStatus, f *filter, alerts []alertJSON) ruleJSON {
	out := ruleJSON{
		Name: r.Alert, Type: "alerting", Query: r.Condition, For: r.For.String(),
		Signal: r.Signal, Expression: r.Expression, Unit: r.Unit, Detector: r.Detector,
		Duration: float64(r.For.Ms) / 1000, KeepFiringFor: float64(r.KeepFiringFor.Ms) / 1000,
		Labels: mapOf(r.Labels), Annotations: mapOf(r.Annotations), State: stateOf(r),
		Health: r.Health, LastError: r.LastError, LastEval: timeOf(r.LastMs),
		Alerts: alerts, Judgements: []judgementJSON{},
	}
	if out.Alerts == nil {
		out.Alerts = []alertJSON{}
	}
	for i := range r.Judgements {
		if j := &r.Judgements[i]; f.wantsQuery(j.Query) {
			out.Judgements = append(out.Judgements, judgementOf(j))
		}
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
		QueryID: string(j.Query.ID), Group: j.Group, Batch: batchOf(j.Batch), State: j.State.String(),
		Said: j.Said.String(), Why: j.Why, How: j.How, Text: j.Text, Points: j.Points, Count: j.Count,
		SpanSeconds: float64(j.SpanMs) / 1000, Since: batchOf(j.Since), Value: finite(j.Value), Limit: told(j.Limit),
		Eta: told(j.EtaMs / 1000), EtaLow: told(j.EtaLowMs / 1000), EtaHigh: told(j.EtaHighMs / 1000),
	}
	if j.Query.ID != "" {
		out.QueryName = j.Query.Label()
	}
	if j.OperatorIndex >= 0 {
		index := j.OperatorIndex
		out.Operator, out.OperatorIndex = j.Operator, &index
	}
	if j.Start != 0 || j.End != 0 {
		out.Start, out.End, out.Rise = finite(j.Start), finite(j.End), finite(j.Rise)
		out.Relative, out.SlopePerBatch = finite(j.Relative), finite(j.SlopePerBatch)
	}
	if out.Period = told(j.Period); out.Period != nil {
		out.PeriodIn = "batches"
		if j.OnClock {
			out.PeriodIn = "milliseconds"
		}
	}
	return out
}

// told is finite, where zero says that there is none.
func told(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return finite(v)
}
