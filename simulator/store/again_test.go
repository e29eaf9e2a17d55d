package store

import (
	"math/rand/v2"
	"testing"
)

// TestASecondReadIsCountedWhetherItIsDoneOrNot plays the same reads and writes
// twice: once the read that counts rows is spared after a read of the same key,
// once it is done.
func TestASecondReadIsCountedWhetherItIsDoneOrNot(t *testing.T) {
	for name, conf := range variants() {
		t.Run(name, func(t *testing.T) {
			spared, done := newRig(t, "4.1", 1, conf), newRig(t, "4.1", 1, conf)
			for batch := range 14 {
				a := readAndWrite(spared, uint64(batch), func(*rocksDB) {})
				b := readAndWrite(done, uint64(batch), func(s *rocksDB) { s.last.known = false })
				for id := range a.Custom {
					if x, y := a.Custom[id], b.Custom[id]; x != y && (x == x || y == y) {
						t.Fatalf("batch %d: figure %d is %v, and %v where all is read", batch, id, x, y)
					}
				}
				if a.Rows != b.Rows || a.MemoryBytes != b.MemoryBytes || a.Get != b.Get || a.Commit != b.Commit {
					t.Fatalf("batch %d: %+v, and %+v where all is read", batch, a, b)
				}
			}
		})
	}
}

// readAndWrite does a batch as operators do, and some that they do not: writes
// that follow reads of another key, or another write of their own.
func readAndWrite(r *rig, seed uint64, between func(*rocksDB)) *Figures {
	r.tb.Helper()
	s, rng := r.rocks(0), rand.New(rand.NewPCG(seed, 9))
	r.must(s.Load(int64(seed)))
	for _, o := range append(randomOps(rng, 90, 30), puts(int(seed)*20, 40, 100)...) {
		read := o.key
		if rng.IntN(5) == 0 {
			read = "key00000003"
		}
		_, _, err := s.Get(0, []byte(read))
		r.must(err)
		between(s)
		for range 1 + rng.IntN(2) {
			if o.remove {
				err = s.Delete(0, []byte(o.key))
			} else {
				err = s.Put(0, []byte(o.key), []byte(o.value))
			}
			r.must(err)
		}
	}
	r.must(s.Commit())
	return s.Figures()
}
