package store

import "github.com/stategauge/stategauge/event"

// What RocksDB's allocations come to, as running Spark reports them.
const (
	emptyMemtable   = 2048      // arena of a memtable that holds nothing
	maxArenaBlock   = 1 << 20   // arenas grow by an eighth of the write buffer, at most this
	arenaOverhead   = 4080      // of each block
	defaultBuffer   = 64 << 20  // write buffer where none is set
	memtableEntry   = 29        // node, sequence number and lengths of an entry
	idleCache       = 88        // of a block cache with nothing in it
	chargeUnit      = 256 << 10 // a shared cache is charged for memtables in units,
	chargeOverhead  = 88        // each an entry of its own
	nodeBytesOfOurs = 64        // what lsm counts for an entry instead of memtableEntry
	minArenaBlock   = 4 << 10
	defaultBlock    = 4 << 10 // of the cache
)

// memtableMemory is the arena of the store's memtable.
func (s *rocksDB) memtableMemory() int64 {
	entries := s.seen.MemtableEntries
	if entries == 0 {
		return emptyMemtable
	}
	buffer := s.x.o.Conf.WriteBufferBytes
	if buffer <= 0 {
		buffer = defaultBuffer
	}
	block := min(max(buffer/8, minArenaBlock), maxArenaBlock)
	used := s.seen.MemtableBytes - (nodeBytesOfOurs-memtableEntry)*entries
	blocks := (max(used, 1) + block - 1) / block
	return emptyMemtable + blocks*(block+arenaOverhead)
}

// reportMemory fills in what the store says of its memory.
func (s *rocksDB) reportMemory() {
	s.memtable = s.memtableMemory()
	own := s.memtable + s.seen.ReaderBytes
	if s.m.batchedWrites {
		own += writeBatchHeader
	}
	leak := s.faults.LeakBytes
	if s.shared != nil {
		s.fig.MemoryBytes = own + idleCache + s.x.cached(s.shared.UsedBytes(), s.now.cacheMisses, s.x.o.Conf.BlockCacheBytes) + leak
		s.pinned(idleCache + leak)
		return
	}
	pinned := s.x.charged()
	cache := pinned + s.x.cached(s.x.shared.UsedBytes(), s.x.misses(), s.x.o.Conf.MaxMemoryBytes-pinned)
	n := max(int64(len(s.x.order)), 1)
	switch s.m.memory {
	case memoryHidden:
		s.fig.MemoryBytes = 0
		s.pinned(pinned + leak)
	case memoryShared:
		s.fig.MemoryBytes = (own+cache)/n + leak
		s.pinned(pinned/n + leak)
	default:
		s.fig.MemoryBytes = own + cache + leak
		s.pinned(pinned + leak)
	}
}

func (s *rocksDB) pinned(bytes int64) {
	if s.m.hasFlushBytes {
		s.fig.Custom[event.RocksDBPinnedBlocksMemoryUsage] = float64(bytes)
	}
}

// cached is what RocksDB's block cache holds where Pebble's holds used bytes:
// blocks of tables that are gone stay in it until others need their room, so that
// it fills with every block that was ever missed.
func (x *Executor) cached(used, misses, capacity int64) int64 {
	block := x.o.Conf.BlockBytes
	if block <= 0 {
		block = defaultBlock
	}
	if f := x.faults.CacheFactor; f > 0 {
		capacity = int64(float64(capacity) * f)
	}
	return max(used, min(misses*block, capacity))
}

// misses counts those of all stores.
func (x *Executor) misses() (n int64) {
	for _, id := range x.order {
		if s, ok := x.stores[id].(*rocksDB); ok {
			n += s.now.cacheMisses
		}
	}
	return n
}

// charged is what the memtables of all stores take of the shared cache.
func (x *Executor) charged() int64 {
	var total int64
	for _, id := range x.order {
		if s, ok := x.stores[id].(*rocksDB); ok {
			total += s.memtable
		}
	}
	units := max((total+chargeUnit-1)/chargeUnit, 1)
	return idleCache + units*(chargeUnit+chargeOverhead)
}
