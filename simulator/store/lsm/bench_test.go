package lsm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// benchStore opens stores that share one cache and holds rows in each.
func benchStores(b *testing.B, stores, rows int) (open []*DB, fs vfs.FS) {
	b.Helper()
	shared := NewShared(8<<20 + int64(stores)*MemtableCharge(32<<10))
	fs = vfs.NewMem()
	for i := range stores {
		d, err := Open(Options{FS: fs, Dir: fmt.Sprintf("store%d", i), Shared: shared, MemtableBytes: 32 << 10})
		if err != nil {
			b.Fatal(err)
		}
		open = append(open, d)
		var key [8]byte
		value := make([]byte, 80)
		for r := range rows {
			binary.BigEndian.PutUint64(key[:], uint64(r))
			if err := d.Set(key[:], value); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := d.Compact(); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		for _, d := range open {
			if err := d.Close(); err != nil {
				b.Error(err)
			}
		}
		shared.Close()
	})
	return open, fs
}

// BenchmarkBatch is a batch of 2,000 reads and writes over all stores, each of
// which then flushes, compacts what is due and makes a checkpoint.
func BenchmarkBatch(b *testing.B) {
	for _, stores := range []int{1, 16, 200} {
		for _, checkpoint := range []bool{false, true} {
			b.Run(fmt.Sprintf("stores=%d/checkpoint=%t", stores, checkpoint), func(b *testing.B) {
				open, fs := benchStores(b, stores, 100_000/stores)
				rng := rand.New(rand.NewPCG(1, 2))
				var key [8]byte
				value := make([]byte, 80)
				for b.Loop() {
					for _, d := range open {
						d.Begin()
						for range 2000 / stores {
							binary.BigEndian.PutUint64(key[:], rng.Uint64N(uint64(100_000/stores)))
							if _, _, err := d.Get(key[:]); err != nil {
								b.Fatal(err)
							}
							if err := d.Set(key[:], value); err != nil {
								b.Fatal(err)
							}
						}
						d.End()
						if _, err := d.Flush(); err != nil {
							b.Fatal(err)
						}
						if checkpoint {
							if _, err := d.Checkpoint("cp"); err != nil {
								b.Fatal(err)
							}
							if err := fs.RemoveAll("cp"); err != nil {
								b.Fatal(err)
							}
						}
						d.Stats()
						d.Debt()
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
			})
		}
	}
}

// BenchmarkGetVersusMap reads rows from a tree and the same ones from a Go map.
func BenchmarkGetVersusMap(b *testing.B) {
	const rows, round = 20_000, 1000
	open, _ := benchStores(b, 1, rows)
	peer := make(map[string][]byte, rows)
	var key [8]byte
	for r := range uint64(rows) {
		binary.BigEndian.PutUint64(key[:], r)
		peer[string(key[:])] = make([]byte, 80)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var ours, theirs time.Duration
	found := 0
	for b.Loop() {
		begun := time.Now()
		for range round {
			binary.BigEndian.PutUint64(key[:], rng.Uint64N(rows))
			if _, ok, err := open[0].Get(key[:]); err != nil || !ok {
				b.Fatal(ok, err)
			}
		}
		ours += time.Since(begun)
		begun = time.Now()
		for range round {
			binary.BigEndian.PutUint64(key[:], rng.Uint64N(rows))
			if _, ok := peer[string(key[:])]; ok {
				found++
			}
		}
		theirs += time.Since(begun)
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N)/round, "ns/get")
	b.ReportMetric(float64(ours)/float64(theirs), "x_peer")
}

// BenchmarkSetVersusMap writes rows, flushes included, and the same into a map.
func BenchmarkSetVersusMap(b *testing.B) {
	const rows, round = 20_000, 1000
	open, _ := benchStores(b, 1, rows)
	peer := make(map[string][]byte, rows)
	var key [8]byte
	value := make([]byte, 80)
	rng := rand.New(rand.NewPCG(1, 2))
	var ours, theirs time.Duration
	for b.Loop() {
		begun := time.Now()
		for range round {
			binary.BigEndian.PutUint64(key[:], rng.Uint64N(rows))
			if err := open[0].Set(key[:], value); err != nil {
				b.Fatal(err)
			}
		}
		ours += time.Since(begun)
		begun = time.Now()
		for range round {
			binary.BigEndian.PutUint64(key[:], rng.Uint64N(rows))
			peer[string(key[:])] = append([]byte(nil), value...)
		}
		theirs += time.Since(begun)
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N)/round, "ns/set")
	b.ReportMetric(float64(ours)/float64(theirs), "x_peer")
}
