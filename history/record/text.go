package record

import (
	"encoding/hex"
	"fmt"
)

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
