package workload

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkTake reads batches of 100,000 rows: ns/row.
func BenchmarkTake(b *testing.B) {
	f := func(name string, change func(*Config)) {
		b.Run(name, func(b *testing.B) {
			cfg := Config{Seed: 1, StartMs: startMs, RowsPerSecond: 10_000, RowBytes: 100, Partitions: 16, Keys: Keys{Count: 100_000}}
			change(&cfg)
			s := source(b, "kafka", cfg)
			s.Advance(ms(10*time.Second), Normal())
			var rows int64
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Seek(""); err != nil {
					b.Fatal(err)
				}
				rows += s.Take().Count
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	f("uniform", func(*Config) {})
	f("zipf", func(c *Config) { c.Keys.Skew = 1.1 })
	f("zipf-growing", func(c *Config) { c.Keys.Skew, c.Keys.NewPerSecond, c.Keys.Grow = 1.1, 100, true })
	f("everything", func(c *Config) { *c = orders(); c.RowsPerSecond = 10_000 })
}

// BenchmarkZipfVersusRand draws keys from 100,000 with exponent 1.1, and
// alternately with math/rand/v2's sampler of the same law.
func BenchmarkZipfVersusRand(b *testing.B) {
	const draws = 1000
	ours := newZipf(100_000, 1.1)
	random := stream(1)
	peer := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 99_999)
	var mine, theirs time.Duration
	var sum uint64
	for b.Loop() {
		start := time.Now()
		for range draws {
			sum += uint64(ours.rank(&random))
		}
		middle := time.Now()
		for range draws {
			sum += peer.Uint64()
		}
		mine += middle.Sub(start)
		theirs += time.Since(middle)
	}
	if sum == 0 {
		b.Fatal("no key but the first was drawn")
	}
	b.ReportMetric(float64(mine.Nanoseconds())/float64(b.N)/draws, "ns/draw")
	b.ReportMetric(float64(theirs)/float64(mine), "x_peer")
}

// BenchmarkRowsVersusRand makes up whole rows with uniform keys, and alternately
// draws one key each with math/rand/v2.
func BenchmarkRowsVersusRand(b *testing.B) {
	cfg := Config{Seed: 1, StartMs: startMs, RowsPerSecond: 10_000, Keys: Keys{Count: 100_000}}
	s := source(b, "kafka", cfg)
	s.Advance(ms(time.Second), Normal())
	peer := rand.New(rand.NewPCG(1, 2))
	var mine, theirs time.Duration
	var sum uint64
	for b.Loop() {
		start := time.Now()
		if err := s.Seek(""); err != nil {
			b.Fatal(err)
		}
		count := s.Take().Count
		middle := time.Now()
		for range count {
			sum += peer.Uint64N(100_000)
		}
		mine += middle.Sub(start)
		theirs += time.Since(middle)
	}
	if sum == 0 {
		b.Fatal("no key but the first was drawn")
	}
	b.ReportMetric(float64(theirs)/float64(mine), "x_peer")
}

// BenchmarkAdvance lets an hour pass, with noise and a daily cycle.
func BenchmarkAdvance(b *testing.B) {
	cfg := orders().withDefaults()
	for b.Loop() {
		a := newArrivals(&cfg)
		a.advance(startMs+3_600_000, Normal())
	}
}
