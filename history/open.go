package history

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/history/engine"
)

// lockError tells a history that is in use from a disk that refuses.
func lockError(err error) error {
	taken := errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "lock held by current process")
	if !taken {
		return fmt.Errorf("lock: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrInUse, err)
}

// openEngine opens a database that admit has let through.
func openEngine(fs vfs.FS, dir string, o Options) (*engine.Engine, error) {
	eng, err := engine.Open(o.engine(fs, dir))
	return eng, damage(err)
}

// openPresent is openEngine for contents of the present format.
func openPresent(fs vfs.FS, dir string, o Options) (*engine.Engine, error) {
	eng, err := openEngine(fs, dir, o)
	if err != nil {
		return nil, err
	}
	version, err := readVersion(eng)
	if err == nil {
		err = o.admit(version)
	}
	if err == nil && version < o.format {
		err = fmt.Errorf("format %d is older than %d: the daemon converts it when it starts", version, o.format)
	}
	if err != nil {
		_ = eng.Close()
		return nil, err
	}
	return eng, nil
}

func (o Options) admit(version uint64) error {
	if version > o.format {
		return fmt.Errorf("%w: format %d, this one knows %d", ErrNewer, version, o.format)
	}
	return nil
}

func (o Options) engine(fs vfs.FS, dir string) engine.Options {
	return engine.Options{
		FS: fs, Dir: dir, CacheBytes: o.CacheBytes, MemtableBytes: o.memtableBytes,
		ReadOnly: o.ReadOnly, Logger: o.Logger,
	}
}

// diskError tells a disk that refuses from contents that are broken. A file that
// is missing is damage, and so is what Pebble finds to be, whoever meets it.
func diskError(err error) bool {
	if pebble.IsCorruptionError(err) {
		return false
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return number != syscall.ENOENT
	}
	return errors.Is(err, engine.ErrFailed) || errors.Is(err, engine.ErrClosed) || errors.Is(err, iofs.ErrPermission)
}

func readVersion(eng *engine.Engine) (uint64, error) {
	var version uint64
	err := eng.Do(func(db *pebble.DB, in *inside) error {
		v, err := getUint(db, metaKey(metaFormat))
		if err != nil {
			return err
		}
		return in.Call(func() error { version = v; return nil })
	})
	if err != nil {
		return 0, damage(err)
	}
	if version == 0 {
		return 0, fmt.Errorf("%w: the database in it has no format version", ErrForeign)
	}
	return version, nil
}

// Reopen opens the history anew after its disk has failed. It returns an error,
// and can be called again, while the disk does not take writes. NextSeq then
// tells whether the steps of a Commit that failed are there. An engine that has
// failed keeps its memory; after several, Reopen asks for a restart.
func (s *Store) Reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.reopen()
	s.account(err)
	if err != nil {
		return fmt.Errorf("reopen history %s: %w", s.o.Dir, err)
	}
	return nil
}

func (s *Store) reopen() error {
	if s.closed {
		return ErrClosed
	}
	old := s.engine()
	if old.Failed() == nil {
		return nil
	}
	if s.dead >= maxDead {
		return fmt.Errorf("%w %d times: restart the daemon", ErrFailed, s.dead)
	}
	if old.Busy() {
		return fmt.Errorf("%w: writes are still with the disk", ErrFailed)
	}
	if err := s.probe(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	err := s.place.prepare(s.o)
	if err == nil {
		err = s.start(s.o.FS)
	}
	if err == nil || errors.Is(err, ErrFailed) { // the one before, or the one that failed at once
		s.dead++
	}
	if err == nil {
		s.o.Metrics.Reopened.Inc()
	}
	return err
}

// probeBytes is what the disk has to take before an engine is trusted to it.
const probeBytes = 1 << 20

// probe writes, forces to disk and removes a file.
func (s *Store) probe() error {
	if err := s.room(minFreeReopenBytes); err != nil {
		return err
	}
	name := s.place.path(makingName)
	f, err := s.o.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeBytes))
	err = errors.Join(err, f.Sync(), f.Close(), s.o.FS.Remove(name))
	return errors.Join(err, s.place.sync())
}
