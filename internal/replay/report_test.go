package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/filesource"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

var update = flag.Bool("update", false, "write the golden files anew")

func diagnose(t *testing.T, format string, paths ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	n, err := Diagnose(t.Context(), Options{Paths: paths}, &out, format)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), n
}

func TestReportsAreAsRecorded(t *testing.T) {
	for _, format := range []string{FormatText, FormatJSON} {
		got, n := diagnose(t, format, filepath.Join("testdata", "mixed"))
		if n != 16 {
			t.Errorf("%d events read, want 16", n)
		}
		file := filepath.Join("testdata", "mixed."+format+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// The counts below were made by hand from the files.
func TestEverythingReadIsCounted(t *testing.T) {
	r, err := Examine(t.Context(), Options{Paths: []string{filepath.Join("testdata", "mixed")}})
	if err != nil {
		t.Fatal(err)
	}
	got := []int{r.Events, r.Progress, r.Started, r.Idle, r.Terminated, r.Skipped, len(r.Rejected), r.Files}
	if diff := cmp.Diff([]int{16, 13, 1, 1, 1, 5, 2, 3}, got); diff != "" {
		t.Errorf("events, progress, started, idle, terminated, skipped, rejected, files: %s", diff)
	}
	if len(r.Queries) != 2 {
		t.Fatalf("%d queries", len(r.Queries))
	}
	meters, alerts := r.Queries[0], r.Queries[1]
	if meters.Batches != 8 || meters.Runs != 1 || meters.Application != "meters" || meters.State != "terminated" || meters.Spark != "3.5.4" {
		t.Errorf("meters: %+v", meters)
	}
	if alerts.Batches != 2 || alerts.Repeats != 2 || alerts.IdleCopies != 1 || alerts.Name != "" || alerts.Provider != "none" {
		t.Errorf("alerts: %+v", alerts)
	}
}

func TestJSONHoldsOneObjectWithTheAgreedKeys(t *testing.T) {
	got, _ := diagnose(t, FormatJSON, filepath.Join("testdata", "mixed"))
	dec := json.NewDecoder(strings.NewReader(got))
	var report map[string]any
	if err := dec.Decode(&report); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("more than one value: %v", err)
	}
	for _, key := range []string{"events", "progress", "started", "idle", "terminated", "skipped", "rejected", "queries", "findings"} {
		if _, ok := report[key]; !ok {
			t.Errorf("no %q", key)
		}
	}
	query := report["queries"].([]any)[0].(map[string]any)
	for _, key := range []string{"id", "name", "runs", "batches", "provider", "spark", "first", "last"} {
		if _, ok := query[key]; !ok {
			t.Errorf("no %q in a query", key)
		}
	}
	for _, key := range []string{"file", "line", "reason"} {
		if _, ok := report["rejected"].([]any)[0].(map[string]any)[key]; !ok {
			t.Errorf("no %q in a reject", key)
		}
	}
	for _, key := range []string{"symptom", "query", "severity", "summary", "evidence", "fix"} {
		if _, ok := report["findings"].([]any)[0].(map[string]any)[key]; !ok {
			t.Errorf("no %q in a finding", key)
		}
	}
}

func TestListsOfAnEmptyReportAreNotNull(t *testing.T) {
	var out bytes.Buffer
	n, err := Diagnose(t.Context(), Options{Stdin: strings.NewReader("nothing here\n")}, &out, FormatJSON)
	if n != 0 || err != nil {
		t.Errorf("%d read, error %v", n, err)
	}
	if strings.Contains(out.String(), "null") {
		t.Error(out.String())
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Skipped != 1 {
		t.Errorf("%+v, error %v", r, err)
	}
}

func TestTheOrderOfFilesDoesNotMatter(t *testing.T) {
	folder := filepath.Join("testdata", "mixed")
	files := []string{filepath.Join(folder, "1-event-log"), filepath.Join(folder, "2-driver.log"), filepath.Join(folder, "3-notebook.txt")}
	want, _ := diagnose(t, FormatJSON, folder)
	got, _ := diagnose(t, FormatJSON, files[2], files[1], files[0])
	// The notebook's event is as old as the log's second: counts agree, files swap.
	var a, b Report
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal([]byte(got), &b) != nil {
		t.Fatal("no JSON")
	}
	if diff := cmp.Diff(a.Queries[0], b.Queries[0]); diff != "" || a.Events != b.Events || a.Queries[1].Batches != b.Queries[1].Batches {
		t.Error(diff)
	}
}

func TestRejectsBeyondTheLimitAreCountedOnly(t *testing.T) {
	text := strings.Repeat(`{"customMetrics":{"rocksdbGetCount":1}}`+"\n", 25)
	var out bytes.Buffer
	_, err := Diagnose(t.Context(), Options{Stdin: strings.NewReader(text), MaxRejected: 10}, &out, FormatText)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "25 rejected") || !strings.Contains(out.String(), "and 15 more") {
		t.Error(out.String())
	}
}

func TestAnUnknownFormatIsRefusedBeforeAnythingIsRead(t *testing.T) {
	_, err := Diagnose(t.Context(), Options{Paths: []string{"no/such"}}, io.Discard, "yaml")
	if err == nil || err.Error() != `output "yaml" must be text or json` {
		t.Errorf("error %v", err)
	}
}

func TestAMissingFileStillGivesAReportOfTheOthers(t *testing.T) {
	var out bytes.Buffer
	n, err := Diagnose(t.Context(), Options{Paths: []string{"no/such", filepath.Join("testdata", "mixed", "1-event-log")}}, &out, FormatText)
	if n != 11 || !errors.Is(err, os.ErrNotExist) || !strings.Contains(out.String(), "QUERY meters") {
		t.Errorf("%d read, error %v\n%s", n, err, out.String())
	}
}

type fullDisk struct{}

var errFullDisk = errors.New("disk full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, format := range []string{FormatText, FormatJSON} {
		_, err := Diagnose(t.Context(), Options{Paths: []string{filepath.Join("testdata", "mixed")}}, fullDisk{}, format)
		if !errors.Is(err, errFullDisk) {
			t.Errorf("%s: error %v", format, err)
		}
	}
}

// Rules of trends must find a rise in a replay, and the report must carry what
// they say.
func TestRisesFoundByTheRulesAreFindings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "rules", "testdata", "trends.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pack, err := rules.Load(rules.Source{Name: "trends.yaml", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	s := newStream("slow").add(0, 1500, func(n int, b batch) {
		if n > 700 {
			sync := 1200 + n*7%50
			metrics(b)["rocksdbCommitFileSyncLatencyMs"], operator(b)["commitTimeMs"] = sync, sync+80
		}
	})
	r, err := Examine(t.Context(), Options{Stdin: strings.NewReader(s.text()), Rules: pack})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Symptom == "commit-sync-rising" })
	if i < 0 {
		t.Fatalf("found %v", symptoms(r))
	}
	f := r.Findings[i]
	if f.Severity != ticket || f.QueryID != "id-slow" || f.Operator == "" || f.Summary == "" || f.Fix == "" {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(strings.Join(f.Evidence, "\n"), "fired 2031-02-03T") {
		t.Errorf("evidence %q", f.Evidence)
	}
	healthy, err := Examine(t.Context(), Options{Stdin: strings.NewReader(newStream("h").add(0, 1500, nil).text()), Rules: pack})
	if err != nil || len(healthy.Findings) > 0 {
		t.Errorf("healthy: %v, error %v", symptoms(healthy), err)
	}
}

func TestAnAlertThatEndsIsToldAsResolved(t *testing.T) {
	r := newRunner(Options{})
	labels := rules.Labels{{Name: "alertname", Value: "X"}, {Name: "severity", Value: "page"}, {Name: "symptom", Value: "x"}}
	ref := event.QueryRef{ID: "q"}
	say := func(state, was rules.AlertState, reason string) {
		a := &rules.Alert{Labels: labels, State: state, FirstBatch: 4, FiringAtMs: 1000, Reason: reason}
		r.note(&rules.Verdict{Alert: a, Was: was, Query: ref}, 0)
	}
	say(rules.Pending, rules.Inactive, "")
	if got := r.raisedFindings(); len(got) != 0 {
		t.Fatalf("a pending alert was told: %v", got)
	}
	say(rules.Firing, rules.Pending, "")
	say(rules.Resolved, rules.Firing, "recovered")
	got := r.raisedFindings()
	if len(got) != 1 || got[0].Severity != page || got[0].Symptom != "x" {
		t.Fatalf("%+v", got)
	}
	want := []string{"fired 1970-01-01T00:00:01Z, began at batch 4; resolved: recovered"}
	if diff := cmp.Diff(want, got[0].Evidence); diff != "" {
		t.Error(diff)
	}
	say(rules.Firing, rules.Inactive, "")
	if got := r.raisedFindings()[0].Evidence[0]; got != "fired 1970-01-01T00:00:01Z, began at batch 4, 2 times" {
		t.Error(got)
	}
}

func TestOneRunOfManyQueriesIsBounded(t *testing.T) {
	f := newFacts("q")
	for i := range 1000 {
		f.addPhase(strings.Repeat("x", i), 1)
		f.begun(int64(i))
		f.operator(&event.Operator{Index: i})
	}
	if len(f.more) > maxPhases || len(f.startsMs) > maxStarts || len(f.operators) > maxOperators {
		t.Errorf("%d phases, %d starts, %d operators", len(f.more), len(f.startsMs), len(f.operators))
	}
	if f.startsMs[len(f.startsMs)-1] != 999 {
		t.Error("the newest start is gone")
	}
}

func TestQueriesBeyondTheTrackersLimitAreNotKept(t *testing.T) {
	r := newRunner(Options{})
	c := track.DefaultConfig()
	c.Queries = 5
	r.player.tracker = track.New(c, nil)
	for i := range 20 {
		e := &event.Event{Kind: event.KindStarted, Query: event.QueryRef{ID: event.QueryID(fmt.Sprint(i))}, Run: "r", AtMs: int64(1000 + i)}
		r.play(&collector.Item{Event: e})
	}
	rep := r.report(&Intake{Summary: filesource.Summary{Events: 20}})
	if rep.Started != 20 || len(rep.Queries) != 5 || len(r.queries) != 5 {
		t.Errorf("%d started, %d queries", rep.Started, len(rep.Queries))
	}
}

// Every file of a collection of field texts must give a report in both forms, and
// the counts must add up.
func TestFieldSamplesGiveReports(t *testing.T) {
	shared := os.Getenv("STATEGAUGE_SHARED")
	if shared == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	files, err := filepath.Glob(filepath.Join(shared, "samples", "[01]*"))
	if err != nil || len(files) < 80 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	batches := map[string]int64{"001": 8, "002": 3, "045": 4, "050": 1, "053": 62, "055": 1, "060": 1, "087": 0}
	for _, path := range files {
		text, n := diagnose(t, FormatText, path)
		got, _ := diagnose(t, FormatJSON, path)
		var r Report
		if err := json.Unmarshal([]byte(got), &r); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if r.Events != n || r.Progress+r.Started+r.Idle+r.Terminated != n || strings.Contains(text, "NaN") {
			t.Errorf("%s: %d read, %+v", path, n, r)
		}
		if n == 0 && len(r.Rejected) == 0 {
			t.Errorf("%s: neither event nor reject", path)
		}
		if want, ok := batches[filepath.Base(path)[:3]]; ok && (len(r.Queries) != 1 || r.Queries[0].Batches != want) {
			t.Errorf("%s: %+v, want %d batches", path, r.Queries, want)
		}
	}
}
