package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// arithmeticOnly skips a long table under the race detector: one goroutine computes
// it, so that there is nothing to detect, and it would take ten times as long.
func arithmeticOnly(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("a table of figures, made by one goroutine")
	}
}

// noise makes healthy series around a level of 1 from a fixed seed. The recipes
// are those that figures in the doc comments speak of.
type noise struct {
	rng    *rand.Rand
	state  float64
	wander float64
	i      int
	next   func(n *noise) float64
}

func newNoise(seed uint64, next func(n *noise) float64) *noise {
	return &noise{rng: rand.New(rand.NewPCG(seed, 77)), next: next}
}

func (n *noise) value() float64 { n.i++; return n.next(n) }

// ar returns the next value of an autoregression with unit variance.
func (n *noise) ar(r float64) float64 {
	n.state = r*n.state + math.Sqrt(1-r*r)*n.rng.NormFloat64()
	return n.state
}

// slow returns the next value of a level that wanders with deviation sd and time
// constant tau batches.
func (n *noise) slow(sd, tau float64) float64 {
	r := math.Exp(-1 / tau)
	n.wander = r*n.wander + math.Sqrt(1-r*r)*n.rng.NormFloat64()
	return sd * n.wander
}

// iidNoise varies by a quarter and puts out 3 % outliers of three to eight times.
func iidNoise(n *noise) float64 {
	v := math.Exp(0.25 * n.rng.NormFloat64())
	if n.rng.Float64() < 0.03 {
		v *= 3 + 5*n.rng.Float64()
	}
	return v
}

func arNoise(n *noise) float64 { return math.Exp(0.25 * n.ar(0.6)) }

// spikyNoise remembers as well, and every tenth batch takes five times as long.
func spikyNoise(n *noise) float64 {
	v := arNoise(n)
	if n.i%10 == 0 {
		v *= 5
	}
	return v
}

func wanderNoise(n *noise) float64 {
	return math.Exp(n.slow(0.10, 500)) * math.Exp(0.25*n.ar(0.15))
}

func wilderNoise(n *noise) float64 {
	return math.Exp(n.slow(0.20, 1000)) * math.Exp(0.25*n.ar(0.15))
}

// episodes counts how often found holds for hold batches in a row; an episode
// ends after 40 clear batches.
type episodes struct {
	hold, streak, clear, count int
	open                       bool
}

func (e *episodes) see(found bool) {
	if !found {
		e.streak = 0
		if e.clear++; e.clear >= 40 {
			e.open = false
		}
		return
	}
	e.clear = 0
	if e.streak++; e.streak >= e.hold && !e.open {
		e.open = true
		e.count++
	}
}
