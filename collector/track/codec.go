package track

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// formVersion changes whenever what is written changes; older forms are read.
//
//	1  the first
//	2  what hand-overs leave behind; a length before each query; smaller windows
const formVersion = 2

var (
	errCut     = errors.New("cut off")
	errTooMany = errors.New("more than there is room for")
	errLeft    = errors.New("bytes too many")
)

// codec writes values to buf, or reads them from its front: one list of fields
// serves both directions. The first error sticks.
type codec struct {
	buf     []byte
	version uint8 // of the form that is read or written
	writing bool
	err     error
}

func (c *codec) u64(v *uint64) {
	if c.writing {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *v)
		return
	}
	if b := c.buf; c.take(8) {
		*v = binary.LittleEndian.Uint64(b)
	}
}

func (c *codec) int(v *int64) {
	if c.writing {
		c.buf = binary.AppendVarint(c.buf, *v)
		return
	}
	got, n := binary.Varint(c.buf)
	if c.take(n) {
		*v = got
	}
}

func (c *codec) ints(vs ...*int64) {
	for _, v := range vs {
		c.int(v)
	}
}

// take moves on by n bytes; n < 1 is an error of the varint reader.
func (c *codec) take(n int) bool {
	if n < 1 || n > len(c.buf) {
		c.fail(errCut)
		return false
	}
	c.buf = c.buf[n:]
	return c.err == nil
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.buf = nil
}

// length carries the length of a list; one that the rest cannot hold is refused.
func (c *codec) length(n *int) {
	v := int64(*n)
	if c.int(&v); !c.writing && (v < 0 || v > int64(len(c.buf))) {
		c.fail(errTooMany)
		v = 0
	}
	*n = int(v)
}

func (c *codec) str(s *string) {
	n := len(*s)
	c.length(&n)
	if c.writing {
		c.buf = append(c.buf, *s...)
		return
	}
	if *s = ""; n > 0 {
		*s = string(c.buf[:n])
		c.buf = c.buf[n:]
	}
}

func (c *codec) float(v *float64) {
	b := math.Float64bits(*v)
	c.u64(&b)
	*v = math.Float64frombits(b)
}

func (c *codec) byte(v *uint8) {
	if c.writing {
		c.buf = append(c.buf, *v)
		return
	}
	if b := c.buf; c.take(1) {
		*v = b[0]
	}
}

func (c *codec) bools(vs ...*bool) {
	for _, v := range vs {
		var b uint8
		if *v {
			b = 1
		}
		c.byte(&b)
		*v = b != 0
	}
}

func (c *codec) limit(v *uint8, most int) {
	if c.byte(v); int(*v) > most {
		c.fail(errTooMany)
		*v = 0
	}
}

func visitString[T ~string](c *codec, v *T) {
	s := string(*v)
	c.str(&s)
	*v = T(s)
}

func visitByte[T ~uint8](c *codec, v *T) {
	b := uint8(*v)
	c.byte(&b)
	*v = T(b)
}

// Words of a bitmap are mostly empty or full; those two take one byte.
const (
	wordEmpty uint8 = iota
	wordFull
	wordMixed
)

func kindOfWord(v uint64) uint8 {
	switch v {
	case 0:
		return wordEmpty
	case math.MaxUint64:
		return wordFull
	}
	return wordMixed
}

func (c *codec) words(vs []uint64) {
	for i := range vs {
		kind := kindOfWord(vs[i])
		if c.version < 2 {
			kind = wordMixed
		} else {
			c.limit(&kind, int(wordMixed))
		}
		switch kind {
		case wordEmpty:
			vs[i] = 0
		case wordFull:
			vs[i] = math.MaxUint64
		case wordMixed:
			c.u64(&vs[i])
		}
	}
}

// delta carries v as the distance to prev, and makes v the next one's prev.
func (c *codec) delta(v, prev *int64) {
	d := *v - *prev
	c.int(&d)
	*v = *prev + d
	*prev = *v
}

// sealForm begins a saved form: magic, version, then what write appends, then a
// checksum over all of it.
func sealForm(dst []byte, magic string, write func(c *codec)) []byte {
	from := len(dst)
	dst = append(dst, magic...)
	c := codec{buf: append(dst, formVersion), version: formVersion, writing: true}
	write(&c)
	return binary.LittleEndian.AppendUint32(c.buf, crc32.ChecksumIEEE(c.buf[from:]))
}

// openForm checks a saved form and returns a codec that reads its content.
func openForm(b []byte, magic, what string) (codec, error) {
	head := len(magic) + 1
	if len(b) < head+4 {
		return codec{}, errCut
	}
	end := len(b) - 4
	if string(b[:len(magic)]) != magic {
		return codec{}, fmt.Errorf("not a %s", what)
	}
	v := b[head-1]
	if v < 1 || v > formVersion {
		return codec{}, fmt.Errorf("version %d, this program reads up to %d", v, formVersion)
	}
	if binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return codec{}, errors.New("checksum does not match")
	}
	return codec{buf: b[head:end], version: v}, nil
}
