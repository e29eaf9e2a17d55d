package replay

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordedAlerts is what is wrong with the runs that Spark recorded, by run. Nothing is
// with all others.
var recordedAlerts = map[string][]string{
	"4.0.5/fail":               {"ticket failed"},
	"4.3.0/join-executor-lost": {"info state-reload"},
	"4.3.0/shared-checkpoint":  {"page checkpoint-shared", "ticket failed"},
}

// TestRecordedRunsFireTheSameInEveryForm backtests streams that no simulator made, in
// their own time: as bare events, where silence is all there is to go by, and as the
// envelopes of our listener with its heartbeats.
func TestRecordedRunsFireTheSameInEveryForm(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../testdata/spark/*/*.ndjson.zst")
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d recorded streams, %v", len(paths), err)
	}
	for _, path := range paths {
		run, _, _ := strings.Cut(filepath.Base(path), ".")
		run = filepath.Base(filepath.Dir(path)) + "/" + run
		b, err := Backtest(t.Context(), BacktestOptions{Inputs: Inputs{Paths: []string{path}}, Rules: builtInRules(t)})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var got []string
		for _, e := range b.Episodes {
			got = append(got, e.Severity+" "+e.Symptom)
		}
		slices.Sort(got)
		if diff := cmp.Diff(recordedAlerts[run], got); diff != "" {
			t.Errorf("%s (-expected +fired)\n%s", path, diff)
		}
	}
}
