package strictyaml

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Positions knows where each value of a decoded file stands, by path (see Path).
type Positions struct {
	file  string
	lines [][]byte
	nodes map[string]place
}

type place struct {
	at    Position
	style yaml.Style
	text  string
}

func newPositions(file string, data []byte) *Positions {
	return &Positions{file: file, lines: bytes.Split(data, []byte("\n")), nodes: map[string]place{}}
}

// Path names a value inside a file: keys as strings, list places as ints.
// Path("groups", 0, "rules", 2, "for") is "groups[0].rules[2].for".
func Path(elems ...any) string {
	path := ""
	for _, e := range elems {
		switch e := e.(type) {
		case int:
			path = index(path, e)
		case string:
			path = child(path, e)
		default:
			path = child(path, fmt.Sprint(e))
		}
	}
	return path
}

func child(path, key string) string {
	if key == "" || strings.ContainsAny(key, `.[]"`) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// File returns the name that the file was decoded under.
func (p *Positions) File() string { return p.file }

// Has reports whether the file sets the value at path.
func (p *Positions) Has(path string) bool {
	_, ok := p.nodes[path]
	return ok
}

// Of returns where the value at path stands, or where the nearest thing around it
// stands if the file does not set it.
func (p *Positions) Of(path string) Position {
	for {
		if n, ok := p.nodes[path]; ok {
			return n.at
		}
		if path == "" {
			return Position{}
		}
		path = parent(path)
	}
}

// parent cuts the last element off a path.
func parent(path string) string {
	if strings.HasSuffix(path, `"]`) {
		if i := strings.LastIndex(path, `["`); i >= 0 {
			return path[:i]
		}
	}
	i := strings.LastIndexAny(path, ".[")
	if i < 0 {
		return ""
	}
	return path[:i]
}

// Faultf makes a fault about the value at path.
func (p *Positions) Faultf(path, format string, args ...any) Fault {
	return Fault{File: p.file, Position: p.Of(path), Err: fmt.Errorf(format, args...)}
}

// Within returns the place in the file of a byte offset inside the text at path,
// so that a fault in an expression points at the character. Where the text was
// folded over several lines, it is the place where the text starts.
func (p *Positions) Within(path string, offset int) Position {
	n, ok := p.nodes[path]
	if !ok || offset < 0 || offset > len(n.text) {
		return p.Of(path)
	}
	before := n.text[:offset]
	row := strings.Count(before, "\n")
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	switch {
	case n.style&yaml.LiteralStyle != 0:
		return p.literal(n.at, row, column)
	case n.style&yaml.FoldedStyle != 0 || row > 0 || !p.holds(n):
		return n.at
	}
	return Position{Line: n.at.Line, Column: n.at.Column + column + quoteWidth(n.style)}
}

func quoteWidth(s yaml.Style) int {
	if s&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return 1
	}
	return 0
}

// holds reports whether the text stands on its line just as it reads: not folded
// over lines, no escapes.
func (p *Positions) holds(n place) bool {
	return n.at.Line >= 1 && n.at.Line <= len(p.lines) && bytes.Contains(p.lines[n.at.Line-1], []byte(n.text))
}

// literal finds a row of a `|` block, whose text begins on the line after its mark.
func (p *Positions) literal(at Position, row, column int) Position {
	first := at.Line // zero-based place of the line after the mark
	for first < len(p.lines) && len(bytes.TrimSpace(p.lines[first])) == 0 {
		first++
	}
	if first >= len(p.lines) {
		return at
	}
	indent := len(p.lines[first]) - len(bytes.TrimLeft(p.lines[first], " "))
	return Position{Line: at.Line + 1 + row, Column: indent + column + 1}
}
