package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// raised is an alert that the rules raised during the replay.
type raised struct {
	labels, annotations rules.Labels
	query               event.QueryRef
	firstBatch          int64
	firedMs             int64
	times               int    // how often it fired
	resolved            string // why it ended; empty while it fires
}

// note takes a verdict. Alerts that never fired are nobody's business.
func (r *runner) note(v *rules.Verdict, _ int64) {
	a := v.Alert
	if a == nil || a.State != rules.Firing && a.State != rules.Resolved {
		return
	}
	key := fmt.Sprint(a.Labels)
	seen := r.alerts[key]
	if seen == nil {
		if a.State != rules.Firing {
			return
		}
		seen = &raised{labels: a.Labels, query: v.Query}
		r.alerts[key] = seen
		r.alertSeq = append(r.alertSeq, seen)
	}
	if a.State == rules.Resolved {
		seen.resolved = a.Reason
		if seen.resolved == "" {
			seen.resolved = "it was over"
		}
		return
	}
	if v.Was != rules.Firing {
		seen.times++
		seen.firstBatch, seen.firedMs = a.FirstBatch, a.FiringAtMs
	}
	seen.annotations, seen.resolved = a.Annotations, ""
}

// raisedFindings turns the rules' alerts into findings.
func (r *runner) raisedFindings() (out []Finding) {
	for _, a := range r.alertSeq {
		f := Finding{
			Symptom: a.labels.Get("symptom"), Query: a.query.Label(), QueryID: string(a.query.ID),
			Operator: a.labels.Get("operator"), Severity: a.labels.Get("severity"),
			Summary: oneLine(a.annotations.Get("summary")), Fix: oneLine(a.annotations.Get("fix")),
		}
		if f.Symptom == "" {
			f.Symptom = a.labels.Get("alertname")
		}
		if f.Severity == "" {
			f.Severity = info
		}
		f.Evidence = a.evidence()
		out = append(out, f)
	}
	return out
}

func (a *raised) evidence() []string {
	out := []string{}
	if cause := oneLine(a.annotations.Get("cause")); cause != "" {
		out = append(out, "cause: "+cause)
	}
	fired := "fired " + time.UnixMilli(a.firedMs).UTC().Format(time.RFC3339)
	if a.firstBatch >= 0 {
		fired += ", began at batch " + whole(float64(a.firstBatch))
	}
	if a.times > 1 {
		fired += fmt.Sprintf(", %d times", a.times)
	}
	if a.resolved != "" {
		fired += "; resolved: " + a.resolved
	}
	return append(out, fired)
}

// oneLine joins the lines of an annotation.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
