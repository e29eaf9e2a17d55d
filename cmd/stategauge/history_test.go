package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/history"
)

// storage makes a history of three records.
func storage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s, err := history.Open(history.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	step := &history.Step{Seq: 1}
	for i := range int64(3) {
		step.Records = append(step.Records, history.Record{Query: "a", Lineage: "orders", AtMs: 1_780_000_000_000 + i, Body: []byte("body")})
	}
	if err := s.Commit([]*history.Step{step}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func expect(t *testing.T, status int, stdout, stderr string, stdin string, args ...string) string {
	t.Helper()
	gotStatus, out, err := call(stdin, args...)
	if gotStatus != status || !strings.Contains(out, stdout) || !strings.Contains(err, stderr) {
		t.Errorf("%v: status %d, want %d\nstdout: %.500s\nstderr: %s", args, gotStatus, status, out, err)
	}
	return out
}

func TestHistoryIsChecked(t *testing.T) {
	dir := storage(t)
	expect(t, 0, "3 records of 1 queries", "", "", "history", "check", "--storage.path="+dir)
	expect(t, 1, "", "no history here", "", "history", "check", "--storage.path="+t.TempDir())
	expect(t, 2, "", "--storage.path", "", "history", "check")
	expect(t, 0, "nothing is wrong", "", "", "history", "repair", "--storage.path="+dir)
}

func TestABrokenHistoryIsRepaired(t *testing.T) {
	dir := storage(t)
	markers, err := filepath.Glob(filepath.Join(dir, "history", "marker.manifest*"))
	if err != nil || len(markers) == 0 {
		t.Fatal(markers, err)
	}
	for _, m := range markers {
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, 1, "manifest is missing", "history repair --storage.path="+dir, "", "history", "check", "--storage.path="+dir)
	expect(t, 0, "moved to "+dir, "", "", "history", "repair", "--storage.path="+dir)
	expect(t, 0, "3 records of 1 queries", "", "", "history", "check", "--storage.path="+dir)
}

func TestAHistoryMovesAsAnExport(t *testing.T) {
	dir := storage(t)
	file := filepath.Join(t.TempDir(), "export")
	to := filepath.Join(t.TempDir(), "to")
	expect(t, 0, "", "", "", "history", "export", "--storage.path="+dir, file)
	expect(t, 1, "", "exists", "", "history", "export", "--storage.path="+dir, file)
	expect(t, 0, "3 records of 1 queries", "", "", "history", "import", "--storage.path="+to, file)
	expect(t, 1, "", "already", "", "history", "import", "--storage.path="+to, file)
	stream := expect(t, 0, "stategauge history export 1\n", "", "", "history", "export", "--storage.path="+to)
	other := filepath.Join(t.TempDir(), "other")
	expect(t, 0, "3 records of 1 queries", "", stream, "history", "import", "--storage.path="+other)
	expect(t, 1, "", "not a whole export", "anything", "history", "import", "--storage.path="+other+"2")
	expect(t, 1, "", "no such file", "", "history", "import", "--storage.path="+other+"3", "/nowhere/at/all")
	expect(t, 1, "", "no history here", "", "history", "export", "--storage.path="+t.TempDir())
}
