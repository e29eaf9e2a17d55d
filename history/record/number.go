package record

import (
	"errors"
	"fmt"
	"math"
)

// Kinds of number, in the low two bits of a number's code.
const (
	numberWhole    = iota // the rest of the code is the value
	numberNegative        // the rest is the value without its sign
	numberDecimal         // the rest is 10^n times the value, zigzag; n follows in a byte
	numberOther           // NaN, or eight raw bytes follow: see below
)

const (
	codeNaN = 0<<2 | numberOther
	codeRaw = 1<<2 | numberOther
)

// exact bounds the integers that a float64 holds without gaps.
const exact = 1 << 53

// number carries a float64 of any value. Every NaN reads back as the same one.
func (c *codec) number(v *float64) {
	if c.writing {
		c.putNumber(*v)
		return
	}
	code := c.get()
	switch n := code >> 2; code & 3 {
	case numberWhole:
		*v = float64(n)
	case numberNegative:
		*v = -float64(n)
	case numberDecimal:
		e := c.next(1)
		if len(e) == 0 || int(e[0]) >= len(powers) {
			c.fail(errors.New("impossible decimal"))
			return
		}
		*v = float64(unzigzag(n)) / powers[e[0]]
	default:
		*v = c.other(code)
	}
}

func (c *codec) other(code uint64) float64 {
	if code == codeRaw {
		return math.Float64frombits(c.get64())
	}
	if code != codeNaN {
		c.fail(fmt.Errorf("number of kind %d is not known", code))
	}
	return math.NaN()
}

var powers = [...]float64{1, 10, 100, 1e3, 1e4, 1e5, 1e6}

func (c *codec) putNumber(v float64) {
	if n, ok := natural(v); ok {
		c.put(n << 2) // numberWhole
		return
	}
	if n, ok := natural(-v); ok && n != 0 { // -0 has no integer of its own
		c.put(n<<2 | numberNegative)
		return
	}
	if v != v {
		c.put(codeNaN)
		return
	}
	if m, e, ok := decimal(v); ok {
		c.put(zigzag(m)<<2 | numberDecimal)
		c.buf = append(c.buf, e)
		return
	}
	c.put(codeRaw)
	c.put64(math.Float64bits(v))
}

// natural returns v as an integer where it is one from 0 to 2^53, and not -0.
func natural(v float64) (uint64, bool) {
	if !(v >= 0 && v < exact) {
		return 0, false
	}
	n := uint64(v)
	return n, float64(n) == v && !(n == 0 && math.Signbit(v))
}

// decimal finds m and e such that m / 10^e is v to the last bit.
func decimal(v float64) (m int64, e byte, ok bool) {
	for e := 1; e < len(powers); e++ {
		x := math.Round(v * powers[e])
		if !(math.Abs(x) < exact) {
			return 0, 0, false
		}
		if x/powers[e] == v && x != 0 {
			return int64(x), byte(e), true
		}
	}
	return 0, 0, false
}
