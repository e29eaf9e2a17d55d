package engine

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func within(t *testing.T, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		buf := make([]byte, 1<<20)
		t.Fatalf("hangs:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

func opened(t *testing.T, fs vfs.FS) *Engine {
	t.Helper()
	e, err := Open(Options{FS: fs, Dir: "db", CacheBytes: 1 << 20, MemtableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func put(e *Engine, key, value string) error {
	b := e.NewBatch()
	if err := b.Set([]byte(key), []byte(value), nil); err != nil {
		return err
	}
	return e.Do(func(db *pebble.DB, _ *Inside) error { return db.Apply(b, pebble.Sync) })
}

func get(t *testing.T, e *Engine, key string) (value string) {
	t.Helper()
	if err := e.Do(func(db *pebble.DB, in *Inside) error {
		v, closer, err := db.Get([]byte(key))
		if err != nil {
			return err
		}
		return errors.Join(in.Call(func() error { value = string(v); return nil }), closer.Close())
	}); err != nil {
		t.Fatal(err)
	}
	return value
}

// switched fails whatever it is told to, once it is switched on.
type switched struct {
	on   atomic.Bool
	only func(errorfs.Op) bool
}

func (s *switched) MaybeError(op errorfs.Op) error {
	if s.on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && s.only(op) {
		return syscall.EIO
	}
	return nil
}

func (*switched) String() string { return "switched" }

func TestWhatWasWrittenIsThereInTheNextEngine(t *testing.T) {
	fs := vfs.NewMem()
	e := opened(t, fs)
	if err := put(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if e.Syncs() == 0 {
		t.Error("nothing was forced to disk")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = opened(t, fs)
	defer e.Close()
	if got := get(t, e, "a"); got != "1" {
		t.Errorf("read %q", got)
	}
}

func TestAFailureIsToldToEveryCallerNowAndLater(t *testing.T) {
	for _, c := range []struct {
		name string
		only func(errorfs.Op) bool
	}{
		{"writing the log", func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileWrite }},
		{"syncing the log", func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") && op.Kind != errorfs.OpFileWrite }},
		{"writing tables", func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") }},
		{"the manifest", func(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") }},
		{"the directory", func(op errorfs.Op) bool { return op.Path == "db" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem()
			disk := &switched{only: c.only}
			e := opened(t, errorfs.Wrap(mem, disk))
			if err := put(e, "before", "1"); err != nil {
				t.Fatal(err)
			}
			disk.on.Store(true)
			within(t, func() {
				var err error
				for i := 0; err == nil && i < 2000; i++ {
					err = put(e, fmt.Sprint("key", i), strings.Repeat("v", 1000))
				}
				if !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
					t.Errorf("error is %v", err)
				}
				if err := e.Do(func(*pebble.DB, *Inside) error { t.Error("runs on"); return nil }); !errors.Is(err, ErrFailed) {
					t.Errorf("later: %v", err)
				}
				if err := e.Close(); !errors.Is(err, ErrFailed) {
					t.Errorf("closing: %v", err)
				}
				for e.Busy() {
					runtime.Gosched()
				}
			})
			disk.on.Store(false)
			next := opened(t, mem) // beside the one that failed
			if got := get(t, next, "before"); got != "1" {
				t.Errorf("read %q", got)
			}
			if err := next.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAFailedEngineWritesNoMore(t *testing.T) {
	var writes atomic.Int64
	count := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			writes.Add(1)
		}
		return nil
	})
	e := opened(t, errorfs.Wrap(vfs.NewMem(), count))
	if err := put(e, "a", "1"); err != nil {
		t.Fatal(err)
	}
	e.fence.fail(errors.New("enough"))
	before := writes.Load()
	go func() { _ = e.db.Flush() }() // stands still for good
	f := guard{vfs.NewMem(), e.fence}
	stopped := make(chan struct{})
	go func() {
		_ = f.Remove("db/x")
		close(stopped)
	}()
	within(t, func() {
		for range 1000 {
			runtime.Gosched()
		}
	})
	select {
	case <-stopped:
		t.Error("a removal went through")
	default:
	}
	if got := writes.Load(); got != before {
		t.Errorf("%d writes after the failure", got-before)
	}
}

func TestACallThatIsLeftBehindCallsBackNoMore(t *testing.T) {
	e := opened(t, vfs.NewMem())
	began, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	result := make(chan error, 1)
	go func() {
		result <- e.Do(func(_ *pebble.DB, in *Inside) error {
			close(began)
			<-leave
			ended <- in.Call(func() error { t.Error("was called back"); return nil })
			return nil
		})
	}()
	<-began
	e.fence.fail(syscall.EIO)
	if err := <-result; !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("error is %v", err)
	}
	close(leave)
	if err := <-ended; err == nil {
		t.Error("the callback says nothing")
	}
}

func TestAPanicOfPebbleFailsTheEngine(t *testing.T) {
	e := opened(t, vfs.NewMem())
	err := e.Do(func(*pebble.DB, *Inside) error { panic("pebble is lost") })
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "pebble is lost") {
		t.Errorf("error is %v", err)
	}
	if e.Failed() == nil {
		t.Error("the engine goes on")
	}
}

func TestAPanicOfTheCallerIsItsOwn(t *testing.T) {
	e := opened(t, vfs.NewMem())
	defer e.Close()
	defer func() {
		if v := recover(); v != "mine" || e.Failed() != nil {
			t.Errorf("recovered %v, failed: %v", v, e.Failed())
		}
	}()
	_ = e.Do(func(_ *pebble.DB, in *Inside) error { return in.Call(func() error { panic("mine") }) })
}

func TestClosingWaitsForCallsAndRefusesNewOnes(t *testing.T) {
	e := opened(t, vfs.NewMem())
	began, leave := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := e.Do(func(db *pebble.DB, _ *Inside) error {
			close(began)
			<-leave
			return db.Set([]byte("k"), nil, pebble.NoSync)
		}); err != nil {
			t.Error(err)
		}
	})
	<-began
	wait.Go(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	for !e.Closing() {
		runtime.Gosched()
	}
	if err := e.Do(func(*pebble.DB, *Inside) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v", err)
	}
	close(leave)
	wait.Wait()
	if err := e.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestAMarkerIsMadeAfterWhatItNames(t *testing.T) {
	// The directory is synced before each marker: a power cut that keeps the name of
	// a marker then keeps the manifest as well.
	var mu sync.Mutex
	var last errorfs.Op
	bad := 0
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "marker.manifest") && (last.Kind != errorfs.OpFileSync || last.Path != "db") {
			bad++
		}
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			last = op
		}
		return nil
	})
	if err := opened(t, errorfs.Wrap(vfs.NewMem(), watch)).Close(); err != nil {
		t.Fatal(err)
	}
	if bad > 0 {
		t.Errorf("%d markers were made too early", bad)
	}
}

func TestWhatPebbleCallsFatalKeepsItsCause(t *testing.T) {
	err := fatal("MANIFEST flush failed: %v", []any{syscall.ENOSPC})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "MANIFEST flush failed") {
		t.Errorf("error is %v", err)
	}
	if err := fatal("odd %d", []any{3}); err.Error() != "odd 3" {
		t.Errorf("error is %v", err)
	}
}
