package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules"
)

// others stands, below never, for every alert that is not expected.
const others = "others"

// expected is an alert that must fire. Fields that are left out say nothing, but
// an alert that was inhibited is only meant where inhibited_by is given.
type expected struct {
	Alert    string `yaml:"alert"`
	Symptom  string `yaml:"symptom"`
	Severity string `yaml:"severity"`
	Query    string `yaml:"query"` // its name
	Operator string `yaml:"operator"`
	// FromBatch and ByBatch are the first and last batch at which it may fire, From and By
	// the same as time since the first event.
	FromBatch *int64               `yaml:"from_batch"`
	ByBatch   *int64               `yaml:"by_batch"`
	From      *strictyaml.Duration `yaml:"from"`
	By        *strictyaml.Duration `yaml:"by"`
	// Resolved says whether it must be over at the end; ResolvedBy when at the latest.
	Resolved    *bool                `yaml:"resolved"`
	ResolvedBy  *strictyaml.Duration `yaml:"resolved_by"`
	InhibitedBy string               `yaml:"inhibited_by"`
	Labels      map[string]string    `yaml:"labels"`
	Annotations map[string]string    `yaml:"annotations"`
	// Says holds parts of annotations that must be in them.
	Says map[string]string `yaml:"says"`
}

// check finds words that no rule can make come true.
func (t *ruleCase) check(pos *strictyaml.Positions, path string, words []string) (faults strictyaml.Faults) {
	known := func(at, word string) {
		if word != "" && !slices.Contains(words, word) {
			faults = append(faults, pos.Faultf(at, "no rule fires %q%s", word, strictyaml.DidYouMean(word, words)))
		}
	}
	for i := range t.Expect {
		e, at := &t.Expect[i], fmt.Sprintf("%s.expect[%d]", path, i)
		if e.Alert == "" && e.Symptom == "" {
			faults = append(faults, pos.Faultf(at, "an expected alert needs alert or symptom"))
		}
		known(at+".alert", e.Alert)
		known(at+".symptom", e.Symptom)
	}
	for i, word := range t.Never {
		known(fmt.Sprintf("%s.never[%d]", path, i), word)
	}
	if len(t.Expect) == 0 && len(t.Never) == 0 {
		faults = append(faults, pos.Faultf(path, "test %q expects nothing: it needs expect or never", t.Name))
	}
	return faults
}

// run plays the test and compares.
func (t *ruleCase) run(ctx context.Context, pack *rules.Pack, pos *strictyaml.Positions, i int) (CaseResult, error) {
	path := fmt.Sprintf("tests[%d]", i)
	out := CaseResult{Name: t.Name, Line: pos.Of(path).Line}
	rec := NewRecorder()
	first := int64(event.Absent)
	p := NewPlayer(PlayerOptions{Rules: pack, Verdict: rec.Verdict})
	p.o.Update = func(u *event.Update) {
		if first == event.Absent {
			first = p.NowMs()
		}
		rec.Update(u)
	}
	if err := t.play(ctx, p); err != nil {
		return out, err
	}
	m := matcher{episodes: rec.Episodes(p.Engine()), firstMs: first}
	m.used = make([]bool, len(m.episodes))
	for k := range t.Expect {
		if diff := m.find(&t.Expect[k]); diff != "" {
			out.Failures = append(out.Failures, fmt.Sprintf("line %d: %s", pos.Of(fmt.Sprintf("%s.expect[%d]", path, k)).Line, diff))
		}
	}
	for _, word := range t.Never {
		out.Failures = append(out.Failures, m.never(word)...)
	}
	return out, nil
}

// matcher looks for expected alerts among those that fired.
type matcher struct {
	episodes []*Episode
	used     []bool
	firstMs  int64
}

// find takes an episode for x; otherwise it says how the nearest one differs.
func (m *matcher) find(x *expected) string {
	var nearest []string
	for i, e := range m.episodes {
		if m.used[i] {
			continue
		}
		diff := m.compare(x, e)
		if len(diff) == 0 {
			m.used[i] = true
			return ""
		}
		if x.names(e) && (nearest == nil || len(diff) < len(nearest)) {
			nearest = diff
		}
	}
	name := cmp.Or(x.Alert, x.Symptom)
	if nearest == nil {
		return fmt.Sprintf("%s did not fire; what did: %s", name, m.fired())
	}
	return fmt.Sprintf("%s fired, but not as expected:\n%s", name, strings.Join(nearest, "\n"))
}

// names reports whether e is the alert that x asks for, whatever else is wrong.
func (x *expected) names(e *Episode) bool {
	return (x.Alert == "" || x.Alert == e.Alert) && (x.Symptom == "" || x.Symptom == e.Symptom)
}

// compare lists the lines in which an episode is not what x expects, as a diff.
func (m *matcher) compare(x *expected, e *Episode) (diff []string) {
	differ := func(field string, want, got any) {
		diff = append(diff, fmt.Sprintf("    - %s: %v\n    + %s: %v", field, want, field, got))
	}
	same := func(field, want, got string) {
		if want != "" && want != got {
			differ(field, want, got)
		}
	}
	same("alert", x.Alert, e.Alert)
	same("symptom", x.Symptom, e.Symptom)
	same("severity", x.Severity, e.Severity)
	same("query", x.Query, e.Query())
	same("operator", x.Operator, e.Labels["operator"])
	inhibited := ""
	if e.InhibitedBy != nil {
		inhibited = *e.InhibitedBy
	}
	if inhibited != x.InhibitedBy {
		differ("inhibited_by", cmp.Or(x.InhibitedBy, "nothing"), cmp.Or(inhibited, "nothing"))
	}
	m.times(x, e, differ)
	for _, key := range slices.Sorted(maps.Keys(x.Labels)) {
		same("labels."+key, x.Labels[key], e.Labels[key])
	}
	for _, key := range slices.Sorted(maps.Keys(x.Annotations)) {
		same("annotations."+key, oneLine(x.Annotations[key]), oneLine(e.Annotations[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(x.Says)) {
		if got := oneLine(e.Annotations[key]); !strings.Contains(got, oneLine(x.Says[key])) {
			differ("annotations."+key, "... "+x.Says[key]+" ...", got)
		}
	}
	return diff
}

// times compares when it fired and resolved.
func (m *matcher) times(x *expected, e *Episode, differ func(string, any, any)) {
	since := func(ms int64) time.Duration { return time.Duration(ms-m.firstMs) * time.Millisecond }
	if x.FromBatch != nil && e.FiringBatch < *x.FromBatch {
		differ("firing batch", fmt.Sprintf("%d or later", *x.FromBatch), e.FiringBatch)
	}
	if x.ByBatch != nil && e.FiringBatch > *x.ByBatch {
		differ("firing batch", fmt.Sprintf("%d or earlier", *x.ByBatch), e.FiringBatch)
	}
	if x.From != nil && since(e.FiringMs) < x.From.Std() {
		differ("firing after", fmt.Sprintf("%s or more", x.From.Std()), since(e.FiringMs))
	}
	if x.By != nil && since(e.FiringMs) > x.By.Std() {
		differ("firing after", fmt.Sprintf("%s or less", x.By.Std()), since(e.FiringMs))
	}
	over := e.ResolvedMs != event.Absent
	if x.Resolved != nil && *x.Resolved != over {
		differ("resolved", *x.Resolved, over)
	}
	if x.ResolvedBy == nil {
		return
	}
	if !over {
		differ("resolved after", fmt.Sprintf("%s or less", x.ResolvedBy.Std()), "never")
	} else if since(e.ResolvedMs) > x.ResolvedBy.Std() {
		differ("resolved after", fmt.Sprintf("%s or less", x.ResolvedBy.Std()), since(e.ResolvedMs))
	}
}

// never lists the alerts that must not have fired.
func (m *matcher) never(word string) (out []string) {
	for i, e := range m.episodes {
		if e.InhibitedBy != nil || m.used[i] {
			continue
		}
		if word == others || word == e.Symptom || word == e.Alert || word == e.Severity {
			out = append(out, fmt.Sprintf("never %s: %s", word, e.said()))
		}
	}
	return out
}

// said sums an episode up in one line.
func (e *Episode) said() string {
	return fmt.Sprintf("%s fired at batch %d (%s), %s %s", e.title(), e.FiringBatch, moment(e.FiringMs), cmp.Or(e.Severity, "no severity"), e.Symptom)
}

func (m *matcher) fired() string {
	var out []string
	for _, e := range m.episodes {
		out = append(out, "\n    + "+e.said())
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "")
}
