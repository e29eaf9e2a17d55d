package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/spark"
)

func newHeapExecutor(t *testing.T, dir *checkpoint.Dir) *Executor {
	t.Helper()
	conf, faults := spark.ParseConf(map[string]string{
		"spark.sql.streaming.stateStore.providerClass":        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
		"spark.sql.streaming.stateStore.minDeltasForSnapshot": "5",
	}, hdfs42)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	x, err := NewExecutor(Options{
		FS: vfs.NewMem(), Dir: "/local", Checkpoint: dir, Conf: &conf, Version: hdfs42, Meter: &tallyMeter{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExecutorKeepsStateOnTheHeap(t *testing.T) {
	dir, err := checkpoint.Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	var x *Executor
	for version := range int64(20) {
		if version == 0 || version == 12 { // the first executor dies before batch 12
			if x != nil {
				if err := x.Lose(); err != nil {
					t.Fatal(err)
				}
			}
			x = newHeapExecutor(t, dir)
		}
		for p := range 3 {
			s, err := x.Store(ID{Partition: p, Name: "default"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Load(version), s.Put(0, fmt.Append(nil, version), []byte("v")), s.Commit()); err != nil {
				t.Fatal(err)
			}
			if f := s.Figures(); f.Rows != version+1 {
				t.Fatalf("partition %d has %d rows at version %d", p, f.Rows, version+1)
			}
		}
		m, err := x.Maintain()
		if err != nil {
			t.Fatal(err)
		}
		if want := 3; version == 5 && m.Uploaded != want {
			t.Errorf("uploaded %d snapshots after six deltas, want %d", m.Uploaded, want)
		}
	}
	s, err := x.Store(ID{Name: "default"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if misses := s.Figures().Custom[event.LoadedMapCacheMissCount]; misses != 1 {
		t.Errorf("%v misses on the second executor, want 1", misses)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

func TestStuckMaintenanceWritesNoSnapshots(t *testing.T) {
	dir, err := checkpoint.Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	x := newHeapExecutor(t, dir)
	x.SetFaults(Faults{MaintenanceStuck: true})
	s, err := x.Store(ID{Name: "default"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for version := range int64(20) {
		if err := errors.Join(s.Load(version), s.Commit()); err != nil {
			t.Fatal(err)
		}
		if m, err := x.Maintain(); m.Uploaded != 0 || err != nil {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	if last := s.Figures().LastUploaded; last != -1 {
		t.Errorf("last uploaded %d", last)
	}
}
