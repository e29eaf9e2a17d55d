package score

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

// donorOf settles a donor of batches whose rows in state, rows given back and durations
// are as told.
func donorOf(n int, rows, removed, duration func(i int) float64) (*donor, bool) {
	d := &donor{name: "d", trigger: event.TriggerInterval}
	for i := range n + donorWarmUp {
		b := &event.Batch{ID: int64(i), StartMs: int64(i) * 60_000, EventTimeMaxMs: event.Absent, WatermarkMs: event.Absent}
		b.Values.Clear()
		b.Values[event.DurationTriggerExecution] = duration(i)
		o := event.Operator{Name: "dedupe", SnapshotMin: event.Absent}
		o.Values.Clear()
		o.Values[event.NumRowsTotal], o.Values[event.NumRowsRemoved] = rows(i), removed(i)
		b.Operators = append(b.Operators, o)
		d.batches = append(d.batches, b)
	}
	return d, d.settle()
}

func flat(v float64) func(int) float64 { return func(int) float64 { return v } }

// each60 is what windows of sixty batches give back.
func each60(i int) float64 {
	if i%60 == 59 {
		return 900
	}
	return 0
}

func TestOnlySteadyRunsAreDonors(t *testing.T) {
	growing := func(i int) float64 { return float64(100 + 10*i) }
	for _, c := range []struct {
		name                    string
		rows, removed, duration func(int) float64
		want                    bool
	}{
		{"steady", flat(1000), flat(10), flat(2000), true},
		{"windows", flat(1000), each60, flat(2000), true},
		{"fills up and gives nothing back", growing, flat(0), flat(2000), false},
		{"fills up, and begins to give back", growing, each60, flat(2000), true},
		{"keeps what it has", flat(1000), flat(0), flat(2000), true},
		{"catches up", flat(1000), flat(10), func(i int) float64 { return 60_000 / float64(1+i/10) }, false},
	} {
		if _, got := donorOf(240, c.rows, c.removed, c.duration); got != c.want {
			t.Errorf("%s: a donor %v, want %v", c.name, got, c.want)
		}
	}
}

func TestARunWhoseDataGetsOldIsNoDonor(t *testing.T) {
	d, ok := donorOf(240, flat(1000), flat(10), flat(2000))
	if !ok {
		t.Fatal("no donor before")
	}
	for i, b := range d.batches {
		b.EventTimeMaxMs = b.StartMs - int64(i)*60_000
	}
	took := make([]float64, len(d.batches))
	for i := range took {
		took[i] = 2000
	}
	if d.steady(took) {
		t.Error("data that gets older by a minute a minute is steady")
	}
}

func TestBlocksKeepTheRhythmInWhichRowsLeave(t *testing.T) {
	d, ok := donorOf(280, flat(1000), each60, flat(2000))
	if !ok {
		t.Fatal("no donor")
	}
	q := newHealthyQuery(d, 900_000, 0, 3)
	since, longest, gaps := 0, 0, 0
	for n := range int64(20_000) {
		list := q.next()
		since++
		if list[len(list)-1].Event.Batch.Operators[0].Values[event.NumRowsRemoved] > 0 {
			if n > 60 {
				longest = max(longest, since)
			}
			since = 0
			gaps++
		}
	}
	if longest > 60 || gaps < 300 {
		t.Errorf("rows left %d times, at most %d batches apart: windows are of 60", gaps, longest)
	}
}

func TestWhatStandsStillInTheDonorStandsStill(t *testing.T) {
	d, ok := donorOf(280, flat(1000), flat(10), flat(2000))
	if !ok {
		t.Fatal("no donor")
	}
	for i, b := range d.batches {
		b.Operators[0].Values[event.RocksDBBytesCopied] = float64(1000 + i/10)
		b.Operators[0].Values[event.NumRowsUpdated] = 500
	}
	q := newHealthyQuery(d, 60_000, 0, 3)
	moved, updates, last, lastRows := 0, 0, 0.0, 0.0
	const batches = 10_000
	for range int64(batches) {
		list := q.next()
		v := &list[len(list)-1].Event.Batch.Operators[0].Values
		if v[event.RocksDBBytesCopied] != last {
			moved++
		}
		if v[event.NumRowsUpdated] != lastRows {
			updates++
		}
		last, lastRows = v[event.RocksDBBytesCopied], v[event.NumRowsUpdated]
	}
	if share := float64(moved) / batches; share < 0.1 || share > 0.25 {
		t.Errorf("uploads moved in %v of batches, the donor's in a tenth", share)
	}
	if updates < batches*9/10 {
		t.Errorf("rows moved in %d batches only", updates)
	}
}

func TestWhatOnlyGrowsNeverFallsWithinARun(t *testing.T) {
	d, ok := donorOf(280, flat(1000), flat(10), flat(2000))
	if !ok {
		t.Fatal("no donor")
	}
	for i, b := range d.batches {
		b.Operators[0].Values[event.LoadedMapCacheHitCount] = float64(16 * i)
		b.Operators[0].Values[event.LoadedMapCacheMissCount] = 16
	}
	q := newHealthyQuery(d, 900_000, 0, 3)
	hits := 0.0
	for n := range int64(5000) {
		list := q.next()
		v := &list[len(list)-1].Event.Batch.Operators[0].Values
		if v[event.LoadedMapCacheHitCount] < hits && !list[len(list)-1].SegmentStart {
			t.Fatalf("batch %d: %v after %v", n, v[event.LoadedMapCacheHitCount], hits)
		}
		if v[event.LoadedMapCacheMissCount] > 16 {
			t.Fatalf("batch %d: %v maps were loaded", n, v[event.LoadedMapCacheMissCount])
		}
		hits = v[event.LoadedMapCacheHitCount]
		if v[event.RocksDBBytesCopied] == v[event.RocksDBBytesCopied] {
			t.Fatal("a figure that the donor has not")
		}
	}
	if hits == 0 {
		t.Error("nothing grew")
	}
}
