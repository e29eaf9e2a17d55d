package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// like compares a column of one store with a column of another: what they keep over a
// short and a long span, and what their watched spans say.
func like(t *testing.T, what string, a *Columns, at int, b *Columns, bt int) {
	t.Helper()
	for _, span := range []Span{{Batches: 40}, {Batches: 300}, {Batches: 20, Ms: 3600_000}} {
		var x, y Series
		a.Series(at, span, &x)
		b.Series(bt, span, &y)
		if !slices.Equal(x.Batch, y.Batch) || !slices.Equal(x.AtMs, y.AtMs) || !slices.Equal(x.Y, y.Y) || x.Batches != y.Batches || x.Full != y.Full {
			t.Fatalf("%s over %+v:\n%+v\n%+v", what, span, x, y)
		}
		o := DefaultRising()
		if got, want := a.RisingWatched(a.Watch(at, span), NoLoad, o), b.RisingWatched(b.Watch(bt, span), NoLoad, o); got != want {
			t.Fatalf("%s over %+v: %+v, want %+v", what, span, got, want)
		}
	}
}

// TestAColumnAddedLateIsOneThatHadNothing plays a store that is widened at every
// possible place of an open block beside one that had both columns from the start.
func TestAColumnAddedLateIsOneThatHadNothing(t *testing.T) {
	for _, late := range []int64{0, 1, 2, 3, 25, 130, 200, 401, 402, 403} {
		o := ColumnsOptions{Coarse: 48, Longest: Span{Batches: 400}}
		grown, whole := NewColumns(1, o), NewColumns(2, o)
		grown.Watch(0, Span{Batches: 40})
		r := rand.New(rand.NewPCG(1, uint64(late)))
		for i := range int64(900) {
			if i == late {
				if at := grown.AddColumn(); at != 1 {
					t.Fatalf("place %d, want 1", at)
				}
			}
			row := []float32{float32(r.NormFloat64()), float32(math.NaN())}
			if i >= late {
				row[1] = float32(10 + r.NormFloat64())
			}
			grown.Push(i, i*60_000, row[:1+truth(i >= late)])
			whole.Push(i, i*60_000, row)
			if i >= late && i%13 == 0 {
				like(t, "the first column", grown, 0, whole, 0)
				like(t, "the late column", grown, 1, whole, 1)
				checkColumns(t, grown)
			}
		}
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAClearedColumnIsOneThatHadNothing clears a column at every possible place of an
// open block; its neighbour keeps what it has, and it fills again.
func TestAClearedColumnIsOneThatHadNothing(t *testing.T) {
	for _, at := range []int64{1, 2, 3, 100, 301, 302, 303} {
		o := ColumnsOptions{Coarse: 48, Longest: Span{Batches: 400}}
		cleared, never := NewColumns(2, o), NewColumns(2, o)
		r := rand.New(rand.NewPCG(2, uint64(at)))
		for i := range int64(800) {
			if i == at {
				cleared.ClearColumn(1)
			}
			row := []float32{float32(r.NormFloat64()), float32(10 + r.NormFloat64())}
			cleared.Push(i, i*60_000, row)
			if i < at {
				row[1] = float32(math.NaN())
			}
			never.Push(i, i*60_000, row)
			if i >= at && i%11 == 0 {
				like(t, "its neighbour", cleared, 0, never, 0)
				like(t, "the column", cleared, 1, never, 1)
				checkColumns(t, cleared)
			}
		}
	}
}

// TestASparseColumnIsKnownForWhatItHas says how many of the newest batches have a value.
func TestASparseColumnIsKnownForWhatItHas(t *testing.T) {
	c := NewColumns(2, ColumnsOptions{})
	for i := range int64(200) {
		row := []float32{1, float32(math.NaN())}
		if i%5 == 0 {
			row[1] = float32(i)
		}
		c.Push(i, i*60_000, row)
	}
	if known, of := c.Known(1, 100); known != 20 || of != 100 {
		t.Errorf("known in %d of %d batches, want 20 of 100", known, of)
	}
	if known, of := c.Known(0, 1<<20); known != finePoints || of != finePoints {
		t.Errorf("known in %d of %d batches, want all that are kept as they are", known, of)
	}
	var batches []int64
	c.Replay(1, 0, func(batch, ms int64, v, load float32) {
		if v != float32(batch) || load != 1 || ms != batch*60_000 {
			t.Errorf("batch %d at %d: %v beside %v", batch, ms, v, load)
		}
		batches = append(batches, batch)
	})
	if len(batches) != 25 || !slices.IsSorted(batches) {
		t.Errorf("replayed %v, want each fifth batch in order", batches)
	}
	if got := c.Newest(1, 3, nil); !slices.Equal(got, []float64{195, 190, 185}) {
		t.Errorf("newest %v", got)
	}
}

// TestAJumpBeyondWhatMarksHoldStartsAfresh: a clock that was in 1970 and then is not, and
// ids that jump, cost the window and nothing else.
func TestAJumpBeyondWhatMarksHoldStartsAfresh(t *testing.T) {
	for name, jump := range map[string]struct{ batch, ms int64 }{
		"of the clock":           {1, maxReachMs},
		"of the ids":             {maxReach + 1, 60_000},
		"of the clock backwards": {1, -maxReachMs},
	} {
		c := NewColumns(1, ColumnsOptions{})
		batch, ms := int64(5), int64(1000)
		push := func() {
			if !c.Push(batch, ms, []float32{1}) {
				t.Fatalf("a jump %s: batch %d was not taken", name, batch)
			}
			batch, ms = batch+1, ms+60_000
		}
		for range 50 {
			push()
		}
		batch, ms = batch+jump.batch, ms+jump.ms
		for range 30 {
			push()
		}
		checkColumns(t, c)
		want := 30
		if jump.ms < 0 {
			want = 80 // time stands still, which is no reason to forget
		}
		if got := c.Points(0, Span{Batches: 100}); got != want {
			t.Errorf("a jump %s leaves %d batches, want %d", name, got, want)
		}
	}
}

// FuzzMarksArePackedWithoutLoss packs what a lane may hold.
func FuzzMarksArePackedWithoutLoss(f *testing.F) {
	f.Add(int64(0), int64(0), uint32(0), uint16(0), uint16(1))
	f.Add(int64(maxReach), int64(maxReachMs), uint32(math.MaxUint32), uint16(maxIDs), uint16(maxBatches))
	f.Fuzz(func(t *testing.T, first, ms int64, lasts uint32, ids, batches uint16) {
		o := origin{batch: 77, ms: -5000}
		m := mark{first: o.batch + first&maxReach, fromMs: o.ms + ms&maxReachMs, lasts: lasts, ids: ids & maxIDs, batches: batches & maxBatches}
		if !o.holds(m.first, m.fromMs) {
			t.Fatalf("%+v is out of reach", m)
		}
		if got := o.unpack(o.pack(m)); got != m {
			t.Fatalf("got %+v, want %+v", got, m)
		}
	})
}
