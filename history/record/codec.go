package record

import (
	"encoding/binary"
	"errors"
	"fmt"

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
