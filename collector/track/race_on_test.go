//go:build race

package track_test

// raced says that the race detector is on, which makes the simulator's stores a hundred
// times slower.
const raced = true
