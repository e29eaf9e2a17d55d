package rules

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math"
	"math/bits"

	"github.com/klauspost/compress/s2"
)

var (
	errShort = errors.New("it ends too early")
	errLong  = errors.New("something is left behind its end")
)

// codec carries state to a saved form or from it; see trend.Carrier. Strings stand once
// each in a list before everything else, so that parts can be passed over.
type codec struct {
	buf     []byte // written so far, or still to be read
	writing bool
	err     error
	strings []string
	places  map[string]int // of strings, while writing
}

// Writing is true on the way to the saved form.
func (c *codec) Writing() bool { return c.writing }

// OK reports whether nothing failed yet.
func (c *codec) OK() bool { return c.err == nil }

// Fail notes what cannot be; the first one counts.
func (c *codec) Fail(format string, args ...any) {
	if c.err == nil && !c.writing {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *codec) short() {
	if c.err == nil {
		c.err = errShort
	}
	c.buf = nil
}

func (c *codec) unsigned(x *uint64) {
	if c.writing {
		c.buf = binary.AppendUvarint(c.buf, *x)
		return
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 || c.err != nil {
		*x = 0
		c.short()
		return
	}
	*x, c.buf = v, c.buf[n:]
}

// Int carries a whole number.
func (c *codec) Int(x *int64) {
	u := uint64(*x<<1) ^ uint64(*x>>63)
	if c.unsigned(&u); !c.writing {
		*x = int64(u>>1) ^ -int64(u&1)
	}
}

// ints carries several.
func (c *codec) ints(xs ...*int64) {
	for _, x := range xs {
		c.Int(x)
	}
}

// Count carries a number between 0 and most.
func (c *codec) Count(n *int, most int) {
	u := uint64(*n)
	c.unsigned(&u)
	if c.writing {
		return
	}
	if u > uint64(most) {
		c.Fail("%d where at most %d can be", u, most)
		u = 0
	}
	*n = int(u)
}

// counts carries several numbers that are not below 0.
func (c *codec) counts(xs ...*int) {
	for _, x := range xs {
		c.Count(x, math.MaxInt)
	}
}

// items carries the length of a list whose items take a byte each at least.
func (c *codec) items(n *int) {
	c.Count(n, math.MaxInt)
	if !c.writing && *n > len(c.buf) {
		*n = 0
		c.short()
	}
}

// Bool carries a truth.
func (c *codec) Bool(x *bool) {
	n := 0
	if *x {
		n = 1
	}
	c.Count(&n, 1)
	*x = n == 1
}

func (c *codec) bools(xs ...*bool) {
	for _, x := range xs {
		c.Bool(x)
	}
}

// small carries a value of an enumeration.
func small[T ~uint8](c *codec, x *T, most T) {
	n := int(*x)
	c.Count(&n, int(most))
	*x = T(n)
}

// notANumber stands for NaN, of which there are many; all else is moved up by one.
const notANumber = 1

// Float carries a number exactly. Its bits are turned round, so that whole numbers and
// short fractions, which have few, take few bytes.
func (c *codec) Float(x *float64) {
	u := bits.ReverseBytes64(math.Float64bits(*x))
	switch {
	case *x != *x:
		u = notANumber
	case u >= notANumber:
		u++
	}
	if c.unsigned(&u); c.writing {
		return
	}
	switch {
	case u == notANumber:
		*x = math.NaN()
		return
	case u > notANumber:
		u--
	}
	*x = math.Float64frombits(bits.ReverseBytes64(u))
}

func (c *codec) floats(xs ...*float64) {
	for _, x := range xs {
		c.Float(x)
	}
}

// Singles carries values of four bytes each.
func (c *codec) Singles(v []float32) {
	if c.writing {
		for _, x := range v {
			c.buf = binary.LittleEndian.AppendUint32(c.buf, math.Float32bits(x))
		}
		return
	}
	if len(c.buf) < 4*len(v) {
		c.short()
		return
	}
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(c.buf[4*i:]))
		if math.IsInf(float64(v[i]), 0) {
			v[i] = float32(math.NaN())
		}
	}
	c.buf = c.buf[4*len(v):]
}

// str carries a string by its place in the list.
func (c *codec) str(s *string) {
	at := 0
	if c.writing {
		var known bool
		if at, known = c.places[*s]; !known {
			at = len(c.strings)
			c.strings, c.places[*s] = append(c.strings, *s), at
		}
	}
	c.Count(&at, max(len(c.strings)-1, 0))
	if c.writing {
		return
	}
	if *s = ""; at < len(c.strings) {
		*s = c.strings[at]
	}
}

// text carries a string of any type.
func text[T ~string](c *codec, x *T) {
	s := string(*x)
	c.str(&s)
	*x = T(s)
}

// fixed carries a hash.
func (c *codec) fixed(x *uint64) {
	if c.writing {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *x)
		return
	}
	if len(c.buf) < 8 {
		c.short()
		return
	}
	*x, c.buf = binary.LittleEndian.Uint64(c.buf), c.buf[8:]
}

// part carries what a reader may pass over: skip says so, once it is known what comes.
func (c *codec) part(skip bool, carry func(*codec)) {
	if c.writing {
		at := len(c.buf)
		c.buf = append(c.buf, 0, 0, 0, 0)
		carry(c)
		binary.LittleEndian.PutUint32(c.buf[at:], uint32(len(c.buf)-at-4))
		return
	}
	if len(c.buf) < 4 {
		c.short()
		return
	}
	n := uint64(binary.LittleEndian.Uint32(c.buf))
	if c.buf = c.buf[4:]; n > uint64(len(c.buf)) {
		c.short()
		return
	}
	all := c.buf
	if c.buf = all[:n]; !skip && c.err == nil {
		if carry(c); c.err == nil && len(c.buf) > 0 {
			c.err = errLong
		}
	}
	c.buf = all[n:]
}

// hashOf names a text in eight bytes.
func hashOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, t := range texts {
		_, _ = h.Write([]byte(t)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

const (
	// savedMagic begins every saved form; savedVersion is its layout, to be raised with
	// any change of what a visit carries or of the sizes of windows.
	savedMagic   = "sgrules"
	savedVersion = 1
)

// What a saved form is of.
const (
	savedQuery byte = 'q'
	savedRest  byte = 'r'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends a saved form to dst: magic, kind and version, then, compressed, the strings
// and what carry writes, and a checksum of all that.
func seal(dst []byte, kind byte, carry func(*codec)) []byte {
	body := codec{writing: true, places: map[string]int{}}
	carry(&body)
	n := len(body.strings)
	plain := codec{writing: true}
	plain.items(&n)
	for _, s := range body.strings {
		size := len(s)
		plain.items(&size)
		plain.buf = append(plain.buf, s...)
	}
	return pack(dst, kind, append(plain.buf, body.buf...))
}

// pack appends plain content as a saved form. Rules look at the same figures, so that
// much of it stands there twice: S2 finds that, and takes a third away.
func pack(dst []byte, kind byte, plain []byte) []byte {
	from := len(dst)
	dst = append(append(dst, savedMagic...), kind)
	dst = binary.AppendUvarint(dst, savedVersion)
	dst = append(dst, s2.EncodeBetter(nil, plain)...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

// maxPlain bounds what a saved form may unfold to: no query is a hundredth as large.
const maxPlain = 64 << 20

// unseal opens a saved form of a kind.
func unseal(data []byte, kind byte) (*codec, error) {
	head := len(savedMagic) + 1
	if len(data) < head+4 || string(data[:len(savedMagic)]) != savedMagic {
		return nil, errors.New("it is no saved state of rules")
	}
	if data[head-1] != kind {
		return nil, fmt.Errorf("it is of kind %q, not %q", data[head-1], kind)
	}
	c := &codec{buf: data[head : len(data)-4]}
	version := uint64(0)
	if c.unsigned(&version); version > savedVersion {
		return nil, fmt.Errorf("its version is %d, newer than %d, the newest that is known", version, savedVersion)
	}
	if binary.LittleEndian.Uint32(data[len(data)-4:]) != crc32.Checksum(data[:len(data)-4], castagnoli) {
		return nil, errors.New("its checksum is wrong")
	}
	if version != savedVersion {
		return nil, fmt.Errorf("its version is %d, and only %d is known", version, savedVersion)
	}
	if n, err := s2.DecodedLen(c.buf); err == nil && n > maxPlain {
		return nil, fmt.Errorf("its content has %d bytes, more than the %d allowed", n, maxPlain)
	}
	plain, err := s2.Decode(nil, c.buf)
	if err != nil {
		return nil, fmt.Errorf("its content cannot be unfolded: %w", err)
	}
	c.buf = plain
	c.readStrings()
	return c, c.err
}

func (c *codec) readStrings() {
	n := 0
	for c.items(&n); n > 0 && c.err == nil; n-- {
		size := 0
		if c.items(&size); c.err == nil {
			c.strings, c.buf = append(c.strings, string(c.buf[:size])), c.buf[size:]
		}
	}
}

// end reports what is wrong with all that was read.
func (c *codec) end() error {
	if c.err == nil && len(c.buf) > 0 {
		c.err = errLong
	}
	return c.err
}
