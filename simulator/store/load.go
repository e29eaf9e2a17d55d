package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
)

// loadFigures is what the last load took and found.
type loadFigures struct {
	took            time.Duration // all of it, whatever is reported
	reported        time.Duration
	replay          time.Duration
	replayed        int64 // changelog files
	fetched, repair bool  // a snapshot was fetched; an older one than the newest
	forced          bool  // the commit is to upload a snapshot
}

// Load makes the state of a version current.
func (s *rocksDB) Load(version int64) error {
	s.forget = false
	return s.load(version, true)
}

// LoadReadWrite is the package's LoadReadWrite for this provider.
func (s *rocksDB) LoadReadWrite(version int64) error {
	if !s.m.hasLoad {
		err := s.Load(version)
		s.forget = s.m.forgets
		return err
	}
	s.forget = false
	if err := s.load(version, false); err != nil {
		return err
	}
	// What the read store's load did is overwritten by the write store's, which
	// finds everything at hand.
	s.loads = loadFigures{took: s.loads.took}
	if err := s.openWriter(); err != nil {
		return err
	}
	s.restart()
	return nil
}

func (s *rocksDB) load(version int64, write bool) error {
	s.x.blur()
	s.reseed(version)
	s.last.known = false
	s.loads = loadFigures{took: s.unloading}
	s.unloading, s.commitTook = 0, 0
	if s.loaded != version {
		if err := s.reload(version); err != nil {
			s.loaded, s.content = none, none
			return fmt.Errorf("load version %d of store %s: %w", version, s.id, err)
		}
		s.loaded = version
	} else if s.dirty {
		return fmt.Errorf("load version %d of store %s: the batch before was neither committed nor aborted", version, s.id)
	}
	if write {
		if err := s.openWriter(); err != nil {
			return err
		}
	}
	s.restart()
	return nil
}

// spend charges a step of loading that has been done.
func (s *rocksDB) spend(step device.Step, m device.Mark, w device.Work) time.Duration {
	d := s.x.o.Meter.End(step, m, w)
	s.loads.took += d
	s.loads.reported += d
	return d
}

// openWriter begins the changelog of the next version, whose file Spark creates
// at this moment.
func (s *rocksDB) openWriter() error {
	c := s.x.o.Conf
	format2 := c.CheckpointFormat == 2
	s.nextID = ""
	if format2 {
		s.nextID = s.uuid()
	}
	s.loads.forced = s.lags()
	if !c.Changelog {
		return nil
	}
	m := s.x.o.Meter.Begin(device.StepChangelog)
	if err := s.changes.begin(len(s.families) > 0, s.lineage, format2); err != nil {
		return fmt.Errorf("changelog of store %s: %w", s.id, err)
	}
	s.spend(device.StepChangelog, m, device.Work{Requests: 1})
	return nil
}

// restart makes the figures of a batch begin here.
func (s *rocksDB) restart() {
	if s.db != nil {
		s.focus()
		s.absorb()
	}
	s.live = liveTimes{}
	s.settled = s.now
	s.atLoad = mark{s.now, s.times}
	if s.x.o.Conf.ResetStatsOnLoad {
		s.from = s.atLoad
	}
}

// uuid draws the text of a version 4 UUID.
func (s *rocksDB) uuid() string {
	a, b := s.ids.Uint64(), s.ids.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff)
}

// reload gets a version that is not taken for loaded.
func (s *rocksDB) reload(version int64) error {
	if s.stands(version) {
		if err := s.pretend(version); err != nil {
			return err
		}
		s.countFrom(s.inRemote)
		return nil
	}
	m := s.x.o.Meter.Begin(device.StepList)
	found, err := s.remote.Files()
	if err != nil {
		return err
	}
	s.spend(device.StepList, m, device.Work{Requests: 1, Files: int64(len(found))})
	before := int64(-1)
	for {
		p, err := s.plan(found, version, before)
		if err != nil {
			return err
		}
		err = s.follow(p, version)
		if err == nil {
			s.noteLag(p.snapshot.Version)
			s.countFrom(p.snapshot.Version)
			return nil
		}
		if !errors.Is(err, ErrDamaged) || !s.m.hasRepair || !s.x.o.Conf.AutoSnapshotRepair {
			return err
		}
		s.loads.repair = true
		before = p.snapshot.Version
	}
}

// countFrom sets from where deltas count after a load from a snapshot (0: from
// nothing), and drops a snapshot that is not uploaded and newer than it.
func (s *rocksDB) countFrom(from int64) {
	if s.lastSnapshot > from {
		s.dropQueued()
		s.lastSnapshot = 0
	}
	if !s.m.freshFromZero {
		s.lastSnapshot = from
	}
}

// stands tells whether loading a version from the checkpoint would only bring
// back what the database holds.
func (s *rocksDB) stands(version int64) bool {
	if s.db == nil || s.content != version || s.dirty || s.base != s.inRemote || s.damaged(s.base) || s.x.o.Conf.CheckpointFormat == 2 {
		return false
	}
	// Another run may have written the version too.
	return len(s.logs) == 0 || s.isOwn(checkpoint.StateFile{Version: version, Kind: checkpoint.KindChangelog})
}

func (s *rocksDB) damaged(version int64) bool {
	return version > 0 && s.faults.Damaged != nil && s.faults.Damaged(s.id, version)
}

// pretend charges the load of a version that stands. Tables of the snapshot that
// a compaction has replaced since are gone from the local disk and fetched again;
// the same compaction then replaces them once more.
func (s *rocksDB) pretend(version int64) error {
	here, err := s.db.Tables()
	if err != nil {
		return err
	}
	meter := s.x.o.Meter
	m := meter.Begin(device.StepList)
	s.spend(device.StepList, m, device.Work{Requests: 1, Files: version - s.oldest + 1})
	var sync syncFigures
	if s.base > 0 {
		s.loads.fetched = true
		w := device.Work{Requests: 1, RemoteIn: s.synced.zipSize}
		for name, t := range s.tables {
			if s.reusable(t, s.base) && here[name] {
				sync.reused++
				continue
			}
			sync.copied++
			sync.bytes += t.bytes
			w.Requests++
			w.RemoteIn += t.bytes
			// Spark takes a table that it has fetched for one of this version.
			t.since = s.base
			s.tables[name] = t
		}
		m = meter.Begin(device.StepDownload)
		s.spend(device.StepDownload, m, w)
	}
	sync.zipSize = s.synced.zipSize
	s.synced = sync
	m = meter.Begin(device.StepOpen)
	s.spend(device.StepOpen, m, device.Work{Files: int64(len(s.tables))})
	for _, l := range s.logs {
		m = meter.Begin(device.StepReplay)
		s.loads.replay += s.spend(device.StepReplay, m, device.Work{Ops: l.records, RemoteIn: l.bytes, Requests: 1})
	}
	s.loads.replayed = int64(len(s.logs))
	return nil
}

// reusable tells whether a local table can stand for the one in the checkpoint
// when a snapshot is loaded or saved.
func (s *rocksDB) reusable(t table, version int64) bool {
	return !s.m.checksAge || t.since < version
}
