package record

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"github.com/stategauge/stategauge/event"
)

// columns is a set of metrics, by id.
type columns [(event.NumMetrics + 63) / 64]uint64

func (s *columns) add(id event.MetricID) { s[id/64] |= 1 << (id % 64) }

func (s *columns) has(id event.MetricID) bool { return s[id/64]&(1<<(id%64)) != 0 }

// apart are the query's metrics that do not stand in the vector's set of columns:
// each is written as its distance from something that the record holds already.
// The list is part of the format.
var apart = func() (s columns) {
	for _, id := range []event.MetricID{
		event.BatchID, event.BatchDuration, event.NumInputRows, event.InputRowsPerSecond, event.ProcessedRowsPerSecond,
		event.EventTimeMax, event.EventTimeMin, event.EventTimeAvg, event.EventTimeWatermark,
	} {
		s.add(id)
	}
	return s
}()

// Kinds of vector, the first byte of its shape.
const (
	allNatural = 'n' // every value is an integer from 0 to 2^53
	anyNumber  = 'a'
)

// maxShape bounds the bytes of a shape: 1,024 columns.
const maxShape = 1 + 128

// vector carries the present values of v but for the columns in but. It writes the
// shape, which is the kind and the set of columns present, as a word; then one bit
// for each of these columns, set where the value is not 0; then the values that
// are not 0. A query sends the same columns in every batch, and zeros in most of
// them.
func (c *codec) vector(v *event.Vector, but *columns) {
	if c.writing {
		c.putVector(v, but)
		return
	}
	c.getVector(v)
}

func (c *codec) putVector(v *event.Vector, but *columns) {
	present, kind := census(v, but)
	n := c.putShape(kind, &present)
	at, bit := len(c.buf), 0
	for range (n + 7) / 8 {
		c.buf = append(c.buf, 0)
	}
	for w, word := range present {
		for ; word != 0; word &= word - 1 {
			x := v[64*w+bits.TrailingZeros64(word)]
			if math.Float64bits(x) != 0 {
				c.buf[at+bit/8] |= 1 << (bit % 8)
				c.putValue(kind, x)
			}
			bit++
		}
	}
}

func (c *codec) putValue(kind byte, x float64) {
	if kind == allNatural {
		c.put(uint64(x))
		return
	}
	c.putNumber(x)
}

// census finds the columns that are present, and whether they are all natural.
func census(v *event.Vector, but *columns) (present columns, kind byte) {
	kind = allNatural
	for i, x := range v {
		if x != x || but != nil && but.has(event.MetricID(i)) {
			continue
		}
		present.add(event.MetricID(i))
		if kind == allNatural {
			if _, ok := natural(x); !ok {
				kind = anyNumber
			}
		}
	}
	return present, kind
}

// putShape writes a shape and returns how many columns it has.
func (c *codec) putShape(kind byte, present *columns) int {
	var buf [1 + 8*len(columns{})]byte
	buf[0] = kind
	n, used := 0, 1
	for w, word := range present {
		binary.LittleEndian.PutUint64(buf[1+8*w:], word)
		n += bits.OnesCount64(word)
		if word != 0 {
			used = 1 + 8*w + (bits.Len64(word)+7)/8
		}
	}
	c.putWord(buf[:used])
	return n
}

// putWord writes bytes that are reused afterwards as a word.
func (c *codec) putWord(b []byte) {
	if id, ok := c.d.id(string(b)); ok {
		c.put(uint64(id) - 1 + codeWord)
		return
	}
	c.put(codeInline)
	c.put(uint64(len(b)))
	c.buf = append(c.buf, b...)
}

// getVector reads a vector. Columns of a newer program's catalog are passed over.
func (c *codec) getVector(v *event.Vector) {
	v.Clear()
	var buf [maxShape]byte
	shape := c.getShape(&buf)
	if len(shape) == 0 || shape[0] != allNatural && shape[0] != anyNumber {
		c.fail(errors.New("impossible set of columns"))
		return
	}
	n := 0
	for _, b := range shape[1:] {
		n += bits.OnesCount8(b)
	}
	filled := c.next(uint64(n+7) / 8)
	bit := 0
	for i, b := range shape[1:] {
		for ; b != 0 && c.err == nil; b &= b - 1 {
			x := 0.0
			if filled[bit/8]&(1<<(bit%8)) != 0 {
				x = c.getValue(shape[0])
			}
			bit++
			if id := 8*i + bits.TrailingZeros8(b); id < event.NumMetrics {
				v[id] = x
			}
		}
	}
}

func (c *codec) getValue(kind byte) (x float64) {
	if kind == allNatural {
		return float64(c.get())
	}
	c.number(&x)
	return x
}

// getShape reads a shape into buf; nil where there is none, or a longer one.
func (c *codec) getShape(buf *[maxShape]byte) []byte {
	code := c.get()
	if code == codeInline {
		return fitting(buf, c.next(c.get()))
	}
	s, ok := c.d.text(code - codeWord + 1)
	if !ok || code < codeWord {
		c.fail(errors.New("set of columns is not in the dictionary"))
		return nil
	}
	return fitting(buf, s)
}

func fitting[T string | []byte](buf *[maxShape]byte, s T) []byte {
	if len(s) > maxShape {
		return nil
	}
	return buf[:copy(buf[:], s)]
}

// figure carries a metric that stands apart as its distance from ref. Where it is
// no whole number, its bits take the place of a whole number that is far away.
func (c *codec) figure(v *float64, ref int64) {
	if ref == event.Absent {
		ref = 0
	}
	if c.writing {
		c.putFigure(*v, ref)
		return
	}
	switch code := c.get(); code {
	case codeAbsent:
		*v = math.NaN()
	case codeFar:
		*v = math.Float64frombits(c.get64())
	default:
		*v = float64(ref + unzigzag(code-codeNear))
	}
}

func (c *codec) putFigure(v float64, ref int64) {
	n, whole := integer(v)
	z := zigzag(n - ref)
	switch {
	case v != v:
		c.put(codeAbsent)
	case !whole || z > maxNear:
		c.put(codeFar)
		c.put64(math.Float64bits(v))
	default:
		c.put(z + codeNear)
	}
}

// integer returns v as an int64 where it is a whole number that is exact, and not -0.
func integer(v float64) (int64, bool) {
	if n, ok := natural(v); ok {
		return int64(n), true
	}
	n, ok := natural(-v)
	return -int64(n), ok && n != 0
}

// whereWhole returns v as a reference for other numbers; Absent where it is none.
func whereWhole(v float64) int64 {
	if n, ok := integer(v); ok {
		return n
	}
	return event.Absent
}
