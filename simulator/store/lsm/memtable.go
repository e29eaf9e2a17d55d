package lsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Pebble starts with a small arena whatever its setting, and rotates a memtable
// by itself when the next write could fail to fit. How full an arena really is
// depends on the heights of its nodes, which are random; so a database flushes
// before half of it is used. The same bound keeps the size of the arena: Pebble
// doubles it when a memtable was flushed more than half full.
const (
	firstArena    = 256 << 10
	smallestArena = 64 << 10
	largestArena  = 16 << 20
	usablePercent = 45

	// nodeBytes is what an entry takes beyond its key and value: a node of the
	// skip list with a tower of average height, trailer and alignment. It is
	// rounded up.
	nodeBytes = 64

	// DefaultMemtableBytes is used where Options leave it open.
	DefaultMemtableBytes = 896 << 10
	// MaxMemtableBytes is the largest memtable; larger ones are cut down to it.
	MaxMemtableBytes = largestArena / 100 * usablePercent
)

// ErrTooLarge is returned for an entry that no memtable of the database holds.
var ErrTooLarge = errors.New("entry is too large for a memtable")

// usable is how much of an arena is filled before a flush.
func usable(arena int64) int64 { return arena / 100 * usablePercent }

// arenaFor is the smallest arena in which a memtable of so many bytes fits.
func arenaFor(memtable int64) int64 {
	arena := int64(smallestArena)
	for usable(arena) < memtable && arena < largestArena {
		arena *= 2
	}
	return arena
}

// effectiveMemtable applies default and limit.
func effectiveMemtable(bytes int64) int64 {
	if bytes <= 0 {
		bytes = DefaultMemtableBytes
	}
	return min(bytes, MaxMemtableBytes)
}

// MemtableCharge is how many bytes of a Shared's cache each database takes for
// its memtables once it is in use: one that is written and one kept for reuse.
// A capacity must exceed the charges of all its databases or nothing is cached.
func MemtableCharge(memtableBytes int64) int64 {
	return 2 * arenaFor(effectiveMemtable(memtableBytes))
}

// memtable follows what the current memtable of a database holds.
type memtable struct {
	limit   int64 // flush before more than this
	arena   int64 // that Pebble has now
	largest int64 // that Pebble may have
	used    int64 // bytes of entries since the last flush, node included
	entries int64
	uncount func() // takes back the relief given to the cache
}

func newMemtable(limit int64) memtable {
	largest := arenaFor(limit)
	return memtable{limit: limit, arena: min(largest, firstArena), largest: largest}
}

// fits says whether an entry can be added without a flush.
func (m *memtable) fits(n int64) bool {
	return m.used+n <= min(m.limit, usable(m.arena)) || m.used == 0 && n <= usable(m.arena)
}

func (m *memtable) add(n int64) {
	m.used += n
	m.entries++
}

func (m *memtable) clear() { m.used, m.entries = 0, 0 }

// relieve gives the cache back what Pebble takes from it for memtables.
func (d *DB) relieve() {
	if !d.uncharged {
		return
	}
	before := d.mem.uncount
	d.mem.uncount = d.shared.cache.Reserve(int(-2 * d.mem.arena))
	if before != nil {
		before()
	}
}

// reserve makes room for an entry: it flushes, and grows the first small arena
// to the size asked for once that has been filled.
func (d *DB) reserve(key, value []byte) (int64, error) {
	if d.broken != nil {
		return 0, d.broken
	}
	n := int64(len(key)+len(value)) + nodeBytes
	if d.mem.fits(n) {
		return n, nil
	}
	if n > usable(d.mem.largest) {
		return 0, fmt.Errorf("put %d bytes into %s: %w", len(key)+len(value), d.dir, ErrTooLarge)
	}
	if d.mem.used > 0 {
		if err := d.flush(); err != nil {
			return 0, err
		}
	}
	if d.mem.arena < d.mem.largest {
		if err := d.grow(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Grow brings the memtable to its full size at once, where nothing has been put
// yet. A database that is not told to does so at the price of a flush, when the
// small arena that Pebble begins with is full.
func (d *DB) Grow() error {
	if d.broken != nil || d.mem.entries > 0 || d.mem.arena >= d.mem.largest {
		return d.broken
	}
	return d.grow()
}

// grow brings the empty memtable to its full size. A batch of nearly half of that
// makes Pebble rotate to an arena in which it fits; flushing that one more than
// half full doubles the next, flushing it less full keeps the size. The memtable
// rotated out is too small for Pebble to flush before the other. The batch
// annihilates itself, so that no table is written.
func (d *DB) grow() error {
	if err := d.fill(d.mem.largest / 100 * 48); err != nil {
		return d.fail("grow memtable of", err)
	}
	if err := d.rotate(); err != nil {
		return d.fail("grow memtable of", err)
	}
	d.mem.arena = d.mem.largest
	d.relieve()
	return nil
}

func (d *DB) fill(n int64) (err error) {
	b := d.db.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	key := []byte("filler")
	if err := b.Set(key, make([]byte, n), nil); err != nil {
		return err
	}
	if err := b.SingleDelete(key, nil); err != nil {
		return err
	}
	return b.Commit(pebble.NoSync)
}
