package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// newShared returns a cache that is closed after the databases of the test.
func newShared(t testing.TB, bytes int64) *Shared {
	t.Helper()
	s := NewShared(bytes)
	t.Cleanup(s.Close)
	return s
}

// open opens a database that the test's end closes.
func open(t testing.TB, o Options) *DB {
	t.Helper()
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.Dir == "" {
		o.Dir = "db"
	}
	if o.Shared == nil {
		o.Shared = newShared(t, 8<<20)
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func row(i int) []byte { return fmt.Appendf(nil, "row%07d", i) }

// fill writes rows from to to-1 with values of so many random bytes.
func fill(t testing.TB, d *DB, rng *rand.Rand, from, to, size int) {
	t.Helper()
	value := make([]byte, size)
	for i := from; i < to; i++ {
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		if err := d.Set(row(i), value); err != nil {
			t.Fatal(err)
		}
	}
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

func TestMemtableNeverRotatesByItself(t *testing.T) {
	for _, limit := range []int64{1 << 10, 16 << 10, 200 << 10, 500 << 10, DefaultMemtableBytes, 100 << 20} {
		for _, size := range []int{0, 20, 90, 3000} {
			t.Run(fmt.Sprintf("%d/%d", limit, size), func(t *testing.T) {
				if (testing.Short() || raceEnabled) && size != 90 {
					t.Skip("takes long")
				}
				d := open(t, Options{MemtableBytes: limit})
				value := make([]byte, size)
				for i := range 1_200_000 / (size + 200) {
					if err := d.Set(row(i*7919%10000), value); err != nil {
						t.Fatal(err)
					}
					if i%500 > 0 {
						continue
					}
					m := d.db.Metrics()
					if m.MemTable.Count != 1 || int64(m.MemTable.Size) != d.mem.arena {
						t.Fatalf("pebble has %d memtables of %d bytes, want one of %d", m.MemTable.Count, m.MemTable.Size, d.mem.arena)
					}
				}
			})
		}
	}
}

func TestDatabaseFlushesByItselfAtItsMemtableSize(t *testing.T) {
	d := open(t, Options{MemtableBytes: 20 << 10})
	fill(t, d, seeded(), 0, 1000, 100)
	s := d.Stats()
	entry := int64(len(row(0)) + 100 + nodeBytes)
	perFlush := (20 << 10) / entry
	if want := 999 / perFlush; s.Work.Flushes != want {
		t.Errorf("%d flushes, want %d of %d rows each", s.Work.Flushes, want, perFlush)
	}
	if want := 1000 - s.Work.Flushes*perFlush; s.MemtableEntries != want || s.MemtableBytes != want*entry {
		t.Errorf("memtable holds %d rows of %d bytes, want %d of %d", s.MemtableEntries, s.MemtableBytes, want, want*entry)
	}
	work := must[Flushed](t)(d.Flush())
	if work.Flushes != s.Work.Flushes+1 {
		t.Errorf("Flush tells of %d flushes, want those by itself and one: %d", work.Flushes, s.Work.Flushes+1)
	}
	if again := must[Flushed](t)(d.Flush()); again != (Flushed{}) {
		t.Errorf("flushing nothing did %+v", again)
	}
}

func TestMemtableBytesAreNearWhatPebbleUses(t *testing.T) {
	// Half of an arena must hold what we count as less than half.
	for _, size := range []int{0, 8, 100, 1000} {
		d := open(t, Options{MemtableBytes: 1 << 20})
		fill(t, d, seeded(), 0, 100_000/(size+nodeBytes+10), size)
		used := d.mem.used
		flushes := d.Stats().Work.Flushes
		if flushes > 0 {
			t.Fatalf("size %d: flushed early", size)
		}
		arena := pebbleArenaUse(t, d)
		if arena > used || arena < used*6/10 {
			t.Errorf("size %d: pebble uses %d bytes of its arena, we count %d", size, arena, used)
		}
	}
}

// pebbleArenaUse reads from a flush's event how full the memtable was.
func pebbleArenaUse(t *testing.T, d *DB) int64 {
	t.Helper()
	must[Flushed](t)(d.Flush())
	return d.db.Metrics().Flush.WriteThroughput.Bytes
}

func TestEntryLargerThanMemtableIsRefused(t *testing.T) {
	d := open(t, Options{MemtableBytes: 4 << 10})
	if err := d.Set([]byte("fits"), make([]byte, 25<<10)); err != nil {
		t.Errorf("a row larger than the memtable but not its arena: %v", err)
	}
	if err := d.Set([]byte("large"), make([]byte, 64<<10)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if err := d.Set([]byte("next"), []byte("v")); err != nil {
		t.Errorf("after a refused row: %v", err)
	}
	if _, found, err := d.Get([]byte("large")); found || err != nil {
		t.Errorf("refused row: found %t, %v", found, err)
	}
}

func TestScanVisitsBoundsInOrderUntilTold(t *testing.T) {
	d := open(t, Options{})
	fill(t, d, seeded(), 0, 30, 4)
	must[Flushed](t)(d.Flush())
	fill(t, d, seeded(), 30, 50, 4)
	if err := d.DeleteRange(row(12), row(14)); err != nil {
		t.Fatal(err)
	}
	if err := d.DeleteRange(row(20), row(20)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		from, to []byte
		most     int
		want     []int
	}{
		{"in the middle, over a deleted range", row(10), row(16), 99, []int{10, 11, 14, 15}},
		{"from the start", nil, row(2), 99, []int{0, 1}},
		{"to the end", row(48), nil, 99, []int{48, 49}},
		{"until told", nil, nil, 3, []int{0, 1, 2}},
		{"an empty range", row(5), row(5), 99, nil},
		{"a range the wrong way round", row(6), row(5), 99, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			err := d.Scan(c.from, c.to, func(key, _ []byte) bool {
				got = append(got, string(key))
				return len(got) < c.most
			})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, i := range c.want {
				want = append(want, string(row(i)))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestVisitThatPanicsLeavesNoIteratorOpen(t *testing.T) {
	d := open(t, Options{}) // closing fails if one is open
	fill(t, d, seeded(), 0, 3, 4)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = d.Scan(nil, nil, func(_, _ []byte) bool { panic("visit") })
	}()
	if n := d.db.Metrics().TableIters; n != 0 {
		t.Errorf("%d iterators open", n)
	}
}

func TestValueStaysUntilNextCall(t *testing.T) {
	d := open(t, Options{})
	fill(t, d, seeded(), 0, 2, 40)
	first, _, err := d.Get(row(0))
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Clone(first)
	if cap(first) > 0 && !bytes.Equal(first, kept) {
		t.Error("changed before the next call")
	}
	second, _, _ := d.Get(row(1))
	if bytes.Equal(second, kept) {
		t.Error("two rows have one value")
	}
}

func TestUserBytesAreCounted(t *testing.T) {
	d := open(t, Options{})
	key, value := []byte("key"), []byte("value")
	if err := d.Set(key, value); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Get(key); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Get([]byte("other")); err != nil {
		t.Fatal(err)
	}
	if err := d.Scan(nil, nil, func(_, _ []byte) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if err := d.Delete(key); err != nil {
		t.Fatal(err)
	}
	s := d.Stats()
	if s.UserWritten != 11 || s.UserRead != 5 || s.IteratorRead != 8 {
		t.Errorf("written %d, read %d, iterated %d; want 11, 5, 8", s.UserWritten, s.UserRead, s.IteratorRead)
	}
	must[Flushed](t)(d.Flush())
	d.ResetStats()
	s = d.Stats()
	if s.UserWritten+s.UserRead+s.IteratorRead != 0 || s.Work != (Flushed{}) {
		t.Errorf("after a reset: %+v", s)
	}
	if s.SSTFiles != 1 || s.SSTBytes == 0 {
		t.Errorf("a reset lost the state: %+v", s)
	}
}

func TestFigureOfTablesAgreesWithPebble(t *testing.T) {
	d := open(t, Options{MemtableBytes: 8 << 10})
	rng := seeded()
	for round := range 60 {
		from := rng.IntN(2000)
		fill(t, d, rng, from, from+200, 50)
		for range 50 {
			if err := d.Delete(row(rng.IntN(2200))); err != nil {
				t.Fatal(err)
			}
		}
		d.PauseCompaction(round%20 > 10)
		must[Flushed](t)(d.Flush())
		if round%25 == 24 {
			must[Flushed](t)(d.Compact())
		}
		checkTables(t, d)
	}
	m, work := d.db.Metrics(), d.Stats().Work
	total := m.Total()
	if work.Bytes != int64(m.Levels[0].TableBytesFlushed) || work.CompactWritten != int64(total.TableBytesCompacted) {
		t.Errorf("we count %+v, pebble flushed %d and compacted %d", work, m.Levels[0].TableBytesFlushed, total.TableBytesCompacted)
	}
	if read := int64(m.Levels[0].TableBytesIn); work.CompactRead < work.CompactWritten || read != work.Bytes {
		t.Errorf("we count %+v, pebble took %d into level 0", work, read)
	}
}

func checkTables(t *testing.T, d *DB) {
	t.Helper()
	m, s, debt := d.db.Metrics(), d.Stats(), d.Debt()
	total := m.Total()
	if s.SSTBytes != total.TablesSize || s.SSTFiles != total.TablesCount {
		t.Fatalf("we count %d bytes in %d tables, pebble %d in %d", s.SSTBytes, s.SSTFiles, total.TablesSize, total.TablesCount)
	}
	l0 := &m.Levels[0]
	if debt.L0Files != l0.TablesCount || debt.L0Bytes != l0.TablesSize || debt.L0Sublevels != int64(l0.Sublevels) {
		t.Fatalf("we have %+v, pebble %d tables of %d bytes in %d sublevels", debt, l0.TablesCount, l0.TablesSize, l0.Sublevels)
	}
}

func TestPausedCompactionPilesUpAndDrainingTakesDown(t *testing.T) {
	d := open(t, Options{})
	rng := seeded()
	fill(t, d, rng, 0, 50, 50)
	must[Flushed](t)(d.Compact())
	d.PauseCompaction(true)
	for n := range int64(20) {
		fill(t, d, rng, 0, 50, 50)
		if work := must[Flushed](t)(d.Flush()); work.Compactions != 0 {
			t.Fatalf("compacted while paused: %+v", work)
		}
		if debt := d.Debt(); debt.L0Files != n+1 || debt.L0Sublevels != n+1 || debt.L0Bytes == 0 {
			t.Fatalf("after %d flushes: %+v", n+1, debt)
		}
	}
	if work := must[Flushed](t)(d.Drain()); work != (Flushed{}) {
		t.Errorf("draining while paused did %+v", work)
	}
	if d.Debt().PendingBytes == 0 {
		t.Error("no bytes pending")
	}
	d.PauseCompaction(false)
	work := must[Flushed](t)(d.Drain())
	if work.Compactions == 0 || work.CompactRead <= work.CompactWritten || work.CompactWritten == 0 {
		t.Errorf("draining did %+v", work)
	}
	if debt := d.Debt(); debt.L0Sublevels >= l0Trigger {
		t.Errorf("after draining: %+v", debt)
	}
}

func TestCompactionStartsAtFourFlushes(t *testing.T) {
	d := open(t, Options{})
	rng := seeded()
	for n := 1; n <= 12; n++ {
		fill(t, d, rng, 0, 50, 50)
		work := must[Flushed](t)(d.Flush())
		if due := n%l0Trigger == 0; due != (work.Compactions == 1) {
			t.Errorf("flush %d: %d compactions", n, work.Compactions)
		}
	}
}

func TestCompactLeavesNothingAboveTheBottom(t *testing.T) {
	for _, paused := range []bool{false, true} {
		d := open(t, Options{})
		d.PauseCompaction(paused)
		for n := range 9 {
			fill(t, d, seeded(), n*10, n*10+50, 50)
			must[Flushed](t)(d.Flush())
		}
		fill(t, d, seeded(), 500, 550, 50)
		work := must[Flushed](t)(d.Compact())
		if work.Flushes != 1 || work.Compactions == 0 {
			t.Errorf("paused %t: did %+v", paused, work)
		}
		if s := d.Stats(); s.SSTFiles != 1 || d.Debt().L0Files != 0 {
			t.Errorf("paused %t: %+v", paused, s)
		}
		if again := must[Flushed](t)(d.Compact()); again != (Flushed{}) {
			t.Errorf("paused %t: compacting again did %+v", paused, again)
		}
	}
	if work := must[Flushed](t)(open(t, Options{}).Compact()); work != (Flushed{}) {
		t.Errorf("compacting nothing did %+v", work)
	}
}

func TestCompactionDropsWhatWasDeleted(t *testing.T) {
	d := open(t, Options{})
	fill(t, d, seeded(), 0, 500, 100)
	must[Flushed](t)(d.Compact())
	for i := range 500 {
		if err := d.Delete(row(i)); err != nil {
			t.Fatal(err)
		}
	}
	must[Flushed](t)(d.Compact())
	if s := d.Stats(); s.SSTBytes != 0 || s.SSTFiles != 0 {
		t.Errorf("an empty database has %d bytes in %d tables", s.SSTBytes, s.SSTFiles)
	}
	must[Flushed](t)(d.Compact())
}

func TestEveryCallAfterCloseIsRefused(t *testing.T) {
	s := newShared(t, 1<<20)
	d, err := Open(Options{FS: vfs.NewMem(), Dir: "db", Shared: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"get":          func() error { _, _, err := d.Get(row(0)); return err },
		"set":          func() error { return d.Set(row(0), nil) },
		"delete":       func() error { return d.Delete(row(0)) },
		"delete range": func() error { return d.DeleteRange(row(0), row(1)) },
		"scan":         func() error { return d.Scan(nil, nil, nil) },
		"flush":        func() error { _, err := d.Flush(); return err },
		"drain":        func() error { _, err := d.Drain(); return err },
		"compact":      func() error { _, err := d.Compact(); return err },
		"checkpoint":   func() error { _, err := d.Checkpoint("cp"); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	d.Debt()
	d.Stats()
}

func TestOlderFormatIsRefusedAndLeftAlone(t *testing.T) {
	fs := vfs.NewMem()
	old, err := pebble.Open("db", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatMinSupported, Logger: logger{newRecorder()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old.Set([]byte("k"), []byte("v"), pebble.Sync), old.Flush(), old.Close()); err != nil {
		t.Fatal(err)
	}
	before := listing(t, fs, "db")
	if _, err := Open(Options{FS: fs, Dir: "db", Shared: newShared(t, 0)}); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
	if after := listing(t, fs, "db"); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("files were %s, are %s", before, after)
	}
}

func TestDatabaseOfPebble1IsRefused(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("db", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create("db/CURRENT", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{FS: fs, Dir: "db", Shared: newShared(t, 0)}); err == nil {
		t.Error("opened as if it were empty")
	}
}

func TestDirectoryInUseIsRefused(t *testing.T) {
	fs, s := vfs.NewMem(), newShared(t, 0)
	open(t, Options{FS: fs, Shared: s})
	if _, err := Open(Options{FS: fs, Dir: "db", Shared: s}); err == nil {
		t.Error("opened twice")
	}
}

func TestAGrownDatabaseFlushesOnlyWhenItsMemtableIsFull(t *testing.T) {
	const memtable = 2 << 20
	for _, grown := range []bool{false, true} {
		d := open(t, Options{MemtableBytes: memtable})
		if grown {
			if err := d.Grow(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range memtable / 4 / 1024 {
			if err := d.Set(row(i), make([]byte, 1024-nodeBytes-len(row(i)))); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.Stats().Work.Flushes; got > 0 == grown {
			t.Errorf("%d flushes of a database that was grown: %v", got, grown)
		}
	}
}
