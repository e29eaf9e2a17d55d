package store

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/spark"
)

// stopwatch adds up real time, for benchmarks alone.
type stopwatch struct{ total time.Duration }

func (w *stopwatch) run(f func()) {
	start := time.Now()
	f()
	w.total += time.Since(start)
}

func (w *stopwatch) seconds() float64 { return w.total.Seconds() }

// tallyMeter charges a microsecond for each thing done and keeps the sums.
type tallyMeter struct{ work [device.NumSteps]device.Work }

func (m *tallyMeter) Begin(device.Step) device.Mark { return 0 }

func (m *tallyMeter) End(s device.Step, _ device.Mark, w device.Work) time.Duration {
	m.work[s].Add(w)
	n := w.Rows + w.Ops + w.BytesIn + w.BytesOut + w.Files + w.Requests + w.RemoteIn + w.RemoteOut
	return time.Duration(n) * time.Microsecond
}

// hdfsRig is a partition with its checkpoint, and executors that come and go.
type hdfsRig struct {
	t     testing.TB
	dir   *checkpoint.Dir
	conf  spark.Conf
	v     event.Version
	nowMs int64
	meter tallyMeter
	store *hdfsStore
}

func newHDFSRig(t testing.TB, v event.Version) *hdfsRig {
	dir, err := checkpoint.Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	r := &hdfsRig{t: t, dir: dir, v: v, nowMs: 1_000_000, conf: spark.Conf{
		Provider: spark.HDFS, MaxBatchesInMemory: 2, MinDeltasForSnapshot: 10, MinBatchesToRetain: 100,
		MaintenanceInterval: time.Minute, ForceSnapshotUploadOnLag: true, AutoSnapshotRepair: true,
	}}
	r.lose()
	return r
}

// lose puts the partition on a new executor that has nothing in memory.
func (r *hdfsRig) lose() {
	r.store = newHDFS(hdfsOptions{
		ID: ID{Name: "default"}, Dir: r.dir.State(0, 0, "default"), Conf: &r.conf, Version: r.v,
		Meter: func() device.Meter { return &r.meter }, Now: func() int64 { return r.nowMs },
	})
}

func (r *hdfsRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// batch puts some rows on top of a version.
func (r *hdfsRig) batch(version int64, keys ...string) *Figures {
	r.t.Helper()
	r.must(r.store.Load(version))
	for _, k := range keys {
		r.must(r.store.Put(0, []byte(k), fmt.Appendf(nil, "%s at %d", k, version)))
	}
	r.must(r.store.Commit())
	return r.store.Figures()
}

func (r *hdfsRig) maintain() Maintenance {
	r.t.Helper()
	m, err := r.store.maintain()
	r.must(err)
	return m
}

// content reads all rows of a version.
func (r *hdfsRig) content(version int64) map[string]string {
	r.t.Helper()
	r.must(r.store.Load(version))
	got := map[string]string{}
	var last []byte
	r.must(r.store.Scan(0, nil, nil, func(k, v []byte) bool {
		if last != nil && bytes.Compare(last, k) >= 0 {
			r.t.Fatalf("key %q is visited after %q", k, last)
		}
		last = bytes.Clone(k)
		got[string(k)] = string(v)
		return true
	}))
	r.must(r.store.Abort())
	return got
}

var (
	hdfs34 = event.Version{Major: 3, Minor: 4, Patch: 4}
	hdfs41 = event.Version{Major: 4, Minor: 1, Patch: 4}
	hdfs42 = event.Version{Major: 4, Minor: 2, Patch: 1}
)

func TestHDFSStoreHoldsWhatAMapWould(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playAgainstMaps(t, seed) })
	}
}

// playAgainstMaps drives a store and a plain map through batches, maintenance,
// aborted attempts and lost executors, and reads back every version kept.
func playAgainstMaps(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	r := newHDFSRig(t, hdfs42)
	r.conf.MinBatchesToRetain = 12
	versions := []map[string]string{{}}
	for v := int64(0); v < 80; v++ {
		want := maps.Clone(versions[v])
		if rng.IntN(8) == 0 {
			r.must(r.store.Load(v))
			changeStore(r, rng, maps.Clone(want))
			r.must(r.store.Abort())
		}
		r.must(loadEitherWay(r.store, rng, v))
		changeStore(r, rng, want)
		r.must(r.store.Commit())
		if f := r.store.Figures(); f.Rows != int64(len(want)) {
			t.Fatalf("version %d reports %d rows, has %d", v+1, f.Rows, len(want))
		}
		versions = append(versions, want)
		if rng.IntN(5) == 0 {
			r.maintain()
		}
		if rng.IntN(10) == 0 {
			r.lose()
		}
	}
	for v := int64(len(versions)) - 12; v < int64(len(versions)); v++ {
		for range 2 { // from the checkpoint, then from memory
			if got := r.content(v); !maps.Equal(got, versions[v]) {
				t.Fatalf("version %d has %d rows that differ from the %d written", v, len(got), len(versions[v]))
			}
		}
		r.lose()
	}
}

// loadEitherWay loads as an aggregation or as another operator does.
func loadEitherWay(s *hdfsStore, rng *rand.Rand, version int64) error {
	if rng.IntN(2) == 0 {
		return LoadReadWrite(s, version)
	}
	return s.Load(version)
}

func changeStore(r *hdfsRig, rng *rand.Rand, want map[string]string) {
	for range rng.IntN(120) {
		k, v := fmt.Sprint(rng.IntN(200)), strings.Repeat("v", rng.IntN(30))
		if rng.IntN(3) == 0 {
			r.must(r.store.Delete(0, []byte(k)))
			delete(want, k)
		} else {
			r.must(r.store.Put(0, []byte(k), []byte(v)))
			want[k] = v
		}
		got, found, err := r.store.Get(0, []byte(k))
		r.must(err)
		if w, ok := want[k]; found != ok || string(got) != w {
			r.t.Fatalf("%s is %q (%v), want %q (%v)", k, got, found, w, ok)
		}
	}
}

func TestFigureKeysAreThoseOfTheVersion(t *testing.T) {
	old := []event.MetricID{event.StateOnCurrentVersionSizeBytes, event.LoadedMapCacheHitCount, event.LoadedMapCacheMissCount}
	for v, want := range map[event.Version][]event.MetricID{
		hdfs34: old, hdfs41: old, hdfs42: append(slices.Clip(old), event.HDFSNumSnapshotsAutoRepaired, event.HDFSForceSnapshotCount),
	} {
		f := newHDFSRig(t, v).batch(0)
		var got []event.MetricID
		for id := range f.Custom {
			if f.Custom.Has(event.MetricID(id)) {
				got = append(got, event.MetricID(id))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("Spark %v reports %v, want %v", v, got, want)
		}
	}
}

func TestSnapshotIsWrittenAfterMoreThanMinDeltas(t *testing.T) {
	r := newHDFSRig(t, hdfs41)
	for v := range int64(10) {
		if f := r.batch(v, "a"); f.LastUploaded != -1 {
			t.Fatalf("version %d: uploaded %d before any snapshot", v+1, f.LastUploaded)
		}
	}
	if m := r.maintain(); m.Uploaded != 0 {
		t.Error("ten deltas are not more than ten")
	}
	r.batch(10, "a")
	if m := r.maintain(); m.Uploaded != 1 || m.Took <= 0 {
		t.Errorf("maintenance after eleven deltas: %+v", m)
	}
	if m := r.maintain(); m.Uploaded != 0 {
		t.Error("the same version is uploaded twice")
	}
	if f := r.batch(11, "a"); f.LastUploaded != 11 {
		t.Errorf("last uploaded %d, want 11", f.LastUploaded)
	}
}

func TestAFreshInstanceUploadsNothingThatItHasNotInMemory(t *testing.T) {
	r := newHDFSRig(t, hdfs41)
	for v := range int64(20) {
		r.batch(v, "a")
	}
	r.lose()
	if m := r.maintain(); m.Uploaded != 0 {
		t.Error("uploaded a version that was never loaded")
	}
	if f := r.batch(20, "b"); f.LastUploaded != -1 {
		t.Errorf("last uploaded %d, want -1 from a fresh instance", f.LastUploaded)
	}
}

func TestOldVersionsAreDeletedAndNewOnesStillLoad(t *testing.T) {
	r := newHDFSRig(t, hdfs41)
	r.conf.MinBatchesToRetain = 20
	for v := range int64(200) {
		r.batch(v, fmt.Sprint(v%50))
		if v%10 == 0 {
			r.maintain()
		}
	}
	files, err := r.dir.State(0, 0, "default").Files()
	r.must(err)
	if len(files) > 20+2*11+10 {
		t.Errorf("%d files are left", len(files))
	}
	r.lose()
	if got := r.content(180); len(got) != 50 {
		t.Errorf("the oldest version kept has %d rows, want 50", len(got))
	}
	if err := r.store.Load(100); err == nil {
		t.Error("a version that was deleted loads")
	}
}

func TestCacheCountsHitsAndMissesOfEveryLoad(t *testing.T) {
	r := newHDFSRig(t, hdfs41)
	counts := func(f *Figures) [2]float64 {
		return [2]float64{f.Custom[event.LoadedMapCacheHitCount], f.Custom[event.LoadedMapCacheMissCount]}
	}
	if got := counts(r.batch(0)); got != [2]float64{0, 0} {
		t.Errorf("version 0 is neither hit nor miss: %v", got)
	}
	r.batch(1)
	if got := counts(r.batch(2)); got != [2]float64{2, 0} {
		t.Errorf("hits and misses %v, want 2 and 0", got)
	}
	r.lose()
	r.must(LoadReadWrite(r.store, 3))
	r.must(r.store.Commit())
	if got := counts(r.store.Figures()); got != [2]float64{1, 1} {
		t.Errorf("hits and misses %v on a new executor, want 1 and 1", got)
	}
}

func TestWithoutACacheEveryLoadReadsFiles(t *testing.T) {
	r := newHDFSRig(t, hdfs41)
	r.conf.MaxBatchesInMemory = 0
	r.lose()
	for v := range int64(3) {
		r.batch(v, fmt.Sprint(v))
	}
	if got := r.store.Figures().Custom[event.LoadedMapCacheMissCount]; got != 2 {
		t.Errorf("%v misses, want 2", got)
	}
	if got := r.content(3); len(got) != 3 {
		t.Errorf("rows %v", got)
	}
}

func TestDamagedSnapshotFailsTheLoadUntilSparkRepairs(t *testing.T) {
	prepare := func(v event.Version) *hdfsRig {
		r := newHDFSRig(t, v)
		for b := range int64(25) {
			r.batch(b, fmt.Sprint(b))
			if b == 11 || b == 23 {
				r.maintain()
			}
		}
		r.lose()
		r.store.setFaults(&Faults{Damaged: func(id ID, version int64) bool { return id.Name == "default" && version == 24 }})
		return r
	}
	old := prepare(hdfs41)
	err := old.store.Load(25)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "24.snapshot") {
		t.Errorf("Spark 4.1: %v", err)
	}
	repaired := prepare(hdfs42)
	if got := repaired.content(25); len(got) != 25 {
		t.Errorf("%d rows after the repair, want 25", len(got))
	}
	if f := repaired.batch(25, "x"); f.Custom[event.HDFSNumSnapshotsAutoRepaired] != 1 {
		t.Errorf("%v repairs reported, want 1", f.Custom[event.HDFSNumSnapshotsAutoRepaired])
	}
	if f := repaired.batch(26, "x"); f.Custom[event.HDFSNumSnapshotsAutoRepaired] != 0 {
		t.Error("the repair is reported twice")
	}
}

func TestTornDeltaIsAnErrorThatNamesTheFile(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	r.batch(0, "a")
	r.batch(1, "b")
	state := r.dir.State(0, 0, "default")
	data, err := state.Delta(2)
	r.must(err)
	for _, bad := range [][]byte{nil, data[:len(data)-1], append(slices.Clone(data), 1), data[:3]} {
		_, err := state.WriteDelta(2, bad)
		r.must(err)
		r.lose()
		if err := r.store.Load(2); !errors.Is(err, checkpoint.ErrDamaged) || !strings.Contains(err.Error(), "2.delta") {
			t.Errorf("%d bytes of %d: %v", len(bad), len(data), err)
		}
	}
}

func TestLaggingStoreWritesASnapshotInTheCommit(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	forced := []int64{}
	for v := range int64(130) {
		r.nowMs += 15_000
		if f := r.batch(v, "a"); f.Custom[event.HDFSForceSnapshotCount] == 1 {
			forced = append(forced, v+1)
		}
	}
	if !slices.Equal(forced, []int64{50, 100}) {
		t.Errorf("forced at versions %v, want 50 and 100", forced)
	}
	if last := r.store.Figures().LastUploaded; last != 100 {
		t.Errorf("last uploaded %d", last)
	}
}

func TestNothingIsForcedBeforeItsTime(t *testing.T) {
	for name, change := range map[string]func(r *hdfsRig){
		"older Spark":  func(r *hdfsRig) { r.v = hdfs41 },
		"switched off": func(r *hdfsRig) { r.conf.ForceSnapshotUploadOnLag = false },
		"short time":   func(r *hdfsRig) { r.conf.MaintenanceInterval = time.Hour },
	} {
		r := newHDFSRig(t, hdfs42)
		change(r)
		r.lose()
		for v := range int64(60) {
			r.nowMs += 15_000
			if f := r.batch(v, "a"); f.LastUploaded != -1 {
				t.Fatalf("%s: forced at version %d", name, v+1)
			}
		}
	}
}

func TestMisuseIsRefused(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	if _, _, err := r.store.Get(0, []byte("k")); !errors.Is(err, errNotLoaded) {
		t.Errorf("read before a load: %v", err)
	}
	if err := r.store.Commit(); !errors.Is(err, errNotLoaded) {
		t.Errorf("commit before a load: %v", err)
	}
	if err := r.store.Load(-1); err == nil {
		t.Error("a negative version loads")
	}
	r.must(r.store.Load(0))
	if err := r.store.Put(1, []byte("k"), nil); !errors.Is(err, errFamily) {
		t.Errorf("write to a column family: %v", err)
	}
	if err := r.store.Load(7); err == nil {
		t.Error("a version that was never written loads")
	}
}

func TestTimesAreThoseOfOneBatch(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	r.batch(0, "a", "b", "c")
	r.must(r.store.Load(1))
	before := *r.store.Figures()
	if before.Put != 0 || before.Commit != 0 || before.Load <= 0 {
		t.Errorf("times after a load: %+v", before)
	}
	r.must(r.store.Put(0, []byte("d"), nil))
	after := *r.store.Figures()
	if after.Put <= before.Put || after.Load != before.Load {
		t.Errorf("times after a put: %+v", after)
	}
	if again := *r.store.Figures(); again.Put != after.Put {
		t.Error("asking twice charges twice")
	}
	r.must(r.store.Commit())
	if f := r.store.Figures(); f.Commit <= 0 || f.Put != after.Put {
		t.Errorf("times after the commit: %+v", f)
	}
}

func TestGarbageCollectionLooksAtTheWholeHeapOnceABatch(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprint(i))
	}
	r.batch(0, keys...)
	first := r.meter.work[device.StepGC].BytesIn
	r.batch(1)
	second := r.meter.work[device.StepGC].BytesIn - first
	if first <= 0 || second < 1000*(entryBytes+2*rowObjectBytes) {
		t.Errorf("live heap of %d, then %d bytes", first, second)
	}
}

func TestALeakIsLiveHeap(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	memory := r.batch(0, "a").MemoryBytes
	before := r.meter.work[device.StepGC].BytesIn
	r.store.setFaults(&Faults{LeakBytes: 1 << 30})
	if f := r.batch(1, "a"); f.MemoryBytes > 2*memory {
		t.Errorf("Spark's estimate of its maps has grown from %d to %d", memory, f.MemoryBytes)
	}
	if live := r.meter.work[device.StepGC].BytesIn - before; live < 1<<30 {
		t.Errorf("the collector looks at %d bytes", live)
	}
}

func TestOldMapsAreLetGo(t *testing.T) {
	for _, inMemory := range []int{0, 1, 2, 5} {
		r := newHDFSRig(t, hdfs42)
		r.conf.MaxBatchesInMemory = inMemory
		r.lose()
		for v := range int64(30) {
			r.batch(v, fmt.Sprint(v))
			kept := 0
			for _, m := range r.store.cache.maps {
				for ; m != nil; m = m.base {
					kept++
				}
			}
			if n := len(r.store.cache.maps); n > inMemory || kept > n*(n+1)/2 {
				t.Fatalf("version %d: %d maps kept, %d of them to be reached", v+1, n, kept)
			}
		}
	}
}

func TestLoadingAgainCostsTimeThatGrowsWithDeltas(t *testing.T) {
	cost := func(batches int64) time.Duration {
		r := newHDFSRig(t, hdfs41)
		for v := range batches {
			r.batch(v, "a", "b")
		}
		r.lose()
		r.must(r.store.Load(batches))
		return r.store.Figures().Load
	}
	if few, many := cost(2), cost(40); many < 10*few {
		t.Errorf("loading 2 deltas takes %v, 40 take %v", few, many)
	}
}

func TestLiveTimesAreMeasuredPerOperation(t *testing.T) {
	r := newHDFSRig(t, hdfs42)
	r.store.opt.Live = true
	r.must(r.store.Load(0))
	for range 5 {
		r.must(r.store.Put(0, []byte("k"), nil))
	}
	if n := r.meter.work[device.StepHeap].Ops; n != 5+1 {
		t.Errorf("%d operations timed, want five puts and the load", n)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(appendEnd(nil))
	f.Add(appendEnd(appendRemoval(appendPut(nil, []byte("key"), []byte("value")), []byte("key"))))
	f.Add([]byte{0, 0, 0, 9, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var again []byte
		_, err := readRecords(data,
			func(k, v []byte) { again = appendPut(again, k, v) },
			func(k []byte) { again = appendRemoval(again, k) })
		if err == nil && !bytes.Equal(appendEnd(again), data) {
			t.Fatalf("%x reads as %x", data, again)
		}
		if err != nil && !errors.Is(err, checkpoint.ErrDamaged) {
			t.Fatal(err)
		}
	})
}
