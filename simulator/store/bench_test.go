package store

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/store/lsm"
)

// shape is what a batch does to the stores of one operator.
type shape struct {
	partitions, rows, ops int
	conf                  map[string]string
	twice                 bool // as an aggregation before Spark 4.1 loads its stores
}

// load is a rig whose stores hold rows, and the memory for playing batches.
type loadRig struct {
	*rig
	shape
	stores  []Store
	value   []byte
	key     [8]byte
	version int64
}

func newLoadRig(b *testing.B, version string, s shape) *loadRig {
	r := &loadRig{rig: newRig(b, version, s.partitions, s.conf), shape: s, value: make([]byte, 92)}
	for p := range s.partitions {
		r.stores = append(r.stores, r.store(p))
	}
	r.batch(func(p int, s Store) {
		for i := range r.rows / r.partitions {
			r.must(s.Put(0, r.row(uint64(i)), r.value))
		}
	})
	return r
}

func (r *loadRig) row(n uint64) []byte {
	binary.BigEndian.PutUint64(r.key[:], n)
	return r.key[:]
}

func (r *loadRig) batch(do func(p int, s Store)) {
	for p, s := range r.stores {
		load := s.Load
		if r.twice {
			load = func(v int64) error { return LoadReadWrite(s, v) }
		}
		r.must(load(r.version))
		do(p, s)
		r.must(s.Commit())
		s.Figures()
	}
	r.version++
	if r.version%60 == 0 {
		_, err := r.x.Maintain()
		r.must(err)
	}
}

// play runs one batch of random reads and writes.
func (r *loadRig) play() {
	per := r.rows / r.partitions
	r.batch(func(p int, s Store) {
		rng := seed.New(1, uint64(p), uint64(r.version))
		for range r.ops / r.partitions {
			k := r.row(uint64(rng.IntN(per)))
			_, _, err := s.Get(0, k)
			r.must(err)
			r.must(s.Put(0, k, r.value))
		}
	})
}

func BenchmarkBatches(b *testing.B) {
	off := map[string]string{}
	for _, s := range []struct {
		name string
		shape
	}{
		{"partitions=16/changelog=off", shape{16, 100_000, 1000, off, false}},
		{"partitions=16/changelog=on", shape{16, 100_000, 1000, changelogOn(), false}},
		{"partitions=200/changelog=off", shape{200, 100_000, 2000, off, false}},
		{"partitions=200/changelog=on", shape{200, 100_000, 2000, changelogOn(), false}},
		{"partitions=16/changelog=on/twice", shape{16, 100_000, 1000, changelogOn(), true}},
		{"partitions=4/changelog=off", shape{4, 100_000, 1000, off, false}},
		{"partitions=4/changelog=on", shape{4, 100_000, 1000, changelogOn(), false}},
	} {
		b.Run(fmt.Sprint(s.name), func(b *testing.B) {
			r := newLoadRig(b, "4.0", s.shape)
			b.ResetTimer()
			for b.Loop() {
				r.play()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
		})
	}
}

// BenchmarkReadAndWriteVersusEngine compares a read and a write of a store, which
// is counted, tracked and logged, with two reads and a write of the database
// below it.
func BenchmarkReadAndWriteVersusEngine(b *testing.B) {
	const rows, group = 10_000, 1000
	r := newLoadRig(b, "4.3", shape{partitions: 1, rows: rows, conf: changelogOn()})
	shared := lsm.NewShared(8 << 20)
	defer shared.Close()
	db, err := lsm.Open(lsm.Options{FS: r.fs, Dir: "peer", Shared: shared, Uncharged: true})
	r.must(err)
	defer db.Close()
	for i := range rows {
		r.must(db.Set(r.row(uint64(i)), r.value))
	}
	rng := seed.New(1)
	var ours, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		s := r.stores[0]
		r.must(s.Load(r.version))
		for range group {
			k := r.row(rng.Uint64N(rows))
			if _, _, err := s.Get(0, k); err != nil {
				b.Fatal(err)
			}
			if err := s.Put(0, k, r.value); err != nil {
				b.Fatal(err)
			}
		}
		r.must(s.Commit())
		r.version++
		middle := time.Now()
		for range group {
			k := r.row(rng.Uint64N(rows))
			for range 2 {
				if _, _, err := db.Get(k); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Set(k, r.value); err != nil {
				b.Fatal(err)
			}
		}
		if r.version%10 == 0 {
			_, err := db.Flush()
			r.must(err)
		}
		ours += middle.Sub(start)
		theirs += time.Since(middle)
	}
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x_peer")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N*group), "ns/row")
}
