//go:build !race

package record

// raced says that the race detector is on, which makes everything ten times slower.
const raced = false
