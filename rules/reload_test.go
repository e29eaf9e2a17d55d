package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
)

// reloaded plays findings to one pack, reloads another, and returns what was said.
func reloaded(t *testing.T, s *stream, p *Pack) []string {
	t.Helper()
	return lines(s.e.Reload(p, s.nowMs, nil))
}

const aRule = "      - {alert: A, signal: rows, rising: {}, for: 2 batches%s}\n"

func TestUnchangedRulesKeepWindowsPendingAndFiring(t *testing.T) {
	rules := fmt.Sprintf(aRule, "") + "      - {alert: B, signal: rows, rising: {}, for: 3 batches}\n"
	s := lifeStream(scriptedPack(t, rules))
	playLetters(s, "cFF")
	points := taken(s.e)
	if said := reloaded(t, s, scriptedPack(t, rules)); len(said) > 0 {
		t.Errorf("reloading the same said %v", said)
	}
	if got := taken(s.e); got != points {
		t.Errorf("windows hold %d values, want %d", got, points)
	}
	if got := standing(s.e); strings.Join(got, ";") != "A firing;B pending" {
		t.Errorf("standing: %v", got)
	}
	// The pending one goes on where it was: its third batch fires it.
	if got := changed(playLetters(s, "F"), Firing); len(got) != 1 || got[0].Rule != "B" {
		t.Errorf("after the reload: %v", lines(got))
	}
}

func TestFiftyReloadsChangeNothing(t *testing.T) {
	s := lifeStream(scriptedPack(t, fmt.Sprintf(aRule, "")))
	playLetters(s, "FF")
	for range 50 {
		if said := reloaded(t, s, scriptedPack(t, fmt.Sprintf(aRule, ""))); len(said) > 0 {
			t.Fatalf("got %v", said)
		}
	}
	if s.e.alerts != 1 || s.e.rules[0].alerts != 1 {
		t.Errorf("alerts are counted as %d and %d", s.e.alerts, s.e.rules[0].alerts)
	}
}

func TestOrderAndOtherRulesDoNotMatter(t *testing.T) {
	a := fmt.Sprintf(aRule, "")
	b := "      - {alert: B, signal: op, rising: {}}\n"
	s := lifeStream(scriptedPack(t, a+b))
	playLetters(s, "FF")
	if said := reloaded(t, s, scriptedPack(t, "      - {alert: New, signal: rows, rising: {}}\n"+b+a)); len(said) > 0 {
		t.Errorf("got %v", said)
	}
	if got := standing(s.e); strings.Join(got, ";") != "A firing;B firing" {
		t.Errorf("standing: %v", got)
	}
	vs := playLetters(s, "F")
	if got := changed(vs, Firing); len(got) != 1 || got[0].Rule != "New" {
		t.Errorf("after the reload: %v", lines(vs))
	}
}

func TestAlertsOfRemovedRulesResolve(t *testing.T) {
	s := lifeStream(scriptedPack(t, fmt.Sprintf(aRule, "")+"      - {alert: B, signal: rows, rising: {}, for: 9 batches}\n"))
	playLetters(s, "FF")
	vs := s.e.Reload(scriptedPack(t, oneRule[:0]+"      - {alert: C, signal: rows, rising: {}}\n"), s.nowMs, nil)
	want := []string{"A: firing -> resolved (the rule was removed)", "B: pending -> inactive (the rule was removed)"}
	if got := lines(vs); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %v", got)
	}
	if got := vs[0].Alert.ResolvedAtMs; got != s.nowMs {
		t.Errorf("resolved at %d, want the time of the reload", got)
	}
	if len(standing(s.e)) != 0 || s.e.alerts != 0 {
		t.Errorf("standing: %v, counted %d", standing(s.e), s.e.alerts)
	}
}

func TestWithoutRulesNothingIsLeft(t *testing.T) {
	s := lifeStream(scriptedPack(t, fmt.Sprintf(aRule, "")))
	playLetters(s, "FF")
	if said := reloaded(t, s, nil); len(said) != 1 {
		t.Errorf("got %v", said)
	}
	s.play(figures{rows: 2})
	if n := len(s.e.Status(true).Groups); n != 0 {
		t.Errorf("%d groups are left", n)
	}
}

func TestChangedLabelsResolveTheOldSetAndStartTheNew(t *testing.T) {
	s := lifeStream(scriptedPack(t, fmt.Sprintf(aRule, ", labels: {severity: ticket, team: one}")))
	playLetters(s, "FF")
	vs := s.e.Reload(scriptedPack(t, fmt.Sprintf(aRule, ", labels: {severity: page}")), s.nowMs, nil)
	if len(vs) != 2 {
		t.Fatalf("got %v, want the old set resolved and the new one started", lines(vs))
	}
	was, is := vs[0].Alert, vs[1].Alert
	if was.State != Resolved || was.Labels.Get("team") != "one" || was.Labels.Get("severity") != "ticket" {
		t.Errorf("the old set is %s: %s", was.State, labelText(was.Labels))
	}
	if is.State != Firing || is.Labels.Get("team") != "" || is.Labels.Get("severity") != "page" || vs[1].Was != Inactive {
		t.Errorf("the new set is %s: %s", is.State, labelText(is.Labels))
	}
	if is.FiringAtMs != was.FiringAtMs || is.ResolvedAtMs != event.Absent {
		t.Error("the new set forgot when it began")
	}
}

func TestChangedLabelsOfAPendingAlertSayNothingOfTheOld(t *testing.T) {
	s := lifeStream(scriptedPack(t, fmt.Sprintf(aRule, ", labels: {severity: ticket}")))
	playLetters(s, "F")
	vs := s.e.Reload(scriptedPack(t, fmt.Sprintf(aRule, ", labels: {severity: page}")), s.nowMs, nil)
	if len(vs) != 1 || vs[0].Alert.State != Pending || vs[0].Alert.Labels.Get("severity") != "page" {
		t.Errorf("got %v", lines(vs))
	}
}

func TestWhatAChangeOfARuleCosts(t *testing.T) {
	for _, c := range []struct{ name, change, want string }{
		{"another hold", ", keep_firing_for: 9 batches", "firing"},
		{"other annotations", ", annotations: {summary: x}", "firing"},
		{"another limit", ", limit: 7", "firing"},
		{"another guard", ", when: input_rows > 0", ""},
		{"other evidence", ", evidence: {x: input_rows}", ""},
		{"runs that join", ", across_runs: true", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lifeStream(scriptedPack(t, fmt.Sprintf(aRule, "")))
			playLetters(s, "FF")
			said := reloaded(t, s, scriptedPack(t, fmt.Sprintf(aRule, c.change)))
			switch {
			case c.want == "firing" && (len(said) > 0 || len(standing(s.e)) != 1):
				t.Errorf("got %v, standing %v", said, standing(s.e))
			case c.want == "" && strings.Join(said, "") != "A: firing -> resolved (the rule was changed)":
				t.Errorf("got %v", said)
			}
		})
	}
}

func TestWindowsDependOnEverythingTheySee(t *testing.T) {
	key := func(rule string) string {
		head := "signals:\n  base: {of: query, value: input_rows%s}\n  x: {of: query, value: base * 2}\ngroups:\n  - name: g\n    rules:\n      - "
		signal, rule, _ := strings.Cut(rule, "|")
		p, err := Load(Source{Name: "r.yaml", Data: []byte(fmt.Sprintf(head, signal) + rule)})
		if err != nil {
			t.Fatal(err)
		}
		return p.rules[0].windowKey
	}
	base := key("|{alert: A, signal: x, rising: {}}")
	for _, same := range []string{
		"|{alert: B, signal: x, rising: {}}", "|{alert: A, signal: x, rising: {by: 25%, min_points: 60}}",
		"|{alert: A, signal: x, rising: {}, for: 5m, labels: {a: b}}",
	} {
		if key(same) != base {
			t.Errorf("%s learns something else", same)
		}
	}
	for _, other := range []string{
		" + 1|{alert: A, signal: x, rising: {}}", ", when: input_rows > 1|{alert: A, signal: x, rising: {}}",
		"|{alert: A, signal: base, rising: {}}", "|{alert: A, signal: x, falling: {}}", "|{alert: A, signal: x, rising: {by: 26%}}",
		"|{alert: A, signal: x, rising: {min_points: 61}}", "|{alert: A, signal: x, rising: {over: 121 batches}}",
		"|{alert: A, signal: x, rising: {adjusted_for: base}}", "|{alert: A, signal: x, rising: {at_least: 3}}",
		"|{alert: A, signal: x, rising: {confidence: 99%}}", "|{alert: A, signal: x, rising: {agree_over: 5h and 500 batches}}",
		"|{alert: A, signal: x, rising: {level: {recent: 5 batches, before: 9 batches, by: 5%}}}", "|{alert: A, signal: x, rising: {}, when: base > 1}",
	} {
		if key(other) == base {
			t.Errorf("%s learns the same", other)
		}
	}
}

func TestSeriesOfRemovedRulesGo(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	e := New(scriptedPack(t, oneRule+opRule), Options{Metrics: NewMetrics(reg)})
	e.Reload(scriptedPack(t, opRule), startMs, nil)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() != "Op" {
					t.Errorf("%s still has the rule %s", f.GetName(), l.GetValue())
				}
			}
		}
	}
}
