package store

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/store/lsm"
)

// snapshot is a local copy of a version that waits to be uploaded.
type snapshot struct {
	version int64
	id      string // of checkpoint format 2
	dir     string
	files   []lsm.File
	keys    int64
	inner   int64
}

// syncFigures is what the last upload or download moved. Spark reports it until
// the next one.
type syncFigures struct {
	bytes, copied, reused int64
	zip                   int64 // unpacked, of an upload only
	zipSize               int64 // of the newest zip that was moved either way
}

// longerOptions is how many bytes RocksDB's list of options is longer than
// Pebble's, as first snapshots of running Spark have it.
const longerOptions = 4400

// dropQueued deletes the snapshot that waits.
func (s *rocksDB) dropQueued() {
	if s.queued == nil {
		return
	}
	// A leftover on the local disk is no loss: it goes with the executor.
	_ = s.x.o.FS.RemoveAll(s.queued.dir)
	s.queued = nil
}

// upload brings the snapshot that waits to the checkpoint: its new tables, then
// the zip with the small files. It returns how long each took.
func (s *rocksDB) upload() (tables, zip time.Duration, err error) {
	q := s.queued
	var sync syncFigures
	snap := &checkpoint.Snapshot{Keys: q.keys, InternalKeys: q.inner, SSTs: make([]checkpoint.SST, 0, len(q.files))}
	s.describeFamilies(snap)
	meter := s.x.o.Meter
	m := meter.Begin(device.StepUpload)
	kept := make(map[string]table, len(q.files))
	var small int64
	for _, f := range q.files {
		if !f.SST {
			if err := s.pack(snap, f); err != nil {
				return 0, 0, err
			}
			small += f.Bytes
			continue
		}
		if err := s.uploadTable(f, snap, kept, &sync); err != nil {
			return 0, 0, err
		}
	}
	if sync.copied > 0 {
		tables = meter.End(device.StepUpload, m, device.Work{Requests: sync.copied, RemoteOut: sync.bytes, Files: sync.copied})
	}
	m = meter.Begin(device.StepZip)
	sync.zip, err = s.remote.WriteSnapshot(q.version, q.id, snap)
	if err != nil {
		return 0, 0, err
	}
	sync.zip += longerOptions
	zip = meter.End(device.StepZip, m, device.Work{BytesIn: sync.zip})
	// The zip itself is one more object; its time on a clock was in the step before.
	m = meter.Begin(device.StepUpload)
	zip += meter.End(device.StepUpload, m, device.Work{Requests: 1, RemoteOut: sync.zip})
	sync.zipSize = sync.zip
	s.synced, s.tables = sync, kept
	s.uploaded = q.version
	s.uploadDone(q.version)
	s.dropQueued()
	return tables, zip, nil
}

// uploadDone notes that a snapshot is in the checkpoint.
func (s *rocksDB) uploadDone(version int64) {
	s.inRemote = version
	s.noteLag(version)
	n := 0
	for _, l := range s.logs {
		if l.version > version {
			s.logs[n] = l
			n++
		}
	}
	s.logs = s.logs[:n]
}

// uploadTable copies a table unless the checkpoint has it.
func (s *rocksDB) uploadTable(f lsm.File, snap *checkpoint.Snapshot, kept map[string]table, sync *syncFigures) error {
	q := s.queued
	t, ok := s.tables[f.Name]
	if ok && t.bytes == f.Bytes && s.reusable(t, q.version) {
		sync.reused++
	} else {
		t = table{dfs: strings.TrimSuffix(f.Name, ".sst") + "-" + s.uuid() + ".sst", bytes: f.Bytes, since: q.version}
		n, err := s.remote.PutSST(s.x.o.FS, s.x.o.FS.PathJoin(q.dir, f.Name), t.dfs)
		if err != nil {
			return err
		}
		sync.copied++
		sync.bytes += n
	}
	kept[f.Name] = t
	snap.SSTs = append(snap.SSTs, checkpoint.SST{Local: f.Name, DFS: t.dfs, Bytes: t.bytes})
	return nil
}

// pack reads a small file of the snapshot that waits.
func (s *rocksDB) pack(snap *checkpoint.Snapshot, f lsm.File) error {
	data, err := readFile(s.x.o.FS, s.x.o.FS.PathJoin(s.queued.dir, f.Name), f.Bytes)
	if err != nil {
		return err
	}
	snap.Small = append(snap.Small, checkpoint.SmallFile{Name: f.Name, Data: data})
	return nil
}

func readFile(fsys vfs.FS, path string, size int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// describeFamilies adds the column families, where the store has any.
func (s *rocksDB) describeFamilies(snap *checkpoint.Snapshot) {
	if len(s.families) == 0 {
		return
	}
	snap.Families = map[string]int{"default": 0}
	snap.InternalFamilies = map[string]bool{"default": false}
	for i, f := range s.families {
		snap.Families[f.Name] = i + 1
		snap.InternalFamilies[f.Name] = f.Internal
	}
}
