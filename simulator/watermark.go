package simulator

import "math"

// watermark follows how far a query's event time has come, as Spark's
// WatermarkTracker does: each source has its own, the query's is the smallest (or
// the largest, by the multiple watermark policy), and it never goes back.
type watermark struct {
	delayMs   int64
	useMax    bool
	perSource []int64 // math.MinInt64: no row seen yet
	// nowMs is the watermark that the next batch evicts by, and lateMs the one
	// below which its rows are late: that of the batch before, in every version
	// played. 0 where there is none yet.
	nowMs, lateMs int64
}

func newWatermark(sources int, delayMs int64, useMax bool) *watermark {
	w := &watermark{delayMs: delayMs, useMax: useMax, perSource: make([]int64, sources)}
	w.reset(0, 0)
	return w
}

// reset continues from a checkpoint. Spark forgets what each source had reached,
// so until all of them have sent rows again only the query's own watermark counts.
func (w *watermark) reset(nowMs, lateMs int64) {
	w.nowMs, w.lateMs = nowMs, lateMs
	for i := range w.perSource {
		w.perSource[i] = math.MinInt64
	}
}

// observe takes the newest event time of a source's rows in a batch.
func (w *watermark) observe(source int, maxMs int64) {
	w.perSource[source] = max(w.perSource[source], maxMs-w.delayMs)
}

// proposed is the watermark that the rows seen so far allow: what commits/<batch>
// holds. A source without rows keeps the others from moving it.
func (w *watermark) proposed() int64 {
	best := w.perSource[0]
	for _, ms := range w.perSource[1:] {
		if w.useMax {
			best = max(best, ms)
		} else {
			best = min(best, ms)
		}
	}
	return max(w.nowMs, best, 0)
}

// advance ends a batch: the next one evicts by what was proposed, and calls late
// what lies before the watermark of this one.
func (w *watermark) advance() (moved bool) {
	next := w.proposed()
	moved = next > w.nowMs
	w.lateMs, w.nowMs = w.nowMs, next
	return moved
}
