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

// openEngine opens a database that admit has let through, and checks that its
// contents are of the present format.
func openEngine(fs vfs.FS, dir string, o Options) (*engine.Engine, error) {
	eng, err := engine.Open(o.engine(fs, dir))
	if err != nil {
		if diskError(err) {
			return nil, err
		}
		return nil, damage(err)
	}
	version, err := readVersion(eng)
	if err == nil && version != formatVersion {
		err = fmt.Errorf("%w: format %d, this one knows %d", ErrNewer, version, formatVersion)
	}
	if err != nil {
		_ = eng.Close()
		return nil, err
	}
	return eng, nil
}

func (o Options) engine(fs vfs.FS, dir string) engine.Options {
	return engine.Options{
		FS: fs, Dir: dir, CacheBytes: o.CacheBytes, MemtableBytes: o.memtableBytes,
		ReadOnly: o.ReadOnly, Logger: o.Logger,
	}
}

// diskError tells a disk that refuses from contents that are broken. A file that
// is missing is damage.
func diskError(err error) bool {
	var number syscall.Errno
	if errors.As(err, &number) {
		return !errors.Is(err, iofs.ErrNotExist)
	}
	return errors.Is(err, engine.ErrFailed) || errors.Is(err, iofs.ErrPermission)
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

// builder fills a new database beside the one in place.
type builder struct {
	place place
	eng   *engine.Engine
}

// build begins a new database of the present format.
func (p place) build(o Options) (*builder, error) {
	if err := p.fs.RemoveAll(p.path(makingName)); err != nil {
		return nil, err
	}
	o.ReadOnly = false
	eng, err := engine.Open(o.engine(p.fs, p.path(makingName)))
	if err != nil {
		return nil, err
	}
	b := &builder{p, eng}
	if err := b.apply(func(b *pebble.Batch) error {
		return b.Set(metaKey(metaFormat), appendUint(nil, formatVersion), nil)
	}); err != nil {
		b.abandon()
		return nil, err
	}
	return b, nil
}

// apply writes a batch. Nothing is durable before finish.
func (b *builder) apply(fill func(b *pebble.Batch) error) error {
	batch := b.eng.NewBatch()
	if err := fill(batch); err != nil {
		return err
	}
	return b.eng.Do(func(db *pebble.DB, _ *inside) error { return db.Apply(batch, pebble.NoSync) })
}

// finish makes the database durable under the name of one that is ready.
func (b *builder) finish() error {
	if err := b.eng.Do(func(db *pebble.DB, _ *inside) error { return db.Flush() }); err != nil {
		b.abandon()
		return err
	}
	if err := b.eng.Close(); err != nil {
		return err
	}
	return b.place.rename(makingName, readyName)
}

// abandon leaves the files for the next opening to remove.
func (b *builder) abandon() { _ = b.eng.Close() }

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
	s.dead++ // whether it opens or not: what fails at opening is left behind as well
	if err := s.place.prepare(s.o); err != nil {
		return err
	}
	if err := s.start(s.o.FS); err != nil {
		return err
	}
	s.o.Metrics.Reopened.Inc()
	return nil
}

// probeBytes is what the disk has to take before an engine is trusted to it.
const probeBytes = 1 << 20

// probe writes, forces to disk and removes a file.
func (s *Store) probe() error {
	if err := s.room(); err != nil {
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
