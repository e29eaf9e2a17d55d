// Package strictyaml decodes YAML files that people write. It reports every
// fault of a file at once, each with file, line and column, names the nearest
// right word for a key that nobody knows, and remembers where each value stands,
// so that a check made after decoding can point at the line too. It is the only
// importer of the YAML library.
//
// Fields are matched by their `yaml:"name"` tags; `-` and `,inline` work as
// usual. A type compiles itself at load by one of three hooks, tried in this
// order: ScalarDecoder, encoding.TextUnmarshaler (both for scalars) and
// UnmarshalYAML(func(any) error) error, which the Prometheus configuration types
// have. An explicit null leaves the field as it was, so defaults are set by
// filling the value before it is decoded into.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Limits of a file. They keep a hostile or broken one from costing more than
// reading it: aliases count once per use, so a tower of anchors ends early.
const (
	MaxBytes = 4 << 20 // size of a file
	MaxDepth = 64      // nesting of mappings and lists
	MaxNodes = 200_000 // values visited, aliases expanded
)

// ScalarDecoder is the hook for types that compile from one scalar: durations,
// percentages, expressions. The error's text becomes the fault's message.
type ScalarDecoder interface{ DecodeScalar(text string) error }

// legacyUnmarshaler is what types written for older YAML libraries implement.
type legacyUnmarshaler interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// Decode decodes the single YAML document in data into out, a pointer to a
// struct or map; name is how messages call the file. The error is a Faults with
// every fault found, in file order; out then holds what could be decoded and
// must not be used. An empty file decodes to nothing and is no fault.
func Decode(name string, data []byte, out any) error {
	_, err := DecodeAt(name, data, out)
	return err
}

// DecodeAt is Decode and returns where each value stands, for checks that come
// after. The Positions are usable even where the error is not nil.
func DecodeAt(name string, data []byte, out any) (*Positions, error) {
	d := &decoder{pos: newPositions(name, data)}
	target := reflect.ValueOf(out)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return d.pos, fmt.Errorf("decode %s: want a pointer to decode into, got %T", name, out)
	}
	root := d.parse(data)
	if root != nil {
		d.value(root, target.Elem(), "", 0)
	}
	return d.pos, d.faults.Err()
}

// decoder walks one document. It never stops at a fault, except where going on
// would pass a limit.
type decoder struct {
	pos    *Positions
	faults Faults
	nodes  int
	full   bool // the node limit was reached and reported
}

func (d *decoder) fault(n *yaml.Node, format string, args ...any) {
	d.faultAt(Position{Line: n.Line, Column: n.Column}, fmt.Errorf(format, args...))
}

func (d *decoder) faultAt(p Position, err error) {
	d.faults = append(d.faults, Fault{File: d.pos.file, Position: p, Err: err})
}

// parse returns the document's root, nil where there is nothing to decode.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > MaxBytes {
		d.faultAt(Position{}, fmt.Errorf("the file has %d bytes, more than the %d allowed", len(data), MaxBytes))
		return nil
	}
	if msg, at := controlCharacter(data); msg != "" {
		d.faultAt(at, errors.New(msg))
		return nil
	}
	docs := yaml.NewDecoder(bytes.NewReader(data))
	first, err := nextDocument(docs)
	if err != nil {
		d.syntax(err)
		return nil
	}
	if first == nil {
		return nil
	}
	second, err := nextDocument(docs)
	if err != nil {
		d.syntax(err)
	}
	if second != nil {
		d.fault(second, "a second document begins here; one per file is allowed")
	}
	return first
}

// controlCharacter finds the first byte that no text file holds. The library
// names no line for it.
func controlCharacter(data []byte) (string, Position) {
	i := bytes.IndexFunc(data, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' })
	if i < 0 {
		return "", Position{}
	}
	start := bytes.LastIndexByte(data[:i], '\n') + 1
	at := Position{Line: 1 + bytes.Count(data[:i], []byte("\n")), Column: i - start + 1}
	return fmt.Sprintf("control character %#02x", data[i]), at
}

// nextDocument returns the next document's root, nil at the end. A panic of the
// library is an error like any other: files come from outside.
func nextDocument(docs *yaml.Decoder) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("cannot be parsed: %v", r)
		}
	}()
	var doc yaml.Node
	switch err := docs.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	case doc.Kind == yaml.DocumentNode && len(doc.Content) == 1:
		return doc.Content[0], nil
	}
	return nil, nil
}

var (
	syntaxLine    = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// syntax turns the library's text into a fault with its line.
func (d *decoder) syntax(err error) {
	m := syntaxLine.FindStringSubmatch(firstLine(err.Error()))
	if m == nil {
		d.faultAt(Position{}, err)
		return
	}
	line, convErr := strconv.Atoi(m[1])
	if convErr != nil {
		line = d.unnamedLine(m[2])
	}
	d.faultAt(Position{Line: line}, errors.New(m[2]))
}

// unnamedLine finds the line of a fault that the library names none for: it does
// so on the first line, and for anchors, which it looks up without their place.
func (d *decoder) unnamedLine(message string) int {
	m := unknownAnchor.FindStringSubmatch(message)
	if m == nil {
		return 1
	}
	for i, line := range d.pos.lines {
		if bytes.Contains(line, []byte("*"+m[1])) {
			return i + 1
		}
	}
	return 0
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
