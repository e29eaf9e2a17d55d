package salvage

import "time"

// elapsed returns how long f takes, in nanoseconds.
func elapsed(f func()) int64 {
	start := time.Now()
	f()
	return int64(time.Since(start))
}
