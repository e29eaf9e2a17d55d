package replay

import (
	"math"
	"slices"
)

// tally sums up a figure over any number of batches in constant memory.
type tally struct {
	n           int
	sum, max    float64
	first, last float64
}

// add takes a value; NaN is no value. It returns whether it was one.
func (t *tally) add(v float64) bool {
	if math.IsNaN(v) {
		return false
	}
	if t.n == 0 {
		t.first, t.max = v, v
	}
	t.max = max(t.max, v)
	t.last = v
	t.sum += v
	t.n++
	return true
}

// mean returns the mean, NaN without values.
func (t *tally) mean() float64 {
	if t.n == 0 {
		return math.NaN()
	}
	return t.sum / float64(t.n)
}

// sampleLimit bounds the values that a sample keeps.
const sampleLimit = 4096

// sample is a tally that also knows quantiles, in bounded memory: up to sampleLimit
// values they are exact; beyond, every second, fourth, ... value stands for its
// neighbours.
type sample struct {
	tally
	values []float64
	stride int // one value in stride is kept
}

// add takes a value; NaN is no value.
func (s *sample) add(v float64) {
	if !s.tally.add(v) {
		return
	}
	s.stride = max(s.stride, 1)
	if (s.n-1)%s.stride == 0 {
		s.keep(v)
	}
}

func (s *sample) keep(v float64) {
	if len(s.values) == sampleLimit {
		for i := range sampleLimit / 2 {
			s.values[i] = s.values[2*i]
		}
		s.values = s.values[:sampleLimit/2]
		s.stride *= 2
	}
	s.values = append(s.values, v)
}

// quantile returns the value below which the share q lies, NaN without values.
func (s *sample) quantile(q float64) float64 {
	if len(s.values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(s.values)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// third returns the mean of the first or last third of the values in order.
func (s *sample) third(last bool) float64 {
	n := len(s.values) / 3
	if n == 0 {
		return math.NaN()
	}
	part := s.values[:n]
	if last {
		part = s.values[len(s.values)-n:]
	}
	sum := 0.0
	for _, v := range part {
		sum += v
	}
	return sum / float64(n)
}

// spread returns the sample scaled for the report, nil without values.
func (s *sample) spread(scale float64) *Spread {
	if s.n == 0 {
		return nil
	}
	return &Spread{
		Count: s.n, Mean: s.mean() * scale, Median: s.quantile(0.5) * scale,
		P95: s.quantile(0.95) * scale, Max: s.max * scale, Last: s.last * scale,
	}
}
