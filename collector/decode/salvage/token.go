package salvage

import (
	"bytes"
	"fmt"

	"github.com/stategauge/stategauge/collector"
)

// expected writes the fault of a token that does not fit.
func (p *parser) expected(line []byte, pos int) {
	if !p.seen.any() { // nobody will read it
		p.fault = fault{reason: collector.ReasonSyntax}
		return
	}
	want := "a value"
	if len(p.stack) > 0 {
		switch f := p.top(); f.want {
		case wantKey:
			want = "a quoted key"
		case wantColon:
			want = "a colon after the key"
		case wantMore:
			want = fmt.Sprintf("a comma or %q", closer(f.kind))
		}
	}
	text := fmt.Sprintf("line %d, column %d: expected %s, found %q", p.line, pos+1, want, line[pos:min(len(line), pos+16)])
	outside := p.newline && bytes.IndexByte([]byte("{}[],:\"'"), line[pos]) < 0 && !knownWord(line[pos:])
	p.fault = fault{collector.ReasonSyntax, text, outside}
}

// knownWord reports whether the text begins with a key of an event, unquoted.
func knownWord(text []byte) bool {
	n := 0
	for n < len(text) && isWord(text[n]) {
		n++
	}
	_, known := keyOf(text[:n])
	return known
}

func closer(kind byte) string {
	switch kind {
	case '{':
		return "}"
	case '[':
		return "]"
	}
	return ")"
}

// comment returns the length of a comment, which runs to the line's end unless it
// is closed before; 0 if there is none.
func comment(rest []byte) int {
	switch {
	case rest[0] == '#', bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("<-")),
		bytes.HasPrefix(rest, []byte("<=")), bytes.HasPrefix(rest, []byte("←")), bytes.HasPrefix(rest, []byte("--")):
		return len(rest)
	case bytes.HasPrefix(rest, []byte("/*")):
		if end := bytes.Index(rest, []byte("*/")); end > 0 {
			return end + 2
		}
		return len(rest)
	}
	return 0
}

// elision returns the length of dots that stand for text left out.
func elision(rest []byte) int {
	if bytes.HasPrefix(rest, []byte("…")) {
		return len("…")
	}
	n := 0
	for n < len(rest) && rest[n] == '.' {
		n++
	}
	if n >= 3 {
		return n
	}
	return 0
}

// path names the keys that lead to where the parser stands.
func (p *parser) path() string {
	var b []byte
	for i := range p.stack {
		f := &p.stack[i]
		if f.kind != '{' || f.keyAt == 0 || f.want == wantKey {
			continue
		}
		if i < len(p.stack)-1 || f.want == wantValue || f.want == wantColon {
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, stringAt(p.out, f.keyAt)...)
		}
	}
	return string(b)
}

// stringAt returns what stands between the quotes of the string at i.
func stringAt(out []byte, i int) []byte {
	if i >= len(out) || out[i] != '"' {
		return nil
	}
	for k := i + 1; k < len(out); k++ {
		switch out[k] {
		case '\\':
			k++
		case '"':
			return out[i+1 : k]
		}
	}
	return nil
}
