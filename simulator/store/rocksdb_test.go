package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

// randomOps changes a state with so many keys.
func randomOps(rng *rand.Rand, keys, n int) []op {
	var ops []op
	for range rng.IntN(n + 1) {
		k := fmt.Sprintf("key%05d", rng.IntN(keys))
		ops = append(ops, op{key: k, value: fmt.Sprint(rng.Uint64()), remove: rng.IntN(4) == 0})
	}
	return ops
}

// variants are settings under which the same state must come out.
func variants() map[string]map[string]string {
	return map[string]map[string]string{
		"plain":     {},
		"changelog": changelogOn(),
		"compact":   changelogOn(rocksConf+"compactOnCommit", "true"),
		"bounded":   changelogOn(rocksConf+"boundedMemoryUsage", "true", rocksConf+"maxMemoryUsageMB", "8"),
		"unload":    changelogOn(confPrefix+"unloadOnCommit", "true"),
		"untracked": changelogOn(rocksConf+"trackTotalNumberOfRows", "false"),
		"format2":   changelogOn(confPrefix+"checkpointFormatVersion", "2"),
		"short":     changelogOn("spark.sql.streaming.minBatchesToRetain", "3", confPrefix+"minDeltasForSnapshot", "4"),
	}
}

func TestStateIsWhatAMapWouldHold(t *testing.T) {
	for i, v := range spark.Versions() {
		for name, conf := range variants() {
			if raceEnabled && len(name)%3 != i%3 {
				continue
			}
			t.Run(v.String()+"/"+name, func(t *testing.T) {
				playAgainstTruth(t, v, conf, uint64(v.Major)<<8|uint64(v.Minor))
			})
		}
	}
}

// playAgainstTruth plays batches with all that can come between them.
func playAgainstTruth(t *testing.T, v event.Version, conf map[string]string, seed uint64) {
	t.Helper()
	r := newRig(t, v.String(), 2, conf)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		p := rng.IntN(2)
		f := r.batch(p, rng.IntN(2) == 0, randomOps(rng, 60, 40)...)
		checkFigures(t, r, p, f)
		switch rng.IntN(14) {
		case 0:
			r.must(r.x.Lose())
			r.start()
		case 1:
			r.must(r.x.Unload(r.ids[p]))
		case 2, 3, 4:
			_, err := r.x.Maintain()
			r.must(err)
		case 5:
			r.must(r.store(p).Load(r.version(p)))
			r.must(r.store(p).Put(0, []byte("dropped"), nil))
			r.must(r.store(p).Abort())
		}
		if rng.IntN(6) == 0 {
			r.must(r.store(p).Load(r.version(p)))
			r.check(p, r.version(p))
			r.must(r.store(p).Abort())
		}
	}
	r.checkKept()
}

// checkFigures looks at what must hold of every commit.
func checkFigures(t *testing.T, r *rig, p int, f *Figures) {
	t.Helper()
	if r.conf.TrackRows && f.Rows != int64(len(r.truth[r.ids[p]][r.version(p)])) {
		t.Fatalf("%d rows reported, want %d", f.Rows, len(r.truth[r.ids[p]][r.version(p)]))
	}
	for id, x := range f.Custom {
		if x < 0 {
			t.Fatalf("%s is %v", event.Lookup(event.MetricID(id)).JSON, x)
		}
	}
	c := &f.Custom
	fresh := c[event.RocksDBCommitFileSyncLatency]
	if !r.rocks(p).m.sticky {
		fresh += c[event.RocksDBCommitFlushLatency] + c[event.RocksDBCommitCompactLatency] + c[event.RocksDBCommitCheckpointLatency]
	}
	if fresh > f.Commit.Seconds()*1000 {
		t.Fatalf("parts of the commit take %v ms, all of it %v", fresh, f.Commit)
	}
	if c.Has(event.RocksDBSaveZipFilesLatency) &&
		c[event.RocksDBSaveZipFilesLatency]+c[event.RocksDBChangeLogWriterCommitLatency] > c[event.RocksDBCommitFileSyncLatency] {
		t.Fatal("parts of the file sync take longer than it")
	}
	if c.Has(event.RocksDBReplayChangeLogLatency) && c[event.RocksDBReplayChangeLogLatency] > c[event.RocksDBLoadLatency]+1 {
		t.Fatal("replay takes longer than the load that it is part of")
	}
	if f.Put+f.Commit < f.Stall || f.Commit == 0 {
		t.Fatal("writes take less than their stalls, or the commit takes nothing")
	}
}

// checkKept loads each version that is to be kept on a new executor.
func (r *rig) checkKept() {
	r.tb.Helper()
	r.must(r.x.Lose())
	r.start()
	retain := int64(r.conf.MinBatchesToRetain)
	for p := range r.ids {
		for v := max(r.version(p)-retain+1, 0); v <= r.version(p); v++ {
			if v == 0 {
				continue
			}
			r.must(r.store(p).Load(v))
			r.check(p, v)
			r.must(r.store(p).Abort())
		}
	}
}

// The sizes are those of a windowed aggregation of running Spark: keys of 49
// bytes and values of 25; 3,195 rows put, and then 1,284 puts and 568 removals.
func TestNativeCountsAreThoseOfRunningSpark(t *testing.T) {
	for _, c := range []struct {
		version             string
		puts, gets, written [2]float64
	}{
		{"3.4.4", [2]float64{1, 1}, [2]float64{3195, 1852}, [2]float64{3195*77 + 12, 1284*77 + 568*51 + 12}},
		{"4.0.5", [2]float64{3195, 1852}, [2]float64{3195, 1852}, [2]float64{284355, 150060}},
	} {
		r := newRig(t, c.version, 1, nil)
		key := func(i int) string { return fmt.Sprintf("%049d", i) }
		value := strings.Repeat("v", 25)
		var first, second []op
		for i := range 3195 {
			first = append(first, op{key: key(i), value: value})
		}
		for i := range 1284 {
			second = append(second, op{key: key(5000 + i), value: value})
		}
		for i := range 568 {
			second = append(second, op{key: key(i), remove: true})
		}
		for i, ops := range [][]op{first, second} {
			f := r.batch(0, false, ops...).Custom
			if f[event.RocksDBPutCount] != c.puts[i] || f[event.RocksDBGetCount] != c.gets[i] || f[event.RocksDBTotalBytesWritten] != c.written[i] {
				t.Errorf("%s, batch %d: %v puts, %v gets, %v bytes written, want %v, %v, %v", c.version, i, f[event.RocksDBPutCount],
					f[event.RocksDBGetCount], f[event.RocksDBTotalBytesWritten], c.puts[i], c.gets[i], c.written[i])
			}
		}
		s := r.store(0)
		r.must(s.Load(2))
		r.must(s.Scan(0, nil, nil, func(_, _ []byte) bool { return true }))
		r.must(s.Commit())
		if got := s.Figures().Custom[event.RocksDBTotalBytesReadThroughIterator]; got != (3195+1284-568)*74 {
			t.Errorf("%s: %v bytes read through the iterator", c.version, got)
		}
	}
}

// Four stores of running Spark 4.1 with and without rows in their memtables.
func TestMemoryIsThatOfRunningSpark(t *testing.T) {
	bounded := changelogOn(rocksConf+"boundedMemoryUsage", "true")
	for _, c := range []struct {
		name, version string
		conf          map[string]string
		empty, filled int64
		pinned        float64
	}{
		{"unbounded", "4.1.4", changelogOn(), 8544, 4219168, 352},
		{"bounded", "4.2.1", bounded, 0, 5512736, 4458032},
		{"bounded, hidden", "4.0.5", bounded, 0, 0, 4 * 4458032},
		{"bounded, whole", "3.5.8", bounded, 0, 4*4458032 + 4*1054704, 4 * 4458032},
	} {
		r := newRig(t, c.version, 4, c.conf)
		for b := range 3 {
			var memory int64
			var pinned float64
			for p := range r.ids {
				var ops []op
				if b > 0 {
					ops = puts(b*10, 10, 20)
				}
				f := r.batch(p, false, ops...)
				memory += f.MemoryBytes
				pinned += f.Custom[event.RocksDBPinnedBlocksMemoryUsage]
			}
			if b == 0 && c.empty > 0 && memory != c.empty {
				t.Errorf("%s: %d bytes without rows, want %d", c.name, memory, c.empty)
			}
			if b == 2 && (memory != c.filled || pinned != c.pinned) {
				t.Errorf("%s: %d bytes, %v pinned, want %d, %v", c.name, memory, pinned, c.filled, c.pinned)
			}
		}
	}
}

// As when running Spark 4.3 lost an executor: snapshot 40 was uploaded, 50 only
// cut, and batch 51 loads 40, replays eleven changelogs and cuts again.
func TestALostExecutorFetchesAndReplays(t *testing.T) {
	r := newRig(t, "4.3.0", 1, changelogOn())
	for range 51 {
		if r.version(0) == 42 {
			_, err := r.x.Maintain()
			r.must(err)
		}
		r.batch(0, false, puts(0, 5, 10)...)
	}
	r.must(r.x.Lose())
	r.start()
	f := r.batch(0, false, puts(0, 5, 10)...)
	c := &f.Custom
	if c[event.RocksDBNumLoadedFromDfs] != 1 || c[event.RocksDBNumReplayChangelogFiles] != 11 || c[event.RocksDBReplayChangeLogLatency] < 1 {
		t.Errorf("fetched %v, replayed %v files in %v ms", c[event.RocksDBNumLoadedFromDfs], c[event.RocksDBNumReplayChangelogFiles], c[event.RocksDBReplayChangeLogLatency])
	}
	if c[event.RocksDBCommitFlushLatency] == 0 || c[event.RocksDBZipFileBytesUncompressed] != 0 || f.LastUploaded != -1 || c[event.RocksDBFilesCopied] == 0 {
		t.Errorf("flush %v, zip %v, uploaded %d, copied %v", c[event.RocksDBCommitFlushLatency], c[event.RocksDBZipFileBytesUncompressed], f.LastUploaded, c[event.RocksDBFilesCopied])
	}
	usual := f.Load
	if f = r.batch(0, false); f.Load*2 > usual || f.Custom[event.RocksDBNumLoadedFromDfs] != 0 {
		t.Errorf("the next load takes %v after %v", f.Load, usual)
	}
}

func TestAnAggregationHidesItsReloadFromSpark41On(t *testing.T) {
	r := newRig(t, "4.1.4", 1, changelogOn())
	var usual float64
	for range 12 {
		usual = r.batch(0, true, puts(0, 5, 10)...).Custom[event.RocksDBLoadLatency]
	}
	r.must(r.x.Lose())
	r.start()
	f := r.batch(0, true, puts(0, 5, 10)...)
	if f.Custom[event.RocksDBLoadLatency] != usual || f.Custom[event.RocksDBNumReplayChangelogFiles] != 0 || f.Load < 10*time.Millisecond {
		t.Errorf("load of %v reported as %v ms, %v files, usually %v ms", f.Load, f.Custom[event.RocksDBLoadLatency], f.Custom[event.RocksDBNumReplayChangelogFiles], usual)
	}
}

func TestFlushTimesStandInSpark40Only(t *testing.T) {
	for version, want := range map[string]bool{"3.5.8": false, "4.0.5": true, "4.1.4": false} {
		r := newRig(t, version, 1, changelogOn())
		var f *Figures
		for range 13 {
			f = r.batch(0, false, puts(0, 5, 10)...)
		}
		c := &f.Custom
		if got := c[event.RocksDBCommitFlushLatency]+c[event.RocksDBCommitCheckpointLatency] > 0; got != want {
			t.Errorf("%s: figures of an old snapshot stand: %v", version, got)
		}
	}
}

func TestAManyRecordsCommitCutsASnapshotInSpark35Only(t *testing.T) {
	for version, want := range map[string]int64{"3.5.8": 2, "4.0.5": 0} {
		r := newRig(t, version, 1, changelogOn())
		r.batch(0, false)
		r.batch(0, false, puts(0, 10001, 5)...)
		if got := r.rocks(0).lastSnapshot; got != want {
			t.Errorf("%s: snapshot of version %d, want %d", version, got, want)
		}
	}
}

func TestNewFamiliesForceASnapshotAndItsUploadOnce(t *testing.T) {
	r := newRig(t, "4.1.4", 1, changelogOn())
	r.families = []Family{{"count", false}, {"list", false}, {"$ttl", true}, {"$timers", true}}
	f := r.batch(0, false, puts(0, 5, 10)...)
	c := &f.Custom
	if f.LastUploaded != 1 || c[event.RocksDBSaveZipFilesLatency] == 0 || c[event.RocksDBChangeLogWriterCommitLatency] == 0 {
		t.Errorf("uploaded %d, zip %v ms, changelog %v ms", f.LastUploaded, c[event.RocksDBSaveZipFilesLatency], c[event.RocksDBChangeLogWriterCommitLatency])
	}
	if c[event.RocksDBNumExternalColumnFamilies] != 2 || c[event.RocksDBNumInternalColumnFamilies] != 3 {
		t.Errorf("families %v and %v, want them the wrong way round", c[event.RocksDBNumExternalColumnFamilies], c[event.RocksDBNumInternalColumnFamilies])
	}
	for range 3 {
		if f = r.batch(0, false); f.Custom[event.RocksDBSaveZipFilesLatency] != 0 {
			t.Error("families of before force a snapshot")
		}
	}
	r.must(r.x.Close())
	r.start()
	if f = r.batch(0, false); f.LastUploaded != -1 {
		t.Error("families of the checkpoint force a snapshot")
	}
}

func TestFamiliesAreKeptApart(t *testing.T) {
	r := newRig(t, "4.3.0", 1, changelogOn())
	r.families = []Family{{"a", false}, {"b", true}}
	s := r.store(0)
	r.must(s.Load(0))
	for family := range byte(3) {
		for i := range 4 + family {
			r.must(s.Put(family, []byte{i}, []byte{family}))
		}
	}
	r.must(s.Delete(1, []byte{0}))
	r.must(s.Commit())
	f := s.Figures()
	if f.Rows != 4+4 || f.Custom[event.RocksDBNumInternalColFamiliesKeys] != 6 {
		t.Errorf("%d rows and %v internal keys", f.Rows, f.Custom[event.RocksDBNumInternalColFamiliesKeys])
	}
	r.must(s.Load(1))
	r.must(s.Put(2, []byte{9}, []byte{2}))
	r.must(s.Commit())
	r.must(r.x.Lose())
	r.start()
	s = r.store(0)
	r.must(s.Load(2))
	for family, want := range []int{4, 4, 7} {
		n := 0
		r.must(s.Scan(byte(family), nil, nil, func(k, v []byte) bool {
			n++
			if v[0] != byte(family) || len(k) != 1 {
				t.Errorf("family %d has %v = %v", family, k, v)
			}
			return true
		}))
		if n != want {
			t.Errorf("family %d has %d keys, want %d", family, n, want)
		}
	}
	var keys []byte
	r.must(s.Scan(2, []byte{2}, []byte{4}, func(k, _ []byte) bool { keys = append(keys, k...); return true }))
	if !bytes.Equal(keys, []byte{2, 3}) {
		t.Errorf("range has %v", keys)
	}
}

func TestNativeStatisticsAddUpWhereTheyAreNotReset(t *testing.T) {
	r := newRig(t, "4.3.0", 1, map[string]string{rocksConf + "resetStatsOnLoad": "false"})
	for b := range 3 {
		f := r.batch(0, false, puts(0, 10, 5)...)
		if got := f.Custom[event.RocksDBPutCount]; got != float64(10*(b+1)) {
			t.Errorf("%v puts in batch %d", got, b)
		}
		if f.Put != 10*time.Microsecond+time.Duration(10*31)*10*time.Nanosecond {
			t.Errorf("writing takes %v in batch %d", f.Put, b)
		}
	}
}

func TestMisuseOfAStoreIsRefused(t *testing.T) {
	r := newRig(t, "4.3.0", 1, nil)
	s := r.store(0)
	if err := s.Put(0, nil, nil); err == nil {
		t.Error("a store without a version can be written to")
	}
	if err := s.Commit(); err == nil {
		t.Error("a store without a version can be committed")
	}
	r.must(s.Load(0))
	r.must(s.Put(0, []byte("a"), nil))
	if err := s.Load(0); err == nil {
		t.Error("a batch can be forgotten")
	}
	r.must(s.Abort())
	r.must(r.x.Close())
	r.must(r.x.Close())
	if _, err := r.x.Store(r.ids[0], nil); !errors.Is(err, ErrClosed) {
		t.Errorf("store of a closed executor: %v", err)
	}
	r.must(r.x.Unload(r.ids[0]))
}

func TestNothingIsLeftBehindAfterAThousandCommits(t *testing.T) {
	n := 1000
	if raceEnabled || testing.Short() {
		n = 50
	}
	before := runtime.NumGoroutine()
	r := newRig(t, "4.3.0", 2, changelogOn("spark.sql.streaming.minBatchesToRetain", "10"))
	for i := range n {
		for p := range r.ids {
			r.batch(p, i%2 == 0, puts(i%20, 3, 10)...)
			r.truth[r.ids[p]] = r.truth[r.ids[p]][len(r.truth[r.ids[p]])-1:]
			r.truth[r.ids[p]] = append(make([]map[string]string, i+1), r.truth[r.ids[p]]...)
		}
		if i%7 == 0 {
			_, err := r.x.Maintain()
			r.must(err)
		}
	}
	if n := countFiles(r, "local1"); n > 60 {
		t.Errorf("%d local files", n)
	}
	if n := countFiles(r, "ckpt"); n > 2*120 {
		t.Errorf("%d files in the checkpoint", n)
	}
	r.must(r.x.Close())
	if n := countFiles(r, "local1"); n != 0 {
		t.Errorf("%d local files after the end", n)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestALargeMemtableIsNotFlushedBetweenSnapshots(t *testing.T) {
	for memtable, want := range map[int64]bool{0: true, 4 << 20: false} {
		r := newRig(t, "4.3.0", 1, changelogOn())
		r.o.MemtableBytes = memtable
		r.start()
		flushed := false
		for b := range 9 {
			f := r.batch(0, false, puts(b*500, 500, 100)...)
			flushed = flushed || f.Custom[event.RocksDBTotalBytesWrittenByFlush] > 0
		}
		if flushed != want {
			t.Errorf("memtables of %d bytes are flushed: %v", memtable, flushed)
		}
	}
}
