package workload

import (
	"math"
	"math/bits"
)

// headBits is how many of the commonest ranks, as a power of two, have a table.
const headBits = 12

// zipf draws ranks from 0 to n-1 with probability proportional to
// (rank+1)^-exponent, for any exponent above 0 (math/rand/v2's needs more than
// 1). The commonest ranks come from an alias table, which does not depend on n;
// the rest by the rejection-inversion of Hörmann and Derflinger (1996): the
// integral of the law, cut into unit columns, is inverted, and the few draws in
// the corners of a column are tried again. So the key space may be of any size and
// grow from second to second.
type zipf struct {
	exponent float64
	heads    [headBits + 1]*alias // by the binary logarithm of their size, made when needed
	n        int64
	head     *alias  // the table that is drawn from
	inHead   float64 // probability of it; 1 where it holds all ranks
	low      float64 // integral at the left end of the first column's accepted part
	high     float64 // integral at the right end of the last column
	sure     float64 // a draw this near to its column's middle needs no test
}

func newZipf(n int64, exponent float64) zipf {
	z := zipf{exponent: exponent}
	z.resize(n)
	return z
}

// resize changes the number of ranks, which is 1 at least.
func (z *zipf) resize(n int64) {
	z.n = n
	size := min(bits.Len64(uint64(n-1)), headBits)
	if z.heads[size] == nil {
		z.heads[size] = newAlias(1<<size, z.density)
	}
	z.head, z.inHead = z.heads[size], 1
	if n <= 1<<headBits {
		return
	}
	first := float64(1<<headBits + 1)
	z.inHead = z.head.sum / (z.head.sum + z.mass(first, float64(n)))
	z.low = z.integral(first+0.5) - z.density(first)
	z.high = z.integral(float64(n) + 0.5)
	z.sure = first + 1 - z.inverse(z.integral(first+1.5)-z.density(first+1))
}

func (z *zipf) rank(s *stream) int64 {
	for z.inHead == 1 || s.uniform() < z.inHead {
		// The table of fewer ranks than its size has up to as many to be passed over.
		if r := z.head.draw(s.Uint64()); r < z.n {
			return r
		}
	}
	return z.rare(s)
}

// rare draws a rank beyond the table.
func (z *zipf) rare(s *stream) int64 {
	for {
		u := z.high + s.uniform()*(z.low-z.high)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1<<headBits+1), float64(z.n))
		if k-x <= z.sure || u >= z.integral(k+0.5)-z.density(k) {
			return int64(k) - 1
		}
	}
}

// mass is the sum of density over whole numbers, by Euler and Maclaurin's
// formula; so far from 1 its first terms are exact to the last digits.
func (z *zipf) mass(from, to float64) float64 {
	slope := func(x float64) float64 { return -z.exponent * z.density(x) / x }
	return z.integral(to) - z.integral(from) + (z.density(from)+z.density(to))/2 + (slope(to)-slope(from))/12
}

// density is x^-exponent.
func (z *zipf) density(x float64) float64 { return math.Exp(-z.exponent * math.Log(x)) }

// integral is that of density from 1 to x, in a form that passes through
// exponent 1, where it is the logarithm.
func (z *zipf) integral(x float64) float64 {
	l := math.Log(x)
	t := (1 - z.exponent) * l
	if math.Abs(t) < 1e-8 {
		return l * (1 + t/2)
	}
	return l * math.Expm1(t) / t
}

// inverse is that of integral.
func (z *zipf) inverse(v float64) float64 {
	t := max((1-z.exponent)*v, -1)
	if math.Abs(t) < 1e-8 {
		return math.Exp(v * (1 - t/2))
	}
	return math.Exp(v * math.Log1p(t) / t)
}

// alias draws one of a power of two of ranks by Walker's method: each slot holds
// its own rank up to a threshold and one other beyond it.
type alias struct {
	slots []slot
	shift uint    // that leaves the bits of a slot's number
	sum   float64 // of the weights
}

type slot struct {
	below uint32 // in 2^-32 of the slot
	other uint32
}

// newAlias weighs rank r by weight(r+1).
func newAlias(size int, weight func(float64) float64) *alias {
	a := &alias{slots: make([]slot, size), shift: uint(64 - bits.Len(uint(size-1)))}
	share := make([]float64, size)
	for r := range share {
		share[r] = weight(float64(r + 1))
		a.sum += share[r]
	}
	for r := range share {
		share[r] *= float64(size) / a.sum
	}
	a.pair(share)
	return a
}

// pair fills up each slot that has less than its share from one that has more.
// Shares fall with the rank: the poorest is always last, the richest first.
func (a *alias) pair(share []float64) {
	rich := 0
	for poor := len(share) - 1; poor >= 0; poor-- {
		for rich < poor && share[rich] < 1 {
			a.slots[rich] = slot{part(share[rich]), uint32(rich + 1)}
			share[rich+1] -= 1 - share[rich]
			rich++
		}
		if poor < rich {
			return
		}
		a.slots[poor] = slot{part(share[poor]), uint32(rich)}
		share[rich] -= max(1-share[poor], 0)
	}
}

// part is a share of a slot in units of 2^-32.
func part(share float64) uint32 {
	return uint32(min(max(share, 0)*0x1p32, math.MaxUint32))
}

// draw turns 64 random bits into a rank: the upper ones choose the slot, the
// lower the side of it.
func (a *alias) draw(random uint64) int64 {
	r := int64(random >> a.shift)
	s := &a.slots[r]
	if side := uint32(random); side < s.below {
		return r
	}
	return int64(s.other)
}
