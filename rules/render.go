package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
)

// ownAnnotations are written by the engine on every alert, where there is
// something to say.
var ownAnnotations = map[string]bool{
	"evidence": true, "frozen": true, "resolved_because": true, "template_error": true,
}

// alert renders the series' alert. Failing templates are counted where it is for a
// verdict, and not each time somebody looks.
func (e *Engine) alert(q *queryState, ri int, s *series, counted bool) Alert {
	a := s.alert
	out := Alert{
		Labels: a.labels, State: a.state, Value: a.finding.Value,
		PendingAtMs: a.pendingAtMs, FiringAtMs: a.firingAtMs, ResolvedAtMs: event.Absent, AsOfMs: s.asOfMs,
		FirstBatch: a.firstBatch, FiringBatch: a.firingBatch, LastBatch: a.judgedLast, InhibitedBy: a.inhibitedBy, Members: a.members,
	}
	var failures []string
	out.Annotations, failures = e.annotations(q, ri, s)
	if len(failures) > 0 {
		e.rules[ri].lastError = failures[0]
	}
	if counted {
		e.rules[ri].metrics.templateErrors.Add(float64(len(failures)))
	}
	return out
}

// labels makes the label set of a new alert.
func (e *Engine) labels(q *queryState, ri int, s *series) Labels {
	r := e.pack.rules[ri]
	var l Labels
	for _, x := range q.extra {
		l = l.with(x.Name, x.Value)
	}
	d := e.data(q, ri, s)
	for i := range r.labels {
		text, err := execute(r.labels[i].tmpl, d)
		if err != nil {
			e.rules[ri].lastError = failure(r.labels[i].name, err)
			e.rules[ri].metrics.templateErrors.Inc()
			continue // without the label the alert still says which query it is
		}
		l = l.with(r.labels[i].name, text)
	}
	if s.alert != nil && s.alert.raised != "" {
		l = l.with("severity", s.alert.raised)
	}
	l = l.with("alertname", r.alert).with("query_id", string(q.ref.ID)).with("query_name", q.ref.Label())
	l = l.with("application", q.ref.Application).with("spark_cluster", q.cluster)
	if s.index >= 0 {
		l = l.with("operator", s.operator).with("operator_index", strconv.Itoa(s.index))
	}
	return l
}

// with sets a label and keeps the order. An empty value takes the label away.
func (l Labels) with(name, value string) Labels {
	i, found := slices.BinarySearchFunc(l, name, func(x Label, n string) int { return strings.Compare(x.Name, n) })
	switch {
	case found && value == "":
		return slices.Delete(l, i, i+1)
	case found:
		l[i].Value = value
	case value != "":
		return slices.Insert(l, i, Label{Name: name, Value: value})
	}
	return l
}

func failure(name string, err error) string {
	return fmt.Sprintf("%s: %s", name, cleanTemplateError(err))
}

// annotations renders the rule's annotations and adds the engine's own. A template
// that fails is replaced by plain text: an alert is never held up by its looks.
func (e *Engine) annotations(q *queryState, ri int, s *series) (out Labels, failures []string) {
	r := e.pack.rules[ri]
	d := e.data(q, ri, s)
	for i := range r.annotations {
		text, err := execute(r.annotations[i].tmpl, d)
		if err != nil {
			failures = append(failures, failure(r.annotations[i].name, err))
			text = plainText(d)
		}
		out = out.with(r.annotations[i].name, text)
	}
	if r.ofEvents() {
		out = out.with("evidence", eventText(d))
	} else {
		out = out.with("evidence", evidenceText(d)).with("frozen", q.frozen())
	}
	return out.with("template_error", strings.Join(failures, "; ")), failures
}

// plainText says the essentials without a template.
func plainText(d *Data) string {
	return fmt.Sprintf("%s on %s: %s is %s, %s at the beginning of the window (template error, see template_error)",
		d.Alert, d.Query.Name, d.Signal, quantity(d.Value, d.Unit), quantity(d.Start, d.Unit))
}

// frozen says that the alert stands still because nothing comes, empty where
// batches do.
func (q *queryState) frozen() string {
	why := ""
	switch q.state {
	case event.StateOverdue:
		why = "the query is overdue"
	case event.StateFailed:
		why = "the query has failed"
	case event.StateIdle:
		why = "the query is idle"
	case event.StateTerminated:
		why = "the run has ended"
	default:
		return ""
	}
	return fmt.Sprintf("%s: no batch since %d at %s; the alert stands as it was until there is progress",
		why, q.lastBatch, stamp(q.atMs))
}

func stamp(ms int64) string {
	if ms == event.Absent {
		return "an unknown time"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

// data is what the templates see.
func (e *Engine) data(q *queryState, ri int, s *series) *Data {
	r := e.pack.rules[ri]
	d := &Data{
		Alert: r.alert, Operator: s.operator, OperatorIndex: max(0, s.index), Signal: r.signal.name, Unit: r.signal.unit,
		Query:   QueryData{ID: string(q.ref.ID), Name: q.ref.Label(), Application: q.ref.Application, Cluster: q.cluster},
		Trigger: q.trigger.String(), Labels: map[string]string{}, Evidence: map[string]Change{}, Facts: q.facts.known(),
		FirstBatch: -1, FiringBatch: -1, LastBatch: q.lastBatch,
	}
	if s.alert == nil {
		return d
	}
	d.fromAlert(s.alert)
	if s.evidence.ring != nil {
		d.fromEvidence(changes(r.evidence, s.alert.before, s.evidence.after()))
	}
	return d
}

func (d *Data) fromAlert(a *liveAlert) {
	f := &a.finding
	d.Value, d.Start, d.End, d.Rise, d.Relative, d.SlopePerBatch = f.Value, f.Start, f.End, f.Rise, f.Relative, f.SlopePerBatch
	d.How, d.Points, d.SpanSeconds = f.How, f.Points, float64(f.SpanMs)/1000
	d.Why, d.Text, d.Count, d.Total, d.Members = f.Why, f.Text, f.Count, a.total, a.members
	d.Limit, d.Eta, d.EtaLow, d.EtaHigh = orNothing(f.Limit), orNothing(f.EtaMs/1000), orNothing(f.EtaLowMs/1000), orNothing(f.EtaHighMs/1000)
	d.Period = f.period()
	d.FirstBatch, d.FiringBatch, d.LastBatch = a.firstBatch, a.firingBatch, a.judgedLast
	for name := range reservedLabels {
		d.Labels[name] = "" // those that the query lacks read empty
	}
	for _, l := range a.labels {
		d.Labels[l.Name] = l.Value
	}
}

// orNothing is 0 for what is not there: a template's `if` takes NaN for something.
func orNothing(x float64) float64 {
	if !finite(x) {
		return 0
	}
	return x
}

func (d *Data) fromEvidence(all []Change) {
	for _, c := range all {
		d.Evidence[c.Name] = c
		if c.Share > 0 {
			d.Phases = append(d.Phases, c)
		}
	}
	slices.SortStableFunc(d.Phases, func(a, b Change) int {
		switch {
		case a.Share > b.Share:
			return -1
		case a.Share < b.Share:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	d.Cause = cause(d.Phases, d.Evidence)
}

const (
	// stateShare of addBatch's rise accounts for it at one task per core; where tasks
	// queue up for cores a store's time counts several times over, so a part that
	// grew by nearly the same factor accounts for it too.
	stateShare  = 0.4
	stateFactor = 0.8
)

// cause names what made a trigger slower.
func cause(phases []Change, evidence map[string]Change) string {
	if len(phases) == 0 {
		return ""
	}
	top := phases[0]
	if top.Name != "addBatch" {
		return top.Name
	}
	best, name := 0.0, "own code or load"
	for _, part := range []string{"commit", "updates", "removals", "load"} {
		c := evidence["state_"+part]
		rise := c.Rise()
		accounts := rise >= stateShare*top.Rise() || c.After > 0.1*top.After && c.Relative() >= stateFactor*top.Relative()
		if rise > best && accounts {
			best, name = rise, part
		}
	}
	return name
}

// evidenceText lists the numbers seen, in one line.
func evidenceText(d *Data) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s -> %s (%s) since batch %d", d.Signal, quantity(d.Start, d.Unit), quantity(d.Start+d.Rise, d.Unit),
		signed(d.Relative), d.FirstBatch)
	if d.Points > 0 {
		fmt.Fprintf(&b, ", judged by %d batches", d.Points)
	}
	if d.SpanSeconds > 0 {
		fmt.Fprintf(&b, " of %s", humanizeDuration(d.SpanSeconds))
	}
	for i, c := range d.Phases {
		if c.Share < 0.05 || i == 4 {
			break
		}
		fmt.Fprintf(&b, "; %s %s of the rise (%s -> %s)", c.Name, percent(math.Round(c.Share*100)/100),
			humanizeDuration(c.Before), humanizeDuration(c.After))
	}
	for _, name := range sortedEvidence(d) {
		c := d.Evidence[name]
		fmt.Fprintf(&b, "; %s %s -> %s", name, quantity(c.Before, c.Unit), quantity(c.After, c.Unit))
	}
	return b.String()
}

// eventText says what a finding about what happened rests on, in one line.
func eventText(d *Data) string {
	parts := []string{}
	if d.Text != "" {
		parts = append(parts, d.Text)
	}
	if d.Why != "" {
		parts = append(parts, d.Why)
	}
	text := strings.Join(parts, ": ")
	if d.Total > 0 {
		text = strings.TrimPrefix(fmt.Sprintf("%s; %d of %d queries: %s", text, len(d.Members), d.Total, someOf(d.Members)), "; ")
	}
	return text
}

// someOf lists the first few names.
func someOf(names []string) string {
	const few = 10
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// sortedEvidence lists what was watched and is no phase, where it was seen.
func sortedEvidence(d *Data) []string {
	var out []string
	for name, c := range d.Evidence {
		if !c.Phase && finite(c.Before) && finite(c.After) && c.Before+c.After != 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func signed(relative float64) string {
	if relative > 0 {
		return "+" + percent(math.Round(relative*100)/100)
	}
	return percent(math.Round(relative*100) / 100)
}
