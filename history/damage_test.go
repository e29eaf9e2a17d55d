package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// written makes a history of several tables and a log, and closes it.
func written(t testing.TB, steps int, memtableBytes int64) (Options, *diary) {
	t.Helper()
	o := Options{Dir: "data", FS: vfs.NewMem(), memtableBytes: memtableBytes}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{s: s, sized: 1000, noise: true}
	for range steps {
		if err := d.commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Trim(d.acked.Load() / 2); err != nil {
		t.Fatal(err)
	}
	if err := d.commit(); err != nil { // makes the trimming durable
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return o, d
}

// files returns the files of the database whose names contain the text.
func files(t testing.TB, o Options, contains string) (out []string) {
	t.Helper()
	names, err := o.FS.List("data/history")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(name, contains) {
			out = append(out, "data/history/"+name)
		}
	}
	slices.Sort(out)
	return out
}

func contents(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func overwrite(t testing.TB, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// harm changes the bytes of a file.
func harm(t testing.TB, o Options, name string, change func(b []byte) []byte) {
	t.Helper()
	overwrite(t, o.FS, name, change(contents(t, o.FS, name)))
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b = slices.Clone(b)
		b[at%len(b)] ^= 0x5a
		return b
	}
}

func cutTo(percent int) func([]byte) []byte {
	return func(b []byte) []byte { return b[:len(b)*percent/100] }
}

// What is written goes to tables, or stays in the log.
const (
	inTables = 64 << 10
	inLog    = 8 << 20
)

// harms are the ways in which a history can be broken, and how much of the
// records a repair has to save: none where the newest table is gone, since a
// compaction may have put everything into it.
var harms = []struct {
	name     string
	memtable int64
	percent  int64
	do       func(t testing.TB, o Options)
}{
	{"a byte of a table is flipped", inTables, 50, func(t testing.TB, o Options) {
		harm(t, o, newestTable(t, o), flip(3000))
	}},
	{"a table is cut", inTables, 0, func(t testing.TB, o Options) {
		harm(t, o, newestTable(t, o), cutTo(70))
	}},
	{"a table is empty", inTables, 0, func(t testing.TB, o Options) {
		harm(t, o, newestTable(t, o), cutTo(0))
	}},
	{"a table is missing", inTables, 0, func(t testing.TB, o Options) {
		remove(t, o, newestTable(t, o))
	}},
	{"the manifest is cut to half", inTables, 100, func(t testing.TB, o Options) {
		harm(t, o, manifestFile(t, o), cutTo(50))
	}},
	{"the manifest is cut near its end", inTables, 100, func(t testing.TB, o Options) {
		harm(t, o, manifestFile(t, o), cutTo(95))
	}},
	{"the manifest is empty", inTables, 100, func(t testing.TB, o Options) {
		harm(t, o, manifestFile(t, o), cutTo(0))
	}},
	{"a byte of the manifest is flipped", inTables, 100, func(t testing.TB, o Options) {
		harm(t, o, manifestFile(t, o), flip(60))
	}},
	{"the manifest is missing", inTables, 100, func(t testing.TB, o Options) {
		remove(t, o, manifestFile(t, o))
	}},
	{"the markers are missing", inTables, 100, func(t testing.TB, o Options) {
		remove(t, o, files(t, o, "marker.")...)
	}},
	{"all files are missing", inTables, 0, func(t testing.TB, o Options) {
		remove(t, o, files(t, o, "")...)
	}},
	{"a byte of the log is flipped", inLog, 2, func(t testing.TB, o Options) {
		harm(t, o, newestLog(t, o), flip(100_000))
	}},
	{"a byte at the beginning of the log is flipped", inLog, 0, func(t testing.TB, o Options) {
		harm(t, o, newestLog(t, o), flip(2))
	}},
	{"a byte near the end of the log is flipped", inLog, 90, func(t testing.TB, o Options) {
		harm(t, o, newestLog(t, o), func(b []byte) []byte { return flip(lengthOf(b) - 20_000)(b) })
	}},
	{"a part of the log is missing", inLog, 10, func(t testing.TB, o Options) {
		harm(t, o, newestLog(t, o), func(b []byte) []byte { return append(slices.Clone(b[:50_000]), b[120_000:]...) })
	}},
	{"a page of the log is zero", inLog, 10, func(t testing.TB, o Options) {
		harm(t, o, newestLog(t, o), func(b []byte) []byte {
			b = slices.Clone(b)
			clear(b[49_152:53_248])
			return b
		})
	}},
}

// lengthOf is the length of a file without the zeros at its end.
func lengthOf(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

func remove(t testing.TB, o Options, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := o.FS.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// newestTable returns the newest table that the manifest holds.
func newestTable(t testing.TB, o Options) string {
	t.Helper()
	o.ReadOnly = true
	s := open(t, o)
	var names []string
	if err := s.engine().Do(func(db *pebble.DB, _ *inside) (err error) {
		names, err = liveTables(db)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return "data/history/" + names[0]
}

func newestLog(t testing.TB, o Options) string {
	t.Helper()
	logs := files(t, o, ".log")
	return logs[len(logs)-1]
}

func manifestFile(t testing.TB, o Options) string {
	t.Helper()
	m, err := manifestOf(o.FS, "data/history")
	if err != nil {
		t.Fatal(err)
	}
	return m.name
}

func TestABrokenHistoryIsRefusedAndTheRepairIsNamed(t *testing.T) {
	for _, h := range harms {
		t.Run(h.name, func(t *testing.T) {
			o, d := written(t, 350, h.memtable)
			h.do(t, o)
			for range 2 { // refusing changes nothing
				s, err := Open(o)
				if err == nil {
					whole := s.NextSeq()-1 == d.acked.Load() && len(readAll(t, s, "a")) == int(d.acked.Load())
					_ = s.Close()
					if h.name == "the manifest is cut near its end" && whole {
						return // what was cut off was the end of a compaction
					}
					t.Fatalf("opened, newest step %d", s.NextSeq()-1)
				}
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "stategauge history repair --storage.path=DIR") {
					t.Errorf("error is %v", err)
				}
			}
			r, err := Check(o)
			if err != nil || r.OK() {
				t.Errorf("check found nothing: %v", err)
			}
		})
	}
}

func TestARepairSalvagesWhatCanBeRead(t *testing.T) {
	for _, h := range harms {
		t.Run(h.name, func(t *testing.T) {
			o, d := written(t, 350, h.memtable)
			h.do(t, o)
			r, err := Repair(o, t0)
			if h.name == "all files are missing" {
				if err == nil {
					t.Error("made something out of nothing")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.OK() && h.name == "the manifest is cut near its end" {
				return // see above
			}
			if r.OK() || r.Aside != "data/history.broken-20260528T202640.000Z" {
				t.Errorf("report: %+v", r)
			}
			s := open(t, o)
			newest, all := s.NextSeq()-1, int64(d.acked.Load())
			t.Logf("%d of %d records, newest step %d of %d, %s", r.Records, 2*all, newest, all, strings.Join(r.Faults, "; "))
			if r.Records < 2*all*h.percent/100 || int64(newest) > all {
				t.Errorf("%d of %d records are left, newest step %d of %d", r.Records, 2*all, newest, all)
			}
			offsets, err := s.Offsets()
			if err != nil || newest > 0 && len(offsets) != 1 || newest > 0 && offsets[0].Next > int64(newest) {
				t.Errorf("offsets %v, newest step %d: %v", offsets, newest, err)
			}
			commit(t, s, d.stepOf(s.NextSeq()))
			if r, err := Check(o); err != nil || len(r.Faults) > 0 && !strings.Contains(fmt.Sprint(r.Faults), "missing from the log") {
				t.Errorf("after the repair: %+v %v", r, err)
			}
		})
	}
}

// TestNoFlippedByteIsOverlooked flips one byte anywhere: the history must be
// refused, or be whole.
func TestNoFlippedByteIsOverlooked(t *testing.T) {
	o, d := written(t, 150, inTables)
	random := rand.New(rand.NewPCG(4, 2))
	n := 100
	if testing.Short() || raceEnabled {
		n = 10
	}
	refused := 0
	for range n {
		all := slices.DeleteFunc(files(t, o, ""), func(name string) bool { return len(contents(t, o.FS, name)) == 0 })
		name := all[random.IntN(len(all))]
		was := contents(t, o.FS, name)
		fs := copyOf(t, o.FS)
		overwrite(t, fs, name, flip(random.IntN(len(was)))(was))
		if opensWhole(t, Options{Dir: "data", FS: fs}, d, name) {
			continue
		}
		refused++
	}
	t.Logf("%d of %d refused", refused, n)
}

func copyOf(t testing.TB, fs vfs.FS) *vfs.MemFS {
	t.Helper()
	to := vfs.NewMem()
	if _, err := vfs.Clone(fs, to, "data", "data", vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
	return to
}

// opensWhole opens a history with one wrong byte and returns false where it is
// refused.
func opensWhole(t *testing.T, o Options, d *diary, name string) bool {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		return false
	}
	defer s.Close()
	// The last group of a log that is broken is taken for one that a crash cut off.
	newest := s.NextSeq() - 1
	if newest+3 < d.acked.Load() || newest != d.acked.Load() && !strings.HasSuffix(name, ".log") {
		t.Fatalf("%s: newest step is %d of %d", name, newest, d.acked.Load())
	}
	if got := len(readAll(t, s, "a")); got != int(newest) {
		t.Fatalf("%s: %d records of %d", name, got, newest)
	}
	return true
}

// TestAManifestThatLostItsEndIsNoticedWhereNoTableIsMissing cuts the manifest back
// to before a flush: Pebble would take the table for garbage and delete it.
func TestAManifestThatLostItsEndIsNoticedWhereNoTableIsMissing(t *testing.T) {
	o := Options{Dir: "data", FS: vfs.NewMem(), memtableBytes: 1 << 20}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{t: t, s: s, sized: 1000, noise: true}
	m, err := manifestOf(o.FS, "data/history")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // so that the first logs are written over or deleted
		for range 20 {
			if err := d.commit(); err != nil {
				t.Fatal(err)
			}
		}
		flush(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range files(t, o, ".log") {
		if name != newestLog(t, o) {
			remove(t, o, name)
		}
	}
	harm(t, o, m.name, func(b []byte) []byte { return b[:m.size] })
	if _, err := Open(o); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "manifest does not hold table") {
		t.Fatalf("error is %v", err)
	}
	if r, err := Repair(o, t0); err != nil || r.Records != int64(2*d.acked.Load()) {
		t.Errorf("%+v %v", r, err)
	}
}
