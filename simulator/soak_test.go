package simulator

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
)

// TestStateThatLeavesAsItComesTakesBoundedMemory plays a thousand batches whose
// state has one size once the first windows have closed: from then on, and once
// the checkpoint holds the versions that it keeps, nothing may grow.
func TestStateThatLeavesAsItComesTakesBoundedMemory(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("takes seconds")
	}
	for _, changelog := range []string{"true", "false"} {
		s := start(t, parse(t, replaced(soaked, "CHANGELOG", changelog)), Options{Seed: 5, Batches: 1000})
		var after [2]uint64
		for i := range after {
			play(t, s, 450)
			after[i] = heap()
		}
		play(t, s, all)
		t.Logf("changelog %s: %d kB after 450 batches, %d kB after 900", changelog, after[0]>>10, after[1]>>10)
		if after[1] > after[0]+after[0]/5+2<<20 {
			t.Errorf("changelog %s: the heap grew from %d to %d bytes", changelog, after[0], after[1])
		}
	}
}

const soaked = `
description: Windows that open and close
spark_version: 4.2
query:
  trigger: {interval: 10s}
  watermark_delay: 30s
  operators:
    - {kind: aggregation, window: 1m}
  sources:
    - rows_per_second: 40
      keys: {count: 400}
cluster: {executors: 2, cores: 2}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: "CHANGELOG"
  spark.sql.streaming.stateStore.maintenanceInterval: 30s
  spark.sql.shuffle.partitions: "3"
healthy: true
`

// TestNoFileStaysOpen counts the process's files around a run on a real disk: its
// checkpoint and its executors' local files, executors that die included.
func TestNoFileStaysOpen(t *testing.T) {
	before, ok := openFiles()
	if !ok {
		t.Skip("the system does not list open files")
	}
	text := replaced(replaced(stateful, "VERSION", "4.1"), "CHANGELOG", "true")
	sc := parse(t, replaced(text, "FAULT", "executor-lost"))
	s, err := New(sc, Options{Seed: 2, FS: vfs.Default, Dir: t.TempDir(), Live: true, LocalDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	play(t, s, all)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after, _ := openFiles(); after > before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// openFiles counts open files, as far as the system tells. Pipes, sockets and the
// like come and go with the runtime and do not count.
func openFiles() (n int, ok bool) {
	const dir = "/proc/self/fd"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return 0, false
	}
	for _, fd := range fds {
		if to, err := os.Readlink(dir + "/" + fd.Name()); err == nil && len(to) > 0 && to[0] == '/' {
			n++
		}
	}
	return n, true
}

// TestEndedAtAnyMessageItGoesOnWithTheRightRows ends runs at random messages, in
// order or by a crash that loses whatever was not synced, again and again on one
// checkpoint.
func TestEndedAtAnyMessageItGoesOnWithTheRightRows(t *testing.T) {
	ends := 25
	if raced || testing.Short() {
		ends = 4
	}
	for _, version := range []string{"3.4", "3.5", "4.0", "4.1", "4.2", "4.3"} {
		t.Run(version, func(t *testing.T) {
			text := replaced(replaced(stateful, "VERSION", version), "CHANGELOG", fmt.Sprint(version != "3.4"))
			sc := parse(t, replaced(text, "FAULT", "store-slow"))
			random := rand.New(rand.NewPCG(uint64(version[0]), uint64(version[2])))
			fs, rows, last := vfs.NewCrashableMem(), 0.0, int64(-1)
			for range ends {
				s, err := New(sc, Options{Seed: 8, FS: fs, Dir: "/kept", Batches: 1000})
				if err != nil {
					t.Fatal(err)
				}
				batches(t, play(t, s, 1+random.IntN(12)), func(_ *played, b *event.Batch) {
					v := &b.Operators[0].Values
					rows += v[event.NumRowsUpdated]
					if b.ID != last+1 || v[event.NumRowsTotal] != rows {
						t.Fatalf("batch %d after %d has %v rows, %v came", b.ID, last, v[event.NumRowsTotal], rows)
					}
					last = b.ID
				})
				if random.IntN(2) == 0 {
					fs = fs.CrashClone(vfs.CrashCloneCfg{})
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d batches, %v rows", last+1, rows)
		})
	}
}
