//go:build !race

package trend

const raceDetector = false
