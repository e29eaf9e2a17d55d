package salvage

import "bytes"

// number reads a number, NaN or infinity with a sign.
func (p *parser) number(line []byte, pos int) (int, bool) {
	end := pos + 1
	for end < len(line) && (isWord(line[end]) || line[end] == '.' || line[end] == '-' || line[end] == '+') {
		end++
	}
	return p.scalar(line, pos, end)
}

// scalar writes the bare value line[pos:end]. One that ends with a wrapped line may
// go on in the next.
func (p *parser) scalar(line []byte, pos, end int) (int, bool) {
	raw := line[pos:end]
	mayGoOn := end == len(line) && len(line) >= wrapWidth && p.seen.any()
	text, ok := p.bare(raw)
	switch {
	case !ok && !(mayGoOn && unfinished(raw)):
		return pos, false
	case mayGoOn:
		p.cut = cutScalar{append(p.cut.raw[:0], raw...), len(p.out), ok}
	}
	if !ok {
		return end, true
	}
	if !p.beginValue() {
		return pos, false
	}
	if mayGoOn {
		p.cut.at = len(p.out)
	}
	p.out = append(p.out, text...)
	p.endValue()
	return end, true
}

// rejoin puts a bare value together that the line break cut: a value cannot follow
// a value without a comma. It returns false if only a rest would have made the
// value whole and there is none.
func (p *parser) rejoin(line []byte, pos int) (int, bool) {
	end := pos
	for end < len(line) && (isWord(line[end]) || line[end] == '.' || line[end] == '-' || line[end] == '+') {
		end++
	}
	c := p.cut
	joined := append(c.raw, line[pos:end]...)
	p.cut.raw = p.cut.raw[:0]
	text, ok := p.bare(joined)
	if !ok || end == pos {
		return pos, c.whole
	}
	if c.whole {
		p.out = append(p.out[:c.at], text...)
	} else {
		if !p.beginValue() {
			return pos, false
		}
		p.out = append(p.out, text...)
		p.endValue()
	}
	p.repaired++
	return end, true
}

// pause notes a line between the lines of the object: nothing was wrapped there.
func (p *parser) pause() {
	p.newline = true
	p.cut.raw = p.cut.raw[:0]
}

// bare returns a bare value as JSON spells it. The text is valid until the next call.
func (p *parser) bare(raw []byte) ([]byte, bool) {
	if text, ok := words[string(raw)]; ok {
		p.text = append(p.text[:0], text...)
		return p.text, true
	}
	var ok bool
	p.text, ok = appendNumber(p.text[:0], raw)
	return p.text, ok
}

// unfinished reports whether more letters can make a value of raw.
func unfinished(raw []byte) bool {
	if _, ok := appendNumber(nil, append(bytes.Clone(raw), '0')); ok {
		return true
	}
	for w := range words {
		if len(raw) > 0 && len(w) > len(raw) && w[:len(raw)] == string(raw) {
			return true
		}
	}
	return false
}

// appendNumber writes a number as JSON spells it: Python's long suffix goes, and
// what is not finite is quoted, as Spark's event log does.
func appendNumber(out, raw []byte) ([]byte, bool) {
	if validNumber(raw) {
		return append(out, raw...), true
	}
	if n := len(raw); n > 1 && (raw[n-1] == 'L' || raw[n-1] == 'l') && validNumber(raw[:n-1]) {
		return append(out, raw[:n-1]...), true
	}
	sign := ""
	if len(raw) > 1 && (raw[0] == '-' || raw[0] == '+') {
		if raw[0] == '-' {
			sign = "-"
		}
		raw = raw[1:]
	}
	text, ok := words[string(raw)]
	if !ok || len(text) < 2 || text[0] != '"' {
		return out, false
	}
	if text == `"NaN"` {
		sign = ""
	}
	out = append(out, '"')
	out = append(out, sign...)
	return append(out, text[1:]...), true
}

// validNumber checks JSON's grammar of numbers.
func validNumber(b []byte) bool {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	n := digits(b, i)
	if n == 0 || n > 1 && b[i] == '0' {
		return false
	}
	i += n
	if i < len(b) && b[i] == '.' {
		if n = digits(b, i+1); n == 0 {
			return false
		}
		i += 1 + n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			i++
		}
		if n = digits(b, i); n == 0 {
			return false
		}
		i += n
	}
	return i == len(b)
}

// words are the bare words that are values, in JSON and in Python.
var words = map[string]string{
	"true": "true", "True": "true", "false": "false", "False": "false",
	"null": "null", "None": "null", "undefined": "null",
	"NaN": `"NaN"`, "nan": `"NaN"`, "Infinity": `"Infinity"`, "inf": `"Infinity"`,
}

// word reads what begins with a letter: a value, a string's prefix, a call, or a
// key whose opening quote is missing.
func (p *parser) word(line []byte, pos int) (int, bool) {
	end := pos
	for end < len(line) && (isWord(line[end]) || line[end] == '.' || line[end] == '-' || line[end] == '$') {
		end++
	}
	name, f := line[pos:end], p.top()
	if end == len(line) {
		return p.scalar(line, pos, end)
	}
	switch c := line[end]; {
	case (c == '"' || c == '\'') && stringPrefix(name):
		return p.startString(line, end, c)
	case c == '"' && f.kind == '{' && f.want == wantKey && colonAfter(line, end+1):
		p.repaired++
		return p.startString(line, pos-1, c)
	case c == '(':
		return end + 1, p.beginValue() && p.push('c', p.line)
	case f.kind == 'c' && f.want == wantValue && !f.named:
		if next := equalsAfter(line, end); next > 0 {
			return next, p.rowKey(name)
		}
	}
	return p.scalar(line, pos, end)
}

// stringPrefix knows Python's string prefixes.
func stringPrefix(name []byte) bool {
	return len(name) == 1 && bytes.IndexByte([]byte("uUbBrR"), name[0]) >= 0
}

func colonAfter(line []byte, i int) bool {
	i = skipBlank(line, i)
	return i < len(line) && line[i] == ':'
}

// equalsAfter returns the place behind a single '=', 0 if there is none.
func equalsAfter(line []byte, i int) int {
	i = skipBlank(line, i)
	if i < len(line) && line[i] == '=' && (i+1 == len(line) || line[i+1] != '=') {
		return i + 1
	}
	return 0
}

// rowKey takes the name of a named argument: the call becomes an object.
func (p *parser) rowKey(name []byte) bool {
	f := p.top()
	if f.n > 0 && !f.row {
		return false
	}
	p.out[f.start] = '{'
	f.row, f.named = true, true
	if f.n > 0 {
		p.out = append(p.out, ',')
	}
	p.out = append(p.out, '"')
	p.out = append(p.out, name...)
	p.out = append(p.out, '"', ':')
	return true
}
