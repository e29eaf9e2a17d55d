package salvage

import (
	"bytes"
	"encoding/json"
)

// shape is what stands before every line of a candidate where something put its
// own prefix there: a scheduler's log head, a line number, a file name. Times and
// numbers in it change from line to line.
type shape []byte

// learn compares the first two lines of a candidate. They share a shape if the
// second one goes on like an object behind what both begin with.
func learn(first, second []byte) shape {
	i, k := 0, 0
	for i < len(first) && k < len(second) {
		if n, m := run(first, i), run(second, k); n > 0 && m > 0 && first[i] != ' ' == (second[k] != ' ') {
			i, k = i+n, k+m
			continue
		}
		if first[i] != second[k] || first[i] == '{' && opensObject(first[skipBlank(first, i+1):]) {
			break
		}
		i, k = i+1, k+1
	}
	if len(bytes.TrimSpace(first[:i])) == 0 || !continues(second[k:]) {
		return nil
	}
	return shape(bytes.Clone(first[:i]))
}

// run returns the length of the digits or blanks at i, which may differ in length
// from line to line.
func run(b []byte, i int) int {
	if n := digits(b, i); n > 0 {
		return n
	}
	n := 0
	for i+n < len(b) && b[i+n] == ' ' {
		n++
	}
	return n
}

// continues reports whether text can be the next line of an object.
func continues(text []byte) bool {
	at := skipBlank(text, 0)
	return at < len(text) && bytes.IndexByte([]byte("\"'}]"), text[at]) >= 0
}

// match returns the length of the prefix of line that has the shape, 0 if it has
// another.
func (s shape) match(line []byte) int {
	i, k := 0, 0
	for i < len(s) {
		n := run(s, i)
		switch m := run(line, k); {
		case n > 0 && m > 0 && (s[i] == ' ') == (line[k] == ' '):
			i, k = i+n, k+m
		case n > 0 && s[i] == ' ' && i == 0:
			i += n // a number that grew fills the blanks before it
		case k < len(line) && s[i] == line[k]:
			i, k = i+1, k+1
		default:
			return 0
		}
	}
	return k
}

// wrapped is the line that container runtimes write for each line of output.
const wrapped = `{"log":`

// unwrap returns the output that such a line holds.
func unwrap(line []byte) ([]byte, bool) {
	if !bytes.HasPrefix(line, []byte(wrapped)) {
		return line, false
	}
	var l struct {
		Log    string `json:"log"`
		Stream string `json:"stream"`
	}
	if json.Unmarshal(line, &l) != nil || l.Stream == "" {
		return line, false
	}
	return bytes.TrimRight([]byte(l.Log), "\r\n"), true
}
