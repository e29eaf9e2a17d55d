package history

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/history/engine"
)

// formatVersion is that of the key space and the values. It is raised by every
// change to them, with a conversion from the version before.
const formatVersion = 1

// What lies in the directory of a history. A database is made whole under
// making, is renamed to ready when it is, and to data when it is in place, so
// that data is never anything half made.
const (
	lockName   = "LOCK"
	dataName   = "history"
	makingName = "history.making"
	readyName  = "history.ready"
	brokenName = "history.broken-" // with the time of the repair that set it aside
	beforeName = "history.before-" // with the format version that it was converted from
)

// place is the directory of a history.
type place struct {
	fs  vfs.FS
	dir string
}

func (p place) path(name string) string { return p.fs.PathJoin(p.dir, name) }
func (p place) data() string            { return p.path(dataName) }

func (p place) exists(name string) (bool, error) {
	_, err := p.fs.Stat(p.path(name))
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// acquire locks the directory, making it first where it is missing.
func (p place) acquire() (io.Closer, error) {
	if err := p.make(p.dir); err != nil {
		return nil, err
	}
	lock, err := p.fs.Lock(p.path(lockName))
	if err != nil {
		return nil, lockError(err)
	}
	return lock, nil
}

// make makes a directory and those above it, each durable in the one above.
func (p place) make(dir string) error {
	if _, err := p.fs.Stat(dir); !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	above := p.fs.PathDir(dir)
	if above != dir {
		if err := p.make(above); err != nil {
			return err
		}
	}
	if err := p.fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDir(p.fs, above)
}

// sync makes the names in the directory durable.
func (p place) sync() error { return syncDir(p.fs, p.dir) }

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (p place) rename(from, to string) error {
	if err := p.fs.Rename(p.path(from), p.path(to)); err != nil {
		return err
	}
	return p.sync()
}

// prepare leaves a database of the present format in place, new or old.
func (p place) prepare(o Options) error {
	if err := p.tidy(); err != nil {
		return err
	}
	found, err := p.exists(dataName)
	if err != nil {
		return err
	}
	if !found {
		return p.create(o)
	}
	if err := p.admit(); err != nil {
		return err
	}
	version, err := p.inspect(o)
	if err == nil {
		err = o.admit(version)
	}
	if err != nil || version == o.format {
		return err
	}
	return p.convert(o, version)
}

// tidy ends what a crash has interrupted and refuses what is not ours.
func (p place) tidy() error {
	names, err := p.fs.List(p.dir)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, name := range names {
		if !ours(name) {
			return fmt.Errorf("%w: it holds %q", ErrForeign, name)
		}
		found[name] = true
	}
	if found[readyName] && !found[dataName] {
		found[dataName] = true
		if err := p.rename(readyName, dataName); err != nil {
			return err
		}
	}
	for _, name := range []string{makingName, readyName} {
		if err := p.fs.RemoveAll(p.path(name)); err != nil {
			return err
		}
	}
	return nil
}

func ours(name string) bool {
	switch name {
	case lockName, dataName, makingName, readyName, "lost+found":
		return true
	}
	return strings.HasPrefix(name, brokenName) || strings.HasPrefix(name, beforeName)
}

// create makes an empty database.
func (p place) create(o Options) error {
	b, err := p.build(o)
	if err != nil {
		return err
	}
	if err := b.finish(); err != nil {
		return err
	}
	return p.rename(readyName, dataName)
}

// admit looks at a database before it is opened, since opening it would convert
// what has another format and start anew where the manifest is missing.
func (p place) admit() error {
	desc, err := pebble.Peek(p.data(), p.fs)
	if err != nil {
		return damage(err)
	}
	if !desc.Exists {
		return damage(errors.New("manifest is missing"))
	}
	if desc.FormatMajorVersion > engine.Format {
		return fmt.Errorf("%w: storage format %d, this one knows %d", ErrNewer, desc.FormatMajorVersion, engine.Format)
	}
	return nil
}

// present is admit for a history that has to be there.
func (p place) present() error {
	found, err := p.exists(dataName)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("no history here: %w", iofs.ErrNotExist)
	}
	return p.admit()
}

// damage names the way out of a broken database. What a failing disk says is no
// damage.
func damage(err error) error {
	if err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, errMoved) || diskError(err) {
		return err
	}
	return damagedError{err}
}

// damagedError says what is broken, and what to do about it.
type damagedError struct{ cause error }

func (e damagedError) Error() string {
	return fmt.Sprintf("%v: %v; `stategauge history repair --storage.path=DIR` salvages what can be read", ErrDamaged, e.cause)
}

func (e damagedError) Unwrap() []error { return []error{ErrDamaged, e.cause} }
