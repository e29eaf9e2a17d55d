//go:build race

package rules

// raceEnabled is true where the tests run under the race detector.
const raceEnabled = true
