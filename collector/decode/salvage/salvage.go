// Package salvage finds the events in what people paste and in what programs
// log: pretty JSON behind a log prefix or comment marks, Python and notebook
// reprs, console output with tables in between, JSON inside JSON strings, lines
// wrapped at the window's width. It turns each event into well-formed JSON on one
// logical line for package decode, and says where it stood. It is a pure function
// of the text: no clock, no I/O, no state outside a Scanner.
//
// Text is read once, line by line, and memory is bounded by Limits whatever comes
// in. A candidate starts at an opening brace that a key (or the line's end)
// follows and is dropped at the first thing that cannot be part of an object;
// reading then goes on at the line that did not fit, so that a broken event costs
// neither its neighbours nor quadratic time.
//
// Only faults with one possible meaning are repaired, and each is counted in
// Piece.Repaired:
//
//   - a comma too many before a closing bracket;
//   - a comma missing between two lines that each hold a whole member or element;
//   - a key without its opening quote, where the closing quote and colon are there;
//   - an opening brace missing before a text that begins with the query's id;
//   - closing braces missing at the very end, where the sink, which Spark writes
//     last, is complete and no comma announces more;
//   - a string or number cut by a hard line wrap.
//
// Everything else is refused with its reason: text left out ("...") and text that
// breaks off are never completed by guessing, and a part of an event (one state
// operator, one block of custom metrics) is named for what it looks like.
package salvage

import (
	"bytes"

	"github.com/stategauge/stategauge/collector"
)

// Limits bound what one text may cost.
type Limits struct {
	TextBytes int // bytes of one candidate object, as JSON
	Depth     int // nesting of objects and lists
	Nested    int // levels of JSON inside JSON strings
}

// DefaultLimits returns limits that take any event and most notebooks.
func DefaultLimits() Limits { return Limits{TextBytes: 16 << 20, Depth: 64, Nested: 3} }

// Piece is one event found, or one piece of text that should have been an event.
type Piece struct {
	// JSON is the event, well-formed; nil for a reject. It is valid until the
	// callback returns.
	JSON []byte
	// Line and EndLine are the first and last line of the text, counted from 1.
	Line, EndLine int
	// Repaired counts the one-character repairs made to this event.
	Repaired int
	// Reason and Err say why there is no event; Reason is empty for an event.
	Reason collector.Reason
	Err    error
}

// Scanner reads a text line by line. It is not safe for concurrent use.
type Scanner struct {
	lim   Limits
	yield func(Piece)
	p     parser
	no    int // number of the line fed last
	depth int // how many JSON strings this text lies inside

	active   bool
	mark     string // comment mark before the candidate, empty for none
	prefixed bool   // every line of the candidate carries a carrier's prefix
	first    []byte // the candidate's first line, until the second one came
	shape    shape  // what else stands before every line of the candidate
	between  int    // foreign log lines met inside the candidate
	held     []ref  // lines read as the rest of a wrapped string, kept to be read again
	work     []ref  // lines still to be read, this one first

	nonBlank   int // lines that the open candidate took whole, blank ones left out
	usedLine   int // last line that belongs to a piece
	rejectLine int // last line of the newest reject
	skipped    int
}

// ref is a line and its number.
type ref struct {
	text []byte
	no   int
}

// NewScanner returns a Scanner that hands every piece to yield, in the order of
// the text.
func NewScanner(lim Limits, yield func(Piece)) *Scanner {
	return &Scanner{lim: lim, yield: yield, p: parser{lim: lim}, rejectLine: -foldLines - 1}
}

// Text reads a whole text and returns how many of its lines hold no part of any
// piece; blank lines do not count.
func Text(text []byte, lim Limits, yield func(Piece)) (skipped int) {
	s := NewScanner(lim, yield)
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, newline)
		s.Line(line)
		text = rest
	}
	s.Close()
	return s.Skipped()
}

var newline = []byte{'\n'}

// Line reads the next line, without its line feed. The text is not kept.
func (s *Scanner) Line(line []byte) {
	s.no++
	if s.no == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if text, ok := unwrap(line); ok && !bytes.Contains(text, newline) {
		line = text
	}
	s.work = append(s.work[:0], ref{line, s.no})
	for len(s.work) > 0 {
		next := s.work[0]
		s.work = s.work[1:]
		s.step(next)
	}
}

// SkipLine counts a line that the caller has dealt with itself. The scanner must
// be Idle.
func (s *Scanner) SkipLine() {
	s.no++
	s.usedLine = s.no
}

// Close ends the text: an object still open is refused as broken off. The Scanner
// may be fed again afterwards, as if the text went on.
func (s *Scanner) Close() {
	for s.active {
		s.work = s.work[:0]
		s.fail(ref{no: s.no + 1}, fault{reason: collector.ReasonTruncated})
		for len(s.work) > 0 {
			next := s.work[0]
			s.work = s.work[1:]
			if next.no <= s.no {
				s.step(next)
			}
		}
	}
}

// Idle reports whether no object is open, so that the next line stands for itself.
func (s *Scanner) Idle() bool { return !s.active }

// Skipped returns how many lines hold no part of any piece, blank lines left out.
// Lines of an object that is still open are not decided yet.
func (s *Scanner) Skipped() int { return s.skipped }

// step reads one line: the rest of the open candidate first, then whatever
// candidates begin in it.
func (s *Scanner) step(l ref) {
	pos := 0
	if s.active {
		var ok bool
		if pos, ok = s.resume(l); !ok {
			return
		}
	}
	for s.active || s.begin(l, &pos) {
		next, done := s.feed(l, pos)
		if !done {
			return
		}
		pos = next
	}
	if l.no > s.usedLine && !blank(l.text) {
		s.skipped++
	}
}

// resume takes a line into the open candidate and returns where its text starts;
// false if the line was dealt with.
func (s *Scanner) resume(l ref) (int, bool) {
	if at := s.shaped(l.text); at > 0 {
		s.hold(l)
		return at, true
	}
	head := lineKind(l.text)
	switch {
	case s.p.str.open && (head != plainLine || len(s.held) >= maxHeld):
		s.fail(l, fault{reason: collector.ReasonTruncated})
		return 0, false
	case head == eventLine || (head == logLine && s.between >= maxBetween):
		s.fail(l, fault{reason: collector.ReasonTruncated})
		return 0, false
	case head == logLine:
		s.between++
		s.skipped++
		s.p.pause()
		return 0, false
	case head == blankLine:
		s.p.pause()
		return 0, false
	}
	s.hold(l)
	return s.margin(l.text), true
}

// shaped returns the length of the prefix that every line of the candidate has; 0
// if there is none or the line opens an event of its own.
func (s *Scanner) shaped(line []byte) int {
	if len(s.first) > 0 {
		s.shape = learn(s.first, line)
		s.first = s.first[:0]
	}
	if len(s.shape) == 0 || isEventStart(line) || len(s.held) >= maxHeld {
		return 0
	}
	return s.shape.match(line)
}

// hold keeps a line that may have to be read again.
func (s *Scanner) hold(l ref) {
	if s.p.str.open {
		s.held = append(s.held, ref{bytes.Clone(l.text), l.no})
	}
}

// feed runs the parser over the line from pos. It returns where reading goes on
// and true if the candidate ended in this line.
func (s *Scanner) feed(l ref, pos int) (int, bool) {
	next, st := s.p.feed(l.text, pos, l.no)
	if s.p.confirmed {
		s.held = s.held[:0]
	}
	switch st {
	case more:
		s.nonBlank++
		return next, false
	case done:
		s.complete(l.no)
		return next, true
	}
	begun := s.p.firstLine
	s.fail(l, s.p.fault)
	return max(next, pos+1), begun == l.no
}

// begin looks for the next candidate of the line from *pos on and opens it; *pos
// is then where the parser starts.
func (s *Scanner) begin(l ref, pos *int) bool {
	if *pos == 0 {
		if at, ok := fragmentStart(l.text); ok {
			s.open(l, at)
			s.p.openFragment()
			*pos = at
			return true
		}
	}
	at, how := nextStart(l.text, *pos)
	for how != plainStart && at >= 0 {
		end := s.quotedText(l, at, how)
		at, how = nextStart(l.text, end)
	}
	if at < 0 {
		return false
	}
	s.open(l, at)
	*pos = at
	return true
}

func (s *Scanner) open(l ref, at int) {
	s.active, s.between, s.nonBlank = true, 0, 0
	s.held = s.held[:0]
	before := l.text[:at]
	n := carrierPrefix(before)
	s.prefixed = n > 0
	s.mark = markOf(before[n:])
	s.shape, s.first = nil, s.first[:0]
	if len(before) < shapeBytes && !s.prefixed && s.mark == "" {
		s.first = append(s.first, l.text[:min(len(l.text), len(before)+2)]...)
	}
	s.p.reset(l.no)
}
