package trend

import "math"

const (
	// blockGrowth is the factor by which blocks grow. Three and not two: the
	// median of three sheds an outlier, that of two is a mean and keeps half of it
	// (Rousseeuw and Bassett's remedian, 1990).
	blockGrowth = 3
	// maxBlock bounds the batches of one block, and so the open block's buffers.
	maxBlock = 2187
	// maxBatch bounds the batch id: every id up to it is a float64 of its own.
	maxBatch = 1 << 52
	// minKept is the smallest limit of a ring; below it no rule has power.
	minKept = 24
)

// block is one kept point: a batch, or the medians of several batches in a row.
type block struct {
	x               float64 // mean batch id
	load            float64
	first           int64 // first batch id
	fromMs, untilMs int64 // on the ring's own clock, see ring.elapsedMs
	batches         int32
}

// ring keeps the newest points that cover a span, oldest first. It holds at most
// limit of them: beyond that, blocks of batches are folded into their medians, so
// that a stream of one batch a second still reaches back two hours.
//
// Memory: 56 bytes a kept point, grown on demand (13 KiB at 240 points), and 16
// bytes a batch of the open block.
type ring struct {
	span      Span
	limit     int
	breakMs   int64
	vals      []float64 // values apart from the rest: S runs over them at each Push
	meta      []block
	head, n   int
	batches   int // in the kept points
	size      int // batches that make a new block
	openVals  []float64
	openLoads []float64
	open      block // sums of the block being filled
	lastBatch int64
	lastMs    int64
	elapsedMs int64
	started   bool
	rank      *pairSum // nil where nobody asks for S
}

func newRing(s Span, limit int) ring {
	if limit <= 0 {
		limit = MaxPoints
	}
	limit = max(limit, minKept)
	if s.Ms <= 0 {
		limit = min(limit, max(s.Batches, minKept)) // never needs more
	}
	return ring{span: s, limit: limit, size: 1}
}

// push takes p in and drops what the span no longer needs. It reports whether p
// was taken: a value that
// is not finite, or a batch that is not newer than the last, is not.
func (r *ring) push(p Point) bool {
	if !measurable(p.Value) || p.Batch < 0 || p.Batch > maxBatch || r.started && p.Batch <= r.lastBatch {
		return false
	}
	if r.started && r.breakMs > 0 && p.AtMs-r.lastMs > r.breakMs {
		r.reset()
	}
	r.advance(p)
	r.fill(p)
	if int(r.open.batches) >= r.size {
		r.closeBlock()
	}
	return true
}

// advance moves the ring's own clock. It adds up only steps forward, so that a
// sender whose clock was wrong for a while cannot freeze the window.
func (r *ring) advance(p Point) {
	if r.started {
		r.elapsedMs += max(0, p.AtMs-r.lastMs)
	}
	r.started, r.lastBatch, r.lastMs = true, p.Batch, p.AtMs
}

// fill adds p to the open block.
func (r *ring) fill(p Point) {
	o := &r.open
	if o.batches == 0 {
		o.first, o.fromMs = p.Batch, r.elapsedMs
	}
	o.batches++
	o.untilMs = r.elapsedMs
	o.x += (float64(p.Batch) - o.x) / float64(o.batches)
	r.openVals = append(r.openVals, p.Value)
	if measurable(p.Load) {
		r.openLoads = append(r.openLoads, p.Load)
	}
}

// closeBlock turns the open block into a kept point.
func (r *ring) closeBlock() {
	b := r.open
	b.load = medianInPlace(r.openLoads)
	v := medianInPlace(r.openVals)
	r.clearOpen()
	r.append(v, b)
	if r.size > 1 && r.n <= r.limit/(2*blockGrowth) && r.full() {
		r.size /= blockGrowth // the stream has become slower
	}
}

func (r *ring) clearOpen() {
	r.openVals, r.openLoads, r.open = r.openVals[:0], r.openLoads[:0], block{}
}

// append drops what the span does not need any more with b in it, and keeps b.
func (r *ring) append(v float64, b block) {
	for r.n > 0 && r.coveredWithoutOldest(b) {
		r.evict()
	}
	if r.n == r.limit {
		r.makeRoom()
	}
	if r.n == len(r.vals) {
		r.grow()
	}
	r.rank.add(r, v)
	i := r.at(r.n)
	r.vals[i], r.meta[i] = v, b
	r.n++
	r.batches += int(b.batches)
}

// coveredWithoutOldest reports whether the points after the oldest, with b, cover
// the span.
func (r *ring) coveredWithoutOldest(b block) bool {
	from := b.fromMs
	if r.n > 1 {
		from = r.meta[r.at(1)].fromMs
	}
	return r.span.covered(r.batches-int(r.meta[r.head].batches)+int(b.batches), b.untilMs-from)
}

func (r *ring) evict() {
	old := r.vals[r.head]
	r.batches -= int(r.meta[r.head].batches)
	r.head = r.at(1)
	r.n--
	r.rank.remove(r, old)
}

// makeRoom folds triples of points into one, or drops the oldest point where
// blocks may not grow any more.
func (r *ring) makeRoom() {
	if r.size >= maxBlock {
		r.evict()
		return
	}
	kept := 0
	for i := 0; i < r.n; i += blockGrowth {
		v, b := r.fold(i, min(i+blockGrowth, r.n))
		k := r.at(kept)
		r.vals[k], r.meta[k] = v, b
		kept++
	}
	r.n = kept
	r.size *= blockGrowth
	r.rank.recount(r)
}

// fold returns the points [from, until) as one.
func (r *ring) fold(from, until int) (float64, block) {
	var vals, loads [blockGrowth]float64
	b := r.meta[r.at(from)]
	b.batches, b.x = 0, 0
	known := 0
	for i := from; i < until; i++ {
		m := &r.meta[r.at(i)]
		vals[i-from] = r.vals[r.at(i)]
		if !math.IsNaN(m.load) {
			loads[known] = m.load
			known++
		}
		b.batches += m.batches
		b.x += (m.x - b.x) * float64(m.batches) / float64(b.batches)
		b.untilMs = m.untilMs
	}
	b.load = medianInPlace(loads[:known])
	return medianInPlace(vals[:until-from]), b
}

// grow doubles the room, up to the limit.
func (r *ring) grow() {
	room := min(max(2*len(r.vals), minKept), r.limit)
	vals, meta := make([]float64, room), make([]block, room)
	for i := range r.n {
		vals[i], meta[i] = r.vals[r.at(i)], r.meta[r.at(i)]
	}
	r.vals, r.meta, r.head = vals, meta, 0
}

// reset forgets all points; the room stays.
func (r *ring) reset() {
	r.head, r.n, r.batches, r.size = 0, 0, 0, 1
	r.clearOpen()
	r.started, r.elapsedMs = false, 0
	r.rank.recount(r)
}

// at returns the place of the i-th point.
func (r *ring) at(i int) int {
	if i += r.head; i >= len(r.vals) {
		return i - len(r.vals)
	}
	return i
}

func (r *ring) newest() *block { return &r.meta[r.at(r.n-1)] }

// spanMs is the time from the first kept batch to the newest one.
func (r *ring) spanMs() int64 {
	if r.n == 0 {
		return 0
	}
	return r.newest().untilMs - r.meta[r.head].fromMs
}

func (r *ring) full() bool { return r.n > 0 && r.span.covered(r.batches, r.spanMs()) }

// segments returns the values of the n kept points as two runs, oldest first.
func (r *ring) segments() (a, b []float64) {
	end := r.head + r.n
	if end <= len(r.vals) {
		return r.vals[r.head:end], nil
	}
	return r.vals[r.head:], r.vals[:end-len(r.vals)]
}

// copyTo appends the kept points to the buffers. x counts batches from the oldest
// point, which keeps it small and so exact.
func (r *ring) copyTo(x, y, load []float64) (xs, ys, loads []float64) {
	for i := range r.n {
		k := r.at(i)
		x, y, load = append(x, r.meta[k].x-r.meta[r.head].x), append(y, r.vals[k]), append(load, r.meta[k].load)
	}
	return x, y, load
}
