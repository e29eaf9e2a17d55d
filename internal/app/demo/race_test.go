//go:build race

package demo

// raced says that the race detector is on: a whole play takes minutes then.
const raced = true
