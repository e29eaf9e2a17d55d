package lsm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// within fails the test where a call does not come back: a database on a broken
// disk must answer, not hang.
func within(t *testing.T, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		buf := make([]byte, 1<<20)
		t.Fatalf("hangs:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// failFrom lets so many writing operations pass and fails those after. Several
// goroutines of Pebble's write.
type failFrom struct{ left atomic.Int64 }

func failingFrom(n int) *failFrom {
	f := &failFrom{}
	f.left.Store(int64(n))
	return f
}

func (f *failFrom) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || op.Kind == errorfs.OpFileClose {
		return nil
	}
	if f.left.Add(-1) < 0 {
		return errorfs.ErrInjected
	}
	return nil
}

func (*failFrom) String() string { return "fail from" }

// work writes, flushes and makes checkpoints until something fails. It returns
// the rows of the newest checkpoint that succeeded.
func work(d *DB, dirs *[]string) error {
	for n := range 40 {
		for i := range 40 {
			if err := d.Set(row(n*10+i), []byte(fmt.Sprint("value", n))); err != nil {
				return err
			}
		}
		if _, err := d.Flush(); err != nil {
			return err
		}
		if n%4 == 0 {
			dir := fmt.Sprint("cp", n)
			if _, err := d.Checkpoint(dir); err != nil {
				return err
			}
			*dirs = append(*dirs, dir)
		}
	}
	return nil
}

func TestDiskThatFailsGivesAnErrorAndLosesNoCheckpoint(t *testing.T) {
	step := 7
	if testing.Short() || raceEnabled {
		step = 97
	}
	failed := 0
	for at := 0; at < 900; at += step {
		mem := vfs.NewMem()
		shared := NewShared(1 << 20)
		var dirs []string
		within(t, func() {
			d, err := Open(Options{FS: errorfs.Wrap(mem, failingFrom(at)), Dir: "db", Shared: shared})
			if err == nil {
				err = work(d, &dirs)
				_ = d.Close()
			}
			if err == nil {
				return
			}
			failed++
			if !errors.Is(err, errorfs.ErrInjected) && !strings.Contains(err.Error(), errorfs.ErrInjected.Error()) {
				t.Errorf("failing at %d: %v", at, err)
			}
		})
		for n, dir := range dirs {
			checkWorked(t, mem, dir, n*4)
		}
	}
	if failed < 5 {
		t.Errorf("only %d runs failed", failed)
	}
}

// checkWorked opens a checkpoint of work's round n.
func checkWorked(t *testing.T, fs vfs.FS, dir string, n int) {
	t.Helper()
	shared := NewShared(1 << 20)
	defer shared.Close()
	d, err := Open(Options{FS: fs, Dir: dir, Shared: shared})
	if err != nil {
		t.Errorf("%s: %v", dir, err)
		return
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}()
	if rows := contents(t, d); len(rows) != n*10+40 || rows[string(row(n*10))] != fmt.Sprint("value", n) {
		t.Errorf("%s has %d rows, want %d", dir, len(rows), n*10+40)
	}
}

func TestDatabaseOpensAgainAfterACrashAtAnyPoint(t *testing.T) {
	step := 11
	if testing.Short() || raceEnabled {
		step = 151
	}
	for at := 1; at < 900; at += step {
		mem := vfs.NewCrashableMem()
		shared := NewShared(1 << 20)
		var crashed *vfs.MemFS
		left := at
		watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if left--; left == 0 {
				crashed = mem.CrashClone(vfs.CrashCloneCfg{})
			}
			return nil
		})
		d, err := Open(Options{FS: errorfs.Wrap(mem, watch), Dir: "db", Shared: shared})
		if err != nil {
			t.Fatal(err)
		}
		var dirs []string
		if err := errors.Join(work(d, &dirs), d.Close()); err != nil {
			t.Fatal(err)
		}
		shared.Close()
		if crashed == nil {
			break
		}
		openCrashed(t, crashed, at)
	}
}

func openCrashed(t *testing.T, fs vfs.FS, at int) {
	t.Helper()
	shared := NewShared(1 << 20)
	defer shared.Close()
	d, err := Open(Options{FS: fs, Dir: "db", Shared: shared})
	if err != nil {
		t.Errorf("crashed at %d: %v", at, err)
		return
	}
	// What is there is the state after one of the flushes.
	rows := contents(t, d)
	if n := len(rows); n > 0 && (n < 40 || n%10 != 0) {
		t.Errorf("crashed at %d: %d rows", at, n)
	}
	if _, err := d.Flush(); err != nil {
		t.Errorf("crashed at %d: %v", at, err)
	}
	if err := d.Set(row(1), nil); err != nil {
		t.Errorf("crashed at %d: %v", at, err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("crashed at %d: %v", at, err)
	}
}

func TestDamagedTableIsAnErrorOfTheRead(t *testing.T) {
	mem, shared := vfs.NewMem(), newShared(t, 1<<20)
	d := open(t, Options{FS: mem, Shared: shared, Uncompress: true})
	fill(t, d, seeded(), 0, 100, 100)
	for _, f := range must[[]File](t)(d.Checkpoint("cp")) {
		if !f.SST {
			continue
		}
		name := mem.PathJoin("cp", f.Name)
		src := must[vfs.File](t)(mem.Open(name))
		data := make([]byte, f.Bytes)
		must[int](t)(src.ReadAt(data, 0))
		data[200] ^= 0xff
		if err := errors.Join(src.Close(), mem.Remove(name)); err != nil {
			t.Fatal(err)
		}
		dst := must[vfs.File](t)(mem.Create(name, vfs.WriteCategoryUnspecified))
		must[int](t)(dst.Write(data))
		if err := dst.Close(); err != nil {
			t.Fatal(err)
		}
	}
	damaged := open(t, Options{FS: mem, Dir: "cp", Shared: shared})
	if _, _, err := damaged.Get(row(0)); err == nil {
		t.Error("got a row out of a damaged block")
	}
	if err := damaged.Scan(nil, nil, func(_, _ []byte) bool { return true }); err == nil {
		t.Error("scanned a damaged block")
	}
}

func TestThousandCommitsLeaveNothingBehind(t *testing.T) {
	commits := 1000
	if testing.Short() || raceEnabled {
		commits = 150
	}
	goroutines := runtime.NumGoroutine()
	mem := vfs.NewMem()
	shared := NewShared(1 << 20)
	d, err := Open(Options{FS: mem, Dir: "db", Shared: shared, MemtableBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	rng := seeded()
	for n := 1; n <= commits; n++ {
		from := rng.IntN(1000)
		fill(t, d, rng, from, from+30, 20)
		must[Flushed](t)(d.Flush())
		if n%10 != 0 {
			continue
		}
		must[[]File](t)(d.Checkpoint(fmt.Sprint("cp", n)))
		if old := fmt.Sprint("cp", n-30); n > 30 {
			if err := mem.RemoveAll(old); err != nil {
				t.Fatal(err)
			}
		}
		live := d.Stats().SSTFiles
		if files := listing(t, mem, "db"); int64(len(files)) > live+8 {
			t.Fatalf("after %d commits %d tables are live in %s", n, live, files)
		}
	}
	if m := d.db.Metrics(); m.TableIters != 0 || m.Table.ZombieCount != 0 || m.Table.ObsoleteCount != 0 || m.MemTable.Count != 1 {
		t.Errorf("left behind:\n%s", m)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	shared.Close()
	if names := listing(t, mem, "/"); len(names) != 4 { // the database and three checkpoints
		t.Errorf("directories %s", names)
	}
	for range 1000 { // they end after Close has returned
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, before %d", now, goroutines)
	}
}

func TestManyStoresAreSmall(t *testing.T) {
	const stores = 200
	goroutines := runtime.NumGoroutine()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	shared, mem := NewShared(4<<20), vfs.NewMem()
	var all []*DB
	for i := range stores {
		d, err := Open(Options{FS: mem, Dir: fmt.Sprint("store", i), Shared: shared, MemtableBytes: 16 << 10, Uncharged: true})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, d, seeded(), 0, 100, 50)
		must[Flushed](t)(d.Flush())
		all = append(all, d)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perStore := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / stores
	t.Logf("%d bytes of heap and %d goroutines for each store", perStore, (runtime.NumGoroutine()-goroutines)/stores)
	if perStore > 400<<10 {
		t.Errorf("%d bytes of heap for each store", perStore)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 3*stores {
		t.Errorf("%d goroutines for %d stores", n, stores)
	}
	for _, d := range all {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	shared.Close()
}
