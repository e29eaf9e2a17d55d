package exporter

import (
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// vector makes a vector of pairs of id and value.
func vector(pairs ...any) *event.Vector {
	v := &event.Vector{}
	v.Clear()
	for i := 0; i < len(pairs); i += 2 {
		switch val := pairs[i+1].(type) {
		case int:
			v[pairs[i].(event.MetricID)] = float64(val)
		case float64:
			v[pairs[i].(event.MetricID)] = val
		}
	}
	return v
}

func wantNumber(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got != want && !(got != got && want != want) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

var nan = math.NaN()

func TestColumnFamilyCountsAreSwappedBackBySender(t *testing.T) {
	f := func(v *event.Vector, ext, in float64) {
		t.Helper()
		swapColumnFamilies(v)
		wantNumber(t, "external", v[event.RocksDBNumExternalColumnFamilies], ext)
		wantNumber(t, "internal", v[event.RocksDBNumInternalColumnFamilies], in)
	}
	ext, in := event.RocksDBNumExternalColumnFamilies, event.RocksDBNumInternalColumnFamilies
	f(vector(ext, 1, in, 6), 6, 1)
	f(vector(ext, 1, in, 6, event.RocksDBNumLoadedFromDfs, 0), 1, 6)
	f(vector(ext, 1), nan, 1)
	f(vector(), nan, nan)
}

func TestTaskTimesAreBoundByTheBatch(t *testing.T) {
	x := New(Options{})
	f := func(o event.Operator, ms, raw float64, id event.MetricID, kept bool) {
		t.Helper()
		o.Values.Clear()
		v := vector(id, raw)
		x.limitTimes(v, taskLimitMs(&o, ms))
		if v.Has(id) != kept {
			t.Errorf("%g of %s in a batch of %g ms with %d stores: kept is %t", raw, event.Lookup(id).JSON, ms, o.Instances, v.Has(id))
		}
	}
	four := event.Operator{Instances: 4}
	f(four, 100, 404, event.RocksDBPutLatency, true) // a millisecond more per store for rounding
	f(four, 100, 405, event.RocksDBPutLatency, false)
	f(four, 100, 404e6, event.RocksDBWriterStallLatency, true)
	f(four, 100, 405e6, event.RocksDBWriterStallLatency, false)
	f(four, 100, 405, event.CommitTime, false)
	f(four, 100, 1e12, event.RocksDBSstFileSize, true)               // no time
	f(four, nan, 1e12, event.CommitTime, true)                       // nothing to compare with
	f(four, 0, 400, event.CommitTime, true)                          // no batch takes no time: hand-made
	f(event.Operator{}, 100, 5.6e10, event.RocksDBPutLatency, false) // more than anybody's stores
	f(event.Operator{}, 100, 5.6e5, event.RocksDBPutLatency, true)
}

func TestTheLimitFallsBackOnPartitions(t *testing.T) {
	o := event.Operator{Values: *vector(event.NumShufflePartitions, 10)}
	wantNumber(t, "limit", taskLimitMs(&o, 99), 1000)
}

func TestMemoryThatCannotBe(t *testing.T) {
	x := New(Options{})
	f := func(p event.Provider, instances int32, mem, want float64) {
		t.Helper()
		v := vector(event.MemoryUsedBytes, mem)
		x.correctMemory(&event.Operator{Provider: p, Instances: instances}, v)
		wantNumber(t, "memory", v[event.MemoryUsedBytes], want)
	}
	f(event.ProviderRocksDB, 200, 0, nan)
	f(event.ProviderHDFS, 200, 0, 0)
	f(event.ProviderUnknown, 200, 0, 0)
	f(event.ProviderRocksDB, 200, nan, nan)
	f(event.ProviderRocksDB, 200, 2e9, 2e9)
	f(event.ProviderRocksDB, 200, 15.9e12, nan)
	f(event.ProviderRocksDB, 4000, 15.9e12, 15.9e12) // a large cluster
	f(event.ProviderRocksDB, 1, 64<<30, 64<<30)      // one large store
	f(event.ProviderRocksDB, 0, 2<<40, nan)
}

func TestRowCountsThatAreNotTracked(t *testing.T) {
	rocks := &event.Operator{Provider: event.ProviderRocksDB}
	op := &operatorState{}
	f := func(o *event.Operator, v *event.Vector, conf tri, want float64) {
		t.Helper()
		op.correctRows(o, v, conf)
		wantNumber(t, "rows", v[event.NumRowsTotal], want)
	}
	rows, updated, sst := event.NumRowsTotal, event.NumRowsUpdated, event.RocksDBSstFileSize
	f(rocks, vector(rows, 0), unknown, 0)
	f(rocks, vector(rows, 0, updated, 3), unknown, nan)
	f(rocks, vector(rows, 0), unknown, nan) // it was shown before that zero means nothing
	f(rocks, vector(rows, 0, updated, 3), on, 0)
	f(rocks, vector(rows, 5), unknown, 5)
	f(rocks, vector(rows, 0, sst, 9), unknown, 0) // counted once, so zero is zero
	f(rocks, vector(rows, 0, sst, 9), off, nan)
	f(rocks, vector(rows, 7), off, 7)
	f(&event.Operator{Provider: event.ProviderHDFS}, vector(rows, 0, updated, 3), off, 0)
	f(rocks, vector(), unknown, nan)
}

func TestGrowthCountsIncreasesOnly(t *testing.T) {
	op := &operatorState{}
	f := func(now, want float64) {
		t.Helper()
		v := vector(event.LoadedMapCacheHitCount, now)
		op.delta(v, event.LoadedMapCacheHitCount, false)
		wantNumber(t, "growth", v[event.LoadedMapCacheHitCount], want)
	}
	f(nan, nan)
	if op.prev != nil {
		t.Error("an absent figure is remembered")
	}
	f(100, 0)
	f(130, 30)
	f(nan, nan)
	f(131, 1)
	f(40, 0)
	f(41, 1)
}

func TestWhichChangelogModeIsBelieved(t *testing.T) {
	s := &sticky{}
	f := func(v *event.Vector, conf, want tri) {
		t.Helper()
		if got := s.mode(v, conf); got != want {
			t.Errorf("mode is %s, want %s", got, want)
		}
	}
	commit := event.RocksDBChangeLogWriterCommitLatency
	f(vector(), unknown, unknown)
	f(vector(), off, off)
	s.compared, s.changed = 9, 9
	f(vector(), unknown, unknown)
	s.compared, s.changed = 10, 9
	f(vector(), unknown, off)
	f(vector(), on, on)
	s.compared = 11
	f(vector(), unknown, unknown)
	s.changed = 11
	f(vector(commit, 0), unknown, off)
	f(vector(commit, 2), unknown, on)
	f(vector(), unknown, on) // a changelog was written in this run
	s.startRun()
	f(vector(), unknown, unknown)
}

func TestUploadsAreCountedOnce(t *testing.T) {
	p := &New(Options{}).plan
	s := &sticky{}
	f := func(mode tri, batch int64, want float64, pairs ...any) {
		t.Helper()
		v := vector(pairs...)
		s.fixUpload(v, p, mode, batch)
		wantNumber(t, "uploaded", v[event.RocksDBBytesCopied], want)
	}
	b, files := event.RocksDBBytesCopied, event.RocksDBFilesCopied
	f(unknown, 5, nan) // nothing there, nothing remembered
	f(unknown, 6, 0, b, 100)
	f(unknown, 7, 0, b, 100)
	f(unknown, 8, 100, b, 100, files, 1) // another upload of as many bytes
	f(unknown, 9, 0, b, 100, files, 1)
	f(unknown, 10, nan)
	f(unknown, 11, 0, b, 100, files, 1) // an event without the figures changes nothing
	f(on, 12, 70, b, 70, files, 1)
	f(off, 13, 70, b, 70, files, 1)
	s.startRun()
	f(unknown, 14, 0, b, 999, files, 9) // downloads of the new run
	f(unknown, 15, 50, b, 50, files, 1)
	f(unknown, 16, 0, b, 60, files, 2, event.RocksDBNumLoadedFromDfs, 3)
	f(unknown, 17, 0, b, 60, files, 2)
	*s = sticky{}
	f(on, 0, 10, b, 10) // a query's first batch
	*s = sticky{}
	f(off, 400, 10, b, 10)
}

// TestStoresThatUploadOneAfterAnotherAreCountedOnce has four stores of about 50
// each: the sum reaches a round's 200 in steps, and the next round's 220 from there.
func TestStoresThatUploadOneAfterAnotherAreCountedOnce(t *testing.T) {
	p := &New(Options{}).plan
	s := &sticky{}
	sum := 0.0
	f := func(batch int64, bytes, flush, want float64) {
		t.Helper()
		v := vector(event.RocksDBBytesCopied, bytes, event.RocksDBCommitFlushLatency, flush)
		s.fixUpload(v, p, on, batch)
		sum += v[event.RocksDBBytesCopied]
		wantNumber(t, "uploaded in all", sum, want)
	}
	f(0, 0, 0, 0)
	f(9, 0, 30, 0) // a snapshot is cut
	f(10, 150, 0, 0)
	f(11, 150, 0, 0)
	f(12, 200, 0, 0)
	f(19, 200, 35, 200) // the next one
	f(20, 205, 0, 200)  // one of 55 in place of one of 50, the others as before
	f(21, 240, 0, 200)
	f(28, 230, 0, 200)
	f(29, 220, 20, 420) // the last store was late
	f(39, 220, 20, 420) // no upload since
}

func TestWhatAMovedStoreFetchedIsNoUpload(t *testing.T) {
	p := &New(Options{}).plan
	s := &sticky{}
	f := func(batch, oldest int64, bytes, flush, want float64) {
		t.Helper()
		v := vector(event.RocksDBBytesCopied, bytes, event.RocksDBCommitFlushLatency, flush)
		s.noteSnapshots(oldest)
		s.fixUpload(v, p, on, batch)
		wantNumber(t, "uploaded", v[event.RocksDBBytesCopied], want)
	}
	f(0, -1, 0, 0, 0)
	f(11, 10, 200, 0, 0)
	f(19, 10, 200, 30, 200)
	f(22, -1, 900, 40, 0) // a store is new to its executor and shows what it fetched
	f(23, -1, 900, 0, 0)
	f(24, 20, 210, 0, 0)
	f(29, 20, 210, 30, 210)
}

func TestOldCommitTimesAreFound(t *testing.T) {
	p := &New(Options{}).plan
	s := &sticky{}
	f := func(mode tri, batch int64, want float64, pairs ...any) {
		t.Helper()
		v := vector(pairs...)
		s.fixSlow(v, p, mode, batch)
		wantNumber(t, "flush", v[event.RocksDBCommitFlushLatency], want)
	}
	flush, check, total, sync := event.RocksDBCommitFlushLatency, event.RocksDBCommitCheckpointLatency, event.CommitTime, event.RocksDBCommitFileSyncLatency
	four, load := event.RocksDBNumInternalColFamiliesKeys, event.RocksDBLoadLatency
	f(on, 5, 10, flush, 10, total, 100)
	f(on, 6, 10, flush, 10, total, 100) // not Spark 4.0, and possible
	f(on, 7, 0, flush, 10, total, 5)    // not possible, and seen before
	f(on, 8, 30, flush, 30, total, 5)   // not possible, but new: counted once
	f(on, 9, 0, flush, 30, total, 5)
	*s = sticky{}
	f(on, 5, nan, flush, 10, check, 1, sync, 90, total, 100) // never seen, and older than this batch
	*s = sticky{}
	f(on, 0, 10, flush, 10, total, 5) // nothing is older than the first batch
	*s = sticky{}
	f(unknown, 5, 10, flush, 10, total, 100, four, 0)
	f(unknown, 6, 0, flush, 10, total, 100, four, 0)
	f(unknown, 7, 10, flush, 10, total, 100, four, 0, load, 0) // Spark 4.1
	f(off, 8, 10, flush, 10, total, 100, four, 0)
	f(unknown, 9, nan, total, 100, four, 0)
	f(unknown, 9, 0, flush, 0, total, 0, four, 0)
}
