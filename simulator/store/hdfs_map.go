package store

import "math/bits"

// Sizes of Java objects as Spark's size estimator sees them, in bytes, on a
// 64-bit machine with compressed references: what an empty map, the cache of
// versions and each of its entries were seen to report, and what the classes
// of a row are made of.
const (
	emptyMapBytes   = 96 // the map of a version without its table
	cacheBytes      = 80 // the cache of versions without entries
	cacheEntryBytes = 64
	tableBytes      = 16 // header of the array of buckets
	bucketBytes     = 4
	entryBytes      = 32      // entry of a hash table
	rowObjectBytes  = 40 + 16 // UnsafeRow and the header of its byte array
	firstBuckets    = 16
)

// heapMap is the map of one version, with what its objects take on the heap.
type heapMap struct {
	version int64
	tree    heapTree
	rows    int64
	buckets int64 // of the Java hash table
	objects int64 // bytes of keys and values
	base    *heapMap
	dropped int64 // bytes of the base's keys and values that this map has not
}

func newHeapMap(gen uint32) *heapMap { return &heapMap{tree: heapTree{gen: gen}} }

// copyOf returns a map to be changed. Spark copies entry by entry, into a table
// made for as many; here both share their rows.
func copyOf(m *heapMap, version int64, gen uint32) *heapMap {
	c := &heapMap{version: version, tree: m.tree.fork(gen), rows: m.rows, objects: m.objects, base: m}
	if m.rows > 0 {
		c.buckets = powerOfTwo(m.rows*4/3 + 1)
	}
	return c
}

// powerOfTwo returns the smallest one that is not below n.
func powerOfTwo(n int64) int64 { return 1 << bits.Len64(uint64(n-1)) }

func keyBytes(r heapRow) int64   { return rowObjectBytes + words(r.keyLen()) }
func valueBytes(r heapRow) int64 { return rowObjectBytes + words(len(r)-rowHeader-r.keyLen()) }

// words rounds up to whole words, as object sizes are.
func words(n int) int64 { return int64(n+7) &^ 7 }

func (m *heapMap) put(key, value []byte) {
	old := m.tree.put(key, value)
	if old == nil {
		m.rows++
		m.grow()
		m.objects += 2*rowObjectBytes + words(len(key)) + words(len(value))
		return
	}
	// The hash table keeps the key object that it has and takes the new value.
	m.objects += rowObjectBytes + words(len(value)) - valueBytes(old)
	if old.gen() != m.tree.gen {
		m.dropped += valueBytes(old)
	}
}

// grow doubles the table when it is three quarters full.
func (m *heapMap) grow() {
	m.buckets = max(m.buckets, firstBuckets)
	for m.rows > m.buckets/4*3 {
		m.buckets *= 2
	}
}

func (m *heapMap) remove(key []byte) bool {
	old := m.tree.remove(key)
	if old == nil {
		return false
	}
	m.rows--
	m.objects -= keyBytes(old) + valueBytes(old)
	if old.gen() != m.tree.gen {
		m.dropped += keyBytes(old) + valueBytes(old)
	}
	return true
}

// ownBytes is what the map takes beyond its keys and values.
func (m *heapMap) ownBytes() int64 {
	n := emptyMapBytes + m.rows*entryBytes
	if m.buckets > 0 {
		n += tableBytes + m.buckets*bucketBytes
	}
	return n
}

// stateBytes is the size of the map with all that it holds.
func (m *heapMap) stateBytes() int64 { return m.ownBytes() + m.objects }

// mapCache is the newest few versions in memory, newest first.
type mapCache struct {
	maps []*heapMap
	max  int
}

func (c *mapCache) get(version int64) *heapMap {
	for _, m := range c.maps {
		if m.version == version {
			return m
		}
	}
	return nil
}

// put adds a version, replacing the same one and pushing out the oldest. A
// version older than all of a full cache is not kept.
func (c *mapCache) put(m *heapMap) {
	if c.max <= 0 {
		return
	}
	at := 0
	for at < len(c.maps) && c.maps[at].version > m.version {
		at++
	}
	switch {
	case at < len(c.maps) && c.maps[at].version == m.version:
		c.maps[at] = m
	case at >= c.max:
		return
	default:
		c.maps = append(c.maps, nil)
		copy(c.maps[at+1:], c.maps[at:])
		c.maps[at] = m
	}
	if len(c.maps) > c.max {
		clear(c.maps[c.max:])
		c.maps = c.maps[:c.max]
	}
	c.cutChains()
}

// cutChains lets go of versions that are no longer kept: each map points to the
// one that it was copied from only as long as that is next to it.
func (c *mapCache) cutChains() {
	for i, m := range c.maps {
		if i+1 == len(c.maps) || m.base != c.maps[i+1] {
			m.base = nil
		}
	}
}

// bytes is the size of all versions kept: objects that a version has in common
// with the next newer one count once.
func (c *mapCache) bytes() int64 {
	n := int64(cacheBytes)
	for i, m := range c.maps {
		n += cacheEntryBytes + m.ownBytes()
		if i > 0 && c.maps[i-1].base == m {
			n += c.maps[i-1].dropped
		} else {
			n += m.objects
		}
	}
	return n
}
