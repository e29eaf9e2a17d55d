package device

import (
	"fmt"
	"math"

	"github.com/stategauge/stategauge/simulator/seed"
)

// NoiseKind is how the level of durations moves from batch to batch.
type NoiseKind uint8

// The kinds.
const (
	NoNoise   NoiseKind = iota
	Lognormal           // each batch by itself
	AR1                 // correlated from batch to batch
	HeavyTail           // each by itself, and one in some thirty far slower
	Wander              // a level that drifts away and comes back, below ordinary noise
)

var noiseNames = [...]string{"none", "lognormal", "ar1", "heavy_tail", "wander"}

// ParseNoise is the kind of a name as scenarios write it: none, lognormal, ar1,
// heavy_tail or wander.
func ParseNoise(name string) (NoiseKind, error) {
	for k, n := range noiseNames {
		if n == name {
			return NoiseKind(k), nil
		}
	}
	return 0, fmt.Errorf("noise kind %q is none of %q", name, noiseNames)
}

// Noise is how durations vary beyond the devices' own tails. The larger part is
// common to all nodes of a query, as neighbours and the network are, or it would
// average out over a cluster.
type Noise struct {
	Kind        NoiseKind
	Sigma       float64 // of the logarithm of a batch's level
	Correlation float64 // AR1: from batch to batch, 0 to below 1
	Batches     float64 // Wander: time constant
}

// DefaultNoise varies as undisturbed streaming jobs on real clusters do: the
// median absolute deviation of their batch durations is 11 to 37 % of the median,
// the 99th percentile 1.5 to 3.4 medians, with hardly any memory.
func DefaultNoise() Noise { return Noise{Kind: HeavyTail, Sigma: 0.22} }

const (
	ownShare    = 0.5     // of Sigma that each node has to itself, and the checkpoint store
	tailShare   = 0.03    // of batches that HeavyTail makes far slower
	tailIndex   = 3       // Pareto index of how much slower
	tailFrom    = 1.5     // the least of it
	tailLongest = 20      // the most
	pathLength  = 1 << 20 // batches after which a correlated path starts anew
)

// level is the noise of one stream of batches. It is a function of the batch's
// number: a path with memory is walked in order from its start and its end
// kept, so that the next batch is one step.
type level struct {
	noise Noise
	base  uint64
	batch int64 // of value, where known
	value float64
	known bool
}

func newLevel(n Noise, parts ...uint64) level {
	return level{noise: n, base: seed.Mix(parts...)}
}

// at is the factor of a batch; its median is 1.
func (l *level) at(batch int64) float64 {
	n := &l.noise
	switch n.Kind {
	case Lognormal:
		return math.Exp(n.Sigma * l.normal(batch, 0))
	case AR1:
		return math.Exp(n.Sigma * l.path(batch, n.Correlation))
	case HeavyTail:
		return math.Exp(n.Sigma*l.normal(batch, 0)) * l.outlier(batch)
	case Wander:
		return math.Exp(n.Sigma * (l.path(batch, math.Exp(-1/max(n.Batches, 1))) + l.normal(batch, 2)/2))
	}
	return 1
}

// path is a standard normal AR(1) process.
func (l *level) path(batch int64, correlation float64) float64 {
	r := min(max(correlation, 0), 0.99999)
	from := batch - batch%pathLength
	x, step := l.normal(from, 0), math.Sqrt(1-r*r)
	if l.known && l.batch >= from && l.batch <= batch {
		from, x = l.batch, l.value
	}
	for b := from + 1; b <= batch; b++ {
		x = r*x + step*l.normal(b, 0)
	}
	l.batch, l.value, l.known = batch, x, true
	return x
}

func (l *level) outlier(batch int64) float64 {
	if unit(seed.Mix(l.base, uint64(batch), 4)) >= tailShare {
		return 1
	}
	return min(pareto(unit(seed.Mix(l.base, uint64(batch), 5)), tailFrom, tailIndex), tailLongest)
}

func (l *level) normal(batch int64, which uint64) float64 {
	a := unit(seed.Mix(l.base, uint64(batch), which))
	b := unit(seed.Mix(l.base, uint64(batch), which+1))
	return math.Sqrt(-2*math.Log(1-a)) * math.Cos(2*math.Pi*b)
}

// unit turns 64 random bits into a number in [0, 1).
func unit(bits uint64) float64 { return float64(bits>>11) * 0x1p-53 }

// pareto turns a uniform number into one that is at least from.
func pareto(u, from, index float64) float64 { return from * math.Pow(1-u, -1/index) }
