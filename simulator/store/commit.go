package store

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/stategauge/stategauge/simulator/device"
)

// commitFigures is how long the parts of the last commit took.
type commitFigures struct {
	writeBatch, flush, compact, checkpoint, fileSync time.Duration
	changelog, zip                                   time.Duration // parts of fileSync
	forced                                           bool
}

func (c *commitFigures) total() time.Duration {
	return c.writeBatch + c.flush + c.compact + c.checkpoint + c.fileSync
}

// Commit writes the version after the loaded one.
func (s *rocksDB) Commit() error {
	if err := s.ready(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	version := s.loaded + 1
	if err := s.commit(version); err != nil {
		s.loaded, s.content = none, none
		s.dropQueued() // it may be of this version, which does not exist
		return fmt.Errorf("commit version %d of store %s: %w", version, s.id, err)
	}
	s.loaded, s.content, s.dirty = version, version, false
	s.report()
	if s.x.o.Conf.UnloadOnCommit {
		return s.unload()
	}
	if s.forget {
		s.loaded = none
	}
	return nil
}

// unload ends the instance at the end of its task, as Spark does where it is
// told to: what waits is uploaded, the local files go, and the next batch begins
// with a new instance. What that takes is time of the next batch's load.
func (s *rocksDB) unload() error {
	did, err := s.maintain()
	if err == nil {
		err = s.closeDB()
	}
	if err == nil {
		err = s.x.o.FS.RemoveAll(s.dbDir)
	}
	if err != nil {
		return fmt.Errorf("unload store %s: %w", s.id, err)
	}
	s.unloading = did.Took
	s.dbDir, s.loaded, s.content, s.uploaded, s.lastSnapshot = "", none, none, none, 0
	s.tables = make(map[string]table)
	return nil
}

func (s *rocksDB) commit(version int64) error {
	s.settle()
	c := commitFigures{forced: s.loads.forced}
	if s.m.batchedWrites {
		c.writeBatch = s.applyBatch()
	}
	cut, now := s.decide(version)
	if cut {
		if err := s.cut(version, &c); err != nil {
			return err
		}
	}
	if err := s.sync(version, now, &c); err != nil {
		return err
	}
	s.spendCommit(&c, cut)
	if cut {
		return s.drain()
	}
	return nil
}

// spendCommit adds the commit's time to the batch's, and keeps the figures,
// those of the last snapshot where the version does not clear them.
func (s *rocksDB) spendCommit(c *commitFigures, cut bool) {
	s.commitTook = c.total()
	if s.m.sticky && !cut {
		c.flush, c.compact, c.checkpoint = s.commits.flush, s.commits.compact, s.commits.checkpoint
	}
	s.commits = *c
}

// applyBatch charges the write batch that holds all changes of the batch.
func (s *rocksDB) applyBatch() time.Duration {
	meter := s.x.o.Meter
	m := meter.Begin(device.StepWriteBatch)
	d := s.now.puts - s.atLoad.puts
	took := meter.End(device.StepWriteBatch, m, device.Work{Ops: d, BytesOut: s.now.putBytes - s.atLoad.putBytes})
	if s.x.o.Live {
		took = s.live.put
	}
	stall := s.stall(s.now.rotations-s.atLoad.rotations, s.now.flushed-s.atLoad.flushed, s.now.putBytes-s.atLoad.putBytes, took)
	s.times.stall += stall
	s.times.put += took + stall
	return took + stall
}

// decide tells whether a commit cuts a snapshot, and whether it uploads it
// itself instead of leaving that to the maintenance thread.
func (s *rocksDB) decide(version int64) (cut, now bool) {
	c := s.x.o.Conf
	if !c.Changelog {
		return true, true
	}
	if s.loads.forced || !s.known {
		return true, true
	}
	due := version-s.lastSnapshot >= int64(c.MinDeltasForSnapshot)
	many := s.m.recordsPerSnapshot > 0 && s.changes.records > s.m.recordsPerSnapshot
	return due || many, false
}

// cut flushes the database and makes a local snapshot of it.
func (s *rocksDB) cut(version int64, c *commitFigures) error {
	meter := s.x.o.Meter
	s.db.PauseCompaction(true)
	m := meter.Begin(device.StepFlush)
	flushed, err := s.db.Flush()
	s.db.PauseCompaction(s.faults.CompactionPaused)
	if err != nil {
		return err
	}
	c.flush = meter.End(device.StepFlush, m, device.Work{BytesOut: flushed.Bytes, Files: flushed.Files})
	s.absorb()
	s.now.rotations = s.settled.rotations // this one was no full buffer
	if s.m.compactFirst || s.outrun() {
		if err := s.drain(); err != nil {
			return err
		}
	}
	if s.x.o.Conf.CompactOnCommit {
		m = meter.Begin(device.StepCompact)
		f, err := s.db.Compact()
		if err != nil {
			return err
		}
		c.compact = meter.End(device.StepCompact, m, device.Work{BytesIn: f.CompactRead, BytesOut: f.CompactWritten, Files: f.Compactions})
		s.absorbCompactions(c.compact)
	}
	m = meter.Begin(device.StepCheckpoint)
	dir := s.newDir("snapshot")
	files, err := s.db.Checkpoint(dir)
	if err != nil {
		return err
	}
	c.checkpoint = meter.End(device.StepCheckpoint, m, device.Work{Files: int64(len(files))})
	s.dropQueued()
	s.queued = &snapshot{version: version, id: s.nextID, dir: dir, files: files, keys: s.keys, inner: s.inner}
	s.lastSnapshot, s.base = version, version
	return nil
}

// outrun tells whether a compaction that the flush started is done before the
// snapshot is cut, as happens with some stores of every round.
func (s *rocksDB) outrun() bool {
	return !s.faults.CompactionPaused && s.db.Debt().L0Files >= compactedFiles && s.ids.Float64() < quickCompactions
}

// RocksDB compacts level 0 at so many files; that share of captured compactions
// was done before the snapshot.
const (
	compactedFiles   = 4
	quickCompactions = 0.25
)

// drain runs the compactions that are due, beside the commit.
func (s *rocksDB) drain() error {
	meter := s.x.o.Meter
	m := meter.Begin(device.StepBackground)
	f, err := s.db.Drain()
	if err != nil {
		return err
	}
	if f.Compactions > 0 {
		took := meter.End(device.StepBackground, m, device.Work{BytesIn: f.CompactRead, BytesOut: f.CompactWritten, Files: f.Compactions})
		s.absorbCompactions(took)
	}
	return nil
}

// sync writes what makes the version last: its changelog, or its snapshot.
func (s *rocksDB) sync(version int64, upload bool, c *commitFigures) error {
	conf := s.x.o.Conf
	if conf.Changelog {
		if err := s.writeChangelog(version, c); err != nil {
			return err
		}
	}
	if conf.CheckpointFormat == 2 {
		s.lineage = append(s.lineage[:0], versionID{version, s.nextID})
	}
	if !upload {
		return nil
	}
	tables, zip, err := s.upload()
	if err != nil {
		return err
	}
	c.zip = zip
	c.fileSync += tables + zip
	s.known = true
	return nil
}

func (s *rocksDB) writeChangelog(version int64, c *commitFigures) error {
	meter := s.x.o.Meter
	m := meter.Begin(device.StepChangelog)
	data := s.changes.pack()
	n, err := s.remote.WriteChangelog(version, s.nextID, data)
	if err != nil {
		return err
	}
	s.own = ownVersion{version, crc32.ChecksumIEEE(data), s.keys, s.inner}
	c.changelog = meter.End(device.StepChangelog, m, device.Work{Requests: writeRequests, RemoteOut: n})
	c.fileSync += c.changelog
	if s.base == version {
		s.logs = s.logs[:0]
	} else {
		s.logs = append(s.logs, logSize{version, s.changes.records, n})
	}
	s.changes.reset()
	return nil
}
