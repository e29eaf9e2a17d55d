// Package trend holds the statistics behind the rules: does a series of batches
// rise, and does its level differ from before? It is pure arithmetic over points
// that are handed in: no clock, no goroutine, no import of another package of
// this module.
//
// The figures of one batch are skewed, have heavy tails and remember the batch
// before, so nothing here trusts a mean or a variance. A detector is a cheap test
// that runs on every batch and a dear one that runs past it: Window keeps
// Mann-Kendall's S up to date with each Push, and only where S passes a gate does
// Rising fit a Theil-Sen line, set outliers aside and ask how much the series'
// memory is worth. Window judges slopes; LevelWindow compares the newest batches
// with many earlier ones, which finds a step that a slope overlooks.
//
// Both keep their points in a ring (see ring.go) which later detectors (a capped
// CUSUM, a rank-sum test, a change locator) share: a detector is a type that
// holds a ring, an options struct, and one method that returns a result with a
// Verdict.
//
// Nothing in this package is safe for concurrent use. One shard owns its windows
// and may let all of them share a Scratch.
package trend
