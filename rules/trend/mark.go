package trend

import "math"

// mark is where and when one row of a lane stands: a batch, or a block of batches.
type mark struct {
	first   int64  // first batch id
	fromMs  int64  // on the store's own clock, see Columns.elapsedMs
	lasts   uint32 // milliseconds from the first batch's start to the last one's, at most 49 days
	ids     uint16 // last batch id less the first, at most maxIDs
	batches uint16 // at most maxBatches
}

// x is the middle of the block's batch ids.
func (m *mark) x() float64 { return float64(m.first) + float64(m.ids)/2 }

func (m *mark) untilMs() int64 { return m.fromMs + int64(m.lasts) }

// join returns the block of m and the later o.
func (m mark) join(o mark) mark {
	m.lasts = uint32(min(max(o.untilMs()-m.fromMs, 0), math.MaxUint32))
	m.ids = uint16(min(o.first+int64(o.ids)-m.first, maxIDs))
	m.batches = uint16(min(int(m.batches)+int(o.batches), maxBatches))
	return m
}

// What a packed mark has room for. A block holds at most maxBlock batches and some of a
// block that was being filled, so that only gaps between ids ever meet a bound.
const (
	maxIDs     = 1<<idBits - 1
	maxBatches = 1<<batchBits - 1
	batchBits  = 12
	idBits     = 14
	// maxReachMs is how much later than its origin a mark can be, eight years and a
	// half, and maxReach how many ids higher.
	maxReachMs = 1<<(64-idBits-batchBits) - 1
	maxReach   = math.MaxUint32
)

// origin is what the marks of a store count from.
type origin struct{ batch, ms int64 }

// holds reports whether a batch can be marked.
func (o origin) holds(batch, ms int64) bool {
	return batch >= o.batch && batch-o.batch <= maxReach && ms >= o.ms && ms-o.ms <= maxReachMs
}

// packedMark is a mark in 16 bytes. Bit by bit from the highest: in place the distance of
// the first batch from the origin (32) and how long the block lasts (32); in time the
// distance from the origin's time (38), the ids less one (14) and the batches (12).
type packedMark struct{ place, time uint64 }

func (o origin) pack(m mark) packedMark {
	return packedMark{
		place: uint64(m.first-o.batch)<<32 | uint64(m.lasts),
		time:  uint64(m.fromMs-o.ms)<<(idBits+batchBits) | uint64(m.ids)<<batchBits | uint64(m.batches),
	}
}

func (o origin) unpack(p packedMark) mark {
	return mark{first: p.first(o), fromMs: p.fromMs(o), lasts: uint32(p.place), ids: uint16(p.time >> batchBits & maxIDs), batches: uint16(p.batches())}
}

func (p packedMark) first(o origin) int64  { return o.batch + int64(p.place>>32) }
func (p packedMark) fromMs(o origin) int64 { return o.ms + int64(p.time>>(idBits+batchBits)) }
func (p packedMark) batches() int          { return int(p.time & maxBatches) }
