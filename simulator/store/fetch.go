package store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
)

// follow loads as planned.
func (s *rocksDB) follow(p plan, version int64) error {
	old := s.dbDir
	if err := s.closeDB(); err != nil {
		return err
	}
	dir := s.newDir("db")
	if err := s.fetch(p, old, dir); err != nil {
		s.abandon(old, dir)
		return err
	}
	m := s.x.o.Meter.Begin(device.StepOpen)
	if err := s.openDB(dir); err != nil {
		s.abandon(old, dir)
		return err
	}
	s.spend(device.StepOpen, m, device.Work{Files: int64(len(s.tables))})
	s.seen = s.db.Stats()
	if err := s.drain(); err != nil { // what was due in the snapshot starts as the database opens
		return err
	}
	if old != "" {
		if err := s.x.o.FS.RemoveAll(old); err != nil {
			return fmt.Errorf("delete %s: %w", old, err)
		}
	}
	s.base, s.inRemote, s.dirty = p.snapshot.Version, p.snapshot.Version, false
	s.logs = s.logs[:0]
	s.lineage = append(s.lineage[:0], p.lineage...)
	if err := s.replayAll(p, version); err != nil {
		return err
	}
	s.content, s.dirty = version, false
	return nil
}

// abandon deletes local files after a load that failed half way: what the store
// knows of its tables is no longer what lies in any one folder.
func (s *rocksDB) abandon(dirs ...string) {
	s.tables, s.dbDir = make(map[string]table), ""
	for _, dir := range dirs {
		if dir != "" {
			// A leftover on the local disk is no loss: it goes with the executor.
			_ = s.x.o.FS.RemoveAll(dir)
		}
	}
}

func (s *rocksDB) closeDB() error {
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db, s.content = nil, none
	if s.x.active == s {
		s.x.active = nil
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// fetch fills a new local folder with a snapshot's files, those that are local
// already from the old folder.
func (s *rocksDB) fetch(p plan, old, dir string) error {
	had := s.tables
	s.tables = make(map[string]table)
	s.keys, s.inner, s.known = 0, 0, len(s.families) == 0
	zip := s.synced.zipSize
	s.synced = syncFigures{zipSize: zip}
	if err := s.x.o.FS.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	version := p.snapshot.Version
	if version == 0 {
		return nil
	}
	if s.damaged(version) {
		return fmt.Errorf("%w: %d.zip of %s is not a zip file", ErrDamaged, version, s.remote.Path())
	}
	m := s.x.o.Meter.Begin(device.StepDownload)
	snap, err := s.remote.Snapshot(version, p.snapshot.UniqueID)
	if err != nil {
		return asDamaged(err)
	}
	w := device.Work{Requests: 1}
	for _, f := range snap.Small {
		w.RemoteIn += int64(len(f.Data))
		if err := writeFile(s.x.o.FS, s.x.o.FS.PathJoin(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	s.synced.zipSize = w.RemoteIn
	for _, t := range snap.SSTs {
		if err := s.fetchTable(t, version, had, old, dir, &w); err != nil {
			return err
		}
	}
	s.spend(device.StepDownload, m, w)
	s.loads.fetched = true
	s.keys, s.inner = snap.Keys, snap.InternalKeys
	s.known = s.hasAll(snap.Families)
	return nil
}

// fetchTable brings one table to the folder dir.
func (s *rocksDB) fetchTable(t checkpoint.SST, version int64, had map[string]table, old, dir string, w *device.Work) error {
	fsys := s.x.o.FS
	to := fsys.PathJoin(dir, t.Local)
	if h, ok := had[t.Local]; ok && old != "" && h.dfs == t.DFS && s.reusable(h, version) {
		if err := fsys.Link(fsys.PathJoin(old, t.Local), to); err == nil {
			s.tables[t.Local] = h
			s.synced.reused++
			return nil
		}
		// Compaction has deleted it: fetch it as if it had never been here.
	}
	n, err := s.remote.FetchSST(t.DFS, fsys, to)
	if err != nil {
		return asDamaged(err)
	}
	if n != t.Bytes {
		return fmt.Errorf("%w: table %s has %d bytes, not %d", ErrDamaged, t.DFS, n, t.Bytes)
	}
	s.tables[t.Local] = table{dfs: t.DFS, bytes: n, since: version}
	s.synced.copied++
	s.synced.bytes += n
	w.Requests++
	w.RemoteIn += n
	return nil
}

// hasAll tells whether a snapshot knows all families of the store.
func (s *rocksDB) hasAll(have map[string]int) bool {
	for i, f := range s.families {
		if id, ok := have[f.Name]; !ok || id != i+1 {
			return false
		}
	}
	return true
}

// asDamaged marks errors about files that are missing or can not be read.
func asDamaged(err error) error {
	if errors.Is(err, checkpoint.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

func writeFile(fsys vfs.FS, path string, data []byte) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
