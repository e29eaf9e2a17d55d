package decode

import "bytes"

var newline = []byte("\n")

// resume finds where the next element begins after the one at start broke at off.
func (s *splitter) resume(start, off int) int {
	line := s.endOfLine(start)
	if ch := s.body[start]; ch != '{' && ch != '[' && ch != '"' {
		return s.afterScalar(start, line)
	}
	if off <= line {
		if p := s.closing(start, line); p >= 0 {
			return p
		}
		return line
	}
	// A line cut short swallows the lines after it until something does not fit.
	if p := s.sibling(start, line, off); p >= 0 {
		return s.again(p, off)
	}
	window := min(len(s.body), start+max(0, s.budget))
	if p := s.closing(start, window); p >= 0 {
		return p
	}
	s.budget -= window - start
	if p := s.sibling(start, line, len(s.body)); p >= 0 {
		return s.again(p, off)
	}
	return len(s.body)
}

// endOfLine returns the offset of the first line break at or after i. Calls with
// growing i look at each byte once.
func (s *splitter) endOfLine(i int) int {
	if s.lineEnd >= i {
		return s.lineEnd
	}
	s.lineEnd = len(s.body)
	if n := bytes.IndexByte(s.body[i:], '\n'); n >= 0 {
		s.lineEnd = i + n
	}
	return s.lineEnd
}

// afterScalar skips a word that is no value: up to the next element of an array,
// otherwise to the end of the line.
func (s *splitter) afterScalar(start, line int) int {
	if s.open < 0 {
		return line
	}
	for i := start; i < line; i++ {
		if s.body[i] == ',' || s.body[i] == ']' {
			return i
		}
	}
	return line
}

// afterShape finds where to go on behind body[start:end], which is JSON but no
// event. A number or word at the begin of a line of text takes the line with it.
func (s *splitter) afterShape(start, end int) int {
	if ch := s.body[start]; ch == '{' || ch == '[' || ch == '"' {
		return end
	}
	if s.mayEnd(end) {
		return end
	}
	return s.afterScalar(start, s.endOfLine(start))
}

// sibling finds the first line between from and to that opens an object and is
// indented no deeper than the element at start; -1 if there is none.
func (s *splitter) sibling(start, from, to int) int {
	column := start - 1 - bytes.LastIndexByte(s.body[max(0, start-maxColumn):start], '\n') - max(0, start-maxColumn)
	for i := from; i < to && i < len(s.body); {
		first := i + 1
		for i = first; i < len(s.body) && (s.body[i] == ' ' || s.body[i] == '\t'); i++ {
		}
		if i < len(s.body) && i <= to && s.body[i] == '{' && i-first <= column {
			return i
		}
		n := bytes.IndexByte(s.body[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n
	}
	return -1
}

// maxColumn bounds how far back the begin of a line is looked for.
const maxColumn = 4096

// again returns p, where parsing goes on before off, as long as the body's budget
// for that lasts; after that the first line behind off. Hostile nesting could
// otherwise have its bytes read once per level.
func (s *splitter) again(p, off int) int {
	if p >= off {
		return p
	}
	if s.budget -= off - p; s.budget >= 0 {
		return p
	}
	if n := bytes.IndexByte(s.body[off:], '\n'); n >= 0 {
		return off + n
	}
	return len(s.body)
}

// closing finds the end of the element at start by its brackets, which must close
// before limit; -1 if they do not, or close where no element can end.
func (s *splitter) closing(start, limit int) int {
	if end, ok := balanced(s.body[:limit], start); ok && s.mayEnd(end) {
		return end
	}
	return -1
}

// mayEnd reports whether an element can end at offset end.
func (s *splitter) mayEnd(end int) bool {
	for i := end; i < len(s.body); i++ {
		switch ch := s.body[i]; {
		case ch == '\n' || ch == ',' || ch == '{' || (ch == ']' && s.open >= 0):
			return true
		case !isBlank(ch):
			return false
		}
	}
	return true
}

// behind returns the end of the element at start, which was not read to its end:
// its closing bracket, or the end of its line if it has none.
func (s *splitter) behind(start int) int {
	line := s.endOfLine(start)
	if end, ok := balanced(s.body[:line], start); ok {
		return end
	}
	window := min(len(s.body), start+max(0, s.budget))
	if end, ok := balanced(s.body[:window], start); ok {
		return end
	}
	s.budget -= window - start
	return line
}

// balanced returns the offset behind the bracket or quote that closes the one at
// b[i]. If there is none, ok is false and end is where the search stopped: the end
// of b, or a line break inside a string.
func balanced(b []byte, i int) (end int, ok bool) {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if i = closingQuote(b, i+1); i >= len(b) || b[i] != '"' {
				return i, false
			}
		default:
			continue
		}
		if depth <= 0 {
			return i + 1, depth == 0
		}
	}
	return len(b), false
}

// closingQuote returns the offset of the quote that ends the string text at b[i:],
// or of the line break before it, or the end of b.
func closingQuote(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"', '\n':
			return i
		case '\\':
			i++
		}
	}
	return min(i, len(b))
}
