package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// treeModel is what a heapTree should hold.
type treeModel map[string]string

func contentOf(t *heapTree) treeModel {
	m := treeModel{}
	t.scan(nil, nil, func(r heapRow) bool {
		m[string(r.key())] = string(r.value())
		return true
	})
	return m
}

func TestForksOfATreeKeepTheirOwnRows(t *testing.T) {
	for _, keys := range []int{20, 500, 5000} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(keys), 1))
			tree, want := heapTree{}, treeModel{}
			olds, wants := []heapTree{}, []treeModel{}
			for gen := uint32(1); gen <= 30; gen++ {
				tree = tree.fork(gen)
				changeTree(t, rng, &tree, want, keys)
				checkNodes(t, tree.root, nil, nil, true)
				olds, wants = append(olds, tree), append(wants, maps.Clone(want))
			}
			for i := range olds {
				if !maps.Equal(contentOf(&olds[i]), wants[i]) {
					t.Fatalf("generation %d has changed after later ones were written", i+1)
				}
			}
		})
	}
}

// changeTree makes random changes to a tree and its model and compares what
// each returns. Some generations grow, others shrink to next to nothing.
func changeTree(t *testing.T, rng *rand.Rand, tree *heapTree, want treeModel, keys int) {
	t.Helper()
	removals := []int{10, 50, 95}[rng.IntN(3)]
	for range keys {
		k := fmt.Sprintf("key%05d", rng.IntN(keys))
		old, had := want[k]
		var r heapRow
		if rng.IntN(100) < removals {
			r = tree.remove([]byte(k))
			delete(want, k)
		} else {
			v := fmt.Sprint(rng.IntN(1000))
			r = tree.put([]byte(k), []byte(v))
			want[k] = v
		}
		if (r != nil) != had || had && string(r.value()) != old {
			t.Fatalf("change of %s returned %q, before it was %q (%v)", k, r, old, had)
		}
	}
}

// checkNodes fails on a tree that is out of order, has nodes too large or empty,
// or leaves at different depths. It returns the depth.
func checkNodes(t *testing.T, n *heapNode, from, to []byte, root bool) int {
	t.Helper()
	if n == nil {
		return 0
	}
	if n.size() > fan || n.size() == 0 && !root {
		t.Fatalf("a node holds %d", n.size())
	}
	for i, r := range n.rows {
		if from != nil && bytes.Compare(r.key(), from) < 0 || to != nil && bytes.Compare(r.key(), to) >= 0 ||
			i > 0 && bytes.Compare(n.rows[i-1].key(), r.key()) >= 0 {
			t.Fatalf("key %q is out of order between %q and %q", r.key(), from, to)
		}
	}
	depth := 0
	for i, kid := range n.kids {
		low, high := from, to
		if i > 0 {
			low = n.seps[i]
		}
		if i+1 < len(n.kids) {
			high = n.seps[i+1]
		}
		d := checkNodes(t, kid, low, high, false)
		if i > 0 && d != depth {
			t.Fatalf("leaves at depths %d and %d", d, depth)
		}
		depth = d
	}
	return depth + 1
}

func TestScanOfATreeIsInOrderAndWithinBounds(t *testing.T) {
	tree := heapTree{gen: 1}
	var keys []string
	rng := rand.New(rand.NewPCG(5, 6))
	for _, i := range rng.Perm(1000) {
		k := fmt.Sprintf("%04d", i*2)
		keys = append(keys, k)
		tree.put([]byte(k), nil)
	}
	slices.Sort(keys)
	for range 300 {
		from, to := fmt.Sprintf("%04d", rng.IntN(2100)), fmt.Sprintf("%04d", rng.IntN(2100))
		var got, want []string
		tree.scan([]byte(from), []byte(to), func(r heapRow) bool {
			got = append(got, string(r.key()))
			return true
		})
		for _, k := range keys {
			if k >= from && k < to {
				want = append(want, k)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("scan of [%s, %s) visits %d keys, want %d", from, to, len(got), len(want))
		}
	}
}

func TestScanOfATreeStopsWhenTold(t *testing.T) {
	tree := heapTree{gen: 1}
	for i := range 500 {
		tree.put(fmt.Appendf(nil, "%03d", i), nil)
	}
	seen := 0
	tree.scan(nil, nil, func(heapRow) bool { seen++; return seen < 77 })
	if seen != 77 {
		t.Errorf("visited %d rows, want 77", seen)
	}
}

func TestRemovingWhatIsNotThereCopiesNothing(t *testing.T) {
	tree := heapTree{gen: 1}
	for i := range 500 {
		tree.put(fmt.Appendf(nil, "%03d", i), nil)
	}
	next := tree.fork(2)
	if next.remove([]byte("x")) != nil || next.root != tree.root {
		t.Error("a removal without effect has copied the path to it")
	}
}

// A batch's cost: reads and writes on a copy of a large state. The peer does
// what Spark does, a Go map copied entry by entry.
func BenchmarkHeapBatchVersusCopiedMap(b *testing.B) {
	const rows, ops = 100_000, 1000
	keys := make([][]byte, rows)
	tree, plain := heapTree{gen: 1}, make(map[string][]byte, rows)
	value := make([]byte, 100)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%016x", uint64(i)*0x9e3779b97f4a7c15)
		tree.put(keys[i], value)
		plain[string(keys[i])] = value
	}
	var ours, peer stopwatch
	gen := uint32(1)
	for b.Loop() {
		ours.run(func() {
			gen++
			tree = tree.fork(gen)
			for i := range ops {
				k := keys[(int(gen)*ops+i*97)%rows]
				tree.get(k)
				tree.put(k, value)
			}
		})
		peer.run(func() {
			plain = maps.Clone(plain)
			for i := range ops {
				k := keys[(int(gen)*ops+i*97)%rows]
				_ = plain[string(k)]
				plain[string(k)] = bytes.Clone(value)
			}
		})
	}
	b.ReportMetric(ours.seconds()/peer.seconds(), "x_peer")
	b.ReportMetric(float64(b.N*ops)/ours.seconds(), "puts/s")
}

// What eviction does: visiting all rows in order. The peer is a Go map, which
// has no order.
func BenchmarkHeapScanVersusMapRange(b *testing.B) {
	const rows = 100_000
	tree, plain := heapTree{gen: 1}, make(map[string][]byte, rows)
	for i := range rows {
		k := fmt.Appendf(nil, "%016x", uint64(i)*0x9e3779b97f4a7c15)
		tree.put(k, k)
		plain[string(k)] = k
	}
	var ours, peer stopwatch
	sum := 0
	for b.Loop() {
		ours.run(func() {
			tree.scan(nil, nil, func(r heapRow) bool { sum += len(r.value()); return true })
		})
		peer.run(func() {
			for _, v := range plain {
				sum += len(v)
			}
		})
	}
	b.ReportMetric(ours.seconds()/peer.seconds(), "x_peer")
	b.ReportMetric(float64(b.N*rows)/ours.seconds(), "rows/s")
}
