package decode

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// shapeCache remembers the shapes of each run's progress events. It is shared by
// all decoders: templates are immutable and published atomically, the maps are
// locked only for a look-up. Its memory is bounded; when it is full a new shape
// takes the place of an old one chosen by chance, and only seldom, so that more
// queries than fit still have most of theirs found.
type shapeCache struct {
	max    int64
	bytes  atomic.Int64
	count  atomic.Int64
	denied atomic.Uint64 // shapes that found the cache full
	hits   atomic.Uint64
	misses atomic.Uint64
	falls  atomic.Uint64
	shards [shapeShards]shapeShard
}

// shapeShards spreads the locks; a power of two.
const shapeShards = 32

type shapeShard struct {
	mu   sync.RWMutex
	runs map[uint64]*shapes
	_    [32]byte // keeps the locks off each other's cache line
}

// shapes are the templates of one run: a query that idles, or cuts a snapshot now
// and then, alternates between two shapes.
type shapes struct {
	known   [2]atomic.Pointer[template]
	newest  atomic.Uint32 // index of the one that matched last
	hits    atomic.Uint32 // since something was learnt
	wait    atomic.Int32  // events to let pass before learning again
	penalty atomic.Int32  // how long the wait was last time
}

// maxPenalty is the most events that a run with ever new shapes is left alone for.
const maxPenalty = 256

// worthwhile is how many hits make learning a shape a gain.
const worthwhile = 4

func newShapeCache(maxBytes int) *shapeCache {
	c := &shapeCache{max: int64(maxBytes)}
	for i := range c.shards {
		c.shards[i].runs = map[uint64]*shapes{}
	}
	return c
}

var (
	shapeSeed = maphash.MakeSeed()
	runKey    = []byte(`"runId"`)
)

// runIDBytes is how much of a run id the key is made of, enough for a UUID.
const runIDBytes = 36

// runWindow is how far into an element its run id is looked for.
const runWindow = 4096

// shapeKey finds the run that the element at the start of b belongs to without
// parsing it. The key may be wrong, for nothing is believed for its sake.
func shapeKey(b []byte) (key uint64, ok bool) {
	window := b[:min(len(b), runWindow)]
	i := bytes.Index(window, runKey)
	if i < 0 {
		return 0, false
	}
	rest := window[i+len(runKey):]
	quote := bytes.IndexByte(rest[:min(len(rest), 4)], '"')
	if quote < 0 || len(rest) < quote+1+runIDBytes {
		return 0, false
	}
	return maphash.Bytes(shapeSeed, rest[quote+1:quote+1+runIDBytes]), true
}

func (c *shapeCache) shard(key uint64) *shapeShard { return &c.shards[key%shapeShards] }

// find returns the shapes of a run, nil if there are none.
func (c *shapeCache) find(key uint64) *shapes {
	s := c.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.runs[key]
}

// mayLearn says whether an event that matched no known shape is worth recording.
func (s *shapes) mayLearn() bool {
	if s == nil {
		return true
	}
	return s.wait.Load() <= 0 || s.wait.Add(-1) < 0
}

// matched notes that shape i fitted an event.
func (s *shapes) matched(i uint32) {
	if s.newest.Load() != i {
		s.newest.Store(i)
	}
	if s.hits.Load() < worthwhile {
		s.hits.Add(1)
	}
}

// put publishes a new shape of a run.
func (c *shapeCache) put(key uint64, t *template) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.runs[key]
	if !c.admit(s, run, int64(t.bytes)) {
		return
	}
	if run == nil {
		run = &shapes{}
		s.runs[key] = run
	}
	run.learnt()
	at := (run.newest.Load() + 1) & 1
	if run.known[run.newest.Load()].Load() == nil {
		at = run.newest.Load()
	}
	if old := run.known[at].Swap(t); old != nil {
		c.bytes.Add(-int64(old.bytes))
		c.count.Add(-1)
	}
	run.newest.Store(at)
	c.bytes.Add(int64(t.bytes))
	c.count.Add(1)
}

// learnt sets how long to wait before the next shape: twice as long as before if
// the last one did not pay.
func (s *shapes) learnt() {
	p := int32(0)
	if s.known[0].Load() != nil && s.hits.Load() < worthwhile {
		p = min(2*s.penalty.Load()+1, maxPenalty)
	}
	s.penalty.Store(p)
	s.wait.Store(p)
	s.hits.Store(0)
}

// admitOneIn is how many shapes find a full cache before one gets in.
const admitOneIn = 8

// admit makes room for a shape of n bytes by dropping other runs of the shard,
// which must be locked.
func (c *shapeCache) admit(s *shapeShard, keep *shapes, n int64) bool {
	if c.bytes.Load()+n <= c.max {
		return true
	}
	if c.denied.Add(1)%admitOneIn != 0 {
		return false
	}
	for key, run := range s.runs {
		if run == keep {
			continue
		}
		delete(s.runs, key)
		c.forget(run)
		if c.bytes.Load()+n <= c.max {
			return true
		}
	}
	return false
}

func (c *shapeCache) forget(run *shapes) {
	for i := range run.known {
		if t := run.known[i].Load(); t != nil {
			c.bytes.Add(-int64(t.bytes))
			c.count.Add(-1)
		}
	}
}

func (c *shapeCache) stats() Stats {
	return Stats{
		ShapeHits:      c.hits.Load(),
		ShapeMisses:    c.misses.Load(),
		ShapeFallbacks: c.falls.Load(),
		Templates:      int(c.count.Load()),
		TemplateBytes:  int(c.bytes.Load()),
	}
}

// elementByShape decodes the element at the cursor, by a known shape if one fits.
func (d *Decoder) elementByShape() outcome {
	start, cache := d.c.i, d.pool.shapes
	d.c.rec = nil
	if cache.max < 0 || d.c.b[start] != '{' {
		return d.element()
	}
	key, ok := shapeKey(d.c.b[start:])
	if !ok {
		return d.element()
	}
	run := cache.find(key)
	if run != nil && d.matchAny(run) {
		cache.hits.Add(1)
		return isEvent
	}
	if run == nil {
		cache.misses.Add(1)
	} else {
		cache.falls.Add(1)
	}
	d.c.reset(d.c.b, start, len(d.c.b))
	if run.mayLearn() {
		d.rec.reset()
		d.c.rec = &d.rec
	}
	out := d.element()
	if out == isEvent && d.c.rec != nil {
		if t := d.learn(start); t != nil {
			cache.put(key, t)
		}
	}
	return out
}

// matchAny tries the shapes of a run, the one that fitted last first.
func (d *Decoder) matchAny(run *shapes) bool {
	start := d.c.i
	first := run.newest.Load() & 1
	for _, i := range [2]uint32{first, first ^ 1} {
		t := run.known[i].Load()
		if t == nil {
			continue
		}
		d.c.reset(d.c.b, start, len(d.c.b))
		if d.match(t) {
			run.matched(i)
			return true
		}
	}
	return false
}
