package workload

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// processorTime is what the process used of it: on a shared machine the clock
// tells mostly of others.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTake reads batches of 100,000 rows.
func BenchmarkTake(b *testing.B) {
	f := func(name string, change func(*Config)) {
		b.Run(name, func(b *testing.B) {
			cfg := Config{Seed: 1, StartMs: startMs, RowsPerSecond: 10_000, RowBytes: 100, Partitions: 16, Keys: Keys{Count: 100_000}}
			change(&cfg)
			s := source(b, "kafka", cfg)
			s.Advance(ms(10*time.Second), Normal())
			var rows int64
			b.ReportAllocs()
			cpu := processorTime(b)
			for b.Loop() {
				if err := s.Seek(""); err != nil {
					b.Fatal(err)
				}
				rows += s.Take().Count
			}
			cpu = processorTime(b) - cpu
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(rows), "cpu-ns/row")
			b.ReportMetric(float64(rows)/cpu.Seconds(), "rows/cpu-s")
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
	var mine, theirs []time.Duration
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
		theirs = append(theirs, time.Since(middle))
		mine = append(mine, middle.Sub(start))
	}
	if sum == 0 {
		b.Fatal("no key but the first was drawn")
	}
	// Medians: on a shared machine a round in many is mostly waiting.
	b.ReportMetric(float64(median(mine))/draws, "ns/draw")
	b.ReportMetric(float64(median(theirs))/float64(median(mine)), "x_peer")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkAdvance lets an hour pass, with noise and a daily cycle.
func BenchmarkAdvance(b *testing.B) {
	cfg := orders().withDefaults()
	for b.Loop() {
		a := newArrivals(&cfg)
		a.advance(startMs+3_600_000, Normal())
	}
}
