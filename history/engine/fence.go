package engine

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fence stands between Pebble and the disk. Where the log or a directory cannot
// be written, Pebble panics, some of it on goroutines of its own and with locks
// in a state in which not even a recovered panic lets the process live. So no
// such error reaches Pebble: the fence notes it, and the goroutine that met it
// is left standing for good, with everything it holds. From then on every
// write of that engine stands still as well, which keeps the directory free for
// the engine that is opened after it.
type fence struct {
	once   sync.Once
	failed chan struct{} // closed by the first failure
	cause  error         // written before failed is closed

	busy  atomic.Int64 // writes that are with the disk now
	syncs atomic.Int64 // of the log
}

func newFence() *fence { return &fence{failed: make(chan struct{})} }

// fail takes the engine out of use. Only the first cause is kept.
func (f *fence) fail(cause error) {
	f.once.Do(func() {
		f.cause = cause
		close(f.failed)
	})
}

func (f *fence) err() error {
	select {
	case <-f.failed:
		return f.cause
	default:
		return nil
	}
}

// write runs one operation that changes the disk. It does not return once the
// engine has failed.
func (f *fence) write(operation func() error) error {
	f.busy.Add(1)
	if f.err() != nil {
		f.busy.Add(-1)
		park()
	}
	defer f.busy.Add(-1)
	return operation()
}

// must is write for operations whose failure Pebble does not survive.
func (f *fence) must(what string, operation func() error) error {
	err := f.write(operation)
	if err != nil {
		f.fail(fmt.Errorf("%s: %w", what, err))
		park()
	}
	return nil
}

// park never returns. Ending the goroutine instead would run its deferred calls,
// which unlock what is not locked.
func park() { select {} }

// guard is the file system that Pebble sees.
type guard struct {
	vfs.FS
	fence *fence
}

// isLog tells the files of the write-ahead log.
func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// Unwrap implements vfs.FS.
func (g guard) Unwrap() vfs.FS { return g.FS }

// Lock implements vfs.FS. The directory is locked once for all engines that are
// opened on it one after the other.
func (guard) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Create implements vfs.FS. A marker names the manifest in force, and Pebble makes
// both durable at once; a power cut can then keep the name without the file. So
// what lies in the directory is made durable before a marker is.
func (g guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(g.FS.PathBase(name), "marker.") {
		if err := g.syncDir(g.FS.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return g.open(name, func() (vfs.File, error) { return g.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (g guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.open(name, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (g guard) ReuseForWrite(from, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.open(name, func() (vfs.File, error) { return g.FS.ReuseForWrite(from, name, c) })
}

func (g guard) syncDir(name string) error {
	dir, err := g.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (g guard) open(name string, open func() (vfs.File, error)) (vfs.File, error) {
	run := g.fence.write
	if isLog(name) {
		run = func(operation func() error) error { return g.fence.must("create log file "+name, operation) }
	}
	var f vfs.File
	err := run(func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &file{File: f, fence: g.fence, name: name, log: isLog(name)}, nil
}

// OpenDir implements vfs.FS.
func (g guard) OpenDir(name string) (vfs.File, error) {
	dir, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &directory{File: dir, fence: g.fence, name: name}, nil
}

// Link implements vfs.FS.
func (g guard) Link(from, to string) error {
	return g.fence.write(func() error { return g.FS.Link(from, to) })
}

// Remove implements vfs.FS.
func (g guard) Remove(name string) error {
	return g.fence.write(func() error { return g.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (g guard) RemoveAll(name string) error {
	return g.fence.write(func() error { return g.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (g guard) Rename(from, to string) error {
	return g.fence.write(func() error { return g.FS.Rename(from, to) })
}

// directory is a directory that is open for syncing.
type directory struct {
	vfs.File
	fence *fence
	name  string
}

// Sync implements vfs.File.
func (d *directory) Sync() error {
	return d.fence.must("sync directory "+d.name, d.File.Sync)
}

// file is a file that is open for writing.
type file struct {
	vfs.File
	fence *fence
	name  string
	log   bool
}

// write runs an operation on the file; one of the log has to succeed.
func (f *file) write(what string, operation func() error) error {
	if f.log {
		return f.fence.must(what+" log file "+f.name, operation)
	}
	return f.fence.write(operation)
}

// Write implements vfs.File.
func (f *file) Write(p []byte) (n int, err error) {
	err = f.write("write", func() error {
		n, err = f.File.Write(p)
		if err == nil && n < len(p) {
			err = errors.New("short write")
		}
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.write("write", func() error {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.write("sync", f.counted(f.File.Sync)) }

// SyncData implements vfs.File.
func (f *file) SyncData() error { return f.write("sync", f.counted(f.File.SyncData)) }

func (f *file) counted(sync func() error) func() error {
	if f.log {
		f.fence.syncs.Add(1)
	}
	return sync
}

// SyncTo implements vfs.File.
func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.write("sync", func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Close implements vfs.File.
func (f *file) Close() error { return f.write("close", f.File.Close) }

// Stat implements vfs.File.
func (f *file) Stat() (info vfs.FileInfo, err error) {
	if !f.log {
		return f.File.Stat()
	}
	err = f.fence.must("stat log file "+f.name, func() (err error) {
		info, err = f.File.Stat()
		return err
	})
	return info, err
}
