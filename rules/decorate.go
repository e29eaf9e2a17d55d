package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

func (c *ruleCompiler) labels(spec *ruleSpec) []labelTemplate {
	var out []labelTemplate
	if len(spec.Labels) > maxLabels {
		c.faultf([]any{"labels"}, "%d labels, more than the %d allowed", len(spec.Labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Labels)) {
		t, err := c.label(name, spec.Labels[name])
		if err != nil {
			c.faultf([]any{"labels", name}, "rule %q: label %q: %w", spec.Alert, name, err)
			continue
		}
		out = append(out, labelTemplate{name: name, text: spec.Labels[name], tmpl: t})
	}
	return out
}

func (c *ruleCompiler) label(name, text string) (*template.Template, error) {
	switch {
	case reservedLabels[name]:
		return nil, errors.New("it is set from the query, a rule cannot set it")
	case !labelName.MatchString(name):
		return nil, errors.New("a name has letters, digits and underscores only")
	case len(text) > maxLabelBytes:
		return nil, fmt.Errorf("more than %d bytes", maxLabelBytes)
	}
	if name == "severity" && !strings.Contains(text, "{{") {
		if err := oneOf("severity", text, severities); err != nil {
			return nil, err
		}
	}
	t, err := parseTemplate(text)
	if err != nil {
		return nil, err
	}
	if f := changing(t); f != "" {
		return nil, fmt.Errorf(".%s changes while an alert lives and would make each batch another alert; put it into an annotation",
			strings.TrimPrefix(f, "."))
	}
	return t, nil
}

func (c *ruleCompiler) annotations(spec *ruleSpec) []annotation {
	var out []annotation
	if len(spec.Annotations) > maxLabels {
		c.faultf([]any{"annotations"}, "%d annotations, more than the %d allowed", len(spec.Annotations), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Annotations)) {
		text := spec.Annotations[name]
		t, err := parseTemplate(text)
		switch {
		case !labelName.MatchString(name):
			err = errors.New("a name has letters, digits and underscores only")
		case ownAnnotations[name]:
			err = errors.New("it is written by the engine, a rule cannot set it")
		}
		if err != nil {
			c.faultf([]any{"annotations", name}, "rule %q: annotation %q: %w", spec.Alert, name, err)
			continue
		}
		out = append(out, annotation{name: name, text: text, tmpl: t})
	}
	return out
}

// causes are the values of Data.Cause that templates branch on.
var causes = []string{
	"addBatch", "commit", "updates", "removals", "load", "own code or load", "latestOffset", "getOffset", "getBatch",
	"queryPlanning", "walCommit", "commitOffsets", "commitBatch", "unaccounted", "",
}

// dryRun executes every template on invented values, for every cause and with the
// evidence grown and flat, so that a misspelt field is found before it matters.
func (c *ruleCompiler) dryRun(r *rule) {
	for i := range r.labels {
		c.tryTemplate(r, "label", r.labels[i].name, r.labels[i].tmpl)
	}
	for i := range r.annotations {
		c.tryTemplate(r, "annotation", r.annotations[i].name, r.annotations[i].tmpl)
	}
}

// tryTemplate reports the first fault of a template.
func (c *ruleCompiler) tryTemplate(r *rule, kind, name string, t *template.Template) {
	for _, grown := range []float64{2, 1} {
		d := sampleData(r, grown)
		for _, d.Cause = range causes {
			if _, err := execute(t, d); err != nil {
				c.faultf([]any{kind + "s", name}, "rule %q: %s %q: %s", r.alert, kind, name, explain(err, d))
				return
			}
		}
	}
}

// sampleData is what templates are tried on: everything there, the evidence grown
// from 1 to after.
func sampleData(r *rule, after float64) *Data {
	d := &Data{
		Alert: r.alert, Query: QueryData{ID: "id", Name: "name", Application: "application", Cluster: "cluster"},
		Labels: map[string]string{"alertname": r.alert}, Signal: r.signal.name, Unit: r.signal.unit, Trigger: "interval",
		Value: 2, Start: 1, End: 2, Rise: 1, Relative: 1, SlopePerBatch: 0.01, How: "trend", Points: 120, SpanSeconds: 7200,
		FirstBatch: 1, FiringBatch: 2, LastBatch: 3, Evidence: map[string]Change{}, Cause: "addBatch",
		Why: "why", Text: "text", Limit: 4, Eta: 3600, EtaLow: 1800, EtaHigh: 7200, Period: "10 batches", Count: 3, Total: 5,
		Members: []string{"a", "b", "c"}, Facts: map[string]float64{},
	}
	for _, name := range factNames {
		d.Facts[name] = 1
	}
	if r.signal.of == OfOperator {
		d.Operator = "stateStoreSave"
	}
	for i := range r.labels {
		d.Labels[r.labels[i].name] = "x"
	}
	for name := range reservedLabels {
		d.Labels[name] = "x"
	}
	for _, e := range r.evidence {
		ch := Change{Name: e.name, Unit: e.unit, Before: 1, After: after, Phase: e.phase, Share: 0.5}
		d.Evidence[e.name] = ch
		if e.phase {
			d.Phases = append(d.Phases, ch)
		}
	}
	return d
}

// explain shortens the library's error and names the nearest word.
func explain(err error, d *Data) string {
	msg := cleanTemplateError(err)
	if i := strings.LastIndex(msg, ">: "); i >= 0 {
		msg = "template: " + msg[i+3:]
	}
	if _, rest, ok := strings.Cut(msg, "can't evaluate field "); ok {
		field, _, _ := strings.Cut(rest, " ")
		return fmt.Sprintf("template: unknown field %q%s", field, strictyaml.DidYouMean(field, dataFields))
	}
	if _, key, ok := strings.Cut(msg, `no entry for key "`); ok {
		key = strings.TrimSuffix(key, `"`)
		known := append(slices.Collect(maps.Keys(d.Evidence)), slices.Collect(maps.Keys(d.Labels))...)
		slices.Sort(known)
		return fmt.Sprintf("template: %q is neither evidence nor a label of the rule%s", key, strictyaml.DidYouMean(key, known))
	}
	return msg
}

var dataFields = []string{
	"Alert", "Query", "Operator", "OperatorIndex", "Labels", "Signal", "Unit", "Trigger", "Value", "Start", "End", "Rise",
	"Relative", "SlopePerBatch", "How", "Points", "SpanSeconds", "FirstBatch", "FiringBatch", "LastBatch", "Evidence",
	"Phases", "Cause", "Why", "Text", "Limit", "Eta", "EtaLow", "EtaHigh", "Period", "Count", "Total", "Members", "Facts", "ID", "Name", "Application", "Cluster", "Before", "After", "Share", "Phase",
}
