package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stategauge/stategauge/simulator/spark"
)

// again commits the newest version of a partition once more, as a second action of
// a foreachBatch function does with the same rows.
func (r *rig) again(p int, twice bool, ops ...op) *Figures {
	r.tb.Helper()
	id := r.ids[p]
	r.truth[id] = r.truth[id][:r.version(p)]
	return r.batch(p, twice, ops...)
}

// Versions are committed once, twice or three times, uploads come in between, and
// executors die: what is kept must be what the batches made.
func TestAVersionThatIsCommittedAgainIsTheSame(t *testing.T) {
	for i, v := range spark.Versions() {
		for name, conf := range variants() {
			if raceEnabled && len(name)%3 != i%3 {
				continue
			}
			t.Run(v.String()+"/"+name, func(t *testing.T) {
				r := newRig(t, v.String(), 1, conf)
				rng := rand.New(rand.NewPCG(uint64(v.Minor), 2))
				for range 24 {
					ops, twice := randomOps(rng, 60, 40), rng.IntN(2) == 0
					f := r.batch(0, twice, ops...)
					for range rng.IntN(3) {
						if rng.IntN(3) == 0 {
							_, err := r.x.Maintain()
							r.must(err)
						}
						f = r.again(0, twice, ops...)
					}
					checkFigures(t, r, 0, f)
					if rng.IntN(8) == 0 {
						r.must(r.x.Lose())
						r.start()
					}
				}
				r.checkKept()
			})
		}
	}
}

// Where each commit uploads, the tables of the second one must not be written over
// those of the first, which the checkpoint may still need.
func TestTablesOfASecondCommitHaveNamesOfTheirOwn(t *testing.T) {
	r := newRig(t, "3.5", 1, nil)
	r.batch(0, false, puts(0, 50, 20)...)
	first := r.rocks(0).tables
	r.again(0, false, puts(0, 50, 20)...)
	if len(first) == 0 || len(r.rocks(0).tables) == 0 {
		t.Fatal("nothing was uploaded")
	}
	for name, a := range first {
		if b, ok := r.rocks(0).tables[name]; ok && a.dfs == b.dfs {
			t.Errorf("table %s is %s both times", name, a.dfs)
		}
	}
}
