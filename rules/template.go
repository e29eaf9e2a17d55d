package rules

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"
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
	How                                              string // "trend", "level" or "held"; other detectors have words of their own
	Why, Text                                        string // what the verdict rests on; a word of an event, such as an error class
	// Limit is what the value is held against, 0 without one; Eta and its likely
	// range are the seconds until it is met, 0 where it will not be.
	Limit, Eta, EtaLow, EtaHigh float64
	Period                      string // of what repeats: "10 batches", "5m"; empty without one
	// Count of what was counted, and of a fleet the Members that it rests on out of
	// Total.
	Count, Total int
	Members      []string
	// Facts are what is known of the query, by name; those that nobody told are not there.
	Facts       map[string]float64
	Points      int // batches judged by
	SpanSeconds float64
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
	for _, field := range []string{".Phases", ".Evidence", ".Labels", ".Members"} {
		if strings.Contains(text, field) {
			return false
		}
	}
	return true
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
