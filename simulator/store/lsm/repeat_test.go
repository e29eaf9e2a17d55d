package lsm

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// play runs a seeded workload of some 200 flushes over three stores that share a
// cache, and returns all that can be seen of it, line by line.
func play(t *testing.T, seed uint64, commits int) string {
	t.Helper()
	var seen strings.Builder
	mem, shared := vfs.NewMem(), NewShared(600<<10)
	defer shared.Close()
	var stores []*DB
	for i := range 3 {
		d, err := Open(Options{
			FS: mem, Dir: fmt.Sprint("store", i), Shared: shared,
			MemtableBytes: []int64{16 << 10, 100 << 10, 300 << 10}[i], Uncharged: i > 0,
		})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, d)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for commit := range commits {
		if commit%50 == 49 {
			shared.SetCapacity(int64(200+rng.IntN(600)) << 10)
		}
		for i, d := range stores {
			playCommit(t, rng, d, commit)
			group := d.End()
			fmt.Fprintf(&seen, "%d/%d %+v %+v %+v used %d\n", commit, i, group, d.Stats(), d.Debt(), shared.UsedBytes())
			fmt.Fprintln(&seen, listing(t, mem, d.dir))
			if commit%10 == 9 {
				dir := fmt.Sprintf("cp%d-%d", i, commit)
				fmt.Fprintln(&seen, must[[]File](t)(d.Checkpoint(dir)), hashes(t, mem, dir))
			}
		}
	}
	for _, d := range stores {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return seen.String()
}

// playCommit does a batch of work on one store, between Begin and End.
func playCommit(t *testing.T, rng *rand.Rand, d *DB, commit int) {
	t.Helper()
	d.Begin()
	from := rng.IntN(3000)
	fill(t, d, rng, from, from+rng.IntN(300), 20+rng.IntN(100))
	for range 50 {
		if err := d.Delete(row(rng.IntN(3000))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Get(row(rng.IntN(3000))); err != nil {
			t.Fatal(err)
		}
	}
	visits := rng.IntN(500)
	if err := d.Scan(row(from), nil, func(_, _ []byte) bool { visits--; return visits > 0 }); err != nil {
		t.Fatal(err)
	}
	d.PauseCompaction(commit%30 > 20)
	if rng.IntN(40) == 0 {
		must[Flushed](t)(d.Compact())
		return
	}
	must[Flushed](t)(d.Flush())
}

// hashes is over the bytes of each file of a directory but the manifest, which
// holds times.
func hashes(t *testing.T, fs vfs.FS, dir string) (sums []string) {
	t.Helper()
	for _, name := range listing(t, fs, dir) {
		if strings.HasPrefix(name, "MANIFEST") {
			continue
		}
		sum := sha256.New()
		f := must[vfs.File](t)(fs.Open(fs.PathJoin(dir, name)))
		must[int64](t)(io.Copy(sum, f))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%s:%x", name, sum.Sum(nil)[:8]))
	}
	return sums
}

func TestSameCallsGiveTheSameTreesCountsAndFiles(t *testing.T) {
	commits := 70 // and some three flushes for each
	if testing.Short() || raceEnabled {
		commits = 15
	}
	first := play(t, 5, commits)
	if !strings.Contains(first, "Misses:") || first == play(t, 6, commits) {
		t.Fatal("what is compared does not depend on the work")
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		if again := play(t, 5, commits); again != first {
			t.Errorf("on %d cores: %s", procs, firstDifference(first, again))
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i, x[i], y[i])
		}
	}
	return "one is longer"
}
