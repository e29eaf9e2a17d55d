package app

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// instant is what a daemon is doing with its disk at one moment.
type instant string

const (
	inFlush      instant = "a memtable's table is written"
	inCompaction instant = "a compaction's table is written"
	inEdit       instant = "a compaction's result is noted in the manifest"
	inRemoval    instant = "what a compaction replaced is removed"
	inSave       instant = "state is saved"
	inExport     instant = "the history is exported"
	inLog        instant = "the log is written"

	// From being told partitions, for the first time and for the second, to what is
	// written because of it.
	inRebalance     instant = "partitions are given out"
	inNextRebalance instant = "partitions are given out anew"
	inStop          instant = "the daemon stops in order"
)

// instantsFS tells of each operation that changes the disk what the daemon is doing
// with it, before it is done.
type instantsFS struct {
	vfs.FS
	at func(instant) // one call at a time

	saving atomic.Bool // set by who saves: the log is written meanwhile

	mu       sync.Mutex
	compacts bool // a compaction's table is there and the manifest does not name it yet
}

func (f *instantsFS) tell(i instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch i {
	case inCompaction:
		f.compacts = true
	case inEdit:
		if !f.compacts {
			return // a flush's
		}
	}
	f.at(i)
}

// Create implements vfs.FS.
func (f *instantsFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.follow(name, c, file, err)
}

// ReuseForWrite implements vfs.FS.
func (f *instantsFS) ReuseForWrite(from, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, name, c)
	return f.follow(name, c, file, err)
}

// Remove implements vfs.FS.
func (f *instantsFS) Remove(name string) error {
	if strings.HasSuffix(name, ".sst") {
		f.tell(inRemoval)
	}
	return f.FS.Remove(name)
}

func (f *instantsFS) follow(name string, c vfs.DiskWriteCategory, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	base := f.PathBase(name)
	switch {
	case c == "pebble-compaction":
		return f.watched(file, func() { f.tell(inCompaction) }), nil
	case c == "pebble-memtable-flush":
		return f.watched(file, func() { f.tell(inFlush) }), nil
	case strings.HasPrefix(base, "MANIFEST-"):
		w := f.watched(file, func() { f.tell(inEdit) })
		w.synced = func() {
			f.mu.Lock()
			f.compacts = false
			f.mu.Unlock()
		}
		return w, nil
	case strings.HasSuffix(base, ".log"):
		return f.watched(file, func() {
			f.tell(inLog)
			if f.saving.Load() {
				f.tell(inSave)
			}
		}), nil
	}
	return file, nil
}

func (f *instantsFS) watched(file vfs.File, before func()) *instantsFile {
	return &instantsFile{File: file, before: before, synced: func() {}}
}

type instantsFile struct {
	vfs.File
	before, synced func()
}

// Write implements vfs.File.
func (f *instantsFile) Write(b []byte) (int, error) {
	f.before()
	return f.File.Write(b)
}

// Sync implements vfs.File.
func (f *instantsFile) Sync() error {
	f.before()
	defer f.synced()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f *instantsFile) SyncData() error {
	f.before()
	defer f.synced()
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f *instantsFile) SyncTo(length int64) (bool, error) {
	f.before()
	return f.File.SyncTo(length)
}

// Close implements vfs.File.
func (f *instantsFile) Close() error {
	f.before()
	return f.File.Close()
}
