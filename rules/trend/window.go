package trend

// Window holds the newest points of one series and Mann-Kendall's S over them.
//
// Cost: a Push compares the newcomer and each leaver with every kept point, some
// tenths of a microsecond at 120 points, and allocates nothing once the window
// has its size. Memory: 56 bytes a kept point, so 7 KiB over 120 batches and at most
// 13 KiB at 240 points; 16 bytes a batch of an open block; a Scratch of its own
// unless it is given one.
type Window struct {
	ring    ring
	rank    pairSum
	scratch *Scratch
}

// NewWindow returns an empty window over s that keeps at most maxPoints points
// (0 means MaxPoints, and less than 24 means 24). Where s holds more batches than
// that, medians of 3, 9, 27 and so on batches in a row stand for them.
func NewWindow(s Span, maxPoints int) *Window {
	w := &Window{ring: newRing(s, maxPoints)}
	w.ring.rank = &w.rank
	return w
}

// UseScratch makes w work in s, which any number of windows of one goroutine may
// share: 10,000 series then need one set of buffers.
func (w *Window) UseScratch(s *Scratch) { w.scratch = s }

// BreakAfter makes a Push that comes more than ms milliseconds of event time
// after the one before start the window afresh, so that a line is never drawn
// across a long pause. 0, the default, never breaks.
func (w *Window) BreakAfter(ms int64) { w.ring.breakMs = ms }

// Push takes p in and drops what the span no longer needs. It reports whether p
// was taken: a value that is not finite, or a batch that is not newer than the
// last, is not.
func (w *Window) Push(p Point) bool { return w.ring.push(p) }

// Reset forgets all points, as at a new run.
func (w *Window) Reset() { w.ring.reset() }

// Len returns the number of kept points.
func (w *Window) Len() int { return w.ring.n }

// Batches returns the number of batches that the kept points stand for.
func (w *Window) Batches() int { return w.ring.batches }

// SpanMs returns the event time from the oldest to the newest kept batch, in
// milliseconds.
func (w *Window) SpanMs() int64 { return w.ring.spanMs() }

// Full reports whether the kept points cover the span.
func (w *Window) Full() bool { return w.ring.full() }

// FirstBatch returns the oldest batch in the window, -1 for an empty window.
func (w *Window) FirstBatch() int64 {
	if w.ring.n == 0 {
		return -1
	}
	return w.ring.meta[w.ring.head].first
}

// LastBatch returns the newest batch pushed, -1 for an empty window.
func (w *Window) LastBatch() int64 {
	if !w.ring.started {
		return -1
	}
	return w.ring.lastBatch
}

// work returns the buffers to work in.
func (w *Window) work() *Scratch {
	if w.scratch == nil {
		w.scratch = new(Scratch)
	}
	return w.scratch
}
