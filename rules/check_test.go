package rules

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// TestCheckNamesEveryFault runs testdata: a rule file in, its faults out. "rule"
// is the inside of one rule of a file that is right otherwise.
func TestCheckNamesEveryFault(t *testing.T) {
	datadriven.Walk(t, "testdata/check", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text := d.Input
			if d.Cmd == "rule" {
				text = wrapRule(d.Input)
			}
			if err := Check("r.yaml", []byte(text)); err != nil {
				return err.Error() + "\n"
			}
			return "ok\n"
		})
	})
}

// wrapRule puts a rule into a file with two signals; it begins on line 9.
func wrapRule(rule string) string {
	head := "signals:\n" +
		"  sync: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}\n" +
		"  took: {of: query, value: duration_ms / 1000, unit: seconds}\n" +
		"  share: {of: query, value: durationMs.addBatch / duration_ms, unit: ratio}\n" +
		"  sst: {of: operator, value: rocksdbSstFileSize, unit: bytes}\n" +
		"groups:\n  - name: g\n    rules:\n"
	return head + "      - " + strings.ReplaceAll(rule, "\n", "\n        ") + "\n"
}

func TestFilesShareTheirSignals(t *testing.T) {
	signals := Source{Name: "s.yaml", Data: []byte("signals: {took: {of: query, value: duration_ms}}")}
	rules := Source{Name: "r.yaml", Data: []byte("groups: [{name: g, rules: [{alert: A, signal: took, rising: {}}]}]")}
	for _, order := range [][]Source{{signals, rules}, {rules, signals}} {
		p, err := Load(order...)
		if err != nil {
			t.Fatal(err)
		}
		if p.Len() != 1 {
			t.Errorf("got %d rules, want 1", p.Len())
		}
	}
	_, err := Load(signals, signals, rules)
	if err == nil || err.Error() != `s.yaml:1:17: signal "took" is defined in s.yaml already` {
		t.Errorf("got %v", err)
	}
}

func TestFaultsOfSeveralFilesComeTogether(t *testing.T) {
	_, err := Load(Source{Name: "b.yaml", Data: []byte("x: 1")}, Source{Name: "a.yaml", Data: []byte("y: 1")})
	if !errors.Is(err, strictyaml.ErrInvalid) {
		t.Fatalf("%v is no invalid file", err)
	}
	if got, want := err.Error(), "a.yaml:1:1: unknown key \"y\"\nb.yaml:1:1: unknown key \"x\""; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTooManySignalsOrRulesAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("signals: {s: {of: query, value: duration_ms}}\ngroups:\n  - name: g\n    rules:\n")
	for range maxRules + 1 {
		b.WriteString("      - {alert: A, signal: s, rising: {}}\n")
	}
	err := Check("r.yaml", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "501 rules, more than the 500 allowed") {
		t.Errorf("got %v", err)
	}
}

// FuzzCheck: no rule file panics; what loads can be run.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"", "signals: {a: {of: query, value: a}}", wrapRule("alert: A\nsignal: sync\nrising: {}"),
		wrapRule("alert: A\nsignal: took\nfalling: {over: 20 batches, min_points: 10, by: 5%, level: {recent: 3 batches, before: 5 batches, by: 1%}}"),
		wrapRule("alert: A\nsignal: sync\nrising: {adjusted_for: rows_updated}\nlabels: {x: '{{ .Query.Name }}'}\nannotations: {y: '{{ .Evidence.z.Before }}'}\nevidence: {z: stores}"),
		wrapRule("alert: A\nsignal: sync\nrising: {}\nannotations: {y: '{{ range .Phases }}{{ . }}{{ end }}{{ printf \"%99999d\" 1 }}'}"),
		wrapRule("alert: A\nsignal: sync\nrising: {}\nannotations: {y: '{{ define \"x\" }}{{ template \"x\" }}{{ end }}'}"),
		wrapRule("alert: A\nsignal: took\nabove: {limit: 0.9 * trigger_interval_ms, batches: 3 of 5, recover: 1, pooled: {weight: input_rows}}\nin_warm_up: true"),
		wrapRule("alert: A\nsignal: took\nshifted: {recent: 5 batches, baseline: 20 batches, early: true, adjusted_for: input_rows, side: down}"),
		wrapRule("alert: A\nsignal: took\nspiking: {over: 20 batches, min_points: 10, min_spikes: 4, factor: 1.1, rhythm: none, beside: {a: input_rows}}"),
		wrapRule("alert: A\nsignal: took\nreaches: {limit: 5s, over: 30 batches, min_points: 30, agree_over: 40 batches, detrend: daily, adjusted_for: input_rows}"),
		wrapRule("alert: A\nsignal: sync\nfollows: {driver: rows_total, rival: input_rows, over: 30 batches, min_points: 30}"),
		wrapRule("alert: A\nsignal: sst\nstands: {over: 5 batches, while: watermark_ms}"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Load(Source{Name: "f.yaml", Data: data})
		if err != nil {
			if !errors.Is(err, strictyaml.ErrInvalid) {
				t.Fatalf("%v is no invalid file", err)
			}
			return
		}
		s := newStream(New(p, Options{}))
		for range 30 {
			s.play(figures{})
		}
		s.e.Status(true)
	})
}
