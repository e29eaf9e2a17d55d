package filesource

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/collector"
)

// sharedWant lists, for every file of a collection of texts found in the field,
// what must come out: events by kind and reasons of the rejects. The collection
// itself is not part of the project.
var sharedWant = map[string]string{
	"001": "started 1, progress 8", "002": "started 1, progress 3",
	"003": "legacy 3", "004": "legacy 3", "005": "legacy 4",
	"006": "started 1, progress 1, terminated 1", "007": "started 1, progress 1, terminated 1",
	"015": "started 1", "016": "started 1", "017": "terminated 1",
	"023": "shape 1", "024": "shape 1", "025": "shape 1", "026": "shape 1",
	"030": "truncated 1", "031": "truncated 1", "032": "shape 1", "039": "shape 2", "044": "truncated 1",
	"045": "progress 4",
	"050": "progress 150", "051": "progress 62", "052": "progress 29", "053": "progress 62",
	"054": "progress 20", "055": "progress 6", "056": "progress 21", "057": "progress 21",
	"068": "progress 20",
	"071": "truncated 1", "072": "truncated 1", "073": "shape 1", "076": "truncated 2",
	"090": "truncated 1", "091": "truncated 1", "097": "shape 1", "100": "truncated 1", "104": "truncated 1", "105": "shape 1",
	"c_spark41_progress_event.json": "progress 1",
	"d_idle_35plus.json":            "idle 1",
	"d_started_35.json":             "started 1", "d_started_41.json": "started 1",
	"d_terminated_failed.json": "terminated 1", "d_terminated_ok.json": "terminated 1",
	"e_eventlog_lines_35.ndjson": "started 1, progress 1, idle 1, terminated 1",
}

// sharedRepaired are the files that hold one-character faults.
var sharedRepaired = map[string]int{"019": 1, "060": 1, "084": 3}

func TestFieldSamplesYieldExactlyTheirUsableEvents(t *testing.T) {
	shared := os.Getenv("STATEGAUGE_SHARED")
	if shared == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	files := sharedFiles(t, shared)
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			key := name
			if _, ok := sharedWant[name]; !ok {
				key = name[:3]
			}
			want, listed := sharedWant[key]
			if !listed {
				want = "progress 1" // by far the most files hold just one
			}
			got, repaired := countKinds(t, path)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if repaired != sharedRepaired[key] {
				t.Errorf("%d repairs, want %d", repaired, sharedRepaired[key])
			}
		})
	}
}

func sharedFiles(t *testing.T, shared string) []string {
	t.Helper()
	samples, err := filepath.Glob(filepath.Join(shared, "samples", "[01]*"))
	if err != nil || len(samples) < 80 {
		t.Fatalf("%d samples, error %v", len(samples), err)
	}
	examples, err := filepath.Glob(filepath.Join(shared, "spark", "examples", "*"))
	if err != nil || len(examples) < 10 {
		t.Fatalf("%d examples, error %v", len(examples), err)
	}
	return append(samples, examples...)
}

func countKinds(t *testing.T, path string) (string, int) {
	t.Helper()
	order := []string{"started", "progress", "idle", "terminated", "heartbeat"}
	n := map[string]int{}
	handle := func(_ context.Context, step *collector.Step) error {
		for _, it := range step.Items {
			n[it.Event.Kind.String()]++
		}
		return nil
	}
	sum, err := New(Config{Paths: []string{path}}).Run(t.Context(), handle, func(r Rejected) {
		t.Logf("line %d: %s: %v", r.Index, r.Reason, r.Err)
		n[string(r.Reason)]++
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind := range n {
		if !strings.Contains(strings.Join(order, " "), kind) {
			order = append(order, kind)
		}
	}
	sort.Strings(order[5:])
	var out []string
	for _, kind := range order {
		if n[kind] > 0 {
			out = append(out, fmt.Sprintf("%s %d", kind, n[kind]))
		}
	}
	return strings.Join(out, ", "), sum.Repaired
}

// A text that people posted broken and its repaired form must be one event.
func TestRepairedSampleIsTheSameEventAsItsOriginal(t *testing.T) {
	shared := os.Getenv("STATEGAUGE_SHARED")
	if shared == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	var texts []string
	for _, name := range []string{"060-dbx-kafka-3-rocksdb-INVALID.txt", "061-dbx-kafka-3-rocksdb-repaired.json"} {
		handle := func(_ context.Context, step *collector.Step) error {
			b := step.Items[0].Event.Batch
			texts = append(texts, fmt.Sprintf("%+v", *b))
			return nil
		}
		cfg := Config{Paths: []string{filepath.Join(shared, "samples", name)}}
		if _, err := New(cfg).Run(t.Context(), handle, func(r Rejected) { t.Error(r.Err) }); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Error(diff)
	}
}
