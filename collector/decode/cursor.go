package decode

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/stategauge/stategauge/collector"
)

// SyntaxError says where a piece of input stopped making sense and what would
// have done so there. It is formatted only when somebody reads it.
type SyntaxError struct {
	Offset int    // bytes from the start of the body
	Line   int    // counted from 1
	Want   string // what was expected, or what is wrong
	Found  string // the byte found there; empty where there is none or where it does not matter
}

// Error names the place in bytes and lines.
func (e *SyntaxError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("byte %d (line %d): %s", e.Offset, e.Line, e.Want)
	}
	return fmt.Sprintf("byte %d (line %d): %s, found %+q", e.Offset, e.Line, e.Want, e.Found)
}

// fault is why a cursor stopped; the zero value means that it has not.
type fault struct {
	reason collector.Reason
	off    int
	want   string
}

// cursor reads JSON from b. The first fault sticks and moves the cursor to the
// end, so that every loop over it comes to its own end without asking.
type cursor struct {
	b     []byte
	i     int
	depth int
	keys  int
	lim   *Limits
	fault fault
	rec   *recorder // what the shape cache learns from; nil when it does not
	buf   []byte    // unescaped text of the string read last
}

// reset points the cursor at b[i:end].
func (c *cursor) reset(b []byte, i, end int) {
	c.b, c.i = b[:end], i
	c.depth, c.keys = 0, 0
	c.fault = fault{}
}

// fail records what was expected at the cursor, unless something failed before.
func (c *cursor) fail(want string) {
	reason := collector.ReasonSyntax
	if c.i >= len(c.b) {
		reason = collector.ReasonTruncated
	}
	c.refuse(reason, want)
}

// refuse records a fault of the given reason, unless something failed before.
func (c *cursor) refuse(reason collector.Reason, want string) {
	if c.fault.reason == "" {
		c.fault = fault{reason, c.i, want}
	}
	c.i = len(c.b)
}

func (c *cursor) failed() bool { return c.fault.reason != "" }

// peek skips blanks and returns the byte behind them, 0 at the end.
func (c *cursor) peek() byte {
	for c.i < len(c.b) {
		ch := c.b[c.i]
		if ch > ' ' || !isBlank(ch) {
			return ch
		}
		c.i++
	}
	return 0
}

func isBlank(ch byte) bool { return ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r' }

// enter consumes the bracket at the cursor and goes one level down.
func (c *cursor) enter() {
	c.i++
	c.depth++
	if c.depth > c.lim.Depth {
		c.i--
		c.refuse(collector.ReasonDepth, "nested too deeply")
	}
}

// member goes to the value of the next member of an object and returns its key;
// more is false behind the last one. The key is valid until the next string is read.
func (c *cursor) member(first bool) (key []byte, more bool) {
	// The usual case, without blanks: a comma and a quote.
	if first || c.i+1 >= len(c.b) || c.b[c.i] != ',' || c.b[c.i+1] != '"' {
		if !c.toKey(first) {
			return nil, false
		}
	} else {
		c.i++
	}
	c.keys++
	if c.keys > c.lim.KeysPerEvent {
		c.refuse(collector.ReasonTooMany, "too many keys in one event")
		return nil, false
	}
	key = c.str()
	if c.i < len(c.b) && c.b[c.i] == ':' {
		c.i++
	} else {
		c.colon()
	}
	if c.peek() == 0 {
		c.fail("expected a value")
		return nil, false
	}
	return key, true
}

// toKey moves to the opening quote of the next key, or out of the object.
func (c *cursor) toKey(first bool) bool {
	ch := c.peek()
	if ch == '}' {
		c.leave()
		return false
	}
	if !first {
		if ch != ',' {
			c.fail("expected ',' or '}'")
			return false
		}
		c.i++
		ch = c.peek()
	}
	if ch != '"' {
		c.fail("expected a key in double quotes")
		return false
	}
	return true
}

func (c *cursor) leave() {
	c.i++
	c.depth--
}

func (c *cursor) colon() {
	if c.peek() != ':' {
		c.fail("expected ':'")
		return
	}
	c.i++
}

// element goes to the next element of an array; more is false behind the last one.
func (c *cursor) element(first bool) (more bool) {
	ch := c.peek()
	if ch == ']' {
		c.leave()
		return false
	}
	if !first {
		if ch != ',' {
			c.fail("expected ',' or ']'")
			return false
		}
		c.i++
		ch = c.peek()
	}
	if ch == 0 {
		c.fail("expected a value")
		return false
	}
	return true
}

// str reads the string at the cursor and returns its text, unescaped and
// repaired. The text is valid until the next string is read.
func (c *cursor) str() []byte {
	lo, hi, plain := c.scanString()
	if plain {
		return c.b[lo:hi]
	}
	c.buf = appendUnescaped(c.buf[:0], c.b[lo:hi])
	return c.buf
}

const (
	ones    = 0x0101010101010101
	highs   = 0x8080808080808080
	quotes  = ones * '"'
	slashes = ones * '\\'
	blanks  = ones * ' '
)

// special marks, with the high bit of each byte, the bytes of a little-endian
// word that a string scan must look at: quotes, backslashes, control characters
// and everything outside ASCII. Marks above the lowest one may be wrong.
func special(w uint64) uint64 {
	q, s := w^quotes, w^slashes
	return ((q-ones)&^q | (s-ones)&^s | (w-blanks)&^w | w) & highs
}

// scanString passes over the string whose quote is at the cursor and returns the
// bounds of its raw text; plain means that the raw text is the text. A line break
// in a string is refused: it is the mark of a line cut short.
func (c *cursor) scanString() (lo, hi int, plain bool) {
	b, i := c.b, c.i+1
	lo, plain = i, true
	for {
		for i+8 <= len(b) {
			if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			break
		}
		switch ch := b[i]; {
		case ch == '"':
			c.i = i + 1
			return lo, i, plain
		case ch == '\\':
			plain = false
			n := escapeLen(b[i:])
			if n == 0 {
				c.i = i
				c.fail("expected a valid escape in a string")
				return 0, 0, true
			}
			i += n
		case ch == '\n' || ch == '\r':
			c.i = i
			c.refuse(collector.ReasonTruncated, "expected the closing quote before the end of the line")
			return 0, 0, true
		default:
			plain = plain && ch >= ' ' && ch < 0x80
			i++
		}
	}
	c.i = len(b)
	c.fail("expected the closing quote of a string")
	return 0, 0, true
}

// skip passes over the value at the cursor, whatever it is, and checks it.
func (c *cursor) skip() {
	switch ch := c.peek(); {
	case ch == '{':
		c.enter()
		for first := true; ; first = false {
			if _, more := c.member(first); !more {
				return
			}
			c.skip()
		}
	case ch == '[':
		c.enter()
		for first := true; c.element(first); first = false {
			c.skip()
		}
	case ch == '"':
		c.skipString()
	default:
		c.skipScalar()
	}
}

// skipString passes over a string whose text does not matter.
func (c *cursor) skipString() {
	from := c.i
	c.scanString()
	if c.rec != nil {
		c.rec.add(slot{kind: slotString}, from, c.i)
	}
}

func (c *cursor) skipScalar() {
	if c.word() {
		return
	}
	_, end := parseFloat(c.b, c.i)
	if end == c.i {
		c.fail("expected a value")
		return
	}
	if c.rec != nil {
		c.rec.add(slot{kind: slotNumber}, c.i, end)
	}
	c.i = end
}

// words are the literals that may stand for a value. The last three are no JSON,
// but Python's encoder writes them.
var words = [...]string{"null", "true", "false", "NaN", "Infinity", "-Infinity"}

// word passes over one of the words, if the cursor is at one.
func (c *cursor) word() bool {
	rest := c.b[c.i:]
	for _, w := range words {
		if len(rest) >= len(w) && string(rest[:len(w)]) == w {
			c.i += len(w)
			return true
		}
	}
	return false
}
