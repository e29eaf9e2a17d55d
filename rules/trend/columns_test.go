package trend

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// both feeds a store and windows the same points and compares what they say.
type both struct {
	columns *Columns
	windows []*Window
	spans   []Span
	numbers []int
	rows    []float32
}

func newBoth(columns int, spans []Span, limit int) *both {
	b := &both{columns: NewColumns(columns, ColumnsOptions{Longest: spans[len(spans)-1]}), spans: spans, rows: make([]float32, columns)}
	for _, s := range spans {
		b.windows = append(b.windows, NewWindow(s, limit))
		b.numbers = append(b.numbers, b.columns.Watch(0, s))
	}
	return b
}

func (b *both) push(batch, ms int64, v, load float64) {
	b.rows[0], b.rows[1] = float32(v), float32(load)
	b.columns.Push(batch, ms, b.rows)
	for _, w := range b.windows {
		w.Push(Point{Batch: batch, AtMs: ms, Value: float64(float32(v)), Load: float64(float32(load))})
	}
}

func TestColumnsSayWhatWindowsSayOfTheSamePoints(t *testing.T) {
	arithmeticOnly(t)
	rng := rand.New(rand.NewPCG(101, 102))
	judged, found := 0, 0
	for trial := range 24 {
		spans := []Span{{Batches: 30}, {Batches: 60 + rng.IntN(60)}, {Batches: 40, Ms: 7_200_000}}
		b := newBoth(2, spans, 240)
		n, at, batch := newNoise(uint64(trial), arNoise), int64(0), int64(0)
		o := RisingOptions{MinPoints: 20, AdjustForLoad: trial%2 == 0, Falling: trial%5 == 0, By: 0.1}
		for i := range 500 {
			at += 60_000 + rng.Int64N(60_000)
			batch += 1 + rng.Int64N(2)
			v := n.value() * (1 + max(0, 0.01*float64(i-200)))
			load := 100 + 10*rng.NormFloat64()
			if rng.IntN(10) == 0 {
				load = math.NaN()
			}
			b.push(batch, at, v, load)
			if i%3 == 0 {
				judged++
				found += compareBoth(t, b, o)
			}
		}
	}
	t.Logf("%d comparisons of three spans, %d findings", judged, found)
	if found < 500 {
		t.Errorf("only %d findings to compare", found)
	}
}

// compareBoth asks each window and the store, by both ways, and wants one answer.
func compareBoth(t *testing.T, b *both, o RisingOptions) (found int) {
	t.Helper()
	for i, w := range b.windows {
		want := w.Rising(o)
		load := NoLoad
		if o.AdjustForLoad {
			load = 1
		}
		for name, got := range map[string]RisingResult{
			"watched":   b.columns.RisingWatched(b.numbers[i], load, o),
			"on demand": b.columns.Rising(0, load, b.spans[i], o),
		} {
			if got != want {
				t.Fatalf("span %+v, %s:\n%+v, the window says\n%+v", b.spans[i], name, got, want)
			}
		}
		found += count(want.Verdict == Found)
	}
	return found
}

// Over blocks the two differ in where blocks begin and in the kind of median, so they
// must agree nearly always rather than always.
func TestColumnsAgreeWithWindowsOverBlocks(t *testing.T) {
	arithmeticOnly(t)
	for _, c := range []struct {
		name    string
		span    Span
		everyMs int64
		n       int
		share   float64
	}{
		{"240 batches", Span{Batches: 240, Ms: 14_400_000}, 60_000, 3000, 0.95},
		{"2 h of one batch in ten seconds", Span{Batches: 120, Ms: 7_200_000}, 10_000, 6000, 0.95},
		{"2 h of one batch a second", Span{Batches: 120, Ms: 7_200_000}, 1000, 24_000, 0.93},
	} {
		t.Run(c.name, func(t *testing.T) {
			agreed, judged, found := 0, 0, 0
			for seed := range uint64(6) {
				b := newBoth(2, []Span{c.span}, 144)
				n := newNoise(seed, arNoise)
				for i := range c.n {
					v := n.value() * (1 + 0.6*max(0, float64(i-c.n/2)/float64(c.n/2))*float64(seed%3))
					b.push(int64(i), int64(i)*c.everyMs, v, math.NaN())
					if i < c.n/3 || i%17 != 0 {
						continue
					}
					w, g := b.windows[0].Rising(DefaultRising()), b.columns.RisingWatched(0, NoLoad, DefaultRising())
					judged++
					agreed += count(w.Verdict == g.Verdict)
					found += count(g.Verdict == Found)
				}
			}
			t.Logf("%d of %d verdicts agree, %d findings", agreed, judged, found)
			if float64(agreed) < c.share*float64(judged) || found == 0 {
				t.Errorf("%d of %d verdicts agree, %d findings", agreed, judged, found)
			}
		})
	}
}

func TestColumnsHoldTogetherOnAnyStream(t *testing.T) {
	arithmeticOnly(t)
	rng := rand.New(rand.NewPCG(103, 104))
	for trial := range 40 {
		o := ColumnsOptions{Fine: 24 + rng.IntN(100), Coarse: 24 + rng.IntN(100), Longest: Span{Batches: rng.IntN(2000), Ms: rng.Int64N(10_000_000)}}
		if trial%3 == 0 {
			o.BreakMs = 200_000
		}
		c := NewColumns(2, o)
		for range 4 {
			c.Watch(rng.IntN(2), Span{Batches: rng.IntN(300), Ms: rng.Int64N(3_000_000)})
		}
		at, batch, pace := int64(0), int64(0), int64(1000)
		for i := range 3000 {
			if i%400 == 0 {
				pace = 1 + rng.Int64N(60_000)
			}
			at += rng.Int64N(2*pace) - pace/20
			batch += 1 + rng.Int64N(2)
			row := []float32{float32(rng.IntN(9)), float32(rng.IntN(900))}
			if rng.IntN(5) == 0 {
				row[0] = float32(math.NaN())
			}
			c.Push(batch, at, row)
			if i%11 == 0 {
				checkColumns(t, c)
			}
		}
	}
}

// checkColumns verifies what must hold of a store at any time.
func checkColumns(t *testing.T, c *Columns) {
	t.Helper()
	for _, l := range []*lane{c.fine, c.coarse} {
		if l.n > l.limit {
			t.Fatalf("%d rows of %d", l.n, l.limit)
		}
		for i := 1; i < l.n; i++ {
			a, b := l.mark(l.at(i-1)), l.mark(l.at(i))
			if b.x() <= a.x() || b.fromMs < a.untilMs() || b.batches == 0 {
				t.Fatalf("rows %d and %d: %+v, %+v", i-1, i, a, b)
			}
		}
		for _, v := range l.views {
			if !v.asleep {
				checkView(t, l, v)
			}
		}
	}
}

func checkView(t *testing.T, l *lane, v *view) {
	t.Helper()
	var y []float64
	batches := 0
	for i := l.n - v.n; i < l.n; i++ {
		if x := l.vals[v.column][l.at(i)]; x == x {
			y = append(y, float64(x))
			batches += l.marks[l.at(i)].batches()
		}
	}
	s, tie := naiveKendall(y)
	if s != v.sum.s || tie != v.sum.tieTerm || len(y) != len(v.order) || batches != v.batches {
		t.Fatalf("view %+v, naive says S %d, ties %d, %d known in %d batches", *v, s, tie, len(y), batches)
	}
	if v.n < l.n && !v.full(l) {
		t.Fatalf("view %+v has dropped what its span needs", *v)
	}
}

func TestNoBatchIsLostWhileColumnsGrow(t *testing.T) {
	c := NewColumns(1, ColumnsOptions{Coarse: 24, Longest: Span{Batches: 1 << 30}})
	for i := range int64(10_000) {
		c.Push(i, i, []float32{1})
		held := 0
		for k := range c.coarse.n {
			held += c.coarse.marks[c.coarse.at(k)].batches()
		}
		size := 1
		for _, o := range c.levels {
			if o.n > 0 {
				held += int(o.mark.batches)
			}
			size *= blockGrowth
		}
		if held != int(i+1) {
			t.Fatalf("%d batches held of %d", held, i+1)
		}
	}
}

func TestColumnsReachBackTheLongestSpan(t *testing.T) {
	for _, c := range []struct {
		longest Span
		everyMs int64
	}{{Span{Batches: 560}, 60_000}, {Span{Ms: 7_200_000}, 1000}, {Span{Batches: 240, Ms: 14_400_000}, 10_000}, {Span{Batches: 40_000}, 1}} {
		x := NewColumns(1, ColumnsOptions{Longest: c.longest})
		var s Series
		for i := range int64(100_000) {
			x.Push(i, i*c.everyMs, []float32{float32(i % 7)})
			if i > 80_000 && i%1000 == 0 {
				if x.Series(0, c.longest, &s); !s.Full || len(s.Y) < 24 || len(s.Y) > 126 {
					t.Fatalf("%+v: %d points for %d batches, full %v", c.longest, len(s.Y), s.Batches, s.Full)
				}
			}
		}
	}
}

func TestBlocksOfColumnsShrinkAgain(t *testing.T) {
	c := NewColumns(1, ColumnsOptions{Longest: Span{Batches: 60, Ms: 7_200_000}})
	at := int64(0)
	for i := range int64(20_000) {
		at += 1000
		c.Push(i, at, []float32{1})
	}
	for i := range int64(2000) {
		at += 60_000
		c.Push(20_000+i, at, []float32{1})
	}
	if c.coarse.size > 3 { // they were 81 batches while one came each second
		t.Errorf("blocks of %d", c.coarse.size)
	}
}

func TestSeriesCarriesWhatWasPushed(t *testing.T) {
	c := NewColumns(2, ColumnsOptions{})
	for i := range int64(50) {
		row := []float32{float32(i), float32(math.Inf(1))}
		if i%10 == 3 {
			row[0] = float32(math.NaN())
		}
		c.Push(100+2*i, 5_000_000+i*1000, row)
	}
	var s Series
	c.Series(0, Span{Batches: 20}, &s)
	if s.Batches != 20 || !s.Full || s.Batch[19] != 198 || s.AtMs[19] != 5_049_000 || s.Y[19] != 49 || s.X[0] != 0 || s.X[19] != float64(198-s.Batch[0]) {
		t.Errorf("%+v", s)
	}
	if c.Points(0, Span{Batches: 20}) != 20 || c.Points(1, Span{Batches: 20}) != 0 || c.LastBatch() != 198 {
		t.Errorf("%d and %d points, last %d", c.Points(0, Span{Batches: 20}), c.Points(1, Span{Batches: 20}), c.LastBatch())
	}
	if c.Series(1, Span{Batches: 20}, &s); len(s.Y) != 0 || s.Full {
		t.Errorf("%+v", s)
	}
}

func TestColumnsTakeOnlyNewerBatches(t *testing.T) {
	c := NewColumns(1, ColumnsOptions{})
	for _, p := range []struct {
		batch int64
		want  bool
	}{{5, true}, {5, false}, {4, false}, {-1, false}, {math.MaxInt64, false}, {6, true}} {
		if got := c.Push(p.batch, 0, []float32{1}); got != p.want {
			t.Errorf("batch %d: taken %v", p.batch, got)
		}
	}
	if !c.Push(7, 0, nil) || c.fine.n != 3 || c.Points(0, Span{Batches: 3}) != 2 {
		t.Error("a batch without values is a batch")
	}
}

func TestLongPauseForgetsColumns(t *testing.T) {
	c := NewColumns(1, ColumnsOptions{BreakMs: 3_600_000})
	for i := range int64(300) {
		c.Push(i, i*60_000, []float32{1})
	}
	c.Push(300, 300*60_000+7_200_000, []float32{1})
	if c.fine.n != 1 || c.Points(0, Span{Batches: 500}) != 1 {
		t.Errorf("%d rows", c.fine.n)
	}
	c.Reset()
	if c.LastBatch() != -1 || c.fine.n != 0 || c.coarse.n != 0 {
		t.Error("something is left")
	}
}

func TestLevelOfColumnsIsThatOfALevelWindow(t *testing.T) {
	arithmeticOnly(t)
	agreed, judged, found := 0, 0, 0
	for seed := range uint64(8) {
		n := newNoise(seed, arNoise)
		w := NewLevelWindow(Span{Batches: 60}, Span{Batches: 500})
		c := NewColumns(2, ColumnsOptions{Coarse: 192, Longest: Span{Batches: 560}})
		for i := range 1500 {
			v := n.value()
			if i > 900 {
				v *= 1 + 0.25*float64(seed%3)
			}
			load := 100 + 10*n.rng.NormFloat64()
			w.Push(Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: v, Load: load})
			c.Push(int64(i), int64(i)*60_000, []float32{float32(v), float32(load)})
			if i < 570 {
				continue
			}
			o := LevelOptions{By: 0.35, AdjustForLoad: true}
			a, b := w.Level(o), c.Level(0, 1, Span{Batches: 60}, Span{Batches: 500}, o)
			judged++
			agreed += count(a.Verdict == b.Verdict)
			found += count(b.Verdict == Found)
			near(t, "recent level", b.Recent, a.Recent, 1e-6)
			near(t, "level before", b.Before, a.Before, 0.08*a.Before)
		}
	}
	t.Logf("%d of %d verdicts agree, %d findings", agreed, judged, found)
	if float64(agreed) < 0.97*float64(judged) || found < 100 {
		t.Errorf("%d of %d verdicts agree, %d findings", agreed, judged, found)
	}
}

func TestLevelOfColumnsNeedsBothSpans(t *testing.T) {
	c := NewColumns(1, ColumnsOptions{Longest: Span{Batches: 560}})
	for i := range int64(400) {
		c.Push(i, i, []float32{1})
		if v := c.Level(0, NoLoad, Span{Batches: 60}, Span{Batches: 500}, LevelOptions{}).Verdict; v != TooFew {
			t.Fatalf("%q after %d batches", v, i+1)
		}
	}
}

func TestColumnTakesAKilobyte(t *testing.T) {
	full := func(columns int) int {
		c := NewColumns(columns, ColumnsOptions{Longest: Span{Batches: 560}})
		for i := range int64(3000) {
			c.Push(i, i*60_000, []float32{1})
		}
		return c.Bytes()
	}
	each := full(26) - full(25)
	t.Logf("%d bytes a column, %d for the axis", each, full(1)-each)
	if each > 1228 {
		t.Errorf("%d bytes a column", each)
	}
}

func TestFullColumnsPushWithoutAllocation(t *testing.T) {
	c, s := NewColumns(10, ColumnsOptions{Longest: Span{Batches: 560}}), new(Scratch)
	c.UseScratch(s)
	number := c.Watch(0, Span{Batches: 120})
	row, next := make([]float32, 10), int64(0)
	n := newNoise(1, arNoise)
	push := func() {
		row[0] = float32(n.value() * (1 + float64(next)/2000))
		c.Push(next, next*60_000, row)
		next++
	}
	for range 3000 {
		push()
	}
	var series Series
	work := func() {
		push()
		c.RisingWatched(number, 1, DefaultRising())
		c.Level(0, 1, Span{Batches: 60}, Span{Batches: 500}, LevelOptions{})
		c.Series(0, Span{Batches: 120}, &series)
	}
	for range 100 {
		work()
	}
	if allocs := testing.AllocsPerRun(500, work); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestSeriesOfAWindowIsThatOfAColumn(t *testing.T) {
	b := newBoth(2, []Span{{Batches: 50}}, 0)
	for i := range int64(90) {
		b.push(3*i, 7_000+i*1000, float64(i*i), math.NaN())
	}
	var w, c Series
	b.windows[0].Series(&w)
	b.columns.Series(0, Span{Batches: 50}, &c)
	if diff := cmp.Diff(w, c); diff != "" {
		t.Error(diff)
	}
}
