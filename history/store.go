package history

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/history/engine"
)

// Store is an open history. Commit, Trim, PutHours and Retain wait for each
// other; reading waits for nothing. Close waits for calls in progress, so it
// must not be called from within a callback.
type Store struct {
	o     Options
	place place
	lock  io.Closer // of the directory; nil where read only

	mu     sync.Mutex // of writing, and of what only writers use; held over a write
	closed bool
	next   uint64
	hold   hold
	sample sample
	since  int64 // Unix seconds since when nothing can be written, 0 if it can
	dead   int   // engines left behind

	known sync.RWMutex // of what follows; writers hold mu as well
	book  book
	tally tallies

	live sync.RWMutex // of eng; never held over a call into it
	eng  *engine.Engine
}

// maxDead bounds the memory of engines that a failing disk left behind.
const maxDead = 8

// Open opens the history in Options.Dir, or creates it where the directory is
// empty or missing. It refuses a directory of somebody else's (ErrForeign), of a
// newer version (ErrNewer), one that is open elsewhere (ErrInUse), and a broken
// history (ErrDamaged, the repair named). It never starts an empty history where
// one was.
func Open(o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{o: o, place: place{o.FS, o.Dir}}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("history %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Store) open() (err error) {
	if s.o.ReadOnly {
		return s.openFrozen()
	}
	s.lock, err = s.place.acquire()
	if err != nil {
		return err
	}
	err = s.place.prepare(s.o)
	if err == nil {
		err = s.start(s.place.fs)
	}
	if err != nil {
		_ = s.lock.Close()
	}
	return err
}

// start opens the database and reads what is kept in memory.
func (s *Store) start(fs vfs.FS) error {
	eng, err := openPresent(fs, s.place.data(), s.o)
	if err != nil {
		return err
	}
	if err := s.load(eng); err != nil {
		_ = eng.Close()
		return damage(err)
	}
	s.setEngine(eng)
	return nil
}

func (s *Store) load(eng *engine.Engine) error {
	var l loaded
	if err := eng.Do(func(db *pebble.DB, _ *engine.Inside) (err error) {
		l, err = load(db)
		return err
	}); err != nil {
		return err
	}
	s.next, s.hold = l.next, l.hold
	s.sample = sample{}
	s.known.Lock()
	defer s.known.Unlock()
	s.book, s.tally = l.book, tallies{}
	return nil
}

// loaded is what is read at every opening.
type loaded struct {
	next uint64
	book book
	hold hold
}

func load(db *pebble.DB) (l loaded, err error) {
	if l.book, err = loadBook(db); err != nil {
		return l, fmt.Errorf("read queries: %w", err)
	}
	if l.next, err = loadNext(db); err != nil {
		return l, fmt.Errorf("read newest step: %w", err)
	}
	if l.hold, err = loadHold(db); err != nil {
		return l, fmt.Errorf("read log of steps: %w", err)
	}
	return l, nil
}

// loadNext finds the number behind the newest step: the log has it, or, where
// all of the log was trimmed, what Trim noted.
func loadNext(db *pebble.DB) (uint64, error) {
	newest, err := getUint(db, metaKey(metaTrimmed))
	if err != nil {
		return 0, err
	}
	key, err := lastKey(db, spanOf(spaceLog))
	if err != nil || key == nil {
		return newest + 1, err
	}
	seq, err := parseLogKey(key)
	return max(seq, newest) + 1, err
}

func (s *Store) engine() *engine.Engine {
	s.live.RLock()
	defer s.live.RUnlock()
	return s.eng
}

func (s *Store) setEngine(e *engine.Engine) {
	s.live.Lock()
	defer s.live.Unlock()
	s.eng = e
}

// read runs f, which reads and calls back only through Inside.
func (s *Store) read(what string, f func(db *pebble.DB, in *engine.Inside) error) error {
	err := s.engine().Do(f)
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, errKey) || errors.Is(err, errValue) {
		err = damage(err)
	}
	return fmt.Errorf("history %s: %s: %w", s.o.Dir, what, err)
}

// write applies a batch that f fills. Only a synced batch survives a power cut
// for certain, but no batch survives one without all those before it.
func (s *Store) write(what string, o *pebble.WriteOptions, f func(b *pebble.Batch) error) error {
	if s.o.ReadOnly {
		return fmt.Errorf("history %s: %s: %w", s.o.Dir, what, ErrReadOnly)
	}
	eng := s.engine()
	err := eng.Failed()
	if err == nil {
		b := eng.NewBatch()
		if err = f(b); err == nil { // here, because what Do leaves behind must not read the caller's memory
			err = eng.Do(func(db *pebble.DB, _ *engine.Inside) error {
				return errors.Join(db.Apply(b, o), b.Close())
			})
		}
	}
	if err != nil {
		return fmt.Errorf("history %s: %s: %w", s.o.Dir, what, err)
	}
	return nil
}

// Failed returns why nothing can be written, or nil. Once it has, it does until
// Reopen succeeds.
func (s *Store) Failed() error { return s.engine().Failed() }

// NextSeq returns the number that the next step must have. The first is 1.
func (s *Store) NextSeq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Close makes everything durable and closes the store. It waits for calls that
// are in progress.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if !s.o.ReadOnly && s.Failed() == nil {
		err = s.flushTallies()
	}
	err = errors.Join(err, s.engine().Close())
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("close history %s: %w", s.o.Dir, err)
	}
	return nil
}
