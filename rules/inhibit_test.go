package rules

import (
	"fmt"
	"strings"
	"testing"
)

// twoRules has a cause that looks at input rows and a consequence that looks at
// updated ones.
func twoRules(t *testing.T, cause, consequence string) *stream {
	t.Helper()
	rules := fmt.Sprintf(`      - {alert: Cause, signal: rows, rising: {}, labels: {severity: %s, symptom: the-cause}}
      - {alert: Consequence, signal: op, rising: {}, labels: {severity: %s, symptom: what-follows}}
inhibit:
  - {causes: [the-cause], consequences: [what-follows]}
`, cause, consequence)
	return lifeStream(scriptedPack(t, rules))
}

// said plays pairs of letters, cause and consequence, and says what came of each.
func (s *stream) said(script string) string {
	var out []string
	for _, pair := range strings.Fields(script) {
		before := len(s.verdicts)
		s.play(figures{rows: letters[rune(pair[0])], updated: letters[rune(pair[1])]})
		for _, v := range s.verdicts[before:] {
			if v.Alert == nil || v.Alert.State != Firing && v.Alert.State != Resolved {
				continue
			}
			text := fmt.Sprintf("%s %s %s", v.Rule, v.Alert.State, v.Alert.Labels.Get("severity"))
			if v.Alert.InhibitedBy != "" {
				text += " inhibited by " + v.Alert.InhibitedBy
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

func TestACauseSpeaksForItsConsequences(t *testing.T) {
	for name, tc := range map[string]struct{ cause, consequence, script, want string }{
		"what follows a firing cause is inhibited": {
			"ticket", "ticket", "Fc FF",
			"Cause firing ticket; Consequence firing ticket inhibited by Cause",
		},
		"what fired before its cause stays": {
			"ticket", "ticket", "cF FF",
			"Consequence firing ticket; Cause firing ticket",
		},
		"a page is not silenced by a ticket: the cause becomes one": {
			"ticket", "page", "Fc FF cF",
			"Cause firing ticket; Cause resolved ticket; Cause firing page; Consequence firing page inhibited by Cause; " +
				"Cause resolved page; Consequence firing page",
		},
		"what is left when its cause is over speaks for itself": {
			"ticket", "ticket", "FF cF cc",
			"Cause firing ticket; Consequence firing ticket inhibited by Cause; Cause resolved ticket; " +
				"Consequence firing ticket; Consequence resolved ticket",
		},
		"information inhibits nothing": {
			"info", "ticket", "FF",
			"Cause firing info; Consequence firing ticket",
		},
		"information is not inhibited": {
			"ticket", "info", "FF",
			"Cause firing ticket; Consequence firing info",
		},
	} {
		if got := twoRules(t, tc.cause, tc.consequence).said(tc.script); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestCausesThatEndTogetherTakeNothingOverFromEachOther(t *testing.T) {
	s := lifeStream(scriptedPack(t, `      - {alert: Cause, signal: op, rising: {}, labels: {severity: ticket, symptom: the-cause}}
      - {alert: Consequence, signal: rows, rising: {}, labels: {severity: page, symptom: what-follows}}
inhibit:
  - {causes: [the-cause], consequences: [what-follows]}
`))
	var got []string
	for _, f := range []figures{
		{rows: letters['c'], updated: letters['F'], operators: 2},
		{rows: letters['F'], updated: letters['F'], operators: 2},
		{rows: letters['F'], updated: letters['c'], operators: 2},
	} {
		before := len(s.verdicts)
		s.play(f)
		for _, v := range s.verdicts[before:] {
			if v.Alert != nil && (v.Alert.State == Firing || v.Alert.State == Resolved) {
				got = append(got, fmt.Sprintf("%s%s %s %s", v.Rule, v.Alert.Labels.Get("operator_index"), v.Alert.State, v.Alert.Labels.Get("severity")))
			}
		}
	}
	want := "Cause0 firing ticket; Cause1 firing ticket; Cause0 resolved ticket; Cause0 firing page; Consequence firing page; " +
		"Cause0 resolved page; Cause1 resolved ticket; Consequence firing page"
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}

func TestAWatchIsFoundAndNeverSaid(t *testing.T) {
	s := lifeStream(scriptedPack(t, "      - {watch: Quiet, signal: rows, rising: {}}\n"))
	if got := s.said("Fc Fc cc"); got != "" || len(s.e.Alerts(nil)) != 0 {
		t.Errorf("said %q, standing %v", got, s.e.Alerts(nil))
	}
}

func TestAFleetCountsQueriesThatBeginTogether(t *testing.T) {
	p := scriptedPack(t, `      - {watch: Slower, signal: rows, rising: {}}
      - {alert: StoreSlow, fleet: {of: Slower, queries: 3, share: 50%, within: 30m}, for: 10m, labels: {severity: page, symptom: store}}
`)
	e := New(p, Options{})
	var streams []*stream
	for i := range 6 {
		s := newStream(e)
		s.everyMs, s.id, s.name = 5*minuteMs, fmt.Sprint("q", i), fmt.Sprint("query", i)
		streams = append(streams, s)
	}
	play := func(slow int) (out []string) {
		for i, s := range streams {
			f := figures{rows: letters['c'], updated: 1}
			if i < slow {
				f.rows = letters['F']
			}
			s.play(f)
		}
		for _, v := range e.Tick(streams[0].nowMs, nil) {
			if v.Alert != nil {
				out = append(out, fmt.Sprint(v.Rule, " ", v.Alert.State, " ", v.Alert.Value))
			}
		}
		return out
	}
	var got []string
	for _, slow := range []int{0, 2, 2, 3, 3, 3, 3, 0} {
		got = append(got, strings.Join(play(slow), ","))
	}
	if want := "|||StoreSlow pending 3||StoreSlow firing 3||StoreSlow resolved 3"; strings.Join(got, "|") != want {
		t.Errorf("got  %q\nwant %q", strings.Join(got, "|"), want)
	}
}

func TestFaultsOfInhibitionAndFleetsAreNamed(t *testing.T) {
	const rules = `signals: {rows: {of: query, value: input_rows}}
groups:
  - name: g
    rules:
      - {alert: A, signal: rows, rising: {}, labels: {symptom: slow-store}}
      - {alert: B, fleet: {of: C}, labels: {symptom: fleet}}
inhibit:
  - {causes: [slow-stor], consequences: [fleet]}
  - {consequences: [fleet]}
`
	want := []string{
		`r.yaml: rule "B": fleet: no rule of queries is called "C", did you mean "A"?`,
		`r.yaml:8:15: inhibit: no rule has the symptom "slow-stor", did you mean "slow-store"?`,
		`r.yaml:9:5: inhibit needs causes`,
	}
	err := Check("r.yaml", []byte(rules))
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("want %q in:\n%v", w, err)
		}
	}
}
