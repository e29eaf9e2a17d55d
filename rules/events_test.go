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
func TestEvents(t *testing.T) { playEvents(t, nil) }

// playEvents plays testdata/events; restart may put another engine into the world after
// each thing that it hears.
func playEvents(t *testing.T, restart func(w *world)) {
	datadriven.Walk(t, "testdata/events", func(t *testing.T, path string) {
		var w *world
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "rules":
				w = newWorld(eventPack(t, asRules(d.Input)))
				if restart != nil {
					w.reborn = func() { restart(w) }
				}
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
