//go:build !race

package replay

// raceEnabled says that the race detector is on, under which a scenario takes
// twenty times as long.
const raceEnabled = false
