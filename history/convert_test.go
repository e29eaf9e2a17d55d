package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
)

// later is a format after the present one, in which words are upper case and
// queries have no lineage.
func later(o Options) Options {
	o.format = formatVersion + 1
	o.known = map[uint64]conversion{formatVersion: func(key, value []byte, put func(key, value []byte) error) error {
		switch key[0] {
		case spaceWord:
			value = bytes.ToUpper(value)
		case spaceTally:
			return nil
		}
		return put(key, value)
	}}
	return o
}

// kept makes a furnished history, closes it and returns what it held.
func kept(t testing.TB, o Options) string {
	t.Helper()
	s := furnished(t, o)
	want := describeAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return want
}

func TestAnOlderFormatIsConverted(t *testing.T) {
	o := inMemory()
	want := strings.ReplaceAll(kept(t, o), "rocksdbNewFigure", "ROCKSDBNEWFIGURE")
	want = strings.Replace(want, " 3} {b", " 1} {b", 1) // the tallies were left out
	s := open(t, later(o))
	if diff := cmp.Diff(want, describeAll(t, s)); diff != "" {
		t.Error(diff)
	}
	names, err := o.FS.List(o.Dir)
	if err != nil || len(names) != 2 {
		t.Errorf("files: %v %v", names, err)
	}
}

func TestAFormatThatCannotBeConvertedIsRefusedAndStays(t *testing.T) {
	o := inMemory()
	want := kept(t, o)
	far := later(o)
	far.format++
	if _, err := Open(far); err == nil || !strings.Contains(err.Error(), "can no longer be converted") {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff(want, describeAll(t, open(t, o))); diff != "" {
		t.Error(diff)
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	o := inMemory()
	if err := open(t, later(o)).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrNewer) || errors.Is(err, ErrDamaged) {
		t.Errorf("error is %v", err)
	}
	if _, err := Check(o); !errors.Is(err, ErrNewer) {
		t.Errorf("check: %v", err)
	}
	if _, err := Repair(o, t0); !errors.Is(err, ErrNewer) {
		t.Errorf("repair: %v", err)
	}
}

func TestAnOlderExportIsConverted(t *testing.T) {
	export, want := exported(t)
	o := later(inMemory())
	if _, err := Import(o, bytes.NewReader(export)); err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(strings.ReplaceAll(want, "rocksdbNewFigure", "ROCKSDBNEWFIGURE"), " 3} {b", " 1} {b", 1)
	if diff := cmp.Diff(want, describeAll(t, open(t, o))); diff != "" {
		t.Error(diff)
	}
}

// TestAConversionThatIsCutOffIsDoneAgain cuts the power at every operation of an
// opening that converts.
func TestAConversionThatIsCutOffIsDoneAgain(t *testing.T) {
	step := 1
	if testing.Short() || raceEnabled {
		step = 7
	}
	for at := 0; ; at += step {
		mem := vfs.NewCrashableMem()
		o := Options{Dir: "data", FS: mem}
		kept(t, o)
		var crashed *vfs.MemFS
		left := at
		watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && crashed == nil {
				if left--; left < 0 {
					crashed = mem.CrashClone(vfs.CrashCloneCfg{})
				}
			}
			return nil
		})
		cut := later(Options{Dir: "data", FS: errorfs.Wrap(mem, serial(watch))})
		if err := open(t, cut).Close(); err != nil {
			t.Fatal(err)
		}
		if crashed == nil {
			return
		}
		s, err := Open(later(Options{Dir: "data", FS: crashed}))
		if err != nil {
			t.Fatalf("cut at operation %d: %v", at, err)
		}
		if got := describeAll(t, s); !strings.Contains(got, "ROCKSDBNEWFIGURE") || !strings.Contains(got, "batch 400 of a") {
			t.Fatalf("cut at operation %d: %s", at, got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheFirstFormatIsStillRead opens a history that lies in testdata, as its
// format was when it was written. What is read must never change.
func TestTheFirstFormatIsStillRead(t *testing.T) {
	dir := filepath.Join("testdata", "format1")
	if *update {
		writeFormat(t, dir)
	}
	fs := vfs.NewMem()
	if ok, err := vfs.Clone(vfs.Default, fs, dir, "data", vfs.CloneSync); err != nil || !ok {
		t.Fatal(ok, err)
	}
	want, err := os.ReadFile(dir + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: "data", FS: fs}
	if r, err := Check(o); err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
	if diff := cmp.Diff(string(want), describeAll(t, open(t, o))); diff != "" {
		t.Error(diff)
	}
}

// writeFormat writes the golden files of the present format: one table and a log.
func writeFormat(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = furnished(t, Options{Dir: dir})
	if err := s.engine().Do(func(db *pebble.DB, _ *inside) error { return db.Flush() }); err != nil {
		t.Fatal(err)
	}
	commit(t, s, &Step{Records: []Record{batchOf("b", 401)}})
	want := describeAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+".txt", []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}
