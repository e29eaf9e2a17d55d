package trend

import "math"

const (
	// finePoints is the number of batches that Columns keep as they are: 120 batches
	// of a minute and the one more that two hours ask for.
	finePoints = 126
	// coarsePoints is the number of blocks that they keep.
	coarsePoints = 120
)

// ColumnsOptions size a store. The zero value holds 126 batches and 120 blocks.
type ColumnsOptions struct {
	// Fine is the number of newest batches kept as they are; Coarse that of blocks,
	// a multiple of 3 (rounded up). 0 means 126 and 120; both lie between 24 and 255.
	Fine, Coarse int
	// Longest is the longest span that will be asked for: blocks grow until they
	// cover it. A store for spans of very different lengths is better made two.
	Longest Span
	// BreakMs forgets all at a pause of more than so much event time; 0 never does.
	BreakMs int64
}

// Columns keep the newest batches of many series that share their batches, so that
// one time axis does for all of them: the newest as they are, and medians of 3, 9, 27
// and so on batches as far back as the longest span. Any number of judgements, over
// any spans within that, are made from the same points.
//
// Memory: 4 bytes a point and column, so 984 bytes a column in the default size and up to
// 84 for the block being filled; 16 bytes a point once for all; a watched span 450
// bytes. A Window of the same reach takes 9 to 13 KiB for each series.
//
// Cost: a Push copies the row and, for each watched span, searches the places of the
// newcomer and of each leaver among the points, some 100 ns together; nothing is
// allocated once the store has its size.
//
// Values are kept as float32: 7 digits, so that two figures closer than that are
// ties. Blocks are medians of medians of three (remedian: Rousseeuw and Bassett
// 1990), where a Window takes the median of its block as one.
//
// It starts afresh where a clock jumps by more than eight years, or a batch id by four
// billion.
//
// Pitfall: blocks are as large as the longest span asks for, and a span within it is
// judged by those blocks unless the fine points reach back far enough: with a
// Longest of a day at ten seconds, two hours are nine blocks.
type Columns struct {
	o            ColumnsOptions
	width        int
	fine, coarse *lane
	origin       *origin // of the marks on both lanes
	levels       []openLevel
	row          []float32
	watches      []watch
	scratch      *Scratch
	pushes       int64 // batches ever taken
	lastBatch    int64
	lastMs       int64
	elapsedMs    int64 // starts at the first batch's time and never goes back
	started      bool
}

// watch is a span whose S is kept on both lanes.
type watch struct{ fine, coarse *view }

// openLevel gathers three rows of one size before they become one of the next.
type openLevel struct {
	n    int
	mark mark
	vals [][blockGrowth]float32
}

// NewColumns returns an empty store of so many columns.
func NewColumns(columns int, o ColumnsOptions) *Columns {
	if o.Fine <= 0 {
		o.Fine = finePoints
	}
	if o.Coarse <= 0 {
		o.Coarse = coarsePoints
	}
	o.Fine, o.Coarse = min(max(o.Fine, minKept), maxRows), min(max(o.Coarse, minKept), maxRows)
	o.Coarse += (blockGrowth - o.Coarse%blockGrowth) % blockGrowth
	from := &origin{}
	return &Columns{
		o: o, width: columns, origin: from,
		fine: newLane(columns, o.Fine, from), coarse: newLane(columns, o.Coarse, from),
		row: make([]float32, columns),
	}
}

// UseScratch makes c work in s, as for Window.
func (c *Columns) UseScratch(s *Scratch) { c.scratch = s }

// Watch keeps Mann-Kendall's S of a column over a span from now on, so that
// RisingWatched is a matter of nanoseconds while nothing rises. It returns the number
// to ask with; the same column and span get the same number.
func (c *Columns) Watch(column int, s Span) int {
	for i, w := range c.watches {
		if int(w.fine.column) == column && w.fine.span == s {
			return i
		}
	}
	w := watch{fine: &view{column: int32(column), span: s, asked: c.pushes}, coarse: &view{column: int32(column), span: s, asked: c.pushes}}
	c.fine.views, c.coarse.views = append(c.fine.views, w.fine), append(c.coarse.views, w.coarse)
	w.fine.recount(c.fine)
	w.coarse.recount(c.coarse)
	c.watches = append(c.watches, w)
	return len(c.watches) - 1
}

// Push takes one batch in: its id, its start in event time (Unix milliseconds) and
// one value for each column; NaN, or a value that is not finite, stands for none, and
// so does one that is missing at the end. It reports whether the batch was taken: one
// that is not newer than the last is not.
func (c *Columns) Push(batch, ms int64, values []float32) bool {
	if batch < 0 || batch > maxBatch || c.started && batch <= c.lastBatch {
		return false
	}
	step := max(0, ms-c.lastMs)
	if c.started && (c.o.BreakMs > 0 && ms-c.lastMs > c.o.BreakMs || !c.origin.holds(batch, c.elapsedMs+step)) {
		c.Reset()
	}
	if c.started {
		c.elapsedMs += step
	} else {
		c.elapsedMs = ms
		*c.origin = origin{batch: batch, ms: ms}
	}
	c.started, c.lastBatch, c.lastMs = true, batch, ms
	c.pushes++
	for i := range c.row {
		c.row[i] = float32(math.NaN())
		if i < len(values) && math.Abs(float64(values[i])) <= math.MaxFloat32 {
			c.row[i] = values[i]
		}
	}
	m := mark{first: batch, fromMs: c.elapsedMs, batches: 1}
	if c.fine.n == c.o.Fine {
		c.fine.evict()
	}
	c.fine.append(m, c.row)
	c.pushCoarse(m)
	return true
}

// pushCoarse passes the row up through the open blocks; what comes out at the top
// is kept.
func (c *Columns) pushCoarse(m mark) {
	l := c.coarse
	for depth, size := 0, 1; ; depth, size = depth+1, size*blockGrowth {
		if size >= l.size && !c.coarseRoom() {
			l.fold() // and on, to the next depth
		}
		if size >= l.size {
			l.append(m, c.row)
			c.shrink()
			return
		}
		if !c.gather(depth, &m) {
			return
		}
	}
}

// gather puts the row into a level, and takes the median of three out of it when it
// is full.
func (c *Columns) gather(depth int, m *mark) (full bool) {
	if depth == len(c.levels) {
		c.levels = append(c.levels, openLevel{vals: make([][blockGrowth]float32, c.width)})
	}
	o := &c.levels[depth]
	if o.n == 0 {
		o.mark = *m
	} else {
		o.mark = o.mark.join(*m)
	}
	for i, v := range c.row {
		o.vals[i][o.n] = v
	}
	if o.n++; o.n < blockGrowth {
		return false
	}
	for i := range c.row {
		three := o.vals[i]
		c.row[i] = medianOfFew(three[:])
	}
	*m, o.n = o.mark, 0
	return true
}

// coarseRoom makes room for one more block by letting the oldest go. It reports false
// where the longest span needs that one and blocks may still grow.
func (c *Columns) coarseRoom() bool {
	l := c.coarse
	if l.n < c.o.Coarse {
		return true
	}
	if !l.coversFrom(1, c.o.Longest) && l.size < maxBlock {
		return false
	}
	l.evict()
	return true
}

// shrink makes new blocks smaller again when a stream has become slower.
func (c *Columns) shrink() {
	l := c.coarse
	if l.size == 1 {
		return
	}
	few := c.o.Coarse / (2 * blockGrowth)
	if l.coversFrom(max(l.n-few, 0), c.o.Longest) {
		l.size /= blockGrowth
	}
}

// Reset forgets all batches, as at a new run; watched spans stay.
func (c *Columns) Reset() {
	c.fine.reset()
	c.coarse.reset()
	for i := range c.levels {
		c.levels[i].n = 0
	}
	c.started, c.elapsedMs = false, 0
}

// LastBatch returns the newest batch pushed, -1 for an empty store.
func (c *Columns) LastBatch() int64 {
	if !c.started {
		return -1
	}
	return c.lastBatch
}

// Bytes returns the memory that the store holds on to.
func (c *Columns) Bytes() int {
	const markBytes, viewBytes, levelBytes = 16, 112, 64
	points := len(c.fine.marks) + len(c.coarse.marks)
	open := len(c.levels) * (levelBytes + 4*blockGrowth*c.width)
	watched := 2 * viewBytes * len(c.watches)
	for _, w := range c.watches {
		watched += cap(w.fine.order) + cap(w.coarse.order)
	}
	return points*(markBytes+4*c.width) + open + 4*c.width + watched
}
