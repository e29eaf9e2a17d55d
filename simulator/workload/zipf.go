package workload

import "math"

// zipf draws ranks from 0 to n-1 with probability proportional to
// (rank+1)^-exponent, for any exponent above 0 (math/rand/v2's needs more than
// 1). It is the rejection-inversion of Hörmann and Derflinger (1996): the
// integral of the law, cut into unit columns, is inverted, and the few draws in
// the corners of a column are tried again. No table, so the key space may grow
// from second to second.
type zipf struct {
	n        float64
	exponent float64
	low      float64 // integral at the left end of the first column's accepted part
	high     float64 // integral at the right end of the last column
	sure     float64 // a draw this near to its column's middle needs no test
}

func newZipf(n int64, exponent float64) zipf {
	z := zipf{n: float64(n), exponent: exponent}
	z.low = z.integral(1.5) - 1
	z.high = z.integral(z.n + 0.5)
	z.sure = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

func (z *zipf) rank(s *stream) int64 {
	for {
		u := z.high + s.uniform()*(z.low-z.high)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.sure || u >= z.integral(k+0.5)-z.density(k) {
			return int64(k) - 1
		}
	}
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
