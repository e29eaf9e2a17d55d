package decode

import (
	"sync"
	"sync/atomic"

	"github.com/stategauge/stategauge/event"
)

// Pool is what all decoders of a process share: the table of strings, the shape
// cache and the memory of events that came back. It is safe for concurrent use.
type Pool struct {
	lim      Limits
	strings  *interner
	shapes   *shapeCache
	decoders sync.Pool
	events   sync.Pool
	batches  sync.Pool
	env      sync.Pool
	unknown  atomic.Uint64 // metrics outside the catalog that were over the limit
}

// Stats says how the shared parts of a Pool are doing. Counts only grow, sizes
// are of now.
type Stats struct {
	ShapeHits      uint64 // events decoded by the shape cache
	ShapeMisses    uint64 // events of a query that the cache knew nothing of
	ShapeFallbacks uint64 // events whose query was known but whose shape had changed
	Templates      int    // shapes remembered
	TemplateBytes  int    // memory they take, bytes
	Interned       int    // strings in the table
	UnknownDropped uint64 // metrics outside the catalog left out because of Limits.UnknownKeys
}

// NewPool returns a Pool that enforces l.
func NewPool(l Limits) *Pool {
	l = l.withDefaults()
	return &Pool{lim: l, strings: newInterner(l.InternBytes), shapes: newShapeCache(l.TemplateBytes)}
}

// Get returns a Decoder, which is for one goroutine at a time. Give it back with
// Put.
func (p *Pool) Get() *Decoder {
	if d, ok := p.decoders.Get().(*Decoder); ok {
		return d
	}
	d := &Decoder{pool: p}
	d.c.lim = &p.lim
	return d
}

// scratchBytes is the largest scratch memory that a resting Decoder keeps.
const scratchBytes = 256 << 10

// Put takes a Decoder back. Events that it handed out are not affected.
func (p *Pool) Put(d *Decoder) {
	if d == nil || d.pool != p {
		return
	}
	d.c.b = nil
	d.shrink()
	p.decoders.Put(d)
}

// Release takes an event back, its Batch and Envelope included; nobody may use
// them any more. Strings taken from it stay valid. Release of nil does nothing.
func (p *Pool) Release(ev *event.Event) {
	if ev == nil {
		return
	}
	p.releaseBatch(ev.Batch)
	if ev.Envelope != nil {
		p.env.Put(ev.Envelope)
	}
	extra := ev.Extra[:0]
	clear(extra[:cap(extra)])
	*ev = event.Event{Extra: extra}
	p.events.Put(ev)
}

// Batches that grew beyond these sizes are left to the garbage collector.
const (
	restingOperators = 32
	restingSources   = 64
)

func (p *Pool) releaseBatch(b *event.Batch) {
	if b == nil || cap(b.Operators) > restingOperators || cap(b.Sources) > restingSources {
		return
	}
	p.batches.Put(b)
}

// newEvent returns an empty event.
func (p *Pool) newEvent() *event.Event {
	ev, ok := p.events.Get().(*event.Event)
	if !ok {
		ev = &event.Event{}
	}
	ev.AtMs = event.Absent
	return ev
}

func (p *Pool) newBatch() *event.Batch {
	b, ok := p.batches.Get().(*event.Batch)
	if !ok {
		b = &event.Batch{}
	}
	return b
}

func (p *Pool) newEnvelope() *event.Envelope {
	env, ok := p.env.Get().(*event.Envelope)
	if !ok {
		env = &event.Envelope{}
	}
	*env = event.Envelope{Seq: event.Absent, Dropped: event.Absent, AtMs: event.Absent, Active: env.Active[:0]}
	return env
}

// Stats returns the present figures.
func (p *Pool) Stats() Stats {
	s := p.shapes.stats()
	s.Interned = p.strings.size()
	s.UnknownDropped = p.unknown.Load()
	return s
}
