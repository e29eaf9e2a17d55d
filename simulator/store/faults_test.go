package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

func TestADamagedSnapshotIsRepairedFromSpark42On(t *testing.T) {
	for _, v := range spark.Versions()[1:] {
		r := newRig(t, v.String(), 1, changelogOn())
		for range 25 {
			r.batch(0, false, puts(0, 5, 10)...)
			_, err := r.x.Maintain()
			r.must(err)
		}
		r.must(r.x.Lose())
		r.start()
		snapshots, _, err := r.ckpt.State(0, 0, "default").List()
		r.must(err)
		newest := snapshots[len(snapshots)-1]
		r.x.SetFaults(Faults{Damaged: func(_ ID, version int64) bool { return version == newest }})
		f, err := r.tryBatch(0, false, puts(0, 1, 1)...)
		if v.Less(spark.V42) {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", v, err)
			}
			continue
		}
		if err != nil || f.Custom[event.RocksDBNumSnapshotsAutoRepaired] != 1 || f.Custom[event.RocksDBNumReplayChangelogFiles] < 10 {
			t.Errorf("%s: %v, %v", v, err, f)
			continue
		}
		r.must(r.store(0).Load(26))
		r.check(0, 26)
	}
}

// A table that is missing is found only after others were fetched.
func TestASnapshotWithoutATableIsRepaired(t *testing.T) {
	r := newRig(t, "4.3.0", 1, changelogOn(confPrefix+"minDeltasForSnapshot", "2"))
	for b := range 7 {
		r.batch(0, false, puts(b*3, 5, 10)...)
		_, err := r.x.Maintain()
		r.must(err)
	}
	dir := r.ckpt.State(0, 0, "default")
	newest, err := dir.Snapshot(6, "")
	r.must(err)
	last := newest.SSTs[len(newest.SSTs)-1]
	if len(newest.SSTs) < 2 {
		t.Fatal("the snapshot has one table only")
	}
	for _, lost := range []bool{true, false} { // on a new executor, and where older files are still there
		r.must(r.fs.Rename(r.fs.PathJoin(dir.Path(), "SSTs", last.DFS), "elsewhere"))
		if lost {
			r.must(r.x.Lose())
			r.start()
		}
		f := r.batch(0, false, puts(0, 1, 3)...)
		if f.Custom[event.RocksDBNumSnapshotsAutoRepaired] != 1 {
			t.Errorf("not repaired, lost executor: %v", lost)
		}
		r.must(r.fs.Rename("elsewhere", r.fs.PathJoin(dir.Path(), "SSTs", last.DFS)))
		r.must(r.store(0).Load(r.version(0)))
		r.check(0, r.version(0))
		r.must(r.store(0).Load(r.version(0) - 1))
		r.check(0, r.version(0)-1)
		r.must(r.store(0).Abort())
	}
}

func TestDamageThatNothingRepairsIsAnError(t *testing.T) {
	r := newRig(t, "4.3.0", 1, nil)
	for range 3 {
		r.batch(0, false, puts(0, 5, 10)...)
	}
	r.must(r.x.Lose())
	r.start()
	r.x.SetFaults(Faults{Damaged: func(ID, int64) bool { return true }})
	if _, err := r.tryBatch(0, false); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("got %v", err)
	}
	r.x.SetFaults(Faults{})
	r.batch(0, false)
	if err := r.store(0).Load(9); !errors.Is(err, errMissing) {
		t.Errorf("version 9: %v", err)
	}
}

func TestALateSnapshotIsUploadedInTheCommitFromSpark42On(t *testing.T) {
	for version, want := range map[string]float64{"4.1.4": 0, "4.2.1": 1} {
		r := newRig(t, version, 1, changelogOn())
		r.x.SetFaults(Faults{MaintenanceStuck: true})
		forced := 0.0
		for range 70 {
			r.nowMs += 15_000
			r.x.SetNow(r.nowMs)
			f := r.batch(0, false, puts(0, 2, 5)...)
			if x := f.Custom[event.RocksDBForceSnapshotCount]; x > 0 {
				forced += x
				if f.LastUploaded != r.version(0) || r.version(0) != 51 {
					t.Errorf("uploaded %d in version %d", f.LastUploaded, r.version(0))
				}
			}
			_, err := r.x.Maintain()
			r.must(err)
		}
		if forced != want {
			t.Errorf("%s: %v snapshots forced", version, forced)
		}
	}
}

func TestCompactionThatDoesNotRunStallsWritersAndIsMadeUpFor(t *testing.T) {
	r := newRig(t, "4.3.0", 1, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	batch := func() *Figures { return r.batch(0, false, randomOps(rng, 500, 100)...) }
	for range 10 {
		if f := batch(); f.Stall > 0 {
			t.Fatal("writers stall without a fault")
		}
	}
	r.x.SetFaults(Faults{CompactionPaused: true})
	var last, first time.Duration
	at := 0
	for i := range 45 {
		f := batch()
		if f.Custom[event.RocksDBTotalBytesReadByCompaction] > 0 {
			t.Fatal("compaction runs")
		}
		if f.Stall > 0 && at == 0 {
			at, first = i, f.Stall
		}
		last = f.Stall
		if want := float64(f.Stall); f.Custom[event.RocksDBWriterStallLatency] != want {
			t.Fatalf("stall of %v reported as %v ns", want, f.Custom[event.RocksDBWriterStallLatency])
		}
	}
	if at < 15 || at > 25 || last < 3*first {
		t.Errorf("writers stall from batch %d on, %v first and %v last", at, first, last)
	}
	r.x.SetFaults(Faults{})
	if f := batch(); f.Custom[event.RocksDBTotalBytesReadByCompaction] == 0 {
		t.Error("nothing is compacted afterwards")
	}
	if f := batch(); f.Stall > 0 {
		t.Errorf("writers still stall: %v", f.Stall)
	}
}

func TestSmallWriteBuffersStallWritersThatAreFasterThanTheDisk(t *testing.T) {
	stall := func(disk float64) time.Duration {
		r := newRig(t, "4.3.0", 1, map[string]string{rocksConf + "writeBufferSizeMB": "1"})
		r.x.SetMeter(flushMeter{fixedMeter{}, disk})
		return r.batch(0, false, puts(0, 4000, 1000)...).Stall
	}
	if fast, slow := stall(0.01), stall(20); fast != 0 || slow == 0 {
		t.Errorf("stalls of %v with a fast disk and %v with a slow one", fast, slow)
	}
}

func TestAShareOfTheCacheGivesMisses(t *testing.T) {
	misses := func(factor float64) float64 {
		r := newRig(t, "4.3.0", 1, map[string]string{rocksConf + "blockCacheSizeMB": "1"})
		r.batch(0, false, puts(0, 4000, 100)...)
		r.x.SetFaults(Faults{CacheFactor: factor})
		rng := rand.New(rand.NewPCG(1, 1))
		var n float64
		for range 5 {
			s := r.store(0)
			r.must(s.Load(r.version(0)))
			for range 2000 {
				_, _, err := s.Get(0, fmt.Appendf(nil, "key%08d", rng.IntN(4000)))
				r.must(err)
			}
			r.must(s.Commit())
			r.truth[r.ids[0]] = append(r.truth[r.ids[0]], r.truth[r.ids[0]][r.version(0)])
			n = s.Figures().Custom[event.RocksDBReadBlockCacheMissCount]
		}
		return n
	}
	if all, little := misses(0), misses(0.05); all > 10 || little < 500 {
		t.Errorf("%v misses with the cache, %v with a twentieth of it", all, little)
	}
}

func TestMemoryLeaksWhereToldTo(t *testing.T) {
	r := newRig(t, "4.3.0", 1, changelogOn())
	before := r.batch(0, false).MemoryBytes
	r.x.SetFaults(Faults{LeakBytes: 1 << 20})
	if got := r.batch(0, false).MemoryBytes - before; got != 1<<20 {
		t.Errorf("%d bytes more", got)
	}
}

func TestStuckMaintenanceDoesNothing(t *testing.T) {
	r := newRig(t, "4.3.0", 1, changelogOn())
	r.x.SetFaults(Faults{MaintenanceStuck: true})
	for range 12 {
		r.batch(0, false, puts(0, 2, 5)...)
	}
	if m, err := r.x.Maintain(); m != (Maintenance{}) || err != nil {
		t.Errorf("did %+v, %v", m, err)
	}
	r.x.SetFaults(Faults{})
	if m, err := r.x.Maintain(); m.Uploaded != 1 || m.Took == 0 || err != nil {
		t.Errorf("did %+v, %v", m, err)
	}
}
