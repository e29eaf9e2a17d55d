package rules

import (
	"fmt"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// failedSpec is the detector `failed`: a query that ended by an exception.
type failedSpec struct {
	After   strictyaml.Duration `yaml:"after"`   // so long without progress; default 0, at once
	Classes []string            `yaml:"classes"` // only these error classes
	Except  []string            `yaml:"except"`  // and not these
}

// failed finds a query that ended by an exception and has executed no batch since.
// A query that was cancelled, or that ended with its SparkContext, is found only
// where classes names "cancelled". What is found stays so until a batch is
// executed: neither silence nor another start is a recovery.
type failed struct {
	spec    failedSpec
	afterMs int64
}

func (s *failedSpec) valueUnit() string { return "seconds" }

func (s *failedSpec) compile(c *ruleCompiler, key string) detector {
	for _, l := range []struct {
		key     string
		classes []string
	}{{"classes", s.Classes}, {"except", s.Except}} {
		for i, class := range l.classes {
			if class == "" || strings.TrimSpace(class) != class {
				c.faultf([]any{key, l.key, i}, "%s: %q is no error class", l.key, class)
			}
		}
	}
	return &failed{spec: *s, afterMs: s.After.Std().Milliseconds()}
}

func (d *failed) name() string                      { return "failed" }
func (d *failed) inputs() []*expression             { return nil }
func (d *failed) span() Extent                      { return Extent{} }
func (d *failed) newWatcher() watcher               { return failedView{view(d.judge)} }
func (d *failed) newTracker(*trend.Scratch) tracker { return nil }
func (d *failed) lasts() bool                       { return true }

func (d *failed) describe() string {
	text := "failed"
	if d.afterMs > 0 {
		text += fmt.Sprintf(", and no batch within %s", shortDuration(d.spec.After.Std()))
	}
	if len(d.spec.Classes) > 0 {
		text += "; only " + strings.Join(d.spec.Classes, ", ")
	}
	if len(d.spec.Except) > 0 {
		text += "; not " + strings.Join(d.spec.Except, ", ")
	}
	return text
}

// wanted reports whether the rule is about such a failure.
func (d *failed) wanted(f *exception) bool {
	for _, class := range d.spec.Except {
		if f.is(class) {
			return false
		}
	}
	for _, class := range d.spec.Classes {
		if f.is(class) {
			return true
		}
	}
	return len(d.spec.Classes) == 0 && !f.stopped()
}

// failedView is a watcher that knows without a look that nothing failed.
type failedView struct{ view }

// goesOn is why nothing is found where nothing failed.
const goesOn = "the query makes progress, or was stopped"

// stays reports whether nothing failed, as before.
func (failedView) stays(q *queryState, before *Judgement) bool {
	return q.story.failure == nil && before.Said == SaidClear && before.Why == goesOn
}

func (d *failed) judge(q *queryState, nowMs int64) Judgement {
	f := q.story.failure
	switch {
	case f == nil:
		return noted(SaidClear, goesOn)
	case !d.wanted(f):
		return noted(SaidClear, "it ended in a way that is none of this rule's business")
	}
	j := noted(SaidClear, "it failed a moment ago and may be started again")
	j.Value, j.Limit, j.Text = float64(nowMs-f.atMs)/1000, float64(d.afterMs)/1000, f.class
	if nowMs-f.atMs < d.afterMs {
		return j
	}
	j.Said, j.Why, j.How, j.Since = SaidFound, f.text, "failure", q.nextBatch()
	return j
}
