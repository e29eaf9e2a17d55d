//go:build race

package proof

// raced says that the race detector is on.
const raced = true
