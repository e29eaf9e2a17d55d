package spark

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/stategauge/stategauge/event"
)

// appendRate appends a rate in the notation of version v: up to 4.0 as Java
// prints a double, from 4.1 on with one decimal. f is finite.
func appendRate(dst []byte, f float64, v event.Version) []byte {
	if v.Less(V41) {
		return appendJavaDouble(dst, f)
	}
	return appendTenths(dst, f)
}

// appendJavaDouble writes what Double.toString does: decimals from 0.001 to
// below ten million, otherwise the computer's scientific notation.
func appendJavaDouble(dst []byte, f float64) []byte {
	if a := math.Abs(f); f != 0 && (a < 1e-3 || a >= 1e7) {
		return appendScientific(dst, f)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	for _, c := range dst[n:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// appendScientific turns Go's 5.4e-04 and 1e+07 into Java's 5.4E-4 and 1.0E7.
func appendScientific(dst []byte, f float64) []byte {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	e := len(text) - 1
	for text[e] != 'e' {
		e--
	}
	mantissa, exponent := text[:e], text[e+1:]
	dst = append(dst, mantissa...)
	if mantissa[len(mantissa)-1] != '.' && !hasPoint(mantissa) {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'E')
	if exponent[0] == '-' {
		dst = append(dst, '-')
	}
	exponent = exponent[1:]
	for len(exponent) > 1 && exponent[0] == '0' {
		exponent = exponent[1:]
	}
	return append(dst, exponent...)
}

func hasPoint(text []byte) bool {
	for _, c := range text {
		if c == '.' {
			return true
		}
	}
	return false
}

// appendTenths rounds the decimal form of f to one digit, halves away from
// zero, as BigDecimal does: 0.25 is 0.3, though the nearest double to 0.35 is
// below it.
func appendTenths(dst []byte, f float64) []byte {
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	point := len(dst)
	for i := n; i < len(dst); i++ {
		if dst[i] == '.' {
			point = i
			break
		}
	}
	if point == len(dst) {
		return append(dst, ".0"...)
	}
	if point+2 >= len(dst) {
		return dst
	}
	up := dst[point+2] >= '5'
	dst = dst[:point+2]
	if up {
		dst = carry(dst, n)
	}
	if dst[n] == '-' && zero(dst[n+1:]) {
		dst = append(dst[:n], dst[n+1:]...)
	}
	return dst
}

// carry adds one to the last digit of the number that starts at dst[n].
func carry(dst []byte, n int) []byte {
	i := len(dst) - 1
	for ; i >= n && dst[i] != '-'; i-- {
		if dst[i] == '.' {
			continue
		}
		if dst[i] != '9' {
			dst[i]++
			return dst
		}
		dst[i] = '0'
	}
	dst = append(dst, 0)
	copy(dst[i+2:], dst[i+1:])
	dst[i+1] = '1'
	return dst
}

func zero(digits []byte) bool {
	for _, c := range digits {
		if c != '0' && c != '.' {
			return false
		}
	}
	return true
}

const hexDigits = "0123456789ABCDEF"

// appendString appends a quoted string as Jackson does.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			dst = append(dst, c)
			continue
		}
		if c < utf8.RuneSelf {
			dst = appendEscape(dst, c)
			continue
		}
		r, width := utf8.DecodeRuneInString(s[i:])
		dst = utf8.AppendRune(dst, r)
		i += width - 1
	}
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendNullable appends a string, or null for an empty one.
func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}
