package trend

import "math"

// Scratch is the room that the tests work in: some 200 bytes a point of the largest
// window, and the slopes of up to 180 points: 180 KiB in all. The zero value is ready; it belongs to one
// goroutine.
type Scratch struct {
	x, y, load             []float64 // the window's points
	keptX, keptY, keptLoad []float64 // those that are no outliers
	index                  []int     // where the kept points stood
	residual, adjusted     []float64
	sorted, merge, pick    []float64
	first                  []int64 // first batch of each point, see Columns
	order                  []int32 // places by size, see rank
	ranks, ranksB, ranksC  []float64
	ranksT                 []float64
	spikes                 []int // places of outliers, see Spikes
	rows                   Rows  // the callers' own
}

// medianInPlace returns the median of v, the mean of the middle two for an even
// count, and NaN of nothing. It reorders v, in O(n).
func medianInPlace(v []float64) float64 {
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	hi := selectInPlace(v, n/2)
	if n%2 == 1 {
		return hi
	}
	return middle(largest(v[:n/2]), hi)
}

// middle is the mean of a and b without rounding where they are equal.
func middle(a, b float64) float64 { return a + (b-a)/2 }

// median returns the median of v and leaves v as it is.
func (s *Scratch) median(v []float64) float64 {
	s.pick = append(s.pick[:0], v...)
	return medianInPlace(s.pick)
}

// largest returns the largest value of v, which must not be empty.
func largest(v []float64) float64 {
	most := v[0]
	for _, x := range v[1:] {
		if x > most {
			most = x
		}
	}
	return most
}

const (
	// sortBelow is the length up to which a sort beats more parting.
	sortBelow = 6
	// ninesFrom is the length from which on a better pivot is worth nine looks.
	ninesFrom = 40
	// lopsided is the share of a range below which a part is so small that many values
	// must equal the pivot.
	lopsided = 8
)

// SelectInPlace returns the k-th smallest value of v, from 0, and puts nothing above
// it in front of it. O(n) in the mean; v must not be empty.
func SelectInPlace(v []float64, k int) float64 { return selectInPlace(v, k) }

// selectInPlace parts v round a pivot again and again (Hoare 1961). Pivots are medians
// of three or of nine, so sorted input is no trap, and nor are many equal values.
func selectInPlace(v []float64, k int) float64 {
	for len(v) > sortBelow {
		pivotToFront(v)
		pivot := v[0]
		at := part(v[1:], pivot)
		v[0], v[at] = v[at], v[0]
		switch {
		case k < at:
			v = v[:at]
			continue
		case k == at:
			return pivot
		}
		v, k = v[at+1:], k-at-1
		if at < len(v)/lopsided {
			same := partEqual(v, pivot)
			if k < same {
				return pivot
			}
			v, k = v[same:], k-same
		}
	}
	insertionSort(v)
	return v[k]
}

// part moves what lies below the pivot to the front and returns how many that are. It
// has no branch to mispredict on purpose: each comparison is the toss of a coin.
func part(v []float64, pivot float64) int {
	at := 0
	for i, x := range v {
		below := 0
		if x < pivot {
			below = 1
		}
		v[i] = v[at]
		v[at] = x
		at += below
	}
	return at
}

// partEqual moves what equals the pivot to the front and returns how many that are.
func partEqual(v []float64, pivot float64) int {
	at := 0
	for i, x := range v {
		if x == pivot {
			v[i], v[at] = v[at], x
			at++
		}
	}
	return at
}

// pivotToFront swaps a value near the middle to the front.
func pivotToFront(v []float64) {
	n := len(v)
	mid := medianPlace(v, 0, n/2, n-1)
	if n >= ninesFrom {
		step := n / 8
		mid = medianPlace(v, medianPlace(v, 0, step, 2*step), medianPlace(v, n/2-step, n/2, n/2+step),
			medianPlace(v, n-1-2*step, n-1-step, n-1))
	}
	v[0], v[mid] = v[mid], v[0]
}

// medianPlace returns which of three places holds the middle value.
func medianPlace(v []float64, a, b, c int) int {
	if v[a] > v[b] {
		a, b = b, a
	}
	if v[b] > v[c] {
		b = c
	}
	if v[a] > v[b] {
		return a
	}
	return b
}

// insertionSort sorts v and returns how many pairs stood in falling order.
func insertionSort(v []float64) int {
	moved := 0
	for i := 1; i < len(v); i++ {
		x, j := v[i], i
		for ; j > 0 && v[j-1] > x; j-- {
			v[j] = v[j-1]
		}
		v[j] = x
		moved += i - j
	}
	return moved
}

// run is the length up to which insertion beats merging.
const run = 8

// countInversions sorts v and returns how many pairs stood in falling order, in
// O(n log n).
func (s *Scratch) countInversions(v []float64) int {
	n, count := len(v), 0
	for lo := 0; lo < n; lo += run {
		count += insertionSort(v[lo:min(lo+run, n)])
	}
	if cap(s.merge) < n {
		s.merge = make([]float64, max(n, MaxPoints))
	}
	from, to := v, s.merge[:n]
	for width := run; width < n; width *= 2 {
		for lo := 0; lo < n; lo += 2 * width {
			mid, hi := min(lo+width, n), min(lo+2*width, n)
			count += mergeCount(from[lo:mid], from[mid:hi], to[lo:hi])
		}
		from, to = to, from
	}
	if n > 0 && &from[0] != &v[0] {
		copy(v, from)
	}
	return count
}

// mergeCount merges the sorted runs a and b into out and returns the number of
// pairs in which a's value is the larger. Which run gives next is the toss of a coin, so
// it is worked out without a branch.
func mergeCount(a, b, out []float64) int {
	count, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		fromB := 0
		if b[j] < a[i] {
			fromB = 1
		}
		x, y := math.Float64bits(a[i]), math.Float64bits(b[j])
		out[i+j] = math.Float64frombits(x ^ (x^y)&uint64(-fromB))
		count += (len(a) - i) & -fromB
		i += 1 - fromB
		j += fromB
	}
	copy(out[i+j:], a[i:])
	copy(out[i+j:], b[j:])
	return count
}
