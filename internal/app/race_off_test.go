//go:build !race

package app

// raced says whether the race detector is on.
const raced = false
