package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// call runs a command line with the given standard input.
func call(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(args, streams{strings.NewReader(stdin), &out, &err})
	return status, out.String(), err.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

const progress = `{"id":"a0000000-0000-4000-8000-000000000001","runId":"b0000000-0000-4000-8000-000000000001","name":"orders","timestamp":"2026-03-01T10:00:00.000Z","batchId":7,"numInputRows":100,"durationMs":{"addBatch":900,"triggerExecution":1000},"stateOperators":[],"sources":[],"sink":{"description":"s","numOutputRows":-1}}`

func TestCommandLines(t *testing.T) {
	good := write(t, "good.yml", "export: {series: 10}\n")
	bad := write(t, "bad.yml", "export: {serie: 10}\n")
	rules := write(t, "rules.yaml", "signals:\n  d: {of: query, value: batchDuration, unit: seconds}\ngroups: []\n")
	passes := write(t, "passes.yaml", "tests: [{name: calm, series: {query: {durationMs.addBatch: 5x50}}, never: [others]}]\n")
	fails := write(t, "fails.yaml", "tests: [{name: wild, series: {query: {durationMs.addBatch: 5x50}}, expect: [{symptom: duration-rising}]}]\n")
	kept := t.TempDir()
	report := write(t, "report.json", `{"rules": 1, "first_seed": 7, "seeds": 1}`)
	page := write(t, "page.md", "<!-- measured: begin (make score writes what stands between these lines) -->\n<!-- measured: end -->\n")
	for _, c := range []struct {
		name, stdin string
		args        []string
		status      int
		stdout      string // contained in what is printed
		stderr      string
	}{
		{"version says who it is", "", []string{"version"}, 0, "stategauge, version", ""},
		{"the version flag does too", "", []string{"--version"}, 0, "stategauge, version", ""},
		{"help lists the commands", "", []string{"--help"}, 0, "check config", ""},
		{"a good configuration is ok", "", []string{"check", "config", good}, 0, "good.yml: ok", ""},
		{"a bad one names line and nearest key", "", []string{"check", "config", bad}, 1, "", `bad.yml:1:10: unknown key "serie", did you mean "series"?`},
		{"a missing one is an error", "", []string{"check", "config", "/nowhere/x.yml"}, 1, "", "no such file"},
		{"all files are checked", "", []string{"check", "config", bad, good}, 1, "good.yml: ok", "unknown key"},
		{"the shipped rules are ok", "", []string{"check", "rules", "../../configs/rules/commit.yaml", "../../configs/rules/load.yaml"}, 0, "commit.yaml: ok, ", ""},
		{"a file without rules is an error", "", []string{"check", "rules", rules}, 1, "", "holds no rule"},
		{"an unknown command is a usage error", "", []string{"gauge"}, 2, "", "try --help"},
		{"diagnose reads standard input", progress, []string{"diagnose"}, 0, "orders", ""},
		{"a lone dash is standard input", progress, []string{"diagnose", "-"}, 0, "orders", ""},
		{"diagnose needs an event", "hello\n", []string{"diagnose"}, 1, "", "no event was found"},
		{"diagnose knows its formats", "", []string{"diagnose", "--output=xml"}, 2, "", "xml"},
		{"backtest reads standard input", progress, []string{"backtest"}, 0, "nothing fired", ""},
		{"backtest says nothing in JSON where nothing fired", progress, []string{"backtest", "--output=json", "-"}, 0, "", ""},
		{"backtest needs an event", "hello\n", []string{"backtest"}, 1, "", "no event was found"},
		{"backtest names a path that is not there", "", []string{"backtest", "/nowhere/at/all"}, 1, "", "/nowhere/at/all"},
		{"backtest leaves out what was before and after", progress, []string{"backtest", "--from=2026-03-01T10:00:00Z", "--to=1772359200.001"}, 0, "1 events of 1 query", ""},
		{"backtest says that nothing is left", progress, []string{"backtest", "--to=2026-03-01T10:00:00Z"}, 1, "", "no event was found between --from and --to"},
		{"backtest knows times", progress, []string{"backtest", "--from=noon"}, 1, "", `--from ("noon") must be a time as 2026-01-31T18:00:00Z, or Unix seconds`},
		{"backtest wants times in order", progress, []string{"backtest", "--from=20", "--to=10"}, 1, "", "--from (20) must be before --to (10)"},
		{"backtest names a history that is not there", "", []string{"backtest", "history:/nowhere/at/all"}, 1, "", "stategauge: history:/nowhere/at/all: no history here"},
		{"backtest refuses bad rules", progress, []string{"backtest", "--rules=" + bad}, 1, "", "unknown key"},
		{"tests of rules that pass", "", []string{"test", "rules", passes}, 0, "passes.yaml: ok, 1 tests", ""},
		{"tests of rules that fail", "", []string{"test", "rules", passes, fails}, 1, "FAIL: wild\n  line 1: duration-rising did not fire; what did: nothing", ""},
		{"tests of rules that are none", "", []string{"test", "rules", bad}, 1, "", "unknown key"},
		{"score keeps what it measured", "", []string{"score", "steady", "--seeds=1", "--batches=20", "--healthy=0", "--cache=" + kept, "--keep=" + kept}, 0, "| steady   | own  | healthy", "(100 %, about 0s left)"},
		{"score goes on where it was", "", []string{"score", "steady", "--seeds=1", "--batches=20", "--healthy=0", "--cache=" + kept, "--keep=" + kept}, 0, "| steady   | own  | healthy", "(100 %, was there)"},
		{"score shows a report made before and puts its table into a page", "", []string{"score", "--from=" + report, "--error-table=" + page}, 0, "1 rules, seeds 7 to 7", ""},
		{"score refuses a page without marks", "", []string{"score", "--from=" + report, "--error-table=" + good}, 1, "", "must have it once"},
		{"score refuses a report that is none", "", []string{"score", "--from=" + good}, 1, "", "report made before, "},
		{"score plays scenarios by name", "", []string{"score", "steady", "--seeds=1", "--batches=20", "--healthy=0", "--cache=" + t.TempDir()}, 0, "| steady   | own  | healthy", "scenario 1 of 1"},
		{"score knows no other", "", []string{"score", "stedy"}, 1, "", `did you mean "steady"?`},
		{"serve refuses a bad configuration", "", []string{"serve", "--config.file=" + bad}, 1, "", `did you mean "series"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := call(c.stdin, c.args...)
			if status != c.status || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("status %d, want %d\nstdout: %s\nstderr: %s", status, c.status, stdout, stderr)
			}
		})
	}
}

func TestDiagnoseWritesOneJSONObject(t *testing.T) {
	status, out, _ := call(progress+"\n"+progress+"\nnot an event\n{\"broken\n", "diagnose", "--output=json")
	var got struct {
		Events, Progress, Started, Idle, Terminated, Skipped int
		Rejected                                             []struct {
			File   string
			Line   int
			Reason string
		}
		Queries  []struct{ ID, Name string }
		Findings []any
	}
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&got); err != nil || status != 0 {
		t.Fatalf("status %d, %v: %s", status, err, out)
	}
	if dec.More() {
		t.Error("more than one object")
	}
	if got.Events != 2 || got.Progress != 2 || len(got.Queries) != 1 || got.Queries[0].Name != "orders" || got.Rejected == nil || got.Findings == nil {
		t.Errorf("%+v", got)
	}
}
