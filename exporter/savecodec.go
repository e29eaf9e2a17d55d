package exporter

import (
	"encoding/binary"
	"errors"
	"math"
)

var (
	errCut     = errors.New("cut off")
	errTooMany = errors.New("more than there is room for")
	errLeft    = errors.New("bytes too many")
)

// saver writes values to buf, or reads them from its front, so that one list of
// fields serves both directions. The first error sticks. Writing only reads what it
// is pointed to: pages are made of the same values meanwhile.
type saver struct {
	buf     []byte
	writing bool
	err     error
}

func (c *saver) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.buf = nil
}

// take moves on by n bytes; n < 1 is an error of the varint reader.
func (c *saver) take(n int) bool {
	if n < 1 || n > len(c.buf) {
		c.fail(errCut)
		return false
	}
	c.buf = c.buf[n:]
	return c.err == nil
}

func (c *saver) int(v *int64) {
	if c.writing {
		c.buf = binary.AppendVarint(c.buf, *v)
		return
	}
	if got, n := binary.Varint(c.buf); c.take(n) {
		*v = got
	}
}

func (c *saver) ints(vs ...*int64) {
	for _, v := range vs {
		c.int(v)
	}
}

func (c *saver) uint(v *uint64) {
	if c.writing {
		c.buf = binary.AppendUvarint(c.buf, *v)
		return
	}
	if got, n := binary.Uvarint(c.buf); c.take(n) {
		*v = got
	}
}

func (c *saver) byte(v *uint8) {
	if c.writing {
		c.buf = append(c.buf, *v)
		return
	}
	if b := c.buf; c.take(1) {
		*v = b[0]
	}
}

func (c *saver) bools(vs ...*bool) {
	for _, v := range vs {
		var b uint8
		if *v {
			b = 1
		}
		if c.byte(&b); !c.writing {
			*v = b != 0
		}
	}
}

// length carries the length of a list of at most so many, none of which takes less
// than a byte.
func (c *saver) length(n *int, most int) {
	v := uint64(*n)
	if c.uint(&v); !c.writing && (v > uint64(len(c.buf)) || v > uint64(most)) {
		c.fail(errTooMany)
		v = 0
	}
	*n = int(v)
}

// maxText bounds every text that is read; labels are cut far below it.
const maxText = 1 << 16

func (c *saver) str(s *string) {
	n := len(*s)
	c.length(&n, maxText)
	if c.writing {
		c.buf = append(c.buf, *s...)
		return
	}
	if *s = ""; n > 0 {
		*s = string(c.buf[:n])
		c.buf = c.buf[n:]
	}
}

// Forms of a number: most are whole.
const (
	formAbsent uint8 = iota
	formWhole
	formFloat
)

func formOfNumber(v float64) uint8 {
	switch {
	case v != v:
		return formAbsent
	case v == math.Trunc(v) && math.Abs(v) <= 1<<53 && !(v == 0 && math.Signbit(v)):
		return formWhole
	}
	return formFloat
}

// form carries a number whose form is known already.
func (c *saver) form(form uint8, v *float64) {
	switch form {
	case formAbsent:
		if !c.writing {
			*v = absent
		}
	case formWhole:
		whole := int64(0)
		if c.writing {
			whole = int64(*v)
		}
		if c.int(&whole); !c.writing {
			*v = float64(whole)
		}
	case formFloat:
		c.bits(v)
	default:
		c.fail(errors.New("a number of an unknown form"))
	}
}

func (c *saver) bits(v *float64) {
	if c.writing {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*v))
		return
	}
	if b := c.buf; c.take(8) {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

// number carries a number behind its form.
func (c *saver) number(v *float64) {
	form := formOfNumber(*v)
	c.byte(&form)
	c.form(form, v)
}

func saveString[T ~string](c *saver, v *T) {
	s := string(*v)
	if c.str(&s); !c.writing {
		*v = T(s)
	}
}

func saveTri(c *saver, vs ...*tri) {
	for _, v := range vs {
		b := uint8(*v)
		if c.byte(&b); b > uint8(on) {
			c.fail(errors.New("a setting that is neither on nor off"))
			b = uint8(unknown)
		}
		if !c.writing {
			*v = tri(b)
		}
	}
}
