package track

import (
	"math"
	"slices"
)

// memory is how many of the newest distances and batches rhythm is learned from.
const memory = 32

// spacing keeps the newest distances between a query's events, milliseconds.
type spacing struct {
	ring [memory]float32
	n    uint8 // filled
	next uint8
}

func (s *spacing) add(ms int64) {
	if ms <= 0 {
		return
	}
	s.ring[s.next] = float32(ms)
	s.next = (s.next + 1) % memory
	s.n = min(s.n+1, memory)
}

func (s *spacing) reset() { *s = spacing{} }

// median and longest return NaN and 0 while nothing is known.
func (s *spacing) median() float64 { return median32(s.ring[:s.n]) }

func (s *spacing) longest() float64 {
	m := float32(0)
	for _, v := range s.ring[:s.n] {
		m = max(m, v)
	}
	return float64(m)
}

func median32(v []float32) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	var tmp [memory]float32
	s := tmp[:copy(tmp[:], v)]
	slices.Sort(s)
	return float64(s[len(s)/2])
}

// starts keeps when the newest runs began, Unix milliseconds.
type starts struct {
	at [8]int64
	n  uint8
}

func (s *starts) add(at int64) {
	if s.n > 0 && at <= s.at[s.n-1] {
		return
	}
	if int(s.n) == len(s.at) {
		copy(s.at[:], s.at[1:])
		s.n--
	}
	s.at[s.n] = at
	s.n++
}

// usual returns the usual distance between runs in milliseconds; NaN before
// three of them.
func (s *starts) usual() float64 {
	if s.n < 3 {
		return math.NaN()
	}
	var d [7]int64
	v := d[:0]
	for i := 1; i < int(s.n); i++ {
		v = append(v, s.at[i]-s.at[i-1])
	}
	slices.Sort(v)
	return float64(v[len(v)/2])
}
