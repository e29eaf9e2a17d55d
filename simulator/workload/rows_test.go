package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// rowsOf is the rows of some seconds of a Kafka source.
func rowsOf(t testing.TB, cfg Config, seconds int, c Conditions) []Row {
	t.Helper()
	s := source(t, "kafka", cfg)
	s.Advance(ms(time.Duration(seconds)*time.Second), c)
	return s.Take().Rows
}

// plain is on time, uniform and steady.
func plain() Config {
	return Config{Seed: 3, StartMs: startMs, RowsPerSecond: 1000, RowBytes: 80, Keys: Keys{Count: 1000}}
}

func counts(rows []Row) map[uint64]int {
	out := map[uint64]int{}
	for _, r := range rows {
		out[r.Key]++
	}
	return out
}

// share is the part of rows for which something holds.
func share(rows []Row, holds func(Row) bool) float64 {
	n := 0
	for _, r := range rows {
		if holds(r) {
			n++
		}
	}
	return float64(n) / float64(len(rows))
}

func TestUniformKeysAreEquallyCommon(t *testing.T) {
	rows := rowsOf(t, plain(), 1000, Normal())
	c := counts(rows)
	var chi float64
	for k, n := range c {
		if k >= 1000 {
			t.Fatalf("key %d of 1000", k)
		}
		chi += math.Pow(float64(n)-1000, 2) / 1000
	}
	// 999 degrees of freedom: 1,143 is passed once in a thousand.
	if len(c) != 1000 || chi > 1143 {
		t.Errorf("%d keys, chi square %.0f", len(c), chi)
	}
}

func TestZipfKeysFollowTheirLaw(t *testing.T) {
	const draws = 200_000
	for _, n := range []int64{2, 3, 700, 1024, 5000, 100_000} {
		for _, exponent := range []float64{0.3, 0.9, 1, 1.2, 2.5} {
			z := newZipf(n, exponent)
			random := rowStream(uint64(n), int64(exponent*10))
			c := make([]float64, n)
			for range draws {
				c[z.rank(&random)]++
			}
			chi, bins := chiSquare(c, exponent, draws)
			// So many bins deviate by their number, give or take its double's root.
			if limit := bins + 4*math.Sqrt(2*bins) + 3; chi > limit {
				t.Errorf("%d ranks, exponent %v: chi square %.0f of %v bins", n, exponent, chi, bins)
			}
		}
	}
}

// chiSquare compares counts by rank with a Zipf law; neighbours that are expected
// less than 50 times are counted together.
func chiSquare(counts []float64, exponent, draws float64) (chi, bins float64) {
	var norm, got, want float64
	for k := range counts {
		norm += math.Pow(float64(k+1), -exponent)
	}
	for k := range counts {
		got += counts[k]
		if want += draws * math.Pow(float64(k+1), -exponent) / norm; want < 50 {
			continue
		}
		chi += (got - want) * (got - want) / want
		bins++
		got, want = 0, 0
	}
	return chi, bins
}

func TestGrowingZipfIsThatOfItsSize(t *testing.T) {
	grown := newZipf(1, 1.1)
	for _, n := range []int64{2, 900, 4096, 4097, 50_000, 10, 7_000_000} {
		grown.resize(n)
		made := newZipf(n, 1.1)
		a, b := stream(n), stream(n)
		for range 500 {
			if x, y := grown.rank(&a), made.rank(&b); x != y {
				t.Fatalf("%d ranks: %d, when made so %d", n, x, y)
			}
		}
	}
}

func TestZipfRanksStayWithinTheirNumber(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 1000, 1e9, 1e15} {
		for _, exponent := range []float64{0.01, 0.99999999, 1, 1.00000001, 3, 20} {
			z := newZipf(n, exponent)
			random := stream(5)
			for range 2000 {
				if k := z.rank(&random); k < 0 || k >= n {
					t.Fatalf("rank %d of %d, exponent %v", k, n, exponent)
				}
			}
		}
	}
}

func TestKeySpaceMovesOn(t *testing.T) {
	cfg := plain()
	cfg.Keys.NewPerSecond = 10
	rows := rowsOf(t, cfg, 300, Normal())
	for i, r := range rows {
		first := uint64(10 * (r.EventMs - startMs) / 1000)
		if r.Key+10 < first || r.Key > first+1000 {
			t.Fatalf("row %d, %d ms after the start, has key %d", i, r.EventMs-startMs, r.Key)
		}
	}
	if n := len(counts(rows)); n < 3900 || n > 4000 {
		t.Errorf("%d keys in 300 s of 10 new ones", n)
	}
}

func TestNewestKeysOfAMovingWindowAreTheCommonest(t *testing.T) {
	cfg := plain()
	cfg.Keys.NewPerSecond, cfg.Keys.Skew = 10, 1.2
	got := share(rowsOf(t, cfg, 60, Normal()), func(r Row) bool {
		first := uint64(10 * ((r.EventMs - 1 - startMs) / 1000))
		return r.Key >= first+900
	})
	near(t, "share of the newest tenth", got, 0.81, 0.05)
}

func TestKeySpaceGrows(t *testing.T) {
	cfg := plain()
	cfg.Keys.NewPerSecond, cfg.Keys.Grow = 100, true
	rows := rowsOf(t, cfg, 100, Normal())
	early := slices.MaxFunc(rows[:1000], func(a, b Row) int { return int(a.Key) - int(b.Key) })
	late := slices.MaxFunc(rows[99_000:], func(a, b Row) int { return int(a.Key) - int(b.Key) })
	if early.Key >= 1100 || late.Key < 10_500 || late.Key > 11_000 {
		t.Errorf("largest key %d in the first second, %d in the last", early.Key, late.Key)
	}
}

func TestUniqueKeysComeOnce(t *testing.T) {
	cfg := plain()
	cfg.Keys, cfg.Partitions = Keys{Unique: true}, 5
	rows := rowsOf(t, cfg, 20, Normal())
	if n := len(counts(rows)); n != 20_000 {
		t.Errorf("%d keys in 20,000 rows", n)
	}
}

func TestCopiesRepeatAnEarlierRowOfTheirPartition(t *testing.T) {
	cfg := plain()
	cfg.Keys, cfg.Partitions, cfg.Duplicates = Keys{Unique: true}, 4, 0.25
	rows := rowsOf(t, cfg, 100, Normal())
	seen := map[Row]bool{}
	for i, r := range rows {
		original := r
		original.Again = false
		if r.Again != seen[original] {
			// A row may be copied twice, never a copy be taken for new.
			t.Fatalf("row %d %+v: its original was seen: %v", i, r, seen[original])
		}
		seen[original] = true
	}
	near(t, "share of copies", share(rows, func(r Row) bool { return r.Again }), 0.2, 0.005)
}

func TestLatenessHasItsMedianAndTail(t *testing.T) {
	cfg := plain()
	cfg.Late = Late{Typical: 2 * time.Second, Share: 0.05, By: 10 * time.Minute}
	onTime, late := rowsOf(t, plain(), 100, Normal()), rowsOf(t, cfg, 100, Normal())
	var by []float64
	for i := range late {
		by = append(by, float64(onTime[i].EventMs-late[i].EventMs)/1000)
	}
	slices.Sort(by)
	near(t, "median", by[len(by)/2], 2.15, 0.15) // with the 5 % above it
	near(t, "share beyond 10 minutes", share(late, func(r Row) bool { return r.EventMs < startMs-480_000 }), 0.05, 0.005)
	if by[0] < 0 || by[len(by)/100] > 0.1 {
		t.Errorf("the most punctual are %.2f and %.2f s late", by[0], by[len(by)/100])
	}
}

func TestFaultsOfTheInputShowInItsRows(t *testing.T) {
	f := func(what string, set func(*Conditions), want float64, holds func(Row) bool) {
		t.Helper()
		cfg := plain()
		cfg.Late.Beyond = time.Minute
		c := Normal()
		set(&c)
		near(t, what, share(rowsOf(t, cfg, 100, c), holds), want, 0.01)
	}
	f("share of one key", func(c *Conditions) { c.Skew = 0.3 }, 0.301, func(r Row) bool { return r.Key == 0 })
	f("share of new keys", func(c *Conditions) { c.KeySpace = 4 }, 0.75, func(r Row) bool { return r.Key >= 1000 })
	f("share of fewer keys", func(c *Conditions) { c.KeySpace = 0.1 }, 1, func(r Row) bool { return r.Key < 100 })
	f("share of larger rows", func(c *Conditions) { c.RowBytes = 2.5 }, 1, func(r Row) bool { return r.Bytes == 200 })
	f("share of frozen rows", func(c *Conditions) { c.Frozen = true }, 1, func(r Row) bool { return r.EventMs == startMs })
}

func TestLateRowsAreBeyondTheDelay(t *testing.T) {
	cfg := plain()
	cfg.Late.Beyond = time.Minute
	c := Normal()
	c.Late = 0.2
	onTime, late := rowsOf(t, cfg, 100, Normal()), rowsOf(t, cfg, 100, c)
	n := 0
	for i := range late {
		by := onTime[i].EventMs - late[i].EventMs
		if by != 0 && by < 60_000 {
			t.Fatalf("row %d is %d ms late", i, by)
		}
		if by >= 60_000 {
			n++
		}
	}
	near(t, "share of late rows", float64(n)/float64(len(late)), 0.2, 0.005)
}

func TestOneRowACallIsFromTheFuture(t *testing.T) {
	for _, kind := range kinds {
		s := source(t, kind, plain())
		c := Normal()
		for b := range 4 {
			if c.FutureMs = 0; b == 2 {
				c.FutureMs = 7_200_000
			}
			s.Advance(ms(time.Duration(b+1)*10*time.Second), c)
			take := s.Take()
			ahead := 0
			for _, r := range take.Rows {
				if r.EventMs > ms(time.Duration(b+1)*10*time.Second) {
					ahead++
				}
			}
			want := 0
			if b == 2 {
				want = 1
			}
			if ahead != want {
				t.Errorf("%s batch %d: %d rows from the future", kind, b, ahead)
			}
			if b == 2 && (take.MaxMs < ms(2*time.Hour+20*time.Second) || take.MaxMs > ms(2*time.Hour+30*time.Second)) {
				t.Errorf("%s: newest row is %d ms after the start", kind, take.MaxMs-startMs)
			}
		}
	}
}

func TestFrozenSourceGoesOnAfterwards(t *testing.T) {
	s := source(t, "kafka", plain())
	frozen := Normal()
	frozen.Frozen = true
	var newest []int64
	for b, c := range []Conditions{Normal(), frozen, frozen, Normal()} {
		s.Advance(ms(time.Duration(b+1)*10*time.Second), c)
		take := s.Take()
		if take.Count != 10_000 {
			t.Errorf("batch %d has %d rows", b, take.Count)
		}
		newest = append(newest, take.MaxMs-startMs)
	}
	if want := []int64{10_000, 10_000, 10_000, 40_000}; !slices.Equal(newest, want) {
		t.Errorf("newest rows at %v, want %v", newest, want)
	}
}

func TestSidesOfAJoinMeetInTheirKeys(t *testing.T) {
	left, right := plain(), plain()
	left.Keys, right.Keys = Keys{Unique: true}, Keys{Unique: true}
	right.Source, right.Side = 1, 1
	a, b := rowsOf(t, left, 10, Normal()), rowsOf(t, right, 10, Normal())
	for i := range a {
		if a[i].Key != b[i].Key || a[i].Side != 0 || b[i].Side != 1 {
			t.Fatalf("rows %+v and %+v do not meet", a[i], b[i])
		}
	}
}
