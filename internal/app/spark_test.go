package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

// sparkFixtures holds what real Spark said in real runs, by version: see docs/spark.md.
const sparkFixtures = "../../testdata/spark"

// fixture is one captured run: the same events in up to three forms, and what the
// job that ran the query knew itself.
type fixture struct {
	Version string `json:"version"`
	Name    string `json:"name"`
	Job     string `json:"job"`
	About   string `json:"about"`
	Legs    []leg  `json:"legs"`
	base    string // path of the run's files without their endings
}

// leg is one process of a run.
type leg struct {
	SparkVersion string            `json:"sparkVersion"`
	Master       string            `json:"master"`
	Conf         map[string]string `json:"conf"`
	Batches      int               `json:"batches"`
	LastBatchID  int64             `json:"lastBatchId"`
	Facts        []struct {
		What    string `json:"what"`
		BatchID int64  `json:"batchId"`
	} `json:"facts"`
	Query struct {
		RunID        string          `json:"runId"`
		Failed       bool            `json:"failed"`
		LastProgress json.RawMessage `json:"lastProgress"`
		// RecentIdle are copies that Spark keeps for those who ask for recent
		// progress and, since 3.5, sends to nobody.
		RecentIdle []progressText `json:"recentIdle"`
	} `json:"query"`
}

func (f *fixture) String() string { return f.Version + "/" + f.Name }

// path returns the file or folder of a form, empty where the run lacks it.
func (f *fixture) path(form string) string {
	p := f.base + form
	if _, err := os.Stat(p); err != nil {
		return ""
	}
	return p
}

// conf returns a setting of the run's first process.
func (f *fixture) conf(key string) string { return f.Legs[0].Conf["spark.sql.streaming."+key] }

// sideBySide reports whether two processes ran the query at the same time.
func (f *fixture) sideBySide() bool { return strings.Contains(f.About, "a second query") }

// changelog reports whether the run's stores wrote changelogs.
func (f *fixture) changelog() bool {
	return f.conf("stateStore.rocksdb.changelogCheckpointing.enabled") == "true"
}

// The forms of a run.
const (
	formBare     = ".ndjson.zst"
	formEnvelope = ".envelope.ndjson.zst"
	formEventLog = ".eventlog"
)

// sparkRuns returns every captured run, in order.
func sparkRuns(t testing.TB) []*fixture {
	t.Helper()
	names, err := filepath.Glob(filepath.FromSlash(sparkFixtures + "/*/*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no captured runs in %s: %v", sparkFixtures, err)
	}
	var out []*fixture
	for _, name := range names {
		f := &fixture{base: strings.TrimSuffix(name, ".json")}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f.path(formBare) != "" && len(f.Legs) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// eachRun runs a test for every captured run.
func eachRun(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for _, f := range sparkRuns(t) {
		t.Run(f.String(), func(t *testing.T) { test(t, f) })
	}
}

// TestRealSparkIsReadWholeAndSumsUpAsExpected compares what becomes of every run
// with a file that people have looked through; -update writes it anew.
func TestRealSparkIsReadWholeAndSumsUpAsExpected(t *testing.T) {
	eachRun(t, func(t *testing.T, f *fixture) {
		p := newRerun(t)
		p.read(t, f.path(formBare))
		if p.sum.Skipped != 0 || p.sum.Repaired != 0 || p.outcomes[event.OutcomeUnjudgeable] != 0 {
			t.Errorf("%+v, %d unjudgeable: Spark's own lines need no repair", p.sum, p.outcomes[event.OutcomeUnjudgeable])
		}
		compareGolden(t, f, p.summary(f))
	})
}

func compareGolden(t *testing.T, f *fixture, got string) {
	t.Helper()
	name := filepath.Join("testdata", "spark", f.Version+"-"+f.Name+".golden")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; write it with `go test ./internal/app -run RealSpark -update` and look it through", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("not what %s says (-want +got)\n%s", name, diff)
	}
}

// summary is what the golden file of a run holds.
func (p *rerun) summary(f *fixture) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run: Spark %s, %s", f.Version, f.Job)
	if f.About != "" {
		fmt.Fprintf(&b, ", %s", f.About)
	}
	b.WriteString("\nevents:")
	for _, o := range event.Outcomes() {
		if n := p.outcomes[o]; n > 0 {
			fmt.Fprintf(&b, " %s %d", o, n)
		}
	}
	fmt.Fprintf(&b, "\nbatches: %d from %d to %d, %d without data, in %d runs\n",
		len(p.batches), p.batches[0].id, p.batches[len(p.batches)-1].id, p.noData, len(p.runs))
	fmt.Fprintf(&b, "spark at least: %s\n", p.spark)
	fmt.Fprintf(&b, "operators: %s\n", strings.Join(sortedKeys(p.operators), ", "))
	fmt.Fprintf(&b, "keys outside the catalog: %s\n", strings.Join(sortedKeys(p.unknown), ", "))
	fmt.Fprintf(&b, "alerts: %s\n", strings.Join(p.fired, "; "))
	b.WriteString("counters:\n")
	for _, c := range p.counters() {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	return strings.ReplaceAll(b.String(), ": \n", ": none\n")
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestFormsOfARealRunSayTheSame plays what a listener gets as bare JSON, what our
// own listener sends, and Spark's event log of the same run.
func TestFormsOfARealRunSayTheSame(t *testing.T) {
	eachRun(t, func(t *testing.T, f *fixture) {
		bare := newRerun(t)
		bare.read(t, f.path(formBare))
		for _, form := range []string{formEnvelope, formEventLog} {
			if f.path(form) == "" {
				continue
			}
			other := newRerun(t)
			other.read(t, f.path(form))
			if f.sideBySide() {
				// Which of two drivers speaks first differs from carrier to carrier, and with
				// it which batches come after the newer run began; none gets lost.
				if a, b := bare.told(), other.told(); a != b {
					t.Errorf("%d batches in the bare form, %d in %s", a, b, form)
				}
				continue
			}
			if diff := cmp.Diff(bare.batches, other.batches, cmp.AllowUnexported(played{})); diff != "" {
				t.Errorf("batches (-bare +%s)\n%s", form, diff)
			}
			want, got := bare.counters(), other.counters()
			if len(f.Legs) > 1 && !f.changelog() {
				// The bare form does not say that there is no changelog, so the first upload
				// of each further run might be a download and is left out.
				want, got = slices.DeleteFunc(want, ofUploads), slices.DeleteFunc(got, ofUploads)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("counters (-bare +%s)\n%s", form, diff)
			}
		}
	})
}

// ofUploads reports whether a counter is one of those that Spark repeats.
func ofUploads(counter string) bool {
	for _, m := range event.Catalog() {
		if m.Quirks&event.QuirkStickyUpload != 0 && strings.HasPrefix("spark_streaming_"+counter, m.Series+"{") {
			return true
		}
	}
	return false
}

// explained says why an alert of the shipped rules is right about a captured run,
// by run and alert. Each must fire, and none that is not here.
var explained = map[string]map[string]string{
	"3.5.8/quiet-dedupe": {"CommitSyncLatencyMoving": "for information: its machine became busier, and uploads of 60 ms took 120 ms for 40 batches"},
	"4.0.5/fail":         {"QueryFailed": "it throws an exception"},
	"4.0.5/tws-bounded": {
		"PostureDefaults":    "it runs without changelog checkpointing",
		"QuerySilentForLong": "stretched, nothing is heard of it for more than half an hour of its start",
	},
	"4.1.4/join-bounded":       {"PostureDefaults": "it runs without changelog checkpointing"},
	"4.1.4/tws-changelog":      {"QuerySilentForLong": "stretched, nothing is heard of it for more than half an hour of its start"},
	"4.3.0/join-executor-lost": {"StateReloaded": "an executor is lost, and its stores are fetched"},
	"4.3.0/quiet-agg":          {"CommitSyncLatencyMoving": "for information: its machine became busier, and uploads of 60 ms took 100 ms"},
	"4.3.0/shared-checkpoint": {
		"QueryFailed":      "the driver that lost ends by an exception",
		"CheckpointShared": "two drivers work on it",
	},
	"4.3.0/stall": {
		"PostureDefaults": "it runs without changelog checkpointing",
		"WriterStall":     "its writers are made to wait",
	},
}

// TestShippedRulesFindWhatIsWrongWithRealRunsAndNothingElse lets the shipped rules judge
// every run, quiet or troubled. They look at hours and leave out a run's first half
// hour, so a batch a second becomes a batch a minute: the long runs then fill their
// windows with real noise, the others at least begin to.
func TestShippedRulesFindWhatIsWrongWithRealRunsAndNothingElse(t *testing.T) {
	eachRun(t, func(t *testing.T, f *fixture) {
		p := newRerun(t)
		p.stretch = 60
		p.read(t, f.path(formBare))
		p.checkAlerts(t, f)
	})
}

// checkAlerts compares the alerts that fired with those that have an explanation.
func (p *rerun) checkAlerts(t *testing.T, f *fixture) {
	t.Helper()
	fired := map[string]bool{}
	for _, a := range p.fired {
		name, _, _ := strings.Cut(a, " ")
		fired[name] = true
		if explained[f.String()][name] == "" {
			t.Errorf("alert %s has no explanation", a)
		}
	}
	for name, why := range explained[f.String()] {
		if !fired[name] {
			t.Errorf("%s did not fire although %s", name, why)
		}
	}
	least := 1.0
	if strings.HasPrefix(f.Name, "quiet-") {
		least = float64(len(p.batches)) // two rules, each past the run's first half hour
	}
	if got := p.evaluated(t); got < least {
		t.Errorf("the rules took in %g values, fewer than %g: their silence proves nothing", got, least)
	}
}

// TestRepeatedDeliveryOfRealRunsChangesNoCounter delivers every event twice in a
// row, and then the whole run again.
func TestRepeatedDeliveryOfRealRunsChangesNoCounter(t *testing.T) {
	eachRun(t, func(t *testing.T, f *fixture) {
		once, again := newRerun(t), newRerun(t)
		once.read(t, f.path(formBare))
		again.times = 2
		again.read(t, f.path(formBare))
		again.times = 1
		again.read(t, f.path(formBare))
		if diff := cmp.Diff(once.counters(), again.counters()); diff != "" {
			t.Errorf("counters after repeats (-once +again)\n%s", diff)
		}
		if again.outcomes[event.OutcomeDuplicate] < 2*len(once.batches) {
			t.Errorf("%d repeats of %d batches were noticed", again.outcomes[event.OutcomeDuplicate], len(once.batches))
		}
		if len(again.batches) != len(once.batches) || len(again.fired) != len(once.fired) {
			t.Errorf("%d batches and %d alerts, %d and %d without repeats", len(again.batches), len(again.fired), len(once.batches), len(once.fired))
		}
	})
}
