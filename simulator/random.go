package simulator

import (
	"math"
	"math/rand/v2"
	"time"
)

// rng draws the driver's durations.
type rng struct{ *rand.Rand }

// about draws a duration round a median, log-normal.
func (r *rng) about(median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
}

// between draws a duration from low to high.
func (r *rng) between(low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}
