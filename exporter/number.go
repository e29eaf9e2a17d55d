package exporter

import (
	"math"
	"strconv"
)

// scale turns Spark's raw numbers into exported ones. Dividing by a power of ten
// rather than multiplying by its inverse gives the double nearest to the decimal
// value, so that the text page, which shifts the decimal point of the raw
// number, and the protobuf page, which divides, say the same.
type scale struct {
	div    float64
	digits int // div is 10^digits; -1 where it is no power of ten
}

// scaleOf returns the scale for a catalog factor such as 1e-3.
func scaleOf(factor float64) scale {
	inv := math.Round(1 / factor)
	if inv < 1 {
		return scale{div: 1 / factor, digits: -1}
	}
	digits := int(math.Round(math.Log10(inv)))
	if math.Pow10(digits) != inv {
		digits = -1
	}
	return scale{div: inv, digits: digits}
}

// exactLimit bounds the integers that take the fast path: up to 15 digits a
// decimal number and the double nearest to it determine each other.
const exactLimit = 1e15

// of returns the exported value of raw.
func (s scale) of(raw float64) float64 { return raw / s.div }

// append appends the exported value of raw as text.
func (s scale) append(b []byte, raw float64) []byte {
	k := int64(raw)
	if float64(k) != raw || raw <= -exactLimit || raw >= exactLimit || s.digits < 0 {
		return strconv.AppendFloat(b, raw/s.div, 'g', -1, 64)
	}
	if s.digits == 0 || k == 0 {
		return strconv.AppendInt(b, k, 10)
	}
	return appendDecimal(b, k, s.digits)
}

// appendDecimal appends k / 10^digits in plain notation without trailing zeros.
func appendDecimal(b []byte, k int64, digits int) []byte {
	if k < 0 {
		b = append(b, '-')
		k = -k
	}
	pow := int64(1)
	for range digits {
		pow *= 10
	}
	b = strconv.AppendInt(b, k/pow, 10)
	frac := k % pow
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for frac != 0 {
		pow /= 10
		b = append(b, byte('0'+frac/pow))
		frac %= pow
	}
	return b
}
