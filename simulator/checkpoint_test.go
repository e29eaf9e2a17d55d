package simulator

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
)

func replaced(text, what, with string) string { return strings.ReplaceAll(text, what, with) }

const stateful = `
description: A deduplication that never forgets
spark_version: VERSION
batches: 20
query:
  trigger: {interval: 10s}
  operators:
    - {kind: dedupe, event_time_in_key: false}
  sources:
    - rows_per_second: 30
      keys: {count: 100000}
cluster: {executors: 2, cores: 2}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: "CHANGELOG"
  spark.sql.streaming.stateStore.maintenanceInterval: 30s
  spark.sql.shuffle.partitions: "3"
faults:
  - {kind: FAULT, from_batch: 14}
healthy: true
`

// TestNothingOfStateIsLostOrDoubled counts a state that only grows: after any end
// of a run, and after any loss of executors, the rows in state are those that were
// there plus those that came.
func TestNothingOfStateIsLostOrDoubled(t *testing.T) {
	for _, version := range []string{"3.4", "3.5", "4.0", "4.1", "4.2", "4.3"} {
		for _, fault := range []string{"restart", "crash", "executor-lost", "restart-loop", "upgrade"} {
			for _, changelog := range []string{"true", "false"} {
				t.Run(version+"/"+fault+"/changelog="+changelog, func(t *testing.T) {
					text := replaced(replaced(stateful, "VERSION", version), "CHANGELOG", changelog)
					checkGrowth(t, replaced(text, "FAULT", fault))
				})
			}
		}
		if testing.Short() || raced {
			break
		}
	}
}

func checkGrowth(t *testing.T, text string) {
	t.Helper()
	total := 0.0
	batches(t, play(t, start(t, parse(t, text), Options{Seed: 8}), all), func(_ *played, b *event.Batch) {
		v := &b.Operators[0].Values
		total += v[event.NumRowsUpdated]
		if v[event.NumRowsTotal] != total {
			t.Fatalf("batch %d: %v rows in state, %v came", b.ID, v[event.NumRowsTotal], total)
		}
	})
	if total < 1000 {
		t.Errorf("only %v rows", total)
	}
}

func TestACheckpointThatIsThereIsContinued(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.2"), "CHANGELOG", "true")
	sc := parse(t, replaced(text, "FAULT", "store-slow"))
	for stop := 1; stop < 40; stop += 3 {
		fs := vfs.NewMem()
		first, err := New(sc, Options{Seed: 8, FS: fs, Dir: "kept"})
		if err != nil {
			t.Fatal(err)
		}
		before := play(t, first, stop) // the run is not ended: as if killed
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second, err := New(sc, Options{Seed: 8, FS: fs, Dir: "kept", Batches: 5})
		if err != nil {
			t.Fatal(err)
		}
		after := play(t, second, all)
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
		rows, id, last := 0.0, "", int64(-1)
		see := func(_ *played, b *event.Batch) {
			v := &b.Operators[0].Values
			rows += v[event.NumRowsUpdated]
			if id == "" {
				id = string(b.Query.ID)
			}
			if string(b.Query.ID) != id || b.ID != last+1 || v[event.NumRowsTotal] != rows {
				t.Fatalf("stopped after %d messages: query %s batch %d has %v rows after query %s batch %d and %v rows", stop, b.Query.ID, b.ID, v[event.NumRowsTotal], id, last, rows)
			}
			last = b.ID
		}
		batches(t, before, see)
		batches(t, after, see)
	}
}

// TestAnAbandonedCheckpointOpensAgain kills the process in the middle of a write:
// what had been synced by then is all there is.
func TestAnAbandonedCheckpointOpensAgain(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.0"), "CHANGELOG", "true")
	sc := parse(t, replaced(text, "FAULT", "executor-lost"))
	fs := vfs.NewCrashableMem()
	s := start(t, sc, Options{Seed: 8, FS: fs, Dir: "/kept"})
	for n := 0; ; n++ {
		if _, err := s.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n%4 != 3 {
			continue
		}
		left := fs.CrashClone(vfs.CrashCloneCfg{})
		again, err := New(sc, Options{Seed: 8, FS: left, Dir: "/kept", Batches: 2})
		if err != nil {
			t.Fatal(err)
		}
		if a := play(t, again, all); len(a) < 3 {
			t.Fatalf("killed after %d messages: %d messages later", n+1, len(a))
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAThousandBatchesLeaveNothingBehind(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("takes seconds")
	}
	text := replaced(replaced(stateful, "VERSION", "4.3"), "CHANGELOG", "true")
	text = replaced(replaced(text, "count: 100000", "count: 500"), "FAULT", "store-slow")
	goroutines := runtime.NumGoroutine()
	s, err := New(parse(t, text), Options{Seed: 8, Batches: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var at [2]uint64
	for i := range at {
		play(t, s, 450)
		at[i] = heap()
	}
	play(t, s, all)
	if at[1] > at[0]+at[0]/4+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes between batch 450 and 900", at[0], at[1])
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines are left, %d before", runtime.NumGoroutine(), goroutines)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestInitialRowsAreThereFromTheFirstBatchOn(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.1"), "CHANGELOG", "true")
	text = replaced(replaced(text, "FAULT", "restart"), "event_time_in_key: false}", "event_time_in_key: false, initial_rows: 600000}")
	if raced {
		t.Skip("takes seconds")
	}
	rows, last := 600_000.0, int64(1) // two batches brought them
	batches(t, play(t, start(t, parse(t, text), Options{Seed: 8}), all), func(_ *played, b *event.Batch) {
		v := &b.Operators[0].Values
		rows += v[event.NumRowsUpdated]
		if v[event.NumRowsTotal] != rows || b.ID != last+1 {
			t.Fatalf("batch %d after %d has %v rows, want %v", b.ID, last, v[event.NumRowsTotal], rows)
		}
		last = b.ID
	})
	if last != 21 {
		t.Errorf("the last batch is %d", last)
	}
}

func TestLiveModeWorksOnARealDiskAndLeavesItClean(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.1"), "CHANGELOG", "true")
	dir := t.TempDir()
	s := start(t, parse(t, replaced(text, "FAULT", "restart")), Options{
		Seed: 8, Batches: 16, FS: vfs.Default, Dir: dir + "/checkpoint", Live: true, LocalDir: dir + "/local",
	})
	n := 0
	batches(t, play(t, s, all), func(_ *played, b *event.Batch) {
		n++
		checkPhases(t, b)
		if d, _ := b.DurationMs(); d > 60_000 {
			t.Errorf("batch %d took %v ms", b.ID, d)
		}
	})
	if err := s.Close(); err != nil || n != 16 {
		t.Fatalf("%d batches, then %v", n, err)
	}
	left, err := vfs.Default.List(dir + "/local/query-1")
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("left on the local disk: %v, %v", left, err)
	}
}
