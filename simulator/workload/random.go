package workload

import "math"

// stream is the random numbers of one row: SplitMix64 from a start that the
// row's offset names. A row is thus the same in whichever batch it is read,
// and a million rows cost no generator each.
type stream uint64

// rowStream starts the numbers of a row. The multiplier is odd, so that no two
// offsets share a start, and not the step of the stream, so that one row's numbers
// are not its neighbour's.
func rowStream(base uint64, offset int64) stream {
	return stream(mix(base + uint64(offset)*0xd1342543de82ef95))
}

// Uint64 makes it a source of math/rand/v2.
func (s *stream) Uint64() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// mix is SplitMix64's finaliser.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// uniform is in [0, 1).
func (s *stream) uniform() float64 { return unit(s.Uint64()) }

// below is uniform in [0, n); the bias of the multiplication is below n/2^53.
func (s *stream) below(n int64) int64 { return int64(s.uniform() * float64(n)) }

// unit turns 64 random bits into a number in [0, 1).
func unit(bits uint64) float64 { return float64(bits>>11) * 0x1p-53 }

// normal is standard normal, from two words of random bits (Box and Muller).
func normal(a, b uint64) float64 {
	return math.Sqrt(-2*math.Log(1-unit(a))) * math.Cos(2*math.Pi*unit(b))
}
