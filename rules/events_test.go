package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// eventPack loads rules of events.
func eventPack(t testing.TB, rules string) *Pack {
	t.Helper()
	p, err := Load(Source{Name: "r.yaml", Data: []byte("groups:\n  - name: g\n    rules:\n" + rules)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEvents plays testdata/events: the command "rules" begins a world with rules,
// "play" goes on in it, line by line. Its output is each alert that fires or
// resolves, and when. "judgements" says what rules say of queries now, "evidence"
// what the alerts carry.
func TestEvents(t *testing.T) { playEvents(t, func(*world) {}) }

// playEvents plays testdata/events; prepare may hook into each new world.
func playEvents(t *testing.T, prepare func(w *world)) {
	datadriven.Walk(t, "testdata/events", func(t *testing.T, path string) {
		var w *world
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "rules":
				w = newWorld(eventPack(t, asRules(d.Input)))
				prepare(w)
				return "ok\n"
			case "play":
				return playLines(t, w, d.Input)
			case "judgements":
				return judgementsOf(w.e)
			case "evidence":
				return evidenceOf(w.e)
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

func TestATickLeavesEachWatcherWithWhatItWouldSayNow(t *testing.T) {
	compared := 0
	playEvents(t, func(w *world) {
		w.ticked = func() {
			for _, q := range w.e.queries {
				for _, list := range q.rules {
					for _, s := range list {
						if s.watcher == nil || s.alert != nil || t.Failed() {
							continue
						}
						compared++
						if want := s.watcher.judge(q, w.e.nowMs); !sameJudgement(s.judged, want) {
							t.Errorf("%s: after the tick %+v, judged now %+v", q.ref.Name, s.judged, want)
						}
					}
				}
			}
		}
	})
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

func sameJudgement(a, b Judgement) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) // NaN is NaN there
}

// asRules puts rules into their list; what inhibits them stands outside it.
func asRules(text string) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !strings.HasPrefix(line, "inhibit:") {
			line = "      " + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func playLines(t *testing.T, w *world, script string) string {
	var b strings.Builder
	for _, line := range strings.Split(script, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		w.said = w.said[:0]
		w.play(t, line)
		for _, v := range w.said {
			if v.Alert != nil && (v.Alert.State == Firing || v.Alert.State == Resolved) {
				fmt.Fprintln(&b, eventLine(v))
			}
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// eventLine shows what became of an alert.
func eventLine(v Verdict) string {
	a := v.Alert
	at := a.FiringAtMs
	if a.State == Resolved {
		at = a.ResolvedAtMs
	}
	who := a.Labels.Get("query_name")
	if who == "" {
		who = "[" + a.Labels.Get("application") + "]"
	}
	text := fmt.Sprintf("%s %s %s %s", time.Duration(at-startMs)*time.Millisecond, who, v.Rule, a.State)
	if a.State == Firing {
		text += fmt.Sprintf(" since batch %d", a.FirstBatch)
	}
	if a.InhibitedBy != "" {
		text += " (inhibited by " + a.InhibitedBy + ")"
	}
	if a.State == Resolved {
		return text + ": " + a.Reason
	}
	return text + ": " + a.Annotations.Get("evidence")
}

func judgementsOf(e *Engine) string {
	var b strings.Builder
	for _, g := range e.Status(true).Groups {
		for _, r := range g.Rules {
			for _, j := range r.Judgements {
				who := j.Query.Label()
				if who == "" {
					who = "[" + j.Query.Application + "]"
				}
				fmt.Fprintf(&b, "%s %s: %s: %s\n", who, r.Alert, j.Said, j.Why)
			}
		}
	}
	return b.String()
}

func evidenceOf(e *Engine) string {
	var out []string
	for _, a := range e.Alerts(nil) {
		for _, l := range a.Annotations {
			out = append(out, fmt.Sprintf("%s %s %s", a.Labels.Get("alertname"), l.Name, l.Value))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n") + "\n"
}
