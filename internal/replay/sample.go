package replay

import (
	"math"
	"slices"
)

// sampleLimit bounds the values that a sample keeps.
const sampleLimit = 16384

// sample sums up a figure over any number of batches in bounded memory. Up to
// sampleLimit values quantiles are exact; beyond, every second, fourth, ... value
// stands for its neighbours.
type sample struct {
	values []float64
	stride int // one value in stride is kept
	n      int
	sum    float64
	max    float64
	first  float64
	last   float64
}

// add takes a value; NaN is no value.
func (s *sample) add(v float64) {
	if math.IsNaN(v) {
		return
	}
	if s.n == 0 {
		s.first, s.max, s.stride = v, v, 1
	}
	s.max = max(s.max, v)
	s.last = v
	s.sum += v
	if s.n%s.stride == 0 {
		s.keep(v)
	}
	s.n++
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

// mean returns the mean, NaN without values.
func (s *sample) mean() float64 {
	if s.n == 0 {
		return math.NaN()
	}
	return s.sum / float64(s.n)
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
