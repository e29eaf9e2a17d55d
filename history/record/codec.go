package record

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/stategauge/stategauge/event"
)

var (
	errCut     = errors.New("cut off")
	errTooMany = errors.New("more than there is room for")
)

// codec writes a record to the end of buf, or reads it from its front: one list of
// fields serves both directions. Writing changes nothing but buf. The first error
// sticks; after it everything reads as zero.
type codec struct {
	buf     []byte
	d       *Dictionary
	writing bool
	err     error
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.buf = nil
}

func (c *codec) put(v uint64) {
	if v < 0x80 {
		c.buf = append(c.buf, byte(v))
		return
	}
	c.buf = binary.AppendUvarint(c.buf, v)
}

func (c *codec) get() uint64 {
	if len(c.buf) > 0 && c.buf[0] < 0x80 {
		v := c.buf[0]
		c.buf = c.buf[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 {
		c.fail(errCut)
		return 0
	}
	c.buf = c.buf[n:]
	return v
}

// next takes n bytes off the front; nil where there are fewer.
func (c *codec) next(n uint64) []byte {
	if n > uint64(len(c.buf)) {
		c.fail(errCut)
		return nil
	}
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

func (c *codec) put64(v uint64) { c.buf = binary.LittleEndian.AppendUint64(c.buf, v) }

func (c *codec) get64() uint64 {
	if b := c.next(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// bools carries up to 64 truths in one number, the likeliest ones first.
func (c *codec) bools(vs ...*bool) {
	var bits uint64
	if c.writing {
		for i, v := range vs {
			if *v {
				bits |= 1 << i
			}
		}
		c.put(bits)
		return
	}
	bits = c.get()
	for i, v := range vs {
		*v = bits&(1<<i) != 0
	}
	if bits>>len(vs) != 0 {
		c.fail(fmt.Errorf("flags %#x of %d", bits, len(vs)))
	}
}

// enum carries a value of an enumeration. One beyond those that this program knows
// is refused: whoever reads the value indexes by it.
func enum[T ~uint8](c *codec, v *T, most T) {
	if c.writing {
		c.buf = append(c.buf, byte(*v))
		return
	}
	b := c.next(1)
	if len(b) == 0 {
		*v = 0
		return
	}
	if *v = T(b[0]); *v > most {
		c.fail(fmt.Errorf("%T %d is not known", *v, b[0]))
		*v = 0
	}
}

// Codes of a whole number; codeNear and up hold its distance from what was to be
// expected.
const (
	codeAbsent = iota
	codeFar
	codeNear
)

// maxNear bounds a distance, zigzag; what is farther is written whole.
const maxNear = 1 << 62

// whole carries an int64 as its distance from ref, which must be the same in both
// directions. Absent, as value or ref, is provided for.
func (c *codec) whole(v *int64, ref int64) {
	if ref == event.Absent {
		ref = 0
	}
	if c.writing {
		c.putWhole(*v, ref)
		return
	}
	switch code := c.get(); code {
	case codeAbsent:
		*v = event.Absent
		if c.err != nil {
			*v = 0
		}
	case codeFar:
		*v = int64(c.get64())
	default:
		*v = ref + unzigzag(code-codeNear)
	}
}

func (c *codec) putWhole(v, ref int64) {
	z := zigzag(v - ref)
	switch {
	case v == event.Absent:
		c.put(codeAbsent)
	case z > maxNear:
		c.put(codeFar)
		c.put64(uint64(v))
	default:
		c.put(z + codeNear)
	}
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

// small carries an integer of any signed type.
func small[T ~int | ~int32](c *codec, v *T, ref T) {
	w := int64(*v)
	c.whole(&w, int64(ref))
	if c.writing {
		return
	}
	if *v = T(w); int64(*v) != w {
		c.fail(fmt.Errorf("%d is too large", w))
	}
}

// length carries the length of a list whose items take at least size bytes each;
// one that the rest of the record cannot hold, or beyond most, is refused.
func (c *codec) length(n, size, most int) int {
	if c.writing {
		c.put(uint64(n))
		return n
	}
	v := c.get()
	if v > uint64(len(c.buf)/size) || v > uint64(most) {
		c.fail(fmt.Errorf("list of %d: %w", v, errTooMany))
		return 0
	}
	return int(v)
}

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

// Codes of a string; codeWord and up name a word of the dictionary.
const (
	codeEmpty  = iota
	codeInline // length and bytes follow
	codeUUID   // 16 bytes follow
	codeWord   // the word of id code-codeWord+1
)

// word carries a string that many records repeat.
func word[T ~string](c *codec, v *T) {
	if !c.writing {
		readText(c, v)
		return
	}
	if *v == "" {
		c.put(codeEmpty)
		return
	}
	if id, ok := c.d.id(string(*v)); ok {
		c.put(uint64(id) - 1 + codeWord)
		return
	}
	c.inline(string(*v))
}

// text carries a string that belongs to one run or to one event: such strings
// would fill the dictionary in the long run. Ids are most of them.
func text[T ~string](c *codec, v *T) {
	if !c.writing {
		readText(c, v)
		return
	}
	if *v == "" {
		c.put(codeEmpty)
		return
	}
	c.inline(string(*v))
}

func (c *codec) inline(s string) {
	if id, ok := packUUID(s); ok {
		c.buf = append(append(c.buf, codeUUID), id[:]...)
		return
	}
	c.put(codeInline)
	c.put(uint64(len(s)))
	c.buf = append(c.buf, s...)
}

// readText reads what word and text write. A string that v holds already is kept,
// which spares an allocation where one record is read after another.
func readText[T ~string](c *codec, v *T) {
	switch code := c.get(); code {
	case codeEmpty:
		*v = ""
	case codeInline:
		keep(v, c.next(c.get()))
	case codeUUID:
		b := c.next(16)
		if len(b) < 16 {
			*v = ""
			return
		}
		s := unpackUUID(b)
		keep(v, s[:])
	default:
		s, ok := c.d.text(code - codeWord + 1)
		if !ok {
			c.fail(fmt.Errorf("word %d is not in the dictionary", code-codeWord+1))
		}
		*v = T(s)
	}
}

func keep[T ~string](v *T, b []byte) {
	if string(*v) != string(b) {
		*v = T(b)
	}
}

// packUUID returns the bytes of a UUID in its usual form: lower case, four hyphens.
func packUUID(s string) (id [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	n := 0
	for i := 0; i < len(s); {
		if s[i] == '-' && (i == 8 || i == 13 || i == 18 || i == 23) {
			i++
			continue
		}
		hi, lo := nibble(s[i]), nibble(s[i+1])
		if hi|lo > 15 {
			return id, false
		}
		id[n], n, i = hi<<4|lo, n+1, i+2
	}
	return id, true
}

func nibble(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return b - '0'
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10
	}
	return 0xff
}

func unpackUUID(b []byte) (s [36]byte) {
	hex.Encode(s[:8], b[:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:], b[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return s
}
