package lsm

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func listing(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	names := must[[]string](t)(fs.List(dir))
	slices.Sort(names)
	return names
}

// contents reads a whole database.
func contents(t testing.TB, d *DB) map[string]string {
	t.Helper()
	rows := map[string]string{}
	err := d.Scan(nil, nil, func(key, value []byte) bool {
		rows[string(key)] = string(value)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestCheckpointHoldsWhatWasWrittenBeforeIt(t *testing.T) {
	mem, s := vfs.NewMem(), newShared(t, 8<<20)
	d := open(t, Options{FS: mem, Shared: s, MemtableBytes: 8 << 10})
	rng := seeded()
	want := map[int]map[string]string{}
	for version := range 40 {
		fill(t, d, rng, rng.IntN(500), 500, 30)
		if err := d.Delete(row(rng.IntN(500))); err != nil {
			t.Fatal(err)
		}
		files := must[[]File](t)(d.Checkpoint(fmt.Sprint("cp", version)))
		checkFiles(t, mem, fmt.Sprint("cp", version), files)
		want[version] = contents(t, d)
	}
	for version, rows := range want {
		again := open(t, Options{FS: mem, Dir: fmt.Sprint("cp", version), Shared: s})
		if got := contents(t, again); fmt.Sprint(got) != fmt.Sprint(rows) {
			t.Errorf("version %d has %d rows, want %d or other values", version, len(got), len(rows))
		}
		fill(t, again, rng, 0, 10, 30) // a checkpoint is a database like any other
		must[Flushed](t)(again.Flush())
	}
	if got := contents(t, d); fmt.Sprint(got) != fmt.Sprint(want[39]) {
		t.Error("writing to checkpoints changed their origin")
	}
}

func checkFiles(t *testing.T, mem vfs.FS, dir string, files []File) {
	t.Helper()
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		info := must[vfs.FileInfo](t)(mem.Stat(mem.PathJoin(dir, f.Name)))
		if info.Size() != f.Bytes || f.SST != strings.HasSuffix(f.Name, ".sst") {
			t.Errorf("%s has %d bytes, told %+v", f.Name, info.Size(), f)
		}
	}
	if there := listing(t, mem, dir); fmt.Sprint(there) != fmt.Sprint(names) {
		t.Errorf("told of %s, there are %s", names, there)
	}
}

func TestCheckpointOntoAnExistingDirectoryIsRefused(t *testing.T) {
	mem := vfs.NewMem()
	d := open(t, Options{FS: mem})
	fill(t, d, seeded(), 0, 10, 10)
	must[[]File](t)(d.Checkpoint("cp"))
	before := listing(t, mem, "cp")
	if _, err := d.Checkpoint("cp"); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "cp") {
		t.Errorf("got %v, want that cp exists", err)
	}
	if after := listing(t, mem, "cp"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("files were %s, are %s", before, after)
	}
	must[[]File](t)(d.Checkpoint("other"))
}

func TestCheckpointOfNothingOpensEmpty(t *testing.T) {
	mem, s := vfs.NewMem(), newShared(t, 1<<20)
	d := open(t, Options{FS: mem, Shared: s})
	files := must[[]File](t)(d.Checkpoint("a/b/cp"))
	for _, f := range files {
		if f.SST {
			t.Errorf("table %s of nothing", f.Name)
		}
	}
	if rows := contents(t, open(t, Options{FS: mem, Dir: "a/b/cp", Shared: s})); len(rows) != 0 {
		t.Errorf("rows %s", rows)
	}
}

func TestCheckpointsShareTables(t *testing.T) {
	d := open(t, Options{})
	fill(t, d, seeded(), 0, 100, 10)
	first := must[[]File](t)(d.Checkpoint("cp1"))
	fill(t, d, seeded(), 100, 110, 10)
	second := must[[]File](t)(d.Checkpoint("cp2"))
	tables := func(files []File) (names []string) {
		for _, f := range files {
			if f.SST {
				names = append(names, f.Name)
			}
		}
		return names
	}
	if a, b := tables(first), tables(second); len(a) != 1 || len(b) != 2 || !slices.Contains(b, a[0]) {
		t.Errorf("tables %s, then %s", a, b)
	}
}

func TestNeededLeavesOutWhatIsOld(t *testing.T) {
	got := needed([]string{
		"OPTIONS-000009", "000004.sst", "LOCK", "MANIFEST-000001", "MANIFEST-000012", "000002.log", "OPTIONS-000003",
		"marker.manifest.000001.MANIFEST-000001", "marker.manifest.000002.MANIFEST-000012",
		"marker.format-version.000001.021", "temporary.000007.dbtmp",
	})
	want := []string{
		"000004.sst", "MANIFEST-000012", "OPTIONS-000009",
		"marker.format-version.000001.021", "marker.manifest.000002.MANIFEST-000012",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
