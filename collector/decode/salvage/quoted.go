package salvage

import "bytes"

// quotedText reads the text of an object that stands inside a string, up to the
// string's end, and returns where that is.
func (s *Scanner) quotedText(l ref, at int, how start) int {
	var end int
	var text []byte
	switch {
	case how == doubledStart:
		end, text = doubled(l.text, at)
	case at > 0 && l.text[at-1] == '\'':
		end, text = escaped(l.text, at, '\'')
	default:
		end, text = escaped(l.text, at, '"')
	}
	if holdsEvent(text) && s.nestedString(text, l.no) > 0 {
		s.usedLine = max(s.usedLine, l.no)
	}
	return end
}

// escaped returns the end of a text in which backslashes protect the quote, and
// the text as a JSON string.
func escaped(line []byte, at int, quote byte) (end int, text []byte) {
	text = append(text, '"')
	end = at
	for end < len(line) && line[end] != quote {
		c := line[end]
		switch {
		case c == '\\' && end+1 < len(line) && line[end+1] == '\'':
			text = append(text, '\'')
			end++
		case c == '\\' && end+1 < len(line):
			text = append(text, c, line[end+1])
			end++
		case c == '"':
			text = append(text, '\\', '"')
		case c < 0x20:
			text = append(text, ' ')
		default:
			text = append(text, c)
		}
		end++
	}
	return end, append(text, '"')
}

// doubled returns the end of a text in which quotes are doubled, as in a field of a
// table, and the text as a JSON string.
func doubled(line []byte, at int) (end int, text []byte) {
	text = append(text, '"')
	for end = at; end < len(line); end++ {
		switch c := line[end]; {
		case c == '"' && bytes.HasPrefix(line[end+1:], []byte{'"'}):
			text = append(text, '\\', '"')
			end++
		case c == '"':
			return end, append(text, '"')
		case c == '\\':
			text = append(text, '\\', '\\')
		case c < 0x20:
			text = append(text, ' ')
		default:
			text = append(text, c)
		}
	}
	return end, append(text, '"')
}
