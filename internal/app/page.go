package app

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

//go:embed web/status.html
var statusHTML string

var statusPage = template.Must(template.New("status").Parse(statusHTML))

// maxListed bounds what the page lists of queries, and of alerts.
const maxListed = 200

// pageData is what the status page shows.
type pageData struct {
	AsOf        time.Time
	Version     string
	Query       string // the only query that is asked for
	Refresh     int    // seconds
	Firing      int
	Alerts      []pageAlert
	AlertsLeft  int
	Queries     []pageQuery
	QueriesLeft int
}

type pageAlert struct {
	Name, State, Severity, Withheld, InhibitedBy string
	Summary, Cause, Fix, Runbook                 string
	Since, FirstBatch                            string
	query                                        string
}

type pageQuery struct {
	ID, Label, Application, State, Error string
	Heard, Newest, Trigger, Alerts       string
	Batches                              int64
	Stale, Bad                           bool
	Firing                               int
}

// serveHome shows alerts and queries to a person.
func (a *App) serveHome(w http.ResponseWriter, r *http.Request) {
	d := a.pageData(r.URL.Query().Get("query"))
	var b bytes.Buffer
	if err := statusPage.Execute(&b, d); err != nil {
		a.log.Error("the status page cannot be shown", "err", err)
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Cache-Control", "no-store")
	// The client went away: there is nobody left to tell.
	_, _ = w.Write(b.Bytes())
}

func (a *App) pageData(query string) *pageData {
	now := a.opts.Now()
	d := &pageData{AsOf: now.UTC(), Version: version.Info(), Query: query, Refresh: 5}
	f := filter{alerting: true, query: query}
	var alerts []alertJSON
	a.judge.ask(func() { alerts = a.alertsJSON(&f) })
	byQuery := map[string][]pageAlert{}
	for i := range alerts {
		al := pageAlertOf(&alerts[i])
		if al.State == rules.Firing.String() && al.Withheld == "" {
			d.Firing++
		}
		d.Alerts = append(d.Alerts, al)
		byQuery[al.query] = append(byQuery[al.query], al)
	}
	slices.SortFunc(d.Alerts, byUrgency)
	var all []track.QueryStatus
	a.ask(func(s *shard) { all = s.tracker.Queries(all) })
	for i := range all {
		if q := &all[i]; f.wantsQuery(q.Query) {
			d.Queries = append(d.Queries, pageQueryOf(q, byQuery[string(q.Query.ID)], now))
		}
	}
	slices.SortFunc(d.Queries, byTrouble)
	d.Alerts, d.AlertsLeft = firstOf(d.Alerts)
	d.Queries, d.QueriesLeft = firstOf(d.Queries)
	return d
}

func firstOf[T any](all []T) (first []T, left int) {
	n := min(len(all), maxListed)
	return all[:n], len(all) - n
}

func pageAlertOf(j *alertJSON) pageAlert {
	out := pageAlert{
		Name: j.Labels["alertname"], State: j.State, Severity: j.Labels["severity"], Withheld: j.Withheld, InhibitedBy: j.InhibitedBy,
		Summary: j.Annotations["summary"], Cause: j.Annotations["cause"], Fix: j.Annotations["fix"], Runbook: j.Annotations["runbook_url"],
		query: j.Labels["query_id"],
	}
	if j.ActiveAt != nil {
		out.Since = j.ActiveAt.Format("2006-01-02 15:04 MST")
	}
	if j.FirstBatch != nil {
		out.FirstBatch = strconv.FormatInt(*j.FirstBatch, 10)
	}
	return out
}

// byUrgency puts what rings first, then the graver.
func byUrgency(a, b pageAlert) int {
	rank := func(x pageAlert) int {
		r := 4 * slices.Index([]string{"page", "ticket", "info"}, x.Severity)
		if x.State != rules.Firing.String() {
			r += 100
		}
		if x.Withheld != "" {
			r += 50
		}
		return r
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a.Name+a.query, b.Name+b.query)
}

func pageQueryOf(q *track.QueryStatus, alerts []pageAlert, now time.Time) pageQuery {
	out := pageQuery{
		ID: string(q.Query.ID), Label: q.Query.Label(), Application: q.Query.Application, State: q.State.String(),
		Batches: q.Batches, Stale: isStale(q, now), Trigger: q.Trigger.String(), Heard: "-", Newest: "-",
		Bad: q.State == event.StateFailed || q.State == event.StateOverdue,
	}
	if q.LastBatch != event.Absent {
		out.Newest = strconv.FormatInt(q.LastBatch, 10)
	}
	if q.LastSeenMs != event.Absent {
		out.Heard = now.Sub(time.UnixMilli(q.LastSeenMs)).Round(time.Second).String() + " ago"
	}
	if q.IntervalMs > 0 && q.IntervalFrom != event.IntervalNone {
		out.Trigger += " " + (time.Duration(q.IntervalMs) * time.Millisecond).String()
	}
	if q.Failure != nil {
		out.Error = q.Failure.Class
	}
	for i := range alerts {
		if alerts[i].State == rules.Firing.String() {
			out.Firing++
		}
	}
	if n := len(alerts); n > 0 {
		out.Alerts = fmt.Sprintf("%d firing, %d pending", out.Firing, n-out.Firing)
	}
	return out
}

// byTrouble puts queries first that have something wrong with them.
func byTrouble(a, b pageQuery) int {
	rank := func(q pageQuery) int {
		switch {
		case q.Firing > 0:
			return 0
		case q.Bad:
			return 1
		}
		return 2
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a.Label+a.ID, b.Label+b.ID)
}
