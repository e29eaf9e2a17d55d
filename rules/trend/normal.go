package trend

import "math"

// ConfidenceZ returns the one-sided standard normal quantile of p: 0.99 gives
// 2.33 and 0.999 gives 3.09. It returns NaN unless 0 < p < 1.
func ConfidenceZ(p float64) float64 {
	if !(p > 0 && p < 1) {
		return math.NaN()
	}
	return -math.Sqrt2 * math.Erfcinv(2*p)
}
