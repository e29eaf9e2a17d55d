package salvage

import (
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
	cut       cutScalar
	text      []byte // scratch
	// confirmed is set once what follows a wrapped string fits: the break was one.
	confirmed bool
	foreign   bool // the object is a line of the event log of another kind
}

// cutScalar is a bare value that ended with its line and may go on in the next.
type cutScalar struct {
	raw   []byte
	at    int  // its place in the output
	whole bool // it is a value as it stands, and was written
}

func (p *parser) reset(line int) {
	*p = parser{
		lim: p.lim, out: p.out[:0], stack: p.stack[:0], found: p.found[:0],
		cut: cutScalar{raw: p.cut.raw[:0]}, text: p.text[:0], firstLine: line, next: -1,
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
		if pos, ok = p.rejoin(line, pos); !ok {
			p.expected(line, pos)
			return pos, failed
		}
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
