// Package lsm is the storage engine below a simulated state store: a Pebble
// database made to behave the same in every run. Nothing of it works on its own
// account: flushes and compactions run when the caller says so, one after
// another, and are waited for. So the shape of the tree, the blocks in the cache
// and the names and bytes of the files follow from the calls alone.
package lsm

import (
	"bytes"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options is where a database lies and how it is laid out.
type Options struct {
	FS     vfs.FS
	Dir    string
	Shared *Shared
	// MemtableBytes is how much is put, entries and their nodes, before a database
	// flushes by itself. 0: DefaultMemtableBytes; at most MaxMemtableBytes.
	MemtableBytes int64
	BlockBytes    int64 // of an SST, before compression; 0: 4 KiB
	// Uncharged leaves the whole capacity of Shared to blocks, as where memory is
	// not bounded by one manager.
	Uncharged  bool
	Uncompress bool // write blocks as they are instead of with Snappy
}

// format is the on-disk format of all databases. An older one is not converted.
const format = pebble.FormatTableFormatV6

// The tree is shaped like RocksDB's with its defaults: compaction out of level 0
// at four files, a base level of 256 MiB, tables of up to 64 MiB.
const (
	l0Trigger      = 4
	baseLevelBytes = 256 << 20
	tableBytes     = 64 << 20
	bitsPerKey     = 10
	manifestBytes  = 4 << 10 // before it is written anew: every checkpoint copies it
	neverStall     = 1 << 20 // files or memtables; the store models stalls
)

var (
	// ErrFormat is returned by Open for a database of another format.
	ErrFormat = errors.New("database has another format")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("database is closed")
)

// DB is one open database. It is not safe for concurrent use.
type DB struct {
	db        *pebble.DB
	dir       string
	fs        vfs.FS
	shared    *Shared
	uncharged bool
	rec       *recorder
	sched     *scheduler
	mem       memtable
	paused    bool
	broken    error  // what every further call returns
	value     []byte // what Get returned last
	copied    []byte // buffer of Checkpoint
	stats     Stats
	since     CacheCounts
	told      Flushed // work that Flush, Drain and Compact have returned
	reset     Flushed // work before ResetStats
	debt      Debt
	debtAt    int64
	block     int64
	names     map[string]bool // of tables, as of namesAt
	namesAt   int64
}

// Open opens the database in Dir or creates it there.
func Open(o Options) (*DB, error) {
	if err := checkFormat(o.FS, o.Dir); err != nil {
		return nil, err
	}
	limit := effectiveMemtable(o.MemtableBytes)
	rec := newRecorder()
	d := &DB{
		dir: o.Dir, fs: o.FS, shared: o.Shared, uncharged: o.Uncharged,
		rec: rec, sched: &scheduler{r: rec}, mem: newMemtable(limit),
		block: o.BlockBytes, debtAt: -1,
	}
	if d.block <= 0 {
		d.block = 4 << 10
	}
	if err := d.open(pebbleOptions(o, d)); err != nil {
		return nil, fmt.Errorf("open database %s: %w", o.Dir, err)
	}
	d.relieve()
	d.countTables()
	return d, nil
}

// open runs pebble.Open on a goroutine of its own, because a fatal error ends
// the goroutine that meets it. Pebble panics on some errors of the disk.
func (d *DB) open(o *pebble.Options) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("opening ended early")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("pebble: %v", p)
			}
			if fatal := d.rec.err(); fatal != nil {
				err = fatal
			}
			done <- err
		}()
		d.db, err = pebble.Open(d.dir, o)
	}()
	return <-done
}

// checkFormat refuses what Pebble would silently convert. A crash while a
// database is created leaves an older format, and no table.
func checkFormat(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("open database %s: %w", dir, err)
	}
	if !slices.ContainsFunc(names, isTable) {
		return nil
	}
	desc, err := pebble.Peek(dir, fs)
	if err != nil {
		return fmt.Errorf("open database %s: %w", dir, err)
	}
	if desc.Exists && desc.FormatMajorVersion != format {
		return fmt.Errorf("open database %s: %w: %d, want %d", dir, ErrFormat, desc.FormatMajorVersion, format)
	}
	return nil
}

func pebbleOptions(o Options, d *DB) *pebble.Options {
	log := logger{d.rec}
	p := &pebble.Options{
		FS:                          guard{o.FS, d.rec},
		Cache:                       o.Shared.cache,
		FileCache:                   o.Shared.files,
		FormatMajorVersion:          format,
		DisableWAL:                  true,
		DisableTableStats:           true,
		NoSyncOnClose:               true,
		MemTableSize:                uint64(d.mem.largest),
		MemTableStopWritesThreshold: neverStall,
		L0CompactionThreshold:       2 * l0Trigger, // Pebble counts sublevels twice
		L0CompactionFileThreshold:   l0Trigger,
		L0StopWritesThreshold:       neverStall,
		LBaseMaxBytes:               baseLevelBytes,
		FlushSplitBytes:             2 * tableBytes,
		MaxManifestFileSize:         manifestBytes,
		EventListener:               d.rec.listener(),
		Logger:                      log,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	p.Experimental.CompactionScheduler = d.sched
	p.Experimental.ReadSamplingMultiplier = -1
	// Row blocks are quicker to write than columns where tables are small.
	p.Experimental.EnableColumnarBlocks = func() bool { return false }
	p.Experimental.FileCacheShards = 1 // unused, but written to the OPTIONS file
	p.Experimental.MultiLevelCompactionHeuristic = pebble.NoMultiLevel{}
	for i := range p.Levels {
		p.TargetFileSizes[i] = tableBytes
		p.Levels[i] = levelOptions(o, int(d.block))
	}
	return p
}

func levelOptions(o Options, block int) pebble.LevelOptions {
	l := pebble.LevelOptions{
		BlockSize:      block,
		IndexBlockSize: 1 << 20, // one level of index
		FilterPolicy:   bloom.FilterPolicy(bitsPerKey),
		Compression:    func() *sstable.CompressionProfile { return sstable.SnappyCompression },
	}
	if o.Uncompress {
		l.Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	return l
}

// countTables takes stock of the files that are there at opening.
func (d *DB) countTables() {
	m := d.db.Metrics()
	d.rec.mu.Lock()
	defer d.rec.mu.Unlock()
	for level := range m.Levels {
		l := &m.Levels[level]
		d.rec.live.add(l.TablesCount, l.TablesSize, level == 0)
	}
}

// Get reads a key. The value is valid until the next call.
func (d *DB) Get(key []byte) (value []byte, found bool, err error) {
	if d.broken != nil {
		return nil, false, d.broken
	}
	v, closer, err := d.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("get from %s: %w", d.dir, err)
	}
	d.value = append(d.value[:0], v...)
	if err := closer.Close(); err != nil {
		return nil, false, fmt.Errorf("get from %s: %w", d.dir, err)
	}
	d.stats.UserRead += int64(len(d.value))
	return d.value, true, nil
}

// Set writes a key. It flushes first where the memtable is full.
func (d *DB) Set(key, value []byte) error {
	n, err := d.reserve(key, value)
	if err != nil {
		return err
	}
	if err := d.db.Set(key, value, pebble.NoSync); err != nil {
		return fmt.Errorf("set in %s: %w", d.dir, err)
	}
	d.mem.add(n)
	d.stats.UserWritten += int64(len(key) + len(value))
	return nil
}

// Delete removes a key, there or not, by writing a tombstone.
func (d *DB) Delete(key []byte) error {
	n, err := d.reserve(key, nil)
	if err != nil {
		return err
	}
	if err := d.db.Delete(key, pebble.NoSync); err != nil {
		return fmt.Errorf("delete from %s: %w", d.dir, err)
	}
	d.mem.add(n)
	d.stats.UserWritten += int64(len(key))
	return nil
}

// DeleteRange removes the keys in [from, to) by one tombstone.
func (d *DB) DeleteRange(from, to []byte) error {
	if bytes.Compare(from, to) >= 0 {
		return nil
	}
	n, err := d.reserve(from, to)
	if err != nil {
		return err
	}
	if err := d.db.DeleteRange(from, to, pebble.NoSync); err != nil {
		return fmt.Errorf("delete range from %s: %w", d.dir, err)
	}
	d.mem.add(n)
	d.stats.UserWritten += int64(len(from) + len(to))
	return nil
}

// Scan visits the keys in [from, to) in order until visit returns false; nil is
// no bound. The slices are valid during the visit; the database must not be
// used meanwhile.
func (d *DB) Scan(from, to []byte, visit func(key, value []byte) bool) error {
	if d.broken != nil {
		return d.broken
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to, KeyTypes: pebble.IterKeyTypePointsOnly})
	if err != nil {
		return fmt.Errorf("scan %s: %w", d.dir, err)
	}
	defer func() { _ = it.Close() }() // a visit that panics leaves none open
	for ok := it.First(); ok; ok = it.Next() {
		key, value := it.Key(), it.Value()
		d.stats.IteratorRead += int64(len(key) + len(value))
		if !visit(key, value) {
			break
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("scan %s: %w", d.dir, err)
	}
	return nil
}

// Flush writes the memtable to level 0, if it holds anything, and then runs the
// compactions that Pebble's picker wants, unless they are paused. What it
// returns includes flushes that the database did by itself since the last call
// of Flush, Drain or Compact.
func (d *DB) Flush() (Flushed, error) {
	err := d.flush()
	return d.account(), err
}

func (d *DB) flush() error {
	if d.broken != nil {
		return d.broken
	}
	if d.mem.entries > 0 {
		if err := d.rotate(); err != nil {
			return d.fail("flush", err)
		}
		d.mem.clear()
	}
	if d.paused {
		return nil
	}
	return d.drain()
}

// rotate changes to a new memtable and waits until the old one is flushed and
// the compaction that should follow is picked.
func (d *DB) rotate() error {
	select {
	case <-d.rec.flushed: // of a flush that opening made
	default:
	}
	done, err := d.db.AsyncFlush()
	if err != nil {
		return err
	}
	if err := d.rec.wait(done); err != nil {
		return err
	}
	return d.rec.wait(d.rec.flushed)
}

// fail makes the error the answer to all further calls: Pebble has lost writes
// or goes on trying, and only closing helps.
func (d *DB) fail(what string, err error) error {
	d.broken = fmt.Errorf("%s %s: %w", what, d.dir, err)
	return d.broken
}

// Close ends all goroutines of the database. What was not flushed is gone.
func (d *DB) Close() error {
	if errors.Is(d.broken, ErrClosed) {
		return nil
	}
	fatal := fatalError{}
	stuck := errors.As(d.rec.err(), &fatal)
	broken := d.broken
	d.broken = fmt.Errorf("%s: %w", d.dir, ErrClosed)
	if d.mem.uncount != nil {
		d.mem.uncount()
	}
	if stuck {
		return broken // its locks are held by a goroutine that is gone
	}
	if err := d.db.Close(); err != nil && broken == nil {
		return fmt.Errorf("close database %s: %w", d.dir, err)
	}
	return nil
}
