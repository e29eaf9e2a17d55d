package decode

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// number reads a figure in any of its forms: a number, a number in quotes, or
// something that stands for none, which comes back as NaN.
func (c *cursor) number(s slot) float64 {
	f, end := parseFloat(c.b, c.i)
	if end == c.i {
		return c.oddNumber(s)
	}
	if c.rec != nil {
		c.rec.add(s, c.i, end)
	}
	c.i = end
	return finite(f)
}

// oddNumber reads a figure that is no plain number.
func (c *cursor) oddNumber(s slot) float64 {
	lo, hi, ok := c.quoted()
	if !ok {
		return nan
	}
	f, end := parseFloat(c.b[:hi], lo)
	if end == lo || end != hi {
		return nan
	}
	if c.rec != nil {
		c.rec.add(s, lo, hi)
	}
	return finite(f)
}

// integer reads a whole number in any of its forms, event.Absent where there is none.
func (c *cursor) integer(s slot) int64 {
	n, end := parseInt(c.b, c.i)
	if end == c.i {
		return c.oddInteger(s)
	}
	if c.rec != nil {
		c.rec.add(s, c.i, end)
	}
	c.i = end
	return n
}

func (c *cursor) oddInteger(s slot) int64 {
	lo, hi, ok := c.quoted()
	if !ok {
		return event.Absent
	}
	n, end := parseInt(c.b[:hi], lo)
	if end == lo || end != hi {
		return event.Absent
	}
	if c.rec != nil {
		c.rec.add(s, lo, hi)
	}
	return n
}

// quoted reads a string whose raw text is its text and returns its bounds. Any
// other value is passed over.
func (c *cursor) quoted() (lo, hi int, ok bool) {
	if c.peek() != '"' {
		c.skip()
		return 0, 0, false
	}
	lo, hi, plain := c.scanString()
	if !plain || c.failed() {
		return 0, 0, false
	}
	return lo, hi, true
}

// time reads a time as Unix milliseconds, event.Absent where there is none.
func (c *cursor) time(s slot) int64 {
	if c.peek() != '"' {
		c.rec.giveUp()
		return c.integer(slot{kind: slotNumber})
	}
	lo, hi, plain := c.scanString()
	if !plain {
		return event.Absent
	}
	ms := parseTime(c.b[lo:hi])
	if c.rec != nil && ms != event.Absent {
		if _, ok := parseISO(c.b[lo:hi]); !ok || hi-lo != isoLength {
			c.rec.giveUp()
		}
		c.rec.add(s, lo, hi)
	}
	return ms
}

// text reads a string, empty for null and for any other value. It is valid until
// the next string is read.
func (c *cursor) text() []byte {
	if c.peek() != '"' {
		c.skip()
		return nil
	}
	return c.str()
}

// flag reads a boolean, false for any other value.
func (c *cursor) flag() bool {
	yes := c.peek() == 't'
	c.skip()
	return yes && !c.failed()
}

// setWhole stores a whole number as a figure.
func setWhole(v *float64, n int64) {
	if n == event.Absent {
		*v = math.NaN()
		return
	}
	*v = float64(n)
}
