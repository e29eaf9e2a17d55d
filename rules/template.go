package rules

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// maxAnnotationBytes is where an annotation is cut.
const maxAnnotationBytes = 4096

// Data is what annotation templates see. Values are in the signal's unit; `show`
// prints them with it.
type Data struct {
	Alert         string
	Query         QueryData
	Operator      string // operator's name, empty for rules of a query
	OperatorIndex int
	Labels        map[string]string // the alert's labels
	Signal, Unit  string
	Trigger       string // kind of trigger
	// Value is the present level; Start, End and Rise are the fitted line over the
	// window; Relative is Rise as a share of Start, below zero in a fall.
	Value, Start, End, Rise, Relative, SlopePerBatch float64
	How                                              string // "trend", "level" or "held"
	Points                                           int    // batches judged by
	SpanSeconds                                      float64
	// FirstBatch is where it began, FiringBatch the newest one when the alert fired
	// (-1 before), LastBatch the newest one judged.
	FirstBatch, FiringBatch, LastBatch int64
	// Evidence holds what else was watched, by name; Phases the phases of the
	// trigger that grew, the one with the largest share of the rise first.
	Evidence map[string]Change
	Phases   []Change
	// Cause names where a slower trigger comes from: a phase by Spark's name, or
	// "commit", "updates", "removals" or "load" of the state stores inside addBatch,
	// or "own code or load" where those do not account for it. Empty where nothing
	// was watched.
	Cause string
}

// QueryData names the query.
type QueryData struct{ ID, Name, Application, Cluster string }

// annotation is a compiled annotation.
type annotation struct {
	name string
	text string
	tmpl *template.Template
}

// labelTemplate is a compiled label.
type labelTemplate struct {
	name string
	text string
	tmpl *template.Template
}

// labelFields are what a label may be made from: nothing that changes while an
// alert lives, or each batch would start another alert.
var labelFields = map[string]bool{
	"Alert": true, "Query": true, "Operator": true, "OperatorIndex": true, "Signal": true, "Unit": true,
}

// parseTemplate parses and refuses what could run away: templates that call
// others and loops over numbers.
func parseTemplate(text string) (*template.Template, error) {
	t, err := template.New("").Option("missingkey=error").Funcs(templateFuncs).Parse(text)
	if err != nil {
		return nil, errors.New(cleanTemplateError(err))
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("template: define and block are not allowed")
	}
	if t.Tree == nil {
		return t, nil
	}
	return t, walkTemplate(t.Root, func(n parse.Node) error {
		switch n := n.(type) {
		case *parse.TemplateNode:
			return errors.New("template: template calls are not allowed")
		case *parse.RangeNode:
			if rangesOverNumber(n) {
				return errors.New("template: a loop goes over Phases or Evidence only")
			}
		}
		return nil
	})
}

func rangesOverNumber(n *parse.RangeNode) bool {
	text := n.Pipe.String()
	return !strings.Contains(text, ".Phases") && !strings.Contains(text, ".Evidence") && !strings.Contains(text, ".Labels")
}

// cleanTemplateError drops the library's "template: :1:" and keeps the message.
func cleanTemplateError(err error) string {
	msg := firstLine(err.Error())
	if rest, ok := strings.CutPrefix(msg, "template: :"); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return "template: " + after
		}
	}
	return msg
}

// walkTemplate visits every node.
func walkTemplate(n parse.Node, visit func(parse.Node) error) error {
	if isNilNode(n) {
		return nil
	}
	if err := visit(n); err != nil {
		return err
	}
	for _, c := range templateChildren(n) {
		if err := walkTemplate(c, visit); err != nil {
			return err
		}
	}
	return nil
}

// isNilNode also sees the typed nil pointers that branches without an else hold.
func isNilNode(n parse.Node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *parse.ListNode:
		return n == nil
	case *parse.PipeNode:
		return n == nil
	}
	return false
}

func templateChildren(n parse.Node) []parse.Node {
	switch n := n.(type) {
	case *parse.ListNode:
		return n.Nodes
	case *parse.ActionNode:
		return []parse.Node{n.Pipe}
	case *parse.IfNode:
		return []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.WithNode:
		return []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.RangeNode:
		return []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.TemplateNode:
		return []parse.Node{n.Pipe}
	case *parse.ChainNode:
		return []parse.Node{n.Node}
	case *parse.PipeNode:
		var out []parse.Node
		for _, c := range n.Cmds {
			out = append(out, c)
		}
		return out
	case *parse.CommandNode:
		return n.Args
	}
	return nil
}

// changing returns the first field of a label's template that changes from batch
// to batch, empty if there is none.
func changing(t *template.Template) string {
	if t.Tree == nil {
		return ""
	}
	found := ""
	_ = walkTemplate(t.Root, func(n parse.Node) error {
		field := ""
		switch n := n.(type) {
		case *parse.FieldNode:
			field = n.Ident[0]
		case *parse.VariableNode:
			if len(n.Ident) > 1 && n.Ident[0] == "$" {
				field = n.Ident[1]
			}
		case *parse.DotNode:
			field = "."
		}
		if field != "" && !labelFields[field] && found == "" {
			found = field
		}
		return nil
	})
	return found
}

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

// dryRun executes every template on invented values, once with evidence and once
// without findings in it, so that a misspelt field is found before it matters.
func (c *ruleCompiler) dryRun(r *rule) {
	d := sampleData(r)
	for i := range r.labels {
		if _, err := execute(r.labels[i].tmpl, d); err != nil {
			c.faultf([]any{"labels", r.labels[i].name}, "rule %q: label %q: %s", r.alert, r.labels[i].name, explain(err, d))
		}
	}
	for i := range r.annotations {
		if _, err := execute(r.annotations[i].tmpl, d); err != nil {
			c.faultf([]any{"annotations", r.annotations[i].name}, "rule %q: annotation %q: %s", r.alert, r.annotations[i].name, explain(err, d))
		}
	}
}

func sampleData(r *rule) *Data {
	d := &Data{
		Alert: r.alert, Query: QueryData{ID: "id", Name: "name", Application: "application", Cluster: "cluster"},
		Labels: map[string]string{"alertname": r.alert}, Signal: r.signal.name, Unit: r.signal.unit, Trigger: "interval",
		Value: 2, Start: 1, End: 2, Rise: 1, Relative: 1, SlopePerBatch: 0.01, How: "trend", Points: 120, SpanSeconds: 7200,
		FirstBatch: 1, FiringBatch: 2, LastBatch: 3, Evidence: map[string]Change{}, Cause: "addBatch",
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
		ch := Change{Name: e.name, Before: 1, After: 2, Phase: e.phase, Share: 0.5}
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
	"Phases", "Cause", "ID", "Name", "Application", "Cluster", "Before", "After", "Share", "Phase",
}

var errTooLong = errors.New("the text is too long")

// limitedWriter keeps what fits and then stops the template.
type limitedWriter struct{ strings.Builder }

func (w *limitedWriter) Write(p []byte) (int, error) {
	room := maxAnnotationBytes - w.Len()
	if len(p) > room {
		w.Builder.Write(p[:max(0, room)])
		return 0, errTooLong
	}
	return w.Builder.Write(p)
}

// execute renders a template. Too long a text is cut and no error; a panic in it
// is one.
func execute(t *template.Template, d *Data) (text string, err error) {
	var w limitedWriter
	defer func() {
		if r := recover(); r != nil {
			text, err = "", fmt.Errorf("template: panic: %v", r)
		}
	}()
	err = t.Execute(&w, d)
	if errors.Is(err, errTooLong) {
		return cutText(w.String()) + "...", nil
	}
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(w.String(), "\uFFFD"), nil
}

// cutText leaves room for the dots and does not split a character.
func cutText(s string) string {
	s = s[:min(len(s), maxAnnotationBytes-3)]
	for len(s) > 0 && !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) {
		s = s[:len(s)-1]
	}
	return s
}

// finite tells numbers that can be shown.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
