package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestAViewThatSleptAnswersAsOneThatDidNot asks a watched span now and then only, long
// enough apart for the views on both lanes to sleep, in a stream that changes its pace
// so that now the one and now the other is asked.
func TestAViewThatSleptAnswersAsOneThatDidNot(t *testing.T) {
	span := Span{Batches: 60, Ms: 90 * 60_000}
	c := NewColumns(1, ColumnsOptions{Longest: Span{Batches: 360, Ms: 8 * 3600_000}})
	number := c.Watch(0, span)
	r, o := rand.New(rand.NewPCG(3, 4)), DefaultRising()
	ms, slept, coarse := int64(0), 0, 0
	for i := range int64(6000) {
		ms += 60_000
		if i/700%2 == 1 {
			ms -= 50_000
		}
		v := float32(100 + r.IntN(40))
		if r.IntN(20) == 0 {
			v = float32(math.NaN())
		}
		c.Push(i, ms, []float32{v})
		if r.IntN(90) != 0 {
			continue
		}
		w := c.watches[number]
		if w.fine.asleep || w.coarse.asleep {
			slept++
		}
		if l, _ := c.watched(number); l == c.coarse {
			coarse++
		}
		got, want := c.RisingWatched(number, NoLoad, o), c.Rising(0, NoLoad, span, o)
		if got != want {
			t.Fatalf("batch %d: watched says %+v, the points say %+v", i, got, want)
		}
		checkColumns(t, c)
	}
	if slept < 20 || coarse < 10 {
		t.Errorf("a view slept %d times and the blocks were asked %d times: that tries little", slept, coarse)
	}
}
