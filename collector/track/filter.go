package track

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"

	"github.com/VictoriaMetrics/fastcache"

	"github.com/stategauge/stategauge/event"
)

// Key identifies an execution, a query's run and batch, at a fixed size.
type Key [sha256.Size]byte

// keyOf hashes the parts of an execution's identity. buf is scratch memory and
// is returned for reuse.
func keyOf(buf []byte, q event.QueryID, r event.RunID, batch int64) (Key, []byte) {
	buf = binary.AppendUvarint(buf[:0], uint64(len(q)))
	buf = append(buf, q...)
	buf = binary.AppendUvarint(buf, uint64(len(r)))
	buf = append(buf, r...)
	buf = binary.AppendVarint(buf, batch)
	return sha256.Sum256(buf), buf
}

// Filter remembers executions that are older than the exact windows. It may
// forget: a Tracker asks it only whether something too old to judge is a repeat
// or late, and counts neither, so a forgotten key can never double a count.
type Filter interface {
	Has(k *Key) bool
	Add(k *Key)
}

// CacheFilter is a Filter of bounded memory, safe for use by all shards at once.
// The oldest keys are forgotten first.
type CacheFilter struct {
	cache *fastcache.Cache
	added atomic.Uint64
}

// NewFilter returns a CacheFilter of about maxBytes. The cache underneath takes
// its memory outside the heap, in 512 pieces of at least 64 KiB as they fill:
// below 32 MiB it uses 32 MiB. About 46 bytes go to each key, and as much again
// to its index.
func NewFilter(maxBytes int) *CacheFilter {
	return &CacheFilter{cache: fastcache.New(max(maxBytes, 1))}
}

// present is the value of every key; keys and value have one size each, so that
// nothing can be too long for the cache and an overwrite is never refused.
var present = []byte{1}

// Has reports whether k was added and is not forgotten.
func (f *CacheFilter) Has(k *Key) bool { return f.cache.Has(k[:]) }

// Add remembers k.
func (f *CacheFilter) Add(k *Key) {
	f.cache.Set(k[:], present)
	f.added.Add(1)
}

// Added returns how many keys were added so far, repeats included. The cache's
// own count of entries includes what it evicted, so it is not offered.
func (f *CacheFilter) Added() uint64 { return f.added.Load() }

// Close gives the memory back. The filter must not be used afterwards.
func (f *CacheFilter) Close() { f.cache.Reset() }
