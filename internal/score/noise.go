package score

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// noise is how the figures of a healthy query vary beyond what its donor shows:
// fast noise with some memory, a level that wanders, outliers, a daily load, and pauses
// as of a garbage collection or of a lost executor.
// Every query draws its own kind, so that no two families of seeds share one.
type noise struct {
	r                  *rand.Rand
	cv                 float64 // spread of the fast noise
	memory             float64 // of the fast noise, from batch to batch
	sd, tau            float64 // of the wandering level: size, and batches that it takes
	outliers, size     float64 // share of batches, and how many times as slow
	daily, phase       float64 // amplitude of the load, and where in the day it peaks
	growth             float64 // durations follow the load to this power
	pauses             float64 // a day
	fast, level, spike float64
}

func newNoise(r *rand.Rand) *noise {
	between := func(a, b float64) float64 { return a + (b-a)*r.Float64() }
	return &noise{
		r: r, cv: between(0.05, 0.3), memory: between(0, 0.75), sd: between(0, 0.12), tau: between(200, 1000),
		outliers: between(0, 0.04), size: between(1.5, 4), daily: between(0, 0.5), phase: r.Float64(), growth: between(0.1, 0.7),
		pauses: between(0, mostPauses),
	}
}

const dayMs = 24 * 3600 * 1000

// A query pauses so often a day at most (pausesText says so too), and for so long.
const (
	mostPauses      = 1
	shortestPauseMs = 5000.0
	longestPauseMs  = 120_000.0
)

// pausesText says how healthy queries pause.
func pausesText() string {
	return fmt.Sprintf("Healthy queries stand still now and then, as in a garbage collection or while an executor is replaced: each once a day at most, for %g seconds to %g minutes, short pauses more often than long ones; triggers that are due meanwhile do not happen, and the next one reads more.",
		shortestPauseMs/1000, longestPauseMs/60_000)
}

// pause is for how long the next batch stands still, milliseconds; most do not. A pause of
// 5 to 10 seconds is as likely as one of 50 to 100.
func (n *noise) pause(everyMs int64) float64 {
	if n.r.Float64() >= n.pauses*float64(everyMs)/dayMs {
		return 0
	}
	return shortestPauseMs * math.Pow(longestPauseMs/shortestPauseMs, n.r.Float64())
}

// next returns the factors of one batch that starts at atMs: on times, and on the
// amount of work.
func (n *noise) next(atMs int64) (times, load float64) {
	n.fast = n.memory*n.fast + math.Sqrt(1-n.memory*n.memory)*n.r.NormFloat64()
	n.level += -n.level/n.tau + n.sd*math.Sqrt(2/n.tau)*n.r.NormFloat64()
	n.spike = 1
	if n.r.Float64() < n.outliers {
		n.spike = 1 + (n.size-1)*n.r.Float64()
	}
	load = 1 + n.daily*math.Sin(2*math.Pi*(float64(atMs%dayMs)/dayMs+n.phase))
	load *= math.Exp(0.05 * n.r.NormFloat64())
	return math.Exp(n.cv*n.fast+n.level) * n.spike * math.Pow(load, n.growth), load
}
