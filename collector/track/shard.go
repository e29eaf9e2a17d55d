package track

import "github.com/stategauge/stategauge/event"

// ShardOf returns which of n shards a query belongs to, from 0 to n-1. It depends on
// nothing but its arguments, in every build and on every machine: saved state is
// found by it. n must be positive.
func ShardOf(id event.QueryID, n int) int {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * prime
	}
	// Its low bits mix least well; small n look at nothing else.
	return int((h ^ h>>32) % uint64(n))
}
