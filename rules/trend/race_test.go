//go:build race

package trend

// raceDetector is true where the tests run under the race detector.
const raceDetector = true
