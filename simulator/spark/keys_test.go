package spark

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/event"
)

const captures = "../../testdata/spark"

// stream is one captured run.
type stream struct {
	name    string // version and run, e.g. 3.5.8/idle
	version event.Version
	lines   [][]byte
}

// capturedStreams reads the captured runs: bare events, or envelopes.
func capturedStreams(t testing.TB, envelopes bool) []stream {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(captures, "*", "*.ndjson.zst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captured runs: %v", err)
	}
	var out []stream
	for _, f := range files {
		if strings.Contains(f, ".envelope.") != envelopes {
			continue
		}
		dir := filepath.Base(filepath.Dir(f))
		v, err := ParseVersion(dir)
		if err != nil {
			t.Fatal(err)
		}
		name := dir + "/" + strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".ndjson.zst"), ".envelope")
		out = append(out, stream{name: name, version: v, lines: unpack(t, f)})
	}
	return out
}

func unpack(t testing.TB, file string) [][]byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := [][]byte{}
	for line := range strings.Lines(string(data)) {
		lines = append(lines, []byte(strings.TrimRight(line, "\n")))
	}
	return lines
}

// operatorOf names what wrote an operatorName.
func operatorOf(t testing.TB, name string, v event.Version) (kind OperatorKind, python bool) {
	t.Helper()
	for kind := Aggregation; kind <= SessionWindow; kind++ {
		for _, python := range []bool{false, true} {
			if OperatorName(kind, python, v) == name {
				return kind, python
			}
		}
	}
	t.Fatalf("no operator is called %q", name)
	return 0, false
}

// wantKeys is Keys as JSON keys.
func wantKeys(v event.Version, p Provider, kind OperatorKind, python bool) (out []string) {
	for _, id := range keys(v, p, kind, python) {
		out = append(out, event.Lookup(id).JSON)
	}
	return out
}

// checkOperators compares the key sets of one progress, some keys excepted, and
// returns how many operators it had.
func checkOperators(t *testing.T, v event.Version, data []byte, except ...string) int {
	t.Helper()
	var p struct {
		StateOperators []struct {
			OperatorName  string
			CustomMetrics map[string]json.Number
		}
	}
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	for _, o := range p.StateOperators {
		var got []string
		uploads, provider := false, HDFS
		for key := range o.CustomMetrics {
			if strings.HasPrefix(key, "SnapshotLastUploaded.") {
				uploads = true
				continue
			}
			if strings.HasPrefix(key, "rocksdb") {
				provider = RocksDB
			}
			if slices.Contains(except, key) {
				continue
			}
			got = append(got, key)
		}
		slices.Sort(got)
		kind, python := operatorOf(t, o.OperatorName, v)
		if want := wantKeys(v, provider, kind, python); !slices.Equal(got, want) {
			t.Errorf("%s of %s has\n%v\nwant\n%v", o.OperatorName, v, got, want)
		}
		if uploads && !ReportsUploads(v) {
			t.Errorf("%s of %s reports uploads", o.OperatorName, v)
		}
	}
	return len(p.StateOperators)
}

func TestKeysAreThoseOfEveryCapturedStream(t *testing.T) {
	for _, s := range capturedStreams(t, false) {
		t.Run(s.name, func(t *testing.T) {
			operators := 0
			for _, line := range s.lines {
				operators += checkOperators(t, s.version, line)
			}
			if operators < 50 {
				t.Errorf("only %d operators were compared", operators)
			}
		})
	}
}

func TestKeysAreThoseOfTheExamples(t *testing.T) {
	shared := os.Getenv("STATEGAUGE_SHARED")
	if shared == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	for file, version := range map[string]string{
		"a_spark35_progress_changelog_on.json":                   "3.5",
		"b_spark35_progress_first_batch_join_changelog_off.json": "3.5",
		"c_spark41_progress_tws_snapshot_batch.json":             "4.1",
	} {
		data, err := os.ReadFile(filepath.Join(shared, "spark", "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		v, err := ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		// No running 4.1 has this key, whose setting calls itself 4.1.
		if checkOperators(t, v, data, "rocksdbNumSnapshotsAutoRepaired") == 0 {
			t.Errorf("%s has no operator", file)
		}
	}
}

func TestKeysOfEachKindAndVersion(t *testing.T) {
	for _, c := range []struct {
		version  string
		provider Provider
		kind     OperatorKind
		python   bool
		has, not string
	}{
		{"3.4", RocksDB, Aggregation, false, "rocksdbCommitPauseLatency", "rocksdbTotalBytesWrittenByFlush"},
		{"3.5", RocksDB, DedupeWithinWatermark, false, "numDroppedDuplicateRows", "rocksdbNumInternalColFamiliesKeys"},
		{"4.0", RocksDB, TransformWithState, false, "timerProcessingTimeMs", "rocksdbCommitWriteBatchLatency"},
		{"4.0", RocksDB, TransformWithState, true, "numExpiredTimers", "timerProcessingTimeMs"},
		{"4.1", HDFS, FlatMapGroups, true, "loadedMapCacheHitCount", "numSnapshotsAutoRepaired"},
		{"4.2", HDFS, SessionWindow, false, "forceSnapshotCount", "rocksdbForceSnapshotCount"},
		{"4.2", RocksDB, Dedupe, false, "rocksdbNumLoadedFromDfs", "numRowsReadDuringEviction"},
		{"4.3", RocksDB, Join, false, "rocksdbForceSnapshotCount", "numRowsReadDuringEviction"},
		{"4.3", RocksDB, Dedupe, false, "numRowsIncrementallyRemoved", "numValueStateVars"},
	} {
		v, err := ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		got := wantKeys(v, c.provider, c.kind, c.python)
		if !slices.Contains(got, c.has) || slices.Contains(got, c.not) {
			t.Errorf("%s of %s: %v must have %s and not %s", OperatorName(c.kind, c.python, v), v, got, c.has, c.not)
		}
		if !slices.IsSorted(got) {
			t.Errorf("%v are not sorted", got)
		}
		if slices.Contains(got, "SnapshotLastUploaded") {
			t.Error("keys of single stores are among them")
		}
	}
	if n := len(Keys(supported[0], RocksDB, Join)); n != 24 {
		t.Errorf("a join of 3.4 has %d keys, want 24", n)
	}
	if n := len(PythonKeys(supported[2], RocksDB, TransformWithState)); n != 38 {
		t.Errorf("transformWithState in Python of 4.0 has %d keys, want 38", n)
	}
}

func TestSessionWindowsHadNoNameBefore40(t *testing.T) {
	if got := OperatorName(SessionWindow, false, supported[1]); got != "defaultName" {
		t.Errorf("3.5 says %q", got)
	}
	if got := OperatorName(SessionWindow, false, supported[2]); got != "sessionWindowStateStoreSaveExec" {
		t.Errorf("4.0 says %q", got)
	}
	if got := OperatorName(SessionWindow+1, false, supported[2]); got != "" {
		t.Errorf("what is no operator is called %q", got)
	}
}
