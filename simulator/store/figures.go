package store

import (
	"time"

	"github.com/stategauge/stategauge/event"
)

// Figures returns the figures of the last commit, and the times of the batch.
func (s *rocksDB) Figures() *Figures {
	if s.db != nil && s.loaded != none {
		s.settle()
	}
	s.fig.Load = s.loads.took
	s.fig.Get = s.times.get - s.atLoad.t.get
	s.fig.Put = 0
	if !s.m.batchedWrites { // otherwise it is part of the commit
		s.fig.Put = s.times.put - s.atLoad.t.put
	}
	s.fig.Scan = s.times.scan - s.atLoad.t.scan
	s.fig.Stall = s.times.stall - s.atLoad.t.stall
	s.fig.Commit = s.commitTook
	return &s.fig
}

// report makes the figures of the commit that was just done.
func (s *rocksDB) report() {
	f := &s.fig
	s.count()
	s.absorb()
	s.settled = s.now
	f.Rows = 0
	if s.x.o.Conf.TrackRows {
		f.Rows = s.keys
	}
	f.LastUploaded = s.uploaded
	f.UniqueID = s.nextID
	f.Custom.Clear()
	s.reportMemory()
	s.reportNative(&f.Custom)
	s.reportCommit(&f.Custom)
	s.reportSync(&f.Custom)
	s.reportLoad(&f.Custom)
	s.reportFamilies(&f.Custom)
}

// ms is a time as a store reports it: whole milliseconds.
func ms(d time.Duration) float64 { return float64(d / time.Millisecond) }

func (s *rocksDB) reportNative(v *event.Vector) {
	w, was := &s.now, &s.from.work
	t, tWas := &s.times, &s.from.t
	v[event.RocksDBSstFileSize] = float64(s.seen.SSTBytes)
	v[event.RocksDBGetLatency] = ms(t.get - tWas.get)
	v[event.RocksDBPutLatency] = ms(t.put - tWas.put)
	v[event.RocksDBGetCount] = float64(w.gets - was.gets)
	puts, written := w.puts-was.puts, w.putBytes-was.putBytes
	if s.m.batchedWrites {
		puts, written = 1, written+writeBatchHeader
	}
	v[event.RocksDBPutCount] = float64(puts)
	v[event.RocksDBTotalBytesWritten] = float64(written)
	v[event.RocksDBTotalBytesRead] = float64(w.getBytes - was.getBytes)
	v[event.RocksDBTotalBytesReadThroughIterator] = float64(w.scanned - was.scanned)
	v[event.RocksDBReadBlockCacheHitCount] = float64(w.cacheHits - was.cacheHits)
	v[event.RocksDBReadBlockCacheMissCount] = float64(w.cacheMisses - was.cacheMisses)
	v[event.RocksDBWriterStallLatency] = float64((t.stall - tWas.stall).Nanoseconds())
	v[event.RocksDBTotalCompactionLatency] = ms(t.compaction - tWas.compaction)
	v[event.RocksDBTotalBytesReadByCompaction] = float64(w.compIn - was.compIn)
	v[event.RocksDBTotalBytesWrittenByCompaction] = float64(w.compOut - was.compOut)
	if s.m.hasFlushBytes {
		v[event.RocksDBTotalBytesWrittenByFlush] = float64(w.flushed - was.flushed)
	}
}

func (s *rocksDB) reportCommit(v *event.Vector) {
	c := &s.commits
	v[event.RocksDBCommitFlushLatency] = ms(c.flush)
	v[event.RocksDBCommitCompactLatency] = ms(c.compact)
	v[event.RocksDBCommitCheckpointLatency] = ms(c.checkpoint)
	v[event.RocksDBCommitFileSyncLatency] = ms(c.fileSync)
	if !s.m.hasFamilies {
		v[event.RocksDBCommitWriteBatchLatency] = ms(c.writeBatch)
		v[event.RocksDBCommitPauseLatency] = 0 // Spark looks it up under another name than it is kept
	}
	if s.m.hasLoad {
		v[event.RocksDBChangeLogWriterCommitLatency] = ms(c.changelog)
		v[event.RocksDBSaveZipFilesLatency] = ms(c.zip)
	}
	if s.m.hasRepair {
		v[event.RocksDBForceSnapshotCount] = count(c.forced)
	}
}

func count(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (s *rocksDB) reportSync(v *event.Vector) {
	v[event.RocksDBBytesCopied] = float64(s.synced.bytes)
	v[event.RocksDBFilesCopied] = float64(s.synced.copied)
	v[event.RocksDBFilesReused] = float64(s.synced.reused)
	v[event.RocksDBZipFileBytesUncompressed] = float64(s.synced.zip)
}

func (s *rocksDB) reportLoad(v *event.Vector) {
	if !s.m.hasLoad {
		return
	}
	l := &s.loads
	v[event.RocksDBLoadLatency] = ms(l.reported)
	v[event.RocksDBLoadFromSnapshotLatency] = 0 // only readers of state outside of a query load like that
	v[event.RocksDBNumReplayChangelogFiles] = float64(l.replayed)
	replay := ms(l.replay)
	if l.replayed > 0 {
		replay = max(replay, 1)
	}
	v[event.RocksDBReplayChangeLogLatency] = replay
	if s.m.hasRepair {
		v[event.RocksDBNumSnapshotsAutoRepaired] = count(l.repair)
		v[event.RocksDBNumLoadedFromDfs] = count(l.fetched)
	}
}

// reportFamilies counts families; the default one is external, and a store with
// no other has none.
func (s *rocksDB) reportFamilies(v *event.Vector) {
	if !s.m.hasFamilies {
		return
	}
	inner, outer := 0, 0
	for _, f := range s.families {
		if f.Internal {
			inner++
		} else {
			outer++
		}
	}
	if len(s.families) > 0 {
		outer++
	}
	if s.m.swapsFamilies {
		inner, outer = outer, inner
	}
	v[event.RocksDBNumInternalColumnFamilies] = float64(inner)
	v[event.RocksDBNumExternalColumnFamilies] = float64(outer)
	v[event.RocksDBNumInternalColFamiliesKeys] = 0
	if s.x.o.Conf.TrackRows {
		v[event.RocksDBNumInternalColFamiliesKeys] = float64(s.inner)
	}
}
