package salvage

import "bytes"

// Bounds on what may lie inside one event.
const (
	maxHeld    = 8   // lines over which one string may be wrapped
	maxBetween = 64  // log lines of others inside one event
	foldLines  = 16  // lines between two parts of one broken event
	wrapWidth  = 40  // a shorter line was not wrapped, it ended
	shapeBytes = 160 // the longest prefix of a line that is learned
)

// kind of a line, by how it starts.
type kind uint8

const (
	plainLine kind = iota
	blankLine
	logLine   // a log record of its own
	eventLine // a log record that opens an event
)

// lineKind tells lines that cannot be part of an object.
func lineKind(line []byte) kind {
	at := skipBlank(line, 0)
	if at == len(line) {
		return blankLine
	}
	if isEventStart(line) {
		return eventLine
	}
	if !isLogRecord(line[at:]) {
		return plainLine
	}
	if bytes.HasSuffix(bytes.TrimRight(line, " \t"), []byte("{")) {
		return eventLine
	}
	return logLine
}

// isEventStart knows the line with which Spark logs a progress.
func isEventStart(line []byte) bool {
	return bytes.HasSuffix(bytes.TrimRight(line, " \t"), []byte("made progress: {"))
}

// isLogRecord reports whether a line starts with a date, a time of day and, close
// by, a log level.
func isLogRecord(line []byte) bool {
	n := dateTime(line)
	if n == 0 {
		return false
	}
	rest := line[n:min(len(line), n+48)]
	for _, level := range [...]string{"INFO", "WARN", "ERROR", "DEBUG", "TRACE", "FATAL"} {
		if bytes.Contains(rest, []byte(level)) {
			return true
		}
	}
	return false
}

// dateTime returns the length of a date and time of day at the start of line, such
// as 24/05/01 10:00:00 or [2024-05-01T10:00:00; 0 if there is none.
func dateTime(line []byte) int {
	i := 0
	if len(line) > 0 && line[0] == '[' {
		i++
	}
	year := digits(line, i)
	if year != 2 && year != 4 {
		return 0
	}
	i += year
	for _, layout := range [...]string{"-dd-dd", "/dd/dd"} {
		if matches(line, i, layout) && (matches(line, i+6, " dd:dd:dd") || matches(line, i+6, "Tdd:dd:dd")) {
			return i + len("-dd-dd dd:dd:dd")
		}
	}
	return 0
}

func digits(b []byte, i int) (n int) {
	for i+n < len(b) && b[i+n] >= '0' && b[i+n] <= '9' {
		n++
	}
	return n
}

// matches compares with a layout in which d stands for a digit.
func matches(b []byte, i int, layout string) bool {
	if i+len(layout) > len(b) {
		return false
	}
	for k := range len(layout) {
		c := b[i+k]
		if layout[k] == 'd' && (c < '0' || c > '9') || layout[k] != 'd' && c != layout[k] {
			return false
		}
	}
	return true
}

// carrierPrefix returns the length of what a container runtime puts before every
// line: "2024-05-01T10:00:00.1Z stdout F " or "driver-1  | "; 0 if there is none.
func carrierPrefix(line []byte) int {
	if n := dateTime(line); n > 0 && line[10] == 'T' {
		for n < len(line) && line[n] != ' ' && line[n] != '\t' {
			n++
		}
		for _, stream := range [...]string{" stdout F ", " stderr F ", " stdout P ", " stderr P "} {
			if bytes.HasPrefix(line[n:], []byte(stream)) {
				return n + len(stream)
			}
		}
		return min(n+1, len(line))
	}
	n := 0
	for n < len(line) && (isWord(line[n]) || line[n] == '-' || line[n] == '.') {
		n++
	}
	end := skipBlank(line, n)
	if n > 0 && end > n && end < len(line) && line[end] == '|' {
		return min(end+2, len(line))
	}
	return 0
}

// markOf returns the comment mark with which the text before a candidate starts.
func markOf(before []byte) string {
	text := bytes.TrimLeft(before, " \t")
	for _, m := range [...]string{"//", "#", "--", "*", "|", ">", "+"} {
		if bytes.HasPrefix(text, []byte(m)) {
			return m + string(sameByte(text[len(m):], m[0]))
		}
	}
	return ""
}

// sameByte returns how text goes on with the same byte.
func sameByte(text []byte, c byte) []byte {
	n := 0
	for n < len(text) && text[n] == c {
		n++
	}
	return text[:n]
}

// margin returns where a further line of the candidate starts, behind carrier
// prefix and comment marks. Marks that no JSON can start with are always taken
// off; "#", "//" and "--" only where the first line had them, for otherwise they
// start a comment.
func (s *Scanner) margin(line []byte) int {
	at := 0
	if s.prefixed {
		at = carrierPrefix(line)
	}
	if s.p.str.open && s.mark == "" {
		return at
	}
	for range 3 {
		i := skipBlank(line, at)
		n := s.markAt(line[i:])
		if n == 0 {
			return at
		}
		at = i + n
		if s.p.str.open {
			return min(at+1, len(line)) // the blank behind the mark is no part of the string
		}
	}
	return at
}

func (s *Scanner) markAt(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	switch text[0] {
	case '|', '>':
		return 1
	case '*':
		if len(text) > 1 && text[1] == '/' {
			return 0
		}
		return 1
	}
	if s.mark != "" && bytes.HasPrefix(text, []byte(s.mark)) {
		return len(s.mark)
	}
	return 0
}

// start says how the text of a candidate is written.
type start uint8

const (
	plainStart   start = iota
	escapedStart       // inside a string with backslashes: {\"id\":...
	doubledStart       // inside a field with doubled quotes: {""id"":...
)

// nextStart finds the next brace at or after pos that may open an object; -1 if
// there is none.
func nextStart(line []byte, pos int) (at int, how start) {
	for pos < len(line) {
		i := bytes.IndexByte(line[pos:], '{')
		if i < 0 {
			break
		}
		at = pos + i
		rest := line[skipBlank(line, at+1):]
		switch {
		case bytes.HasPrefix(rest, []byte(`\"`)), bytes.HasPrefix(rest, []byte(`\n`)):
			return at, escapedStart
		case len(rest) > 2 && rest[0] == '"' && rest[1] == '"' && isWord(rest[2]):
			return at, doubledStart
		case opensObject(rest):
			return at, plainStart
		}
		pos = at + 1
	}
	return -1, plainStart
}

// opensObject judges by what follows the brace.
func opensObject(rest []byte) bool {
	if len(rest) == 0 {
		return true
	}
	switch rest[0] {
	case '"', '\'', '/', '#', '<':
		return true
	case '.':
		return bytes.HasPrefix(rest, []byte("..."))
	case 'u':
		return len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"')
	}
	return bytes.HasPrefix(rest, []byte("…"))
}

// fragmentStart reports whether the line begins with a key of an event, so that
// it is the middle of an object whose beginning is missing.
func fragmentStart(line []byte) (int, bool) {
	at := skipBlank(line, carrierPrefix(line))
	at = skipBlank(line, at+len(markOf(line[at:])))
	if at >= len(line) || (line[at] != '"' && line[at] != '\'') {
		return 0, false
	}
	end := bytes.IndexByte(line[at+1:min(len(line), at+80)], line[at])
	if end < 0 {
		return 0, false
	}
	after := skipBlank(line, at+end+2)
	if after >= len(line) || line[after] != ':' {
		return 0, false
	}
	_, known := keyOf(line[at+1 : at+1+end])
	return at, known
}

func blank(line []byte) bool { return skipBlank(line, 0) == len(line) }

// skipBlank passes blanks, tabs and the no-break spaces of web pages.
func skipBlank(line []byte, i int) int {
	for i < len(line) {
		switch {
		case line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\n':
			i++
		case line[i] == 0xc2 && i+1 < len(line) && line[i+1] == 0xa0:
			i += 2
		default:
			return i
		}
	}
	return min(i, len(line))
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
