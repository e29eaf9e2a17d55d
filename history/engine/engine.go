// Package engine runs a Pebble database that fails with an error. Pebble ends
// the process, or blocks for good, where its log or manifest cannot be written;
// an engine instead hands the cause to every caller, now and later, and can be
// left behind for a new one on the same directory. It knows nothing of what the
// database holds.
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the on-disk format of all databases. One of an older format is
// converted by Pebble at opening; a newer one has to be refused by the caller,
// see Peek.
const Format = pebble.FormatTableFormatV6

// The tree holds records that arrive in order of time and go by ranges of time:
// little is compacted twice.
const (
	memtableBytes = 4 << 20
	blockBytes    = 32 << 10
	tableBytes    = 4 << 20 // of level 0; four doublings above that at most
	largestTable  = 64 << 20
	zstdFrom      = 5 // first level whose blocks are packed tightly
)

var (
	// ErrFailed is in the chain of every error after the disk has failed.
	ErrFailed = errors.New("storage has failed")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("storage is closed")
)

// Options is where a database lies.
type Options struct {
	FS         vfs.FS
	Dir        string
	CacheBytes int64 // of blocks and memtables; at least 8 MiB is useful
	// MemtableBytes bounds how much log is read at a start. 0: 4 MiB.
	MemtableBytes int64
	ReadOnly      bool
	Logger        *slog.Logger
}

// Engine is one open database. Its methods are safe for concurrent use.
type Engine struct {
	db    *pebble.DB
	fence *fence

	mu      sync.Mutex
	closing bool
	users   int
	idle    sync.Cond // users is 0
}

// Open opens the database in the directory, or creates it there. The caller
// holds the lock of the directory.
func Open(o Options) (*Engine, error) {
	e := &Engine{fence: newFence()}
	e.idle.L = &e.mu
	cache := pebble.NewCache(o.CacheBytes)
	err := e.run(func(*pebble.DB, *Inside) error {
		defer cache.Unref()
		db, err := pebble.Open(o.Dir, pebbleOptions(o, cache, e.fence))
		if err == nil {
			e.db = db // read after this function is known to be done
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", o.Dir, err)
	}
	return e, nil
}

func pebbleOptions(o Options, cache *pebble.Cache, f *fence) *pebble.Options {
	p := &pebble.Options{
		FS:                         guard{o.FS, f},
		Cache:                      cache,
		FormatMajorVersion:         Format,
		ReadOnly:                   o.ReadOnly,
		MemTableSize:               uint64(cmp.Or(o.MemtableBytes, memtableBytes)),
		L0CompactionThreshold:      8, // at four layers: Pebble counts them twice
		L0CompactionFileThreshold:  16,
		LBaseMaxBytes:              64 << 20,
		MaxManifestFileSize:        1 << 20,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
		EventListener:              listener(f),
		Logger:                     logger{f, o.Logger},
	}
	for i := range p.Levels {
		p.TargetFileSizes[i] = min(int64(tableBytes)<<i, largestTable)
		p.Levels[i] = levelOptions(i)
	}
	return p
}

// levelOptions packs what stays; what is soon written again is packed quickly.
// No filters: records are read in ranges, and single keys are there.
func levelOptions(level int) pebble.LevelOptions {
	l := pebble.LevelOptions{BlockSize: blockBytes, IndexBlockSize: 128 << 10}
	l.Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	if level >= zstdFrom {
		l.Compression = func() *sstable.CompressionProfile { return sstable.ZstdCompression }
	}
	return l
}

func listener(f *fence) *pebble.EventListener {
	return &pebble.EventListener{
		// A flush that fails is tried again for ever, and then writes block.
		BackgroundError: f.fail,
		// The read that met it returns the error as well.
		DataCorruption: func(pebble.DataCorruptionInfo) {},
	}
}

// logger takes what Pebble calls fatal and keeps the rest quiet.
type logger struct {
	fence *fence
	log   *slog.Logger
}

// Infof implements pebble.Logger.
func (logger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	if l.log != nil {
		l.log.Debug("storage engine", "message", fmt.Sprintf(format, args...))
	}
}

// Fatalf implements pebble.Logger. It does not return.
func (l logger) Fatalf(format string, args ...any) {
	l.fence.fail(fatal(format, args))
	park()
}

// fatal keeps the cause of a failure in the chain.
func fatal(format string, args []any) error {
	for _, arg := range args {
		if cause, ok := arg.(error); ok {
			return fmt.Errorf("%s (%w)", fmt.Sprintf(format, args...), cause)
		}
	}
	return fmt.Errorf(format, args...)
}
