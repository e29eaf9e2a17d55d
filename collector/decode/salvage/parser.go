package salvage

import (
	"bytes"
	"fmt"

	"github.com/stategauge/stategauge/collector"
)

// status is what became of a line.
type status uint8

const (
	more   status = iota // the line is read, the object is open
	done                 // the object is closed
	failed               // the text cannot be part of an object
)

// place is what a container expects next.
type place uint8

const (
	wantKey place = iota
	wantColon
	wantValue
	wantMore // a comma or the end
)

// fault is why an object was given up.
type fault struct {
	reason collector.Reason
	text   string // for syntax: what was expected and found
	// outside is true where a line does not begin like a line of an object: the
	// text broke off before it.
	outside bool
}

// frame is one open container.
type frame struct {
	kind     byte // '{', '[', '(' or 'c' for a call such as UUID(...)
	want     place
	n        int    // members or elements so far
	trailing bool   // the last thing was a comma
	keys     keyset // known keys, objects only
	key      keyset // the present key, if known
	keyAt    int    // where the present key stands in the output
	valueAt  int
	start    int // where the container starts in the output
	line     int
	repaired int  // repairs made before it
	strings  int  // elements that are strings, lists only
	row      bool // a call with named arguments, written as an object
	named    bool // its next value has its name
	event    eventKind
}

// openString is the state of a string that a line break cuts.
type openString struct {
	open  bool
	fresh bool // closed in this line after a break, and not yet confirmed by what follows
	quote byte
	start int // where it stands in the output
	role  role
}

// role is what a string is for.
type role uint8

const (
	roleKey role = iota
	roleValue
	roleNext // behind a value: a key whose comma is missing, or the rest of the value
)

// parser reads one candidate and writes it as JSON. It is a state machine over
// tokens with an explicit stack; it looks at every byte once.
type parser struct {
	lim   Limits
	out   []byte
	stack []frame
	found []span
	str   openString
	fault fault
	seen  keyset // every known key met, at any depth
	outer keyset // known keys of the outermost object, once it is closed

	fragment  bool // the opening brace is missing
	loose     bool // closing brackets of containers that we never saw open
	elided    int  // line of the first "...", 0 for none
	repaired  int
	line      int // present line
	firstLine int
	newline   bool // a line break since the last token
	valueStr  bool // the last value was a string
	next      int  // output length before a roleNext string
	nextBreak bool // that string stands on a line of its own
	cut       cutNumber
	// confirmed is set once what follows a wrapped string fits: the break was one.
	confirmed bool
	foreign   bool // the object is a line of the event log of another kind
}

// cutNumber is a number that ended with its line and may go on in the next.
type cutNumber struct {
	raw []byte
	at  int // its place in the output
}

func (p *parser) reset(line int) {
	*p = parser{
		lim: p.lim, out: p.out[:0], stack: p.stack[:0], found: p.found[:0],
		cut: cutNumber{raw: p.cut.raw[:0]}, firstLine: line, next: -1,
	}
}

// openFragment starts an object whose opening brace the text lacks.
func (p *parser) openFragment() {
	p.fragment = true
	p.push('{', p.firstLine)
}

// lenient is true once the object can only be refused: reading goes on to find
// its end, not its meaning.
func (p *parser) lenient() bool { return p.elided > 0 || p.loose }

func (p *parser) top() *frame { return &p.stack[len(p.stack)-1] }

// feed reads line from pos and returns where it stopped.
func (p *parser) feed(line []byte, pos, no int) (int, status) {
	p.line, p.confirmed = no, false
	var ok bool
	if p.str.open {
		if pos, ok = p.scanString(line, pos); !ok {
			return pos, failed
		}
		if p.str.open {
			return pos, more
		}
	}
	if len(p.cut.raw) > 0 {
		pos = p.rejoinNumber(line, pos)
	}
	for {
		pos = skipBlank(line, pos)
		if pos >= len(line) {
			p.newline = true
			return pos, more
		}
		if pos, ok = p.token(line, pos); !ok {
			return pos, failed
		}
		if len(p.stack) == 0 {
			return pos, done
		}
		if p.str.open {
			return pos, more
		}
		if len(p.out) > p.lim.TextBytes {
			p.tooLarge()
			return pos, failed
		}
	}
}

// token reads one token.
func (p *parser) token(line []byte, pos int) (int, bool) {
	if n := comment(line[pos:]); n > 0 {
		return pos + n, true
	}
	if n := elision(line[pos:]); n > 0 {
		return pos + n, p.elide()
	}
	c := line[pos]
	if p.next >= 0 && c != ':' && !p.joinString() {
		p.expected(line, pos)
		return pos, false
	}
	fresh := p.str.fresh
	next, ok := p.dispatch(line, pos, c)
	if !ok {
		if p.fault.reason == "" {
			p.expected(line, pos)
		}
		return next, false
	}
	p.confirmed = p.confirmed || fresh
	p.str.fresh = false
	p.newline = false
	return next, true
}

func (p *parser) dispatch(line []byte, pos int, c byte) (int, bool) {
	switch c {
	case '{', '[', '(':
		return pos + 1, p.openValue(c)
	case '}', ']', ')':
		return pos + 1, p.closeValue(c)
	case ',':
		return pos + 1, p.comma()
	case ':':
		return pos + 1, p.colon()
	case '"', '\'':
		return p.startString(line, pos, c)
	case '-', '+', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number(line, pos)
	}
	if isWord(c) {
		return p.word(line, pos)
	}
	return pos, false
}

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

func (p *parser) elide() bool {
	if p.elided == 0 {
		p.elided = p.line
	}
	if p.next >= 0 {
		p.joinString()
	}
	if f := p.top(); f.kind == '{' && f.want == wantValue {
		p.out = append(p.out, "null"...)
		p.endValue()
	}
	return true
}

// push opens a container.
func (p *parser) push(kind byte, line int) bool {
	if len(p.stack) >= p.lim.Depth {
		p.fault = fault{collector.ReasonDepth, fmt.Sprintf("line %d: nested deeper than %d levels", line, p.lim.Depth), false}
		return false
	}
	f := frame{kind: kind, want: wantValue, start: len(p.out), line: line, repaired: p.repaired}
	b := byte('[')
	if kind == '{' {
		f.want, b = wantKey, '{'
	}
	p.out = append(p.out, b)
	p.stack = append(p.stack, f)
	return true
}

func (p *parser) openValue(c byte) bool {
	if len(p.stack) > 0 && !p.beginValue() {
		return false
	}
	return p.push(c, p.line)
}

// beginValue prepares the output for a value and tells whether one may stand here.
func (p *parser) beginValue() bool {
	f := p.top()
	switch {
	case f.row:
		if !f.named {
			return false
		}
		f.named = false
	case f.want == wantValue:
	case f.want == wantMore && f.kind != '{' && p.newline:
		p.repaired++
	case p.lenient():
	default:
		return false
	}
	if f.kind != '{' && f.n > 0 && !f.row {
		p.out = append(p.out, ',')
	}
	f.valueAt = len(p.out)
	p.valueStr = false
	return true
}

func (p *parser) endValue() {
	f := p.top()
	f.n++
	f.want = wantMore
	f.trailing = false
	if f.key == kEventType {
		f.event = eventTypeOf(p.out[f.valueAt:])
	}
}

func (p *parser) comma() bool {
	f := p.top()
	if f.want != wantMore {
		return p.lenient()
	}
	f.trailing = true
	f.want = wantValue
	if f.kind == '{' {
		f.want = wantKey
	}
	return true
}

func (p *parser) colon() bool {
	f := p.top()
	if f.kind != '{' || f.want != wantColon {
		return false
	}
	if p.next >= 0 {
		if !p.nextBreak && !p.lenient() {
			return false
		}
		p.repaired++
		p.next = -1
		p.noteKey(f.keyAt)
	}
	p.out = append(p.out, ':')
	f.want = wantValue
	f.valueAt = len(p.out)
	return true
}

// closeValue closes the innermost container.
func (p *parser) closeValue(c byte) bool {
	f := p.top()
	if p.fragment && len(p.stack) == 1 && (c != '}' || !f.keys.has(kID)) {
		p.loose = true // the end of a container that began before the text
		f.want = wantMore
		return true
	}
	if closer(f.kind) != string(c) || !p.mayClose(f) {
		return false
	}
	if f.trailing && f.kind != 'c' && f.kind != '(' {
		p.repaired++
	}
	if p.fragment && len(p.stack) == 1 {
		p.repaired++
	}
	p.pop()
	return true
}

func (p *parser) mayClose(f *frame) bool {
	empty := f.n == 0 && (f.want == wantKey || f.want == wantValue && f.kind != '{')
	return f.want == wantMore || f.trailing && f.want != wantColon || empty || p.lenient()
}

// pop writes the end of the innermost container and judges it.
func (p *parser) pop() {
	f := *p.top()
	p.stack = p.stack[:len(p.stack)-1]
	switch f.kind {
	case '{':
		p.out = append(p.out, '}')
		p.judge(&f)
	case 'c':
		p.closeCall(&f)
	default:
		p.out = append(p.out, ']')
		p.judgeList(&f)
	}
	if len(p.stack) > 0 {
		p.endValue()
		return
	}
	p.outer, p.foreign = f.keys, f.event == otherEvent
}

// closeCall turns UUID('x') into "x", Row(a=1) into an object, datetime(2024, 5, 1)
// into a list and a call without arguments into null.
func (p *parser) closeCall(f *frame) {
	switch {
	case f.row:
		p.out = append(p.out, '}')
	case f.n == 0:
		p.out = append(p.out[:f.start], "null"...)
	case f.n == 1:
		p.out = append(p.out[:f.start], p.out[f.start+1:]...)
		p.shift(f.start)
	default:
		p.out = append(p.out, ']')
	}
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
