package decode

import (
	"bytes"
	"strconv"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// Body splits body into its elements and calls yield for each of them in order:
// with an event, with a reject, or, for a line of an event log that is none of a
// streaming query's business, with neither. The event belongs to the callee, who
// gives it back by Pool.Release. Body stops when yield returns false.
//
// A broken element costs nothing but itself wherever the begin of the next one
// can be told: by the bracket that closes it, by the next line, or by the next
// line that opens an object in the same column. Otherwise the rest is one reject,
// as it is after Limits.RejectsInRow broken elements one after another.
// The time taken is linear in the length of body, whatever it holds.
func (d *Decoder) Body(body []byte, yield func(index int, ev *event.Event, rej *collector.Reject) bool) {
	s := splitter{d: d, body: body, open: -1, lineEnd: -1, line: 1, budget: 8 * len(body)}
	s.run(yield)
}

// splitter walks over the elements of one body.
type splitter struct {
	d      *Decoder
	body   []byte
	i      int
	index  int // of the element at i
	broken int // rejects since the last element that was none
	open   int // offset of the bracket of the array that the element is in, -1 outside

	lineEnd int // the first line break at or after some earlier offset
	line    int // line number of offset at
	at      int
	budget  int // bytes that may still be looked at a second time
}

// magics tell compressed data, which a source should have unpacked.
var magics = []struct{ prefix, name string }{
	{"\x1f\x8b", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\x04\x22\x4d\x18", "lz4"},
	{"LZ4Block", "lz4"},
}

const byteOrderMark = "\xef\xbb\xbf"

func (s *splitter) run(yield func(int, *event.Event, *collector.Reject) bool) {
	for _, m := range magics {
		if bytes.HasPrefix(s.body, []byte(m.prefix)) {
			yield(0, nil, s.reject(collector.ReasonEncoding, 0, m.name+" data where JSON was expected"))
			return
		}
	}
	if bytes.HasPrefix(s.body, []byte(byteOrderMark)) {
		s.i = len(byteOrderMark)
	}
	for s.next() {
		if s.broken >= s.d.pool.lim.RejectsInRow {
			yield(s.index, nil, s.reject(collector.ReasonTooMany, s.i, "too many broken elements one after another, the rest was not read"))
			return
		}
		ev, rej := s.one()
		s.count(rej)
		if !yield(s.index, ev, rej) {
			return
		}
		s.index++
	}
	switch {
	case s.open >= 0:
		yield(s.index, nil, s.reject(collector.ReasonTruncated, len(s.body), "expected ']' at the end of an array of events"))
	case s.index == 0:
		yield(0, nil, s.reject(collector.ReasonEmpty, len(s.body), "an empty message"))
	}
}

// count keeps the number of rejects since the last element that was none.
func (s *splitter) count(rej *collector.Reject) {
	s.broken++
	if rej == nil {
		s.broken = 0
	}
}

// next moves to the next element, over blanks, commas and the brackets of arrays.
func (s *splitter) next() bool {
	for ; s.i < len(s.body); s.i++ {
		switch ch := s.body[s.i]; {
		case isBlank(ch) || ch == ',':
		case ch == '[' && s.open < 0:
			s.open = s.i
		case ch == ']' && s.open >= 0:
			s.open = -1
		default:
			return true
		}
	}
	return false
}

// one decodes the element at s.i and moves behind it.
func (s *splitter) one() (*event.Event, *collector.Reject) {
	start, d := s.i, s.d
	end := min(len(s.body), start+d.pool.lim.EventBytes)
	d.c.reset(s.body, start, end)
	switch d.elementByShape() {
	case isEvent:
		s.i = d.c.i
		return d.finish(), nil
	case isSkipped:
		s.i = s.behind(start)
		return nil, nil
	}
	return nil, s.refuse(start, end)
}

// refuse reports why the element at start is no event and moves to the next one.
func (s *splitter) refuse(start, end int) *collector.Reject {
	f := s.d.c.fault
	if f.off < 0 { // well-formed, and no event
		rej := s.reject(f.reason, start, f.want)
		s.i = s.afterShape(start, s.d.c.i)
		return rej
	}
	if f.reason == collector.ReasonTruncated && f.off >= end && end < len(s.body) {
		f.reason, f.want = collector.ReasonTooLarge, "more than "+strconv.Itoa(end-start)+" bytes in one event"
	}
	rej := s.reject(f.reason, f.off, f.want)
	s.i = s.resume(start, f.off)
	if s.i == len(s.body) {
		s.open = -1 // the rest has been refused already
	}
	return rej
}

// reject makes a Reject of the present element that names the place in the body.
func (s *splitter) reject(reason collector.Reason, off int, want string) *collector.Reject {
	e := &SyntaxError{Offset: off, Line: s.lineOf(off), Want: want}
	if reason == collector.ReasonSyntax && off < len(s.body) {
		e.Found = string(s.body[off : off+1])
	}
	return &collector.Reject{Index: s.index, Reason: reason, Err: e}
}

// lineOf returns the line number of an offset in the present element or behind it.
func (s *splitter) lineOf(off int) int {
	start := min(s.i, off)
	s.line += bytes.Count(s.body[s.at:start], newline)
	s.at = start
	return s.line + bytes.Count(s.body[start:off], newline)
}
