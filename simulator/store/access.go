package store

import (
	"bytes"
	"fmt"
	"time"

	"github.com/stategauge/stategauge/simulator/device"
)

// focus makes the shared cache count for this store.
func (s *rocksDB) focus() {
	if s.x.active == s {
		return
	}
	s.x.blur()
	s.db.Begin()
	s.x.active = s
}

// blur ends the counting for whichever store it is for.
func (x *Executor) blur() {
	if x.active != nil && x.active.db != nil {
		x.active.count()
	}
	x.active = nil
}

// count takes over what the cache counted since the last call.
func (s *rocksDB) count() {
	c := s.db.End()
	s.now.cacheHits += c.Hits
	s.now.cacheMisses += c.Misses
}

// countGet takes over the lookups of a read. RocksDB keeps indexes and filters
// with its table readers unless memory is bounded, so that only the data block
// counts: it is the last one looked up, and only where the key was found.
func (s *rocksDB) countGet(found bool) {
	if s.shared == nil {
		return
	}
	c := s.db.End()
	switch {
	case !found || c.Hits+c.Misses == 0:
	case c.Misses > 0:
		s.now.cacheMisses++
	default:
		s.now.cacheHits++
	}
}

// countScan takes over the lookups of a scan, without those of each table's index
// where that is no block of the cache's.
func (s *rocksDB) countScan() {
	c := s.db.End()
	if s.shared != nil {
		c.Hits -= min(c.Hits, s.seen.SSTFiles)
	}
	s.now.cacheHits += c.Hits
	s.now.cacheMisses += c.Misses
}

// ready refuses work on a store without a loaded version.
func (s *rocksDB) ready() error {
	if s.loaded == none || s.db == nil {
		return fmt.Errorf("store %s has no version loaded", s.id)
	}
	s.focus()
	return nil
}

// physical returns the key as the database has it: behind its family, where
// there are families.
func (s *rocksDB) physical(family byte, key []byte) []byte {
	if len(s.families) == 0 {
		return key
	}
	s.key = append(append(s.key[:0], family), key...)
	return s.key
}

// prefixBytes is what Spark puts before keys to tell families apart.
func (s *rocksDB) prefixBytes() int64 {
	if len(s.families) == 0 {
		return 0
	}
	return 2
}

func (s *rocksDB) internal(family byte) bool {
	return family > 0 && int(family) <= len(s.families) && s.families[family-1].Internal
}

// Get reads a key.
func (s *rocksDB) Get(family byte, key []byte) ([]byte, bool, error) {
	if err := s.ready(); err != nil {
		return nil, false, err
	}
	return s.get(s.physical(family, key))
}

func (s *rocksDB) get(key []byte) ([]byte, bool, error) {
	m := s.begin(device.StepGet)
	value, found, err := s.db.Get(key)
	s.live.get += s.end(device.StepGet, m)
	hits := s.now.cacheHits + s.now.cacheMisses
	s.countGet(found)
	s.now.gets++
	s.now.getBytes += int64(len(value))
	// What a bounded cache drops, and what a clock measures, only a read can tell.
	if err == nil && s.shared != nil && !s.x.o.Live {
		s.last.set(key, found, int64(len(value)), s.now.cacheHits+s.now.cacheMisses > hits)
	}
	return value, found, err
}

// lastRead is the read before, which operators mostly follow by a write of the
// same key. Spark then reads it a second time to count rows; that is counted here
// and not done, because it would find the same in a block that was just used.
type lastRead struct {
	key     []byte
	known   bool // nothing was written since
	found   bool
	bytes   int64 // of the value
	blocked bool  // it came from a block
}

func (l *lastRead) set(key []byte, found bool, bytes int64, blocked bool) {
	l.key = append(l.key[:0], key...)
	l.known, l.found, l.bytes, l.blocked = true, found, bytes, blocked
}

// has tells whether a key is there, from the read before where that was its.
func (s *rocksDB) has(key []byte) (bool, error) {
	l := &s.last
	if !l.known || !bytes.Equal(l.key, key) {
		_, found, err := s.get(key)
		return found, err
	}
	s.now.gets++
	s.now.getBytes += l.bytes
	if l.blocked {
		s.now.cacheHits++
	}
	return l.found, nil
}

// begin and end time a single call by the clock of a live run.
func (s *rocksDB) begin(step device.Step) device.Mark {
	if !s.x.o.Live {
		return 0
	}
	return s.x.o.Meter.Begin(step)
}

func (s *rocksDB) end(step device.Step, m device.Mark) time.Duration {
	if !s.x.o.Live {
		return 0
	}
	return s.x.o.Meter.End(step, m, device.Work{Ops: 1})
}

// Put writes a key. Where rows are tracked it looks first whether it is there.
func (s *rocksDB) Put(family byte, key, value []byte) error {
	if err := s.ready(); err != nil {
		return err
	}
	phys := s.physical(family, key)
	if err := s.track(family, phys, 1); err != nil {
		return err
	}
	if s.x.o.Conf.Changelog {
		s.changes.put(s.familyName(family), key, value)
	}
	return s.set(phys, value)
}

// set writes to the database and counts what RocksDB would: header, tag and
// lengths of a record are bytes written.
func (s *rocksDB) set(phys, value []byte) error {
	s.dirty, s.last.known = true, false
	m := s.begin(device.StepPut)
	err := s.db.Set(phys, value)
	s.live.put += s.end(device.StepPut, m)
	s.now.puts++
	k := s.keyBytes(phys)
	s.now.putBytes += s.header() + 1 + varint(k) + k + varint(int64(len(value))) + int64(len(value))
	return err
}

// Delete removes a key.
func (s *rocksDB) Delete(family byte, key []byte) error {
	if err := s.ready(); err != nil {
		return err
	}
	phys := s.physical(family, key)
	if err := s.track(family, phys, -1); err != nil {
		return err
	}
	if s.x.o.Conf.Changelog {
		s.changes.delete(s.familyName(family), key)
	}
	return s.unset(phys)
}

func (s *rocksDB) unset(phys []byte) error {
	s.dirty, s.last.known = true, false
	m := s.begin(device.StepPut)
	err := s.db.Delete(phys)
	s.live.put += s.end(device.StepPut, m)
	s.now.puts++
	k := s.keyBytes(phys)
	s.now.putBytes += s.header() + 1 + varint(k) + k
	return err
}

// keyBytes is the length that Spark's key has for one of ours.
func (s *rocksDB) keyBytes(phys []byte) int64 {
	n := int64(len(phys))
	if len(s.families) > 0 {
		n += s.prefixBytes() - 1
	}
	return n
}

// header is what each write adds: its own write batch, but for versions that
// gather a batch's writes in one.
func (s *rocksDB) header() int64 {
	if s.m.batchedWrites {
		return 0
	}
	return writeBatchHeader
}

const writeBatchHeader = 12

func varint(n int64) int64 {
	bytes := int64(1)
	for n >= 0x80 {
		n >>= 7
		bytes++
	}
	return bytes
}

// track keeps the number of rows, at the price of a read per write.
func (s *rocksDB) track(family byte, phys []byte, sign int64) error {
	if !s.x.o.Conf.TrackRows {
		return nil
	}
	found, err := s.has(phys)
	if err != nil || found == (sign > 0) {
		return err
	}
	if s.internal(family) {
		s.inner += sign
	} else {
		s.keys += sign
	}
	return nil
}

// Scan visits the keys of a family in [from, to).
func (s *rocksDB) Scan(family byte, from, to []byte, visit func(key, value []byte) bool) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.count()
	before, skip := s.now.cacheMisses, 0
	if len(s.families) > 0 {
		skip = 1
		from = append([]byte{family}, from...)
		if to == nil {
			to = []byte{family + 1}
		} else {
			to = append([]byte{family}, to...)
		}
	}
	prefix := s.prefixBytes()
	m := s.begin(device.StepScan)
	err := s.db.Scan(from, to, func(key, value []byte) bool {
		key = key[skip:]
		s.now.steps++
		s.now.scanned += int64(len(key)+len(value)) + prefix
		return visit(key, value)
	})
	s.live.scan += s.end(device.StepScan, m)
	s.countScan()
	s.now.scanMisses += s.now.cacheMisses - before
	return err
}
