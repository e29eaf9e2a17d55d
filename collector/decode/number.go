package decode

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/stategauge/stategauge/event"
)

var nan = math.NaN()

// exactDigits is how many decimal digits always fit an int64.
const exactDigits = 18

// pow10 holds the powers of ten that a float64 represents exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// parseDigits reads decimal digits at b[i:] and returns them as a number with the
// index behind them. Where there are none, or more than exactDigits, the number
// means nothing.
func parseDigits(b []byte, i int) (u uint64, end int) {
	if len(b)-i >= 16 {
		w := binary.LittleEndian.Uint64(b[i:]) ^ ones*'0'
		n := countDigits(w)
		u = sumDigits(w, n)
		if n < 8 {
			return u, i + n
		}
		w = binary.LittleEndian.Uint64(b[i+8:]) ^ ones*'0'
		if n = countDigits(w); n == 0 {
			return u, i + 8
		}
		if n < 8 {
			return u*tens[n] + sumDigits(w, n), i + 8 + n
		}
		u = 0
	}
	for end = i; end < len(b); end++ {
		d := b[end] - '0'
		if d > 9 {
			break
		}
		u = u*10 + uint64(d)
	}
	return u, end
}

var tens = [8]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7}

// countDigits counts the bytes below 10 at the start of a word, whose first byte
// is the lowest.
func countDigits(w uint64) int {
	return bits.TrailingZeros64((w+ones*(0x80-10)|w)&highs) >> 3
}

// sumDigits reads the first n bytes of a word, which are below 10, as a decimal
// number; n is 1 to 8. It shifts them against the high end, so that zeros lead
// them, and adds neighbours up in three steps.
func sumDigits(w uint64, n int) uint64 {
	const pairs = 0x000000ff000000ff
	w <<= -uint(n) * 8 & 63
	w = w*10 + w>>8
	return ((w&pairs)*(100+1000000<<32) + (w>>16&pairs)*(1+10000<<32)) >> 32
}

// parseFloat reads the JSON number at b[i:] and returns it with the index behind
// it; an end equal to i means that there is none. The value is the nearest
// float64; numbers out of range come back infinite.
func parseFloat(b []byte, i int) (f float64, end int) {
	n := i
	if n < len(b) && b[n] == '-' {
		n++
	}
	u, j := parseDigits(b, n)
	digits := j - n
	if digits == 0 || (digits > 1 && b[n] == '0') {
		return 0, i
	}
	if digits > exactDigits || (j < len(b) && (b[j] == '.' || b[j]|0x20 == 'e')) {
		return parseFraction(b, i, j, u, digits)
	}
	f = float64(int64(u))
	if n != i {
		f = -f
	}
	return f, j
}

// parseFraction goes on where parseFloat has read the integer digits of the
// number at b[start:], up to i.
func parseFraction(b []byte, start, i int, u uint64, digits int) (f float64, end int) {
	exp := 0
	if i < len(b) && b[i] == '.' {
		from := i + 1
		for i = from; i < len(b) && b[i]-'0' <= 9; i++ {
			u = u*10 + uint64(b[i]-'0')
		}
		if i == from {
			return 0, start
		}
		exp = from - i
		digits += i - from
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		e, after := parseExponent(b, i+1)
		if after == i+1 {
			return 0, start
		}
		i, exp = after, exp+e
	}
	// The product or quotient of two exact numbers is rounded once, so it is the
	// nearest; everything else is the library's business.
	if digits <= exactDigits && u <= 1<<53 && exp >= -22 && exp <= 22 {
		f = float64(int64(u))
		if exp < 0 {
			f /= pow10[-exp]
		} else {
			f *= pow10[exp]
		}
		if b[start] == '-' {
			f = -f
		}
		return f, i
	}
	f, err := strconv.ParseFloat(string(b[start:i]), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, start
	}
	return f, i
}

// parseExponent reads sign and digits of an exponent; end equal to i means that
// there is none. The value saturates.
func parseExponent(b []byte, i int) (e, end int) {
	j, neg := i, false
	if j < len(b) && (b[j] == '+' || b[j] == '-') {
		neg = b[j] == '-'
		j++
	}
	first := j
	for ; j < len(b) && b[j]-'0' <= 9; j++ {
		if e < 1<<20 {
			e = e*10 + int(b[j]-'0')
		}
	}
	if j == first {
		return 0, i
	}
	if neg {
		e = -e
	}
	return e, j
}

// parseInt reads the JSON number at b[i:] as an integer. A number that is no
// integer, or none that an int64 holds, gives event.Absent; end equal to i means
// that there is no number at all.
func parseInt(b []byte, i int) (v int64, end int) {
	n := i
	if n < len(b) && b[n] == '-' {
		n++
	}
	u, j := parseDigits(b, n)
	v = int64(u)
	digits := j - n
	plain := j >= len(b) || (b[j] != '.' && b[j]|0x20 != 'e')
	if digits == 0 || digits > exactDigits || !plain || (digits > 1 && b[n] == '0') {
		return parseOddInt(b, i)
	}
	if n != i {
		v = -v
	}
	return v, j
}

// parseOddInt takes the integers that are written with a fraction, an exponent or
// more digits than usual.
func parseOddInt(b []byte, i int) (v int64, end int) {
	f, end := parseFloat(b, i)
	if end == i {
		return event.Absent, i
	}
	if n, err := strconv.ParseInt(string(b[i:end]), 10, 64); err == nil {
		return n, end
	}
	return integral(f), end
}

// integral returns f as an int64, event.Absent where it is not one.
func integral(f float64) int64 {
	if f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return event.Absent
	}
	return int64(f)
}

// finite turns what is not finite into absent.
func finite(f float64) float64 {
	if f-f != 0 {
		return nan
	}
	return f
}
