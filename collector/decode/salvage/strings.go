package salvage

import (
	"fmt"
	"unicode/utf8"

	"github.com/stategauge/stategauge/collector"
)

// startString reads a quoted string that begins at pos.
func (p *parser) startString(line []byte, pos int, quote byte) (int, bool) {
	r, ok := p.place()
	if !ok {
		return pos, false
	}
	p.str = openString{quote: quote, role: r, start: len(p.out)}
	p.out = append(p.out, '"')
	return p.scanString(line, pos+1)
}

// place decides what a string at this place is and prepares the output for it.
func (p *parser) place() (role, bool) {
	f := p.top()
	if f.kind != '{' || f.want == wantValue {
		return roleValue, p.beginValue()
	}
	switch f.want {
	case wantKey:
		if f.n > 0 {
			p.out = append(p.out, ',')
		}
		return roleKey, true
	case wantMore:
		if !p.valueStr && !p.newline && !p.lenient() {
			return 0, false
		}
		p.next, p.nextBreak = len(p.out), p.newline
		p.out = append(p.out, ',')
		return roleNext, true
	}
	return 0, false
}

// scanString copies the string's text up to its closing quote. At the line's end
// the string stays open if the line looks wrapped.
func (p *parser) scanString(line []byte, pos int) (int, bool) {
	resumed := p.str.open
	for pos < len(line) && len(p.out) <= p.lim.TextBytes {
		n := plainRun(line[pos:], p.str.quote)
		p.out = append(p.out, line[pos:pos+n]...)
		pos += n
		if pos == len(line) {
			break
		}
		c := line[pos]
		switch {
		case c == p.str.quote:
			p.str.open, p.str.fresh = false, resumed
			p.out = append(p.out, '"')
			p.endString()
			return pos + 1, true
		case c == '\\' && pos+1 == len(line):
			return p.unclosed(line)
		case c == '\\':
			pos = p.escape(line, pos)
		case c == '"':
			p.out = append(p.out, '\\', '"')
			pos++
		default:
			p.out = appendControl(p.out, c)
			pos++
		}
	}
	if len(line) < wrapWidth || !p.seen.any() || len(p.out) > p.lim.TextBytes {
		return p.unclosed(line)
	}
	if !resumed {
		p.repaired++
	}
	p.str.open = true
	return pos, true
}

func (p *parser) unclosed(line []byte) (int, bool) {
	if len(p.out) > p.lim.TextBytes {
		p.tooLarge()
		return len(line), false
	}
	p.fault = fault{collector.ReasonTruncated, fmt.Sprintf("line %d: a string is not closed", p.line), true}
	return len(line), false
}

func (p *parser) tooLarge() {
	p.fault = fault{collector.ReasonTooLarge, fmt.Sprintf("longer than %d bytes", p.lim.TextBytes), false}
}

// plainRun returns how many bytes from the start need no change inside a JSON
// string with this quote.
func plainRun(b []byte, quote byte) int {
	for i, c := range b {
		if c < 0x20 || c == '"' || c == '\\' || c == quote {
			return i
		}
	}
	return len(b)
}

// escape copies one escape sequence in JSON's spelling. An escape that neither
// JSON nor Python knows keeps its backslash, as Python does.
func (p *parser) escape(line []byte, pos int) int {
	c := line[pos+1]
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.out = append(p.out, '\\', c)
		return pos + 2
	case '\'':
		p.out = append(p.out, '\'')
		return pos + 2
	case 'u':
		if hexDigits(line, pos+2, 4) {
			p.out = append(p.out, line[pos:pos+6]...)
			return pos + 6
		}
	case 'x':
		if hexDigits(line, pos+2, 2) {
			p.out = append(p.out, '\\', 'u', '0', '0', line[pos+2], line[pos+3])
			return pos + 4
		}
	case 'U':
		if hexDigits(line, pos+2, 8) {
			p.out = utf8.AppendRune(p.out, hexRune(line[pos+2:pos+10]))
			return pos + 10
		}
	}
	p.out = append(p.out, '\\', '\\')
	return pos + 1
}

func hexDigits(b []byte, i, n int) bool {
	if i+n > len(b) {
		return false
	}
	for _, c := range b[i : i+n] {
		if hexValue(c) < 0 {
			return false
		}
	}
	return true
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// hexRune reads eight hex digits; what is no printable rune becomes U+FFFD.
func hexRune(b []byte) rune {
	r := rune(0)
	for _, c := range b {
		if r > utf8.MaxRune {
			return utf8.RuneError
		}
		r = r<<4 | rune(hexValue(c))
	}
	if r < 0x20 || r == '"' || r == '\\' || !utf8.ValidRune(r) {
		return utf8.RuneError
	}
	return r
}

func appendControl(out []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '\t':
		return append(out, '\\', 't')
	case '\r':
		return append(out, '\\', 'r')
	}
	return append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// endString settles a string that was just closed.
func (p *parser) endString() {
	f := p.top()
	switch p.str.role {
	case roleKey:
		f.want = wantColon
		p.noteKey(p.str.start)
	case roleNext:
		f.want = wantColon
		f.keyAt = p.str.start
	default:
		p.valueStr = true
		f.strings++
		p.noteText(p.str.start)
		p.endValue()
	}
}

// noteKey records the key at i of the output.
func (p *parser) noteKey(i int) {
	f := p.top()
	f.keyAt = i
	f.key, _ = keyOf(p.out[i+1 : len(p.out)-1])
	f.keys |= f.key
	p.seen |= f.key
}

// joinString decides about a string behind a string when no colon follows: it is
// the rest of the value, as Python's pprint breaks long ones.
func (p *parser) joinString() bool {
	f := p.top()
	f.want = wantMore
	at := p.next
	p.next = -1
	if p.lenient() {
		return true
	}
	if !p.valueStr {
		f.want = wantColon
		return false
	}
	if n := len(p.found); n > 0 && p.found[n-1].end == at {
		p.found = p.found[:n-1]
	}
	p.out = append(p.out[:at-1], p.out[at+2:]...)
	return true
}
