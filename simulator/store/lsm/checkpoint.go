package lsm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// File is one file of a checkpoint. Names and sizes of all of them are the same
// in every run, and so is what tables hold; but a manifest has the times at which
// tables were made, so compressing one does not give the same size each time.
type File struct {
	Name  string
	Bytes int64
	SST   bool // a table, that later checkpoints may have in common; else small and new
}

// Checkpoint makes a copy of the database in a directory that must not exist:
// tables are linked, the small files written. A memtable that holds anything is
// flushed first. The files are sorted by name. After an error nothing is left.
//
// Pebble's own way copies the manifest record by record, which takes most of the
// time of a small commit. Here nothing works in the background, so the directory
// stands still and is copied as it is.
func (d *DB) Checkpoint(dir string) ([]File, error) {
	if d.broken != nil {
		return nil, d.broken
	}
	if d.mem.entries > 0 {
		if err := d.flush(); err != nil {
			return nil, err
		}
	}
	files, err := d.checkpoint(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s to %s: %w", d.dir, dir, err)
	}
	return files, nil
}

func (d *DB) checkpoint(dir string) (files []File, err error) {
	if _, err := d.fs.Stat(dir); err == nil {
		return nil, fs.ErrExist
	}
	if err := d.fs.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.fs.RemoveAll(dir))
		}
	}()
	names, err := d.fs.List(d.dir)
	if err != nil {
		return nil, err
	}
	live, err := d.liveTables()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(needed(names), func(name string) bool { return isTable(name) && !live[name] })
	files = make([]File, 0, len(names))
	for _, name := range names {
		f, err := d.copyFile(name, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// needed sorts the names of a database's files and leaves those that a copy must
// have: all tables, the newest of each marker, the manifest that its marker
// points to, and the newest options.
func needed(names []string) []string {
	slices.Sort(names)
	var manifest, options string
	newest := map[string]string{} // kind of marker -> its newest file
	for _, name := range names {
		switch kind, rest, _ := strings.Cut(strings.TrimPrefix(name, "marker."), "."); {
		case strings.HasPrefix(name, "OPTIONS-"):
			options = name
		case !strings.HasPrefix(name, "marker."):
		case kind == "manifest":
			_, manifest, _ = strings.Cut(rest, ".")
			fallthrough
		default:
			newest[kind] = name
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		if after, ok := strings.CutPrefix(name, "marker."); ok {
			kind, _, _ := strings.Cut(after, ".")
			return newest[kind] != name
		}
		return !isTable(name) && name != manifest && name != options
	})
}

// Tables returns the names of the tables that belong to the database. The map is
// the database's own and valid until the next call.
func (d *DB) Tables() (map[string]bool, error) {
	if d.broken != nil {
		return nil, d.broken
	}
	if now := d.rec.tables().version; d.names == nil || now != d.namesAt {
		live, err := d.liveTables()
		if err != nil {
			return nil, fmt.Errorf("tables of %s: %w", d.dir, err)
		}
		d.names, d.namesAt = live, now
	}
	return d.names, nil
}

// liveTables returns the names of the tables that belong to the database. Those
// that a compaction has replaced are deleted behind its back, so that chance
// decides whether they are still there.
func (d *DB) liveTables() (map[string]bool, error) {
	levels, err := d.db.SSTables()
	if err != nil {
		return nil, err
	}
	live := make(map[string]bool)
	for _, level := range levels {
		for i := range level {
			live[fmt.Sprintf("%06d.sst", uint64(level[i].FileNum))] = true
		}
	}
	return live, nil
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

func (d *DB) copyFile(name, dir string) (File, error) {
	from, to := d.fs.PathJoin(d.dir, name), d.fs.PathJoin(dir, name)
	if !isTable(name) {
		n, err := d.copySmall(from, to)
		return File{Name: name, Bytes: n}, err
	}
	if err := vfs.LinkOrCopy(d.fs, from, to); err != nil {
		return File{}, err
	}
	info, err := d.fs.Stat(to)
	if err != nil {
		return File{}, err
	}
	return File{Name: name, Bytes: info.Size(), SST: true}, nil
}

// copySmall copies one of the few files that are not tables, through a buffer
// that is kept.
func (d *DB) copySmall(from, to string) (n int64, err error) {
	src, err := d.fs.Open(from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	info, err := src.Stat()
	if err != nil {
		return 0, err
	}
	d.copied = slices.Grow(d.copied[:0], int(info.Size()))[:info.Size()]
	if _, err := io.ReadFull(src, d.copied); err != nil && info.Size() > 0 {
		return 0, err
	}
	dst, err := d.fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	if _, err := dst.Write(d.copied); err != nil {
		return 0, errors.Join(err, dst.Close())
	}
	return info.Size(), errors.Join(dst.Sync(), dst.Close())
}
