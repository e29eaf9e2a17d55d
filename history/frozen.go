package history

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// frozen is a database as it was at one moment, while a daemon goes on writing
// to it: its tables are held open, so that their bytes outlive their names, and
// what is appended to is copied into memory. Nothing is written or locked.
type frozen struct {
	*vfs.MemFS
	dir    string
	tables map[string]vfs.File // by name in dir
}

// freezeTries is how often taking the picture begins anew because the database
// has changed meanwhile. It changes every few seconds at most, and one try takes
// milliseconds.
const freezeTries = 50

var errMoved = errors.New("database changed while it was opened")

func freeze(fs vfs.FS, dir string) (f *frozen, err error) {
	for range freezeTries {
		if f, err = freezeOnce(fs, dir); !errors.Is(err, errMoved) {
			return f, err
		}
	}
	return nil, err
}

func freezeOnce(fs vfs.FS, dir string) (*frozen, error) {
	before, err := manifestOf(fs, dir)
	if err != nil {
		return nil, err
	}
	f := &frozen{MemFS: vfs.NewMem(), dir: dir, tables: map[string]vfs.File{}}
	err = f.fill(fs)
	if err == nil {
		// Logs are deleted, and tables replaced, only after the manifest says so.
		var now manifest
		if now, err = manifestOf(fs, dir); err == nil && now != before {
			err = errMoved
		}
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// manifest is the state of the list of tables.
type manifest struct {
	name string
	size int64
}

func manifestOf(fs vfs.FS, dir string) (manifest, error) {
	desc, err := pebble.Peek(dir, fs)
	if err != nil {
		return manifest{}, err
	}
	if !desc.Exists {
		return manifest{}, errors.New("manifest is missing")
	}
	info, err := fs.Stat(desc.ManifestFilename)
	if err != nil {
		return manifest{}, err
	}
	return manifest{desc.ManifestFilename, info.Size()}, nil
}

func (f *frozen) fill(fs vfs.FS) error {
	if err := f.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	names, err := fs.List(f.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == lockName {
			continue
		}
		if err := f.take(fs, name); err != nil {
			if errors.Is(err, iofs.ErrNotExist) {
				return errMoved
			}
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

func (f *frozen) take(fs vfs.FS, name string) error {
	from, err := fs.Open(fs.PathJoin(f.dir, name))
	if err != nil {
		return err
	}
	if isTable(name) {
		f.tables[name] = from
		return nil
	}
	defer func() { _ = from.Close() }()
	to, err := f.Create(f.PathJoin(f.dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

func isTable(name string) bool { return strings.HasSuffix(name, ".sst") }

func (f *frozen) table(name string) (vfs.File, bool) {
	if f.PathDir(name) != path.Clean(f.dir) {
		return nil, false
	}
	t, ok := f.tables[f.PathBase(name)]
	return t, ok
}

// Open implements vfs.FS.
func (f *frozen) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if t, ok := f.table(name); ok {
		return heldFile{t}, nil
	}
	return f.MemFS.Open(name, opts...)
}

// Stat implements vfs.FS.
func (f *frozen) Stat(name string) (vfs.FileInfo, error) {
	if t, ok := f.table(name); ok {
		return t.Stat()
	}
	return f.MemFS.Stat(name)
}

// List implements vfs.FS.
func (f *frozen) List(dir string) ([]string, error) {
	names, err := f.MemFS.List(dir)
	for name := range f.tables {
		names = append(names, name)
	}
	return names, err
}

func (f *frozen) close() {
	for _, t := range f.tables {
		_ = t.Close()
	}
}

// heldFile is one of the readers of a table that is held open.
type heldFile struct{ vfs.File }

// Close implements vfs.File.
func (heldFile) Close() error { return nil }

// openFrozen opens the history to read, as it is now.
func (s *Store) openFrozen() error {
	if err := s.place.present(); err != nil {
		return err
	}
	f, err := freeze(s.o.FS, s.place.data())
	if err != nil {
		return damage(err)
	}
	if err := s.start(f); err != nil {
		f.close()
		return err
	}
	s.lock = closerFunc(f.close)
	return nil
}

type closerFunc func()

// Close implements io.Closer.
func (c closerFunc) Close() error {
	c()
	return nil
}
