package trend

import (
	"math"
	"slices"
)

// Scratch is the room that the tests work in: some 200 bytes a point of the largest
// window, 50 KiB at 240 points. The zero value is ready; it belongs to one
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
	return middle(slices.Max(v[:n/2]), hi)
}

// middle is the mean of a and b without rounding where they are equal.
func middle(a, b float64) float64 { return a + (b-a)/2 }

// median returns the median of v and leaves v as it is.
func (s *Scratch) median(v []float64) float64 {
	s.pick = append(s.pick[:0], v...)
	return medianInPlace(s.pick)
}

// selectInPlace returns the k-th smallest value of v, from 0, and puts nothing
// above it in front of it. Pivots are medians of three, so sorted input is no
// trap (Hoare 1961).
func selectInPlace(v []float64, k int) float64 {
	lo, hi := 0, len(v)-1
	for hi > lo {
		if hi-lo < 12 {
			insertionSort(v[lo : hi+1])
			break
		}
		left, right := partition(v, lo, hi)
		switch {
		case k <= right:
			hi = right
		case k >= left:
			lo = left
		default:
			return v[k]
		}
	}
	return v[k]
}

// partition splits v[lo..hi] so that v[..right] <= pivot <= v[left..].
func partition(v []float64, lo, hi int) (left, right int) {
	pivot := medianOfThree(v[lo], v[(lo+hi)/2], v[hi])
	left, right = lo, hi
	for left <= right {
		for v[left] < pivot {
			left++
		}
		for v[right] > pivot {
			right--
		}
		if left <= right {
			v[left], v[right] = v[right], v[left]
			left++
			right--
		}
	}
	return left, right
}

func medianOfThree(a, b, c float64) float64 {
	return max(min(a, b), min(max(a, b), c))
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
// pairs in which a's value is the larger.
func mergeCount(a, b, out []float64) int {
	count, i, j := 0, 0, 0
	for k := range out {
		if j == len(b) || i < len(a) && a[i] <= b[j] {
			out[k] = a[i]
			i++
			continue
		}
		out[k] = b[j]
		j++
		count += len(a) - i
	}
	return count
}
