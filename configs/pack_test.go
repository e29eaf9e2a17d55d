package configs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// pack loads the embedded rule files together.
func pack(t testing.TB) *rules.Pack {
	t.Helper()
	var in []rules.Source
	for _, f := range configs.Rules() {
		in = append(in, rules.Source{Name: f.Name, Data: f.Data})
	}
	p, err := rules.Load(in...)
	if err != nil {
		t.Fatal(err) // also: an annotation that does not render for some cause, a label that changes
	}
	return p
}

// all lists the pack's rules.
func all(t testing.TB) (out []rules.RuleStatus) {
	t.Helper()
	for _, g := range rules.New(pack(t), rules.Options{}).Status(false).Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// alerts lists those that people see.
func alerts(t testing.TB) []rules.RuleStatus {
	t.Helper()
	return slices.DeleteFunc(all(t), func(r rules.RuleStatus) bool { return len(r.Annotations) == 0 })
}

func TestEverySymptomHasARuleAScenarioAndARunbook(t *testing.T) {
	expected := scenarios(t)
	found := map[string]bool{}
	for _, r := range alerts(t) {
		found[r.Labels.Get("symptom")] = true
	}
	for _, s := range scenario.Symptoms() {
		if !found[s] {
			t.Errorf("%s: no rule", s)
		}
		if !expected[s] {
			t.Errorf("%s: no scenario expects it", s)
		}
		if _, err := os.Stat(runbook(s)); err != nil {
			t.Errorf("%s: no runbook", s)
		}
	}
	for s := range found {
		if !slices.Contains(scenario.Symptoms(), s) {
			t.Errorf("rules know the symptom %q, scenarios do not", s)
		}
	}
}

// scenarios returns the symptoms that some scenario wants found.
func scenarios(t testing.TB) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	files, err := fs.Glob(configs.Scenarios(), "*.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := fs.ReadFile(configs.Scenarios(), f)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Load(f, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range sc.Expect {
			if !e.Optional && !e.CannotTell {
				out[e.Symptom] = true
			}
		}
	}
	return out
}

func runbook(symptom string) string { return filepath.Join("..", "docs", "runbooks", symptom+".md") }

func TestEveryAlertSaysWhatWhyAndWhatToDo(t *testing.T) {
	for _, r := range alerts(t) {
		for _, name := range []string{"summary", "description", "cause", "fix", "runbook_url"} {
			if strings.TrimSpace(r.Annotations.Get(name)) == "" {
				t.Errorf("%s: no annotation %s", r.Alert, name)
			}
		}
		if s := r.Labels.Get("severity"); s != "page" && s != "ticket" && s != "info" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if u := r.Annotations.Get("runbook_url"); !strings.HasSuffix(u, "/docs/runbooks/{{ .Labels.symptom }}.md") {
			t.Errorf("%s: runbook %s", r.Alert, u)
		}
	}
}

// TestATrendAloneNeverPages holds pages to what is late now or certainly soon.
func TestATrendAloneNeverPages(t *testing.T) {
	late := []string{
		"checkpoint-store-slow", "watermark-in-future", "falling-behind", "headroom-forecast", "memory-unbounded",
		"checkpoint-shared", "checkpoint-reset", "restart-loop", "failed", "stalled", "freshness",
	}
	for _, r := range alerts(t) {
		page := r.Labels.Get("severity") == "page"
		if page && !slices.Contains(late, r.Labels.Get("symptom")) {
			t.Errorf("%s pages for %s", r.Alert, r.Labels.Get("symptom"))
		}
		if page && r.Detector == "reaches" && !strings.Contains(r.Condition, "agreeing over") {
			t.Errorf("%s pages by one window", r.Alert)
		}
	}
}

// TestWindowsAndHoldsAreCountsAndTimes keeps fast streams from being judged by a
// few minutes.
func TestWindowsAndHoldsAreCountsAndTimes(t *testing.T) {
	for _, r := range alerts(t) {
		trend := r.Detector == "rising" || r.Detector == "reaches" || r.Detector == "shifted"
		if trend && (r.For.Batches == 0 || r.For.Ms == 0) {
			t.Errorf("%s: holds for %s, want batches and a time", r.Alert, r.For)
		}
	}
}

func TestRunbooksHaveTheirFourPartsAndNameTheirAlerts(t *testing.T) {
	named := map[string][]string{}
	for _, r := range alerts(t) {
		named[r.Labels.Get("symptom")] = append(named[r.Labels.Get("symptom")], r.Alert)
	}
	for symptom, rules := range named {
		data, err := os.ReadFile(runbook(symptom))
		if err != nil {
			t.Error(err)
			continue
		}
		text, at := string(data), 0
		if !strings.HasPrefix(text, "# "+symptom+"\n") {
			t.Errorf("%s: its title is another", symptom)
		}
		for _, part := range []string{"Meaning", "Impact", "Diagnosis", "Mitigation"} {
			i := strings.Index(text[at:], "\n## "+part+"\n")
			if i < 0 {
				t.Errorf("%s: no part %s, or not in its place", symptom, part)
				continue
			}
			at += i
		}
		for _, r := range rules {
			if !strings.Contains(text, "`"+r+"`") {
				t.Errorf("%s: does not name the alert %s", symptom, r)
			}
		}
	}
}

var seriesName = regexp.MustCompile(`\b(spark_streaming|stategauge)_[a-z_]+[a-z]\b`)

func TestRunbooksAskForSeriesThatThereAre(t *testing.T) {
	known, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range runbooks(t) {
		for _, series := range seriesName.FindAllString(text, -1) {
			if !strings.Contains(string(known), "`"+series) {
				t.Errorf("%s: %s is exported nowhere", name, series)
			}
		}
	}
}

// runbooks returns the texts by file name.
func runbooks(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(runbook("*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbooks: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(data)
	}
	return out
}

// settings are the keys of Spark's that rules and runbooks may name.
var settings = []string{
	"spark.dynamicAllocation.enabled", "spark.excludeOnFailure.enabled", "spark.executor.memoryOverhead",
	"spark.local.dir", "spark.locality.wait", "spark.scheduler.listenerbus.eventqueue.capacity", "spark.speculation",
	"spark.sql.shuffle.partitions", "spark.sql.streaming.maxBatchesToRetainInMemory", "spark.sql.streaming.minBatchesToRetain",
	"spark.sql.streaming.multipleWatermarkPolicy", "spark.sql.streaming.stateStore.autoSnapshotRepair.enabled",
	"spark.sql.streaming.stateStore.forceSnapshotUploadOnLag", "spark.sql.streaming.stateStore.maintenanceInterval",
	"spark.sql.streaming.stateStore.minDeltasForSnapshot", "spark.sql.streaming.stateStore.numStateStoreMaintenanceThreads",
	"spark.sql.streaming.stateStore.providerClass", "spark.sql.streaming.stateStore.rocksdb.blockCacheSizeMB",
	"spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage", "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
	"spark.sql.streaming.stateStore.rocksdb.compactOnCommit", "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB",
	"spark.sql.streaming.stateStore.rocksdb.maxWriteBufferNumber", "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows",
	"spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB",
}

var settingName = regexp.MustCompile(`(^|[^.\w])(spark\.[A-Za-z0-9.]*[A-Za-z0-9])`)

func TestRulesAndRunbooksNameSettingsAsSparkDoes(t *testing.T) {
	texts := runbooks(t)
	for _, f := range configs.Rules() {
		texts[f.Name] = string(f.Data)
	}
	seen := map[string]bool{}
	for name, text := range texts {
		for _, m := range settingName.FindAllStringSubmatch(text, -1) {
			seen[m[2]] = true
			if !slices.Contains(settings, m[2]) {
				t.Errorf("%s: Spark has no setting %s", name, m[2])
			}
		}
	}
	for _, s := range settings {
		if !seen[s] {
			t.Errorf("no rule or runbook names %s any more", s)
		}
	}
}

// TestTheTestsOfThePackPass runs what `stategauge test rules` runs.
func TestTheTestsOfThePackPass(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("plays scenarios; make plays does without the race detector")
	}
	file := filepath.Join("tests", "pack.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	results, err := replay.RunCases(t.Context(), file, data, replay.CaseOptions{
		Rules: func([]string) (*rules.Pack, error) { return pack(t), nil },
		Scenario: func(name string) (string, []byte, error) {
			data, err := fs.ReadFile(configs.Scenarios(), name+".yml")
			return name + ".yml", data, err
		},
	})
	if err != nil || len(results) == 0 {
		t.Fatalf("%d tests ran, error %v", len(results), err)
	}
	for _, r := range results {
		for _, f := range r.Failures {
			t.Errorf("line %d, %s: %s", r.Line, r.Name, f)
		}
	}
}

func TestTheIndexOfRunbooksListsEveryAlertWithItsSeverity(t *testing.T) {
	index := runbooks(t)["README.md"]
	for _, r := range alerts(t) {
		if !strings.Contains(index, "`"+r.Alert+"` ("+r.Labels.Get("severity")+")") {
			t.Errorf("%s is not in it, or with another severity", r.Alert)
		}
	}
	for name := range runbooks(t) {
		if name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("%s is not in it", name)
		}
	}
}
