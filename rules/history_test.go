package rules

import (
	"math"
	"slices"
	"testing"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// fill pushes so many batches, a minute apart, of value f and input g.
func fill(h *history, n int, everyMs int64, f func(i int) float64) {
	from := h.clock.batch
	for i := range n {
		b := from + 1 + int64(i)
		h.push(trend.Point{Batch: b, AtMs: h.clock.atMs + everyMs, Value: f(i)}, []float64{-f(i)})
	}
}

func count10(i int) float64 { return float64(i % 10) }

func TestAHistoryKeepsWhatTheExtentNeeds(t *testing.T) {
	for _, tc := range []struct {
		name    string
		over    Extent
		n       int
		everyMs int64
		step    int
	}{
		{"batches", Extent{Batches: 100}, 1000, minuteMs, 1},
		{"time of slow batches", Extent{Ms: 2 * hourMs}, 1000, minuteMs, 1},
		{"time of fast batches", Extent{Ms: 2 * hourMs}, 20000, 1000, 81},
		{"many batches", Extent{Batches: 5000}, 20000, minuteMs, 81},
		{"both", Extent{Batches: 100, Ms: hourMs}, 3000, 10_000, 9},
	} {
		h := newHistory(tc.over, 144, 2)
		fill(h, tc.n, tc.everyMs, count10)
		from, covered := h.start(tc.over)
		if !covered {
			t.Errorf("%s: %d points of %d batches over %d ms do not cover %s", tc.name, h.n, h.batches(0), h.spanMs(), tc.over)
			continue
		}
		got := Extent{Batches: h.batches(from), Ms: h.ageMs(from)}
		if tc.over.Batches > 0 && got.Batches > 2*tc.over.Batches && got.Ms > 2*tc.over.Ms {
			t.Errorf("%s: %s where %s is asked for", tc.name, got, tc.over)
		}
		if h.n > 144 || h.step > tc.step {
			t.Errorf("%s: %d points of %d batches", tc.name, h.n, h.step)
		}
	}
}

func TestAPointOfManyBatchesIsTheirMedian(t *testing.T) {
	h := newHistory(Extent{Batches: 1000}, 30, 2)
	fill(h, 900, minuteMs, func(i int) float64 {
		if i%5 == 0 {
			return 1000 // one in five is wild
		}
		return float64(i)
	})
	if h.step < 9 {
		t.Fatalf("%d batches in a point", h.step)
	}
	for i := range h.n {
		v, batch := h.value(i, 0), float64(h.batchAt(i))
		if math.Abs(v-batch) > float64(h.step) || h.value(i, 1) != -v {
			t.Errorf("point %d at batch %v is %v and %v", i, batch, v, h.value(i, 1))
		}
	}
}

func TestPeaksKeepTheHighestBatchAndItsPlace(t *testing.T) {
	h := newHistory(Extent{Batches: 1000}, 30, 2)
	h.peaks = true
	fill(h, 700, minuteMs, func(i int) float64 {
		if i%100 == 42 {
			return 50
		}
		return 1
	})
	var peaks []int64
	for i := range h.n {
		if h.value(i, 0) == 50 {
			peaks = append(peaks, h.batchAt(i))
		}
	}
	if want := []int64{43, 143, 243, 343, 443, 543, 643}; !slices.Equal(peaks, want) {
		t.Errorf("peaks at %v, want %v", peaks, want)
	}
}

func TestAStreamThatBecomesSlowerIsKeptFinerAgain(t *testing.T) {
	h := newHistory(Extent{Batches: 50, Ms: hourMs}, 144, 2)
	fill(h, 8000, 1000, count10)
	fast := h.step
	fill(h, 3000, 5*minuteMs, count10)
	if fast < 9 || h.step >= fast {
		t.Errorf("a point had %d batches and has %d", fast, h.step)
	}
}

func TestAHistoryNeverHoldsMoreThanItsLimit(t *testing.T) {
	h := newHistory(Extent{Batches: maxExtentBatches, Ms: 1 << 50}, 60, 1)
	for i := range int64(100_000) {
		h.push(trend.Point{Batch: i, AtMs: i, Value: 1}, nil)
		if h.n > 60 || len(h.batch) > 60+maxStep || cap(h.batch) > 60+2*maxStep {
			t.Fatalf("batch %d: %d points, %d kept, room for %d", i, h.n, len(h.batch), cap(h.batch))
		}
	}
	if h.step != maxStep {
		t.Errorf("%d batches in a point, want %d", h.step, maxStep)
	}
}

func TestWhatIsFarAwayBeginsAnew(t *testing.T) {
	h := newHistory(Extent{Batches: 10}, 30, 1)
	h.push(trend.Point{Batch: 1, AtMs: startMs, Value: 1}, nil)
	h.push(trend.Point{Batch: 1 << 40, AtMs: startMs + minuteMs, Value: 2}, nil)
	if h.n != 1 || h.batchAt(0) != 1<<40 || h.value(0, 0) != 2 {
		t.Errorf("%d points, the first at %d", h.n, h.batchAt(0))
	}
	h.push(trend.Point{Batch: 1<<40 + 1, AtMs: math.MaxInt64, Value: 3}, nil)
	if h.n != 1 || h.value(0, 0) != 3 || h.spanMs() != 0 {
		t.Errorf("after a clock that ran off: %d points over %d ms", h.n, h.spanMs())
	}
}

func TestTheClockOnlyGoesForward(t *testing.T) {
	var c steadyClock
	for _, tc := range []struct {
		batch, atMs int64
		taken       bool
		elapsed     int64
	}{
		{5, 1000, true, 0},
		{6, 3000, true, 2000},
		{6, 4000, false, 2000},
		{4, 5000, false, 2000},
		{7, 500, true, 2000},
		{8, 1500, true, 3000},
		{9, event.Absent, true, 3000},
		{10, 2500, true, 4000},
		{-1, 9000, false, 4000},
	} {
		if got := c.step(trend.Point{Batch: tc.batch, AtMs: tc.atMs}); got != tc.taken || c.elapsedMs != tc.elapsed {
			t.Errorf("batch %d at %d: %v, %d ms, want %v, %d", tc.batch, tc.atMs, got, c.elapsedMs, tc.taken, tc.elapsed)
		}
	}
}

// FuzzHistory: whatever comes, the points stay in order and within the limit.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 1, 1, 200, 0, 3}, uint16(20), int64(60_000), true)
	f.Add([]byte{255, 0, 255}, uint16(0), int64(0), false)
	f.Fuzz(func(t *testing.T, steps []byte, batches uint16, ms int64, peaks bool) {
		h := newHistory(Extent{Batches: int(batches), Ms: ms}, 24, 2)
		h.peaks = peaks
		p := trend.Point{Batch: 1, AtMs: startMs}
		for i := range 40 * len(steps) {
			s := int64(steps[i%len(steps)])
			p.Batch += s - 100
			p.AtMs += s * s * s * (s - 128)
			p.Value = float64(s*int64(i)) - 1000
			h.push(p, []float64{math.NaN()})
			if h.n > 24 || len(h.values) != 2*len(h.batch) || len(h.at) != len(h.batch) || h.count != nil && len(h.count) != len(h.batch) {
				t.Fatalf("%d points, %d figures", h.n, len(h.values))
			}
			for k := 1; k < h.n; k++ {
				if h.batchAt(k) <= h.batchAt(k-1) || h.ageMs(k) > h.ageMs(k-1) {
					t.Fatalf("points %d and %d are out of order", k-1, k)
				}
			}
			h.start(h.over)
			h.rare(10)
		}
	})
}

func TestTheNewestPointsThatMakeUpAnExtentAreThoseThatCoverIt(t *testing.T) {
	for _, over := range []Extent{{Batches: 100}, {Ms: 2 * hourMs}, {Batches: 100, Ms: hourMs}, {Batches: 1 << 20}, {}} {
		h := newHistory(Extent{Batches: 300, Ms: 3 * hourMs}, 60, 1)
		if h.covers(over, 0) {
			t.Errorf("%s: covered by nothing", over)
		}
		for i := range 900 {
			fill(h, 1, int64(1000+37*i), count10)
			from, covered := h.start(over)
			if h.n > 0 && h.covers(over, 0) != covered {
				t.Fatalf("%s, %d batches: covered by all points %v, want %v", over, i+1, !covered, covered)
			}
			if covered && (!h.covers(over, from) || from+1 < h.n && h.covers(over, from+1)) {
				t.Fatalf("%s, %d batches: point %d of %d is not the last that covers it", over, i+1, from, h.n)
			}
		}
	}
}
