package lsm

import "github.com/cockroachdb/pebble/v2"

// shardedAt is the size that caches are made with. Below 32 MiB a cache has four
// shards however many cores there are, which makes its hits and misses the same
// everywhere; the wanted capacity is reached by reserving the difference, which
// can be negative.
const shardedAt = 16 << 20

// openTables is how many tables of one Shared can have an open reader at once.
const openTables = 1 << 14

// Shared is the block cache and the table readers that the databases of one
// executor have in common, or a single database where memory is not bounded.
// All databases of a Shared must be used by one goroutine at a time: otherwise
// the order of their reads, and with it what the cache holds, is chance.
type Shared struct {
	cache    *pebble.Cache
	files    *pebble.FileCache
	capacity int64
	release  func() // of the reservation that makes up capacity
}

// NewShared returns an empty cache for so many bytes of blocks. Zero or less
// holds nothing. The memtables of its databases are charged to it, unless their
// Options say otherwise: see MemtableCharge.
func NewShared(cacheBytes int64) *Shared {
	s := &Shared{
		cache: pebble.NewCache(shardedAt),
		files: pebble.NewFileCache(1, openTables),
	}
	s.SetCapacity(cacheBytes)
	return s
}

// SetCapacity changes how many bytes fit; what is too much is dropped at once.
func (s *Shared) SetCapacity(cacheBytes int64) {
	cacheBytes = max(cacheBytes, 0)
	if s.release != nil {
		if cacheBytes == s.capacity {
			return
		}
		s.release() // first: both reservations at once would drop what still fits
	}
	s.release = s.cache.Reserve(int(shardedAt - cacheBytes))
	s.capacity = cacheBytes
}

// Capacity is what NewShared or SetCapacity set, in bytes.
func (s *Shared) Capacity() int64 { return s.capacity }

// UsedBytes is what the cached blocks of all databases take. Memtables are not
// part of it.
func (s *Shared) UsedBytes() int64 { return s.cache.Size() }

// Close releases the cache. All databases must be closed before.
func (s *Shared) Close() {
	s.release()
	s.files.Unref()
	s.cache.Unref()
}

// counts reads the hits and misses of all databases.
func (s *Shared) counts() CacheCounts {
	m := s.cache.Metrics()
	return CacheCounts{Hits: m.Hits, Misses: m.Misses}
}
