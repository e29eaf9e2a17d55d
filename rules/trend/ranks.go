package trend

import "slices"

// rank writes the ranks of y to into, from 1, equal values sharing their mean rank,
// and leaves the order of y in s.order. O(n log n).
func (s *Scratch) rank(y, into []float64) []float64 {
	s.order = s.order[:0]
	for i := range y {
		s.order = append(s.order, int32(i))
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		switch {
		case y[a] < y[b]:
			return -1
		case y[a] > y[b]:
			return 1
		}
		return 0
	})
	into = slices.Grow(into[:0], len(y))[:len(y)]
	for i := 0; i < len(y); {
		j := i + 1
		for j < len(y) && y[s.order[j]] == y[s.order[i]] {
			j++
		}
		for _, k := range s.order[i:j] {
			into[k] = float64(i+j+1) / 2
		}
		i = j
	}
	return into
}
