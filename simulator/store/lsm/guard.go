package lsm

import (
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is the file system that Pebble sees. Pebble panics where it can not sync
// a directory, on a goroutine of its own, which nobody can recover from; here
// that ends the goroutine and fails the database instead.
type guard struct {
	vfs.FS
	r *recorder
}

// OpenDir implements vfs.FS.
func (g guard) OpenDir(name string) (vfs.File, error) {
	dir, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return guardedDir{dir, g.r}, nil
}

type guardedDir struct {
	vfs.File
	r *recorder
}

// Sync implements vfs.File.
func (d guardedDir) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.r.fail(fatalError{"sync directory", err})
		runtime.Goexit()
	}
	return nil
}
