package rules

import (
	"math"
	"slices"

	"github.com/stategauge/stategauge/rules/trend"
)

// levelBlock is how many batches are folded into one point of a level window: a
// fifth of the memory, and medians of medians say the same over 60 and 500 batches.
const levelBlock = 5

// levelTracker compares levels over blocks of batches. Memory: 12 KiB for 60
// against 500 batches.
type levelTracker struct {
	window *trend.LevelWindow
	block  int // batches in a point
	values []float64
	loads  []float64
	first  trend.Point
}

func newLevelTracker(l *levelSpec, s *trend.Scratch) *levelTracker {
	t := &levelTracker{block: levelBlock}
	if l.Recent.Batches < 4*levelBlock || l.Before.Batches < 4*levelBlock {
		t.block = 1
	}
	t.window = trend.NewLevelWindow(t.blocks(l.Recent), t.blocks(l.Before))
	t.window.UseScratch(s)
	t.values = make([]float64, 0, t.block)
	t.loads = make([]float64, 0, t.block)
	return t
}

// blocks turns an extent in batches into one in points.
func (t *levelTracker) blocks(e Extent) trend.Span {
	return trend.Span{Batches: (e.Batches + t.block - 1) / t.block, Ms: e.Ms}
}

func (t *levelTracker) push(p trend.Point) {
	if len(t.values) == 0 {
		t.first = p
	}
	t.values = append(t.values, p.Value)
	if !math.IsNaN(p.Load) {
		t.loads = append(t.loads, p.Load)
	}
	if len(t.values) < t.block {
		return
	}
	t.first.Value, t.first.Load = medianOf(t.values), medianOf(t.loads)
	t.values, t.loads = t.values[:0], t.loads[:0]
	t.window.Push(t.first)
}

func (t *levelTracker) reset() {
	t.values, t.loads = t.values[:0], t.loads[:0]
	t.window.Reset()
}

// batches is the number of batches in the window.
func (t *levelTracker) batches() int { return t.window.Batches() * t.block }

// medianOf returns the median, NaN of nothing. It reorders v.
func medianOf(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	n := len(v)
	return v[(n-1)/2] + (v[n/2]-v[(n-1)/2])/2
}
