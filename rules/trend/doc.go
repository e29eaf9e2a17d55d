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
// Both keep a ring of points of their own. Columns keep those of many series that
// share their batches, in a tenth of the room, and judge any of them over any span on
// demand; Series hands its points to the tests that take slices: CUSUM and Baseline,
// RankSum, Locate, Spikes and Periodicity, PartialRank and Elasticity, TimeToLimit.
// Each says in its comment where it comes from, what it costs, what it mistakes and
// how often, measured; the tests named after an error table print those figures.
//
// Nothing in this package is safe for concurrent use. One shard owns its windows
// and may let all of them share a Scratch.
package trend
