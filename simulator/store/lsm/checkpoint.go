package lsm

import (
	"fmt"
	"slices"
	"strings"
)

// File is one file of a checkpoint.
type File struct {
	Name  string
	Bytes int64
	SST   bool // a table, that later checkpoints may have in common; else small and new
}

// Checkpoint makes a copy of the database in a directory that must not exist:
// tables are linked, the small files written. A memtable that holds anything is
// flushed first. The files are sorted by name.
func (d *DB) Checkpoint(dir string) ([]File, error) {
	if d.broken != nil {
		return nil, d.broken
	}
	if d.mem.entries > 0 {
		if err := d.flush(); err != nil {
			return nil, err
		}
	}
	if err := d.db.Checkpoint(dir); err != nil {
		return nil, fmt.Errorf("checkpoint %s to %s: %w", d.dir, dir, err)
	}
	files, err := d.list(dir)
	if err != nil {
		return nil, fmt.Errorf("list checkpoint %s: %w", dir, err)
	}
	return files, nil
}

func (d *DB) list(dir string) ([]File, error) {
	names, err := d.fs.List(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	files := make([]File, 0, len(names))
	for _, name := range names {
		info, err := d.fs.Stat(d.fs.PathJoin(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: name, Bytes: info.Size(), SST: strings.HasSuffix(name, ".sst")})
	}
	return files, nil
}
