//go:build race

package decode

// raceEnabled says whether sync.Pool drops things at random, as it does under the
// race detector.
const raceEnabled = true
