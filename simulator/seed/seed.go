// Package seed gives every part of a simulation its own stream of random
// numbers, so that what one part draws does not depend on the order in which
// others run: the reason why a run is the same on one core and on many.
package seed

import "math/rand/v2"

// Mix folds parts into one number that changes wholly with any of them
// (SplitMix64's finaliser over a running sum).
func Mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h += p + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// New returns the generator that parts name: the scenario's seed first, then
// what it is for, e.g. query, operator, partition, batch.
func New(parts ...uint64) *rand.Rand {
	h := Mix(parts...)
	return rand.New(rand.NewPCG(h, Mix(h, 1)))
}

// What a stream is for: the second part of its name.
const (
	ForDevice uint64 = iota + 1
	ForWorkload
	ForRows
	ForIDs
	ForFaults
	ForPlacement
	ForCopies
	ForNoise
	ForStores
	ForDriver
)
