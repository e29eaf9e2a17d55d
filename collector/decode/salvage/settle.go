package salvage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/collector"
)

// span is something found in a candidate: a stretch of the parser's output.
type span struct {
	start, end int
	line       int
	repaired   int
	kind       spanKind
}

type spanKind uint8

const (
	spanEvent    spanKind = iota
	spanText              // a string that holds an event's text
	spanTextList          // a list of strings that together hold an event's text
)

// judge decides whether the object that was just closed is an event. What an
// event holds belongs to it; what a line of the event log of another kind holds
// belongs to nobody.
func (p *parser) judge(f *frame) {
	inner := p.foundSince(f.start)
	switch {
	case f.event == otherEvent:
		p.found = p.found[:inner]
	case p.lenient() || !f.isEvent(inner < len(p.found)):
	default:
		p.found = append(p.found[:inner], span{f.start, len(p.out), f.line, p.repaired - f.repaired, spanEvent})
	}
}

// judgeList finds the text that notebooks cut into a list of lines.
func (p *parser) judgeList(f *frame) {
	if f.n < 2 || f.strings != f.n || p.lenient() || !holdsEvent(p.out[f.start:]) {
		return
	}
	inner := p.foundSince(f.start)
	p.found = append(p.found[:inner], span{f.start, len(p.out), f.line, 0, spanTextList})
}

// noteText records the string at i of the output if it may hold an event.
func (p *parser) noteText(i int) {
	if len(p.out)-i > 40 && holdsEvent(p.out[i:]) && bytes.IndexByte(p.out[i:], '{') >= 0 {
		p.found = append(p.found, span{i, len(p.out), p.line, 0, spanText})
	}
}

func holdsEvent(text []byte) bool {
	return bytes.Contains(text, []byte("runId")) || bytes.Contains(text, []byte("durationMs"))
}

// foundSince returns the index of the first find that starts behind i.
func (p *parser) foundSince(i int) int {
	n := len(p.found)
	for n > 0 && p.found[n-1].start > i {
		n--
	}
	return n
}

// shift moves the finds behind i by one byte to the front.
func (p *parser) shift(i int) {
	for n := p.foundSince(i); n < len(p.found); n++ {
		p.found[n].start--
		p.found[n].end--
	}
}

// complete ends a candidate whose last bracket was read in line end.
func (s *Scanner) complete(end int) {
	p := &s.p
	first, got := p.firstLine, s.emit(end)
	s.active = false
	switch {
	case got > 0:
		s.usedLine = end
	case p.elided > 0:
		s.reject(first, end, collector.ReasonTruncated, leftOut(p.elided))
	case p.keysAtTop().isAnonymous():
		s.reject(first, end, collector.ReasonIdentity, "a progress without the query's id")
	default:
		s.reject(first, end, collector.ReasonShape, "no event, but "+p.topKeys().describe())
	}
}

// fail ends a candidate at a line that does not fit. A line that the candidate
// did not begin in is read again, after those held for a wrapped string.
func (s *Scanner) fail(l ref, why fault) {
	p := &s.p
	s.active = false
	first := p.firstLine
	end := max(first, min(l.no-1, s.no))
	if first == l.no {
		end = l.no
	}
	if len(s.held) > 0 {
		end = max(first, s.held[0].no-1)
	}
	s.closeSink()
	got := s.emit(end)
	if got > 0 {
		s.usedLine = end
	}
	if len(p.stack) > 0 {
		why.outside = why.outside || len(s.held) > 0
		s.explain(first, end, got, why)
	}
	s.requeue(l)
}

// requeue puts the held lines and l in front of the work.
func (s *Scanner) requeue(l ref) {
	again := append([]ref(nil), s.held...)
	if n := len(again); s.p.firstLine != l.no && l.no <= s.no && (n == 0 || again[n-1].no != l.no) {
		again = append(again, l)
	}
	s.held = s.held[:0]
	s.work = append(again, s.work...)
}

// closeSink adds the closing brace that a whole progress lacks at its end.
func (s *Scanner) closeSink() {
	p := &s.p
	if len(p.stack) != 1 || p.lenient() || p.str.open || p.next >= 0 {
		return
	}
	f := p.top()
	if f.want == wantMore && !f.trailing && f.kind == '{' && f.keys.has(kID|kSink|kDurationMs) && f.event == noEventType {
		p.repaired++
		p.pop()
	}
}

// explain refuses an object that was not closed, if it is worth a word.
func (s *Scanner) explain(first, end, got int, why fault) {
	p := &s.p
	keys := p.seen
	if got > 0 {
		keys = p.openKeys()
	}
	if p.stack[0].event == otherEvent || !keys.hasAny(strong) && !keys.has(kID|kRunID) {
		s.drop(first)
		return
	}
	switch {
	case why.reason == collector.ReasonTooLarge || why.reason == collector.ReasonDepth:
		s.reject(first, end, why.reason, why.text)
	case p.elided > 0:
		s.reject(first, end, collector.ReasonTruncated, leftOut(p.elided))
	case p.fragment:
		s.reject(first, end, collector.ReasonShape, "no event, but "+p.topKeys().describe()+" without its beginning")
	case why.reason == collector.ReasonSyntax && !why.outside:
		s.reject(first, end, collector.ReasonSyntax, why.text)
	default:
		s.reject(first, end, collector.ReasonTruncated, brokenOff(p, end))
	}
}

func leftOut(line int) string {
	return fmt.Sprintf("text is left out at line %d (\"...\"), and what is missing is not guessed", line)
}

func brokenOff(p *parser, end int) string {
	if in := p.path(); in != "" {
		return fmt.Sprintf("the text breaks off after line %d, inside %s", end, in)
	}
	return fmt.Sprintf("the text breaks off after line %d", end)
}

// reject hands on a refusal. Parts of one broken text that stand close together
// are refused once.
func (s *Scanner) reject(first, end int, why collector.Reason, text string) {
	p := &s.p
	if p.foreign || !p.seen.hasAny(strong) && !p.seen.has(kID|kRunID) {
		s.drop(first)
		return
	}
	s.usedLine = max(s.usedLine, end)
	near := first-s.rejectLine <= foldLines
	s.rejectLine = end
	if p.fragment && near {
		return
	}
	s.yield(Piece{Line: first, EndLine: end, Reason: why, Err: errors.New(text)})
}

// drop forgets a candidate that was nothing of ours: the lines that it took whole
// were skipped. The line that it ended in is still being read.
func (s *Scanner) drop(first int) {
	if first > s.usedLine {
		s.skipped += s.nonBlank
		s.usedLine = max(s.usedLine, first+s.nonBlank-1)
	}
}

// emit hands on what was found and returns how many events that were.
func (s *Scanner) emit(end int) (n int) {
	p := &s.p
	for i := range p.found {
		f := p.found[i]
		switch f.kind {
		case spanEvent:
			n++
			s.yield(Piece{JSON: p.out[f.start:f.end], Line: f.line, EndLine: end, Repaired: f.repaired})
		case spanText:
			n += s.nestedString(p.out[f.start:f.end], f.line)
		case spanTextList:
			n += s.nestedList(p.out[f.start:f.end], f.line)
		}
	}
	p.found = p.found[:0]
	return n
}

func (s *Scanner) nestedString(quoted []byte, line int) int {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return 0
	}
	return s.nested(text, line)
}

func (s *Scanner) nestedList(list []byte, line int) int {
	var parts []string
	if json.Unmarshal(list, &parts) != nil {
		return 0
	}
	var text bytes.Buffer
	for _, part := range parts {
		text.WriteString(part)
	}
	return s.nested(text.String(), line)
}

// nested reads a text inside the text and returns how many pieces it held; all
// stand at the line of the string.
func (s *Scanner) nested(text string, line int) (n int) {
	if s.depth >= s.lim.Nested {
		return 0
	}
	inner := NewScanner(s.lim, func(p Piece) {
		n++
		p.Line, p.EndLine = line, line
		s.yield(p)
	})
	inner.depth = s.depth + 1
	rest := []byte(text)
	for len(rest) > 0 {
		var l []byte
		l, rest, _ = bytes.Cut(rest, newline)
		inner.Line(l)
	}
	inner.Close()
	return n
}

// keysAtTop returns the known keys of the outermost object once it is closed.
func (p *parser) keysAtTop() keyset { return p.outer }

// topKeys returns the known keys of the outermost object that has any.
func (p *parser) topKeys() keyset {
	if p.outer.any() {
		return p.outer
	}
	for i := range p.stack {
		if p.stack[i].keys.any() {
			return p.stack[i].keys
		}
	}
	return p.seen
}

// openKeys returns the known keys of the containers that were never closed.
func (p *parser) openKeys() (k keyset) {
	for i := range p.stack {
		k |= p.stack[i].keys
	}
	return k
}
