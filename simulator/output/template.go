package output

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/stategauge/stategauge/simulator/spark"
)

// patchKind is what a copy changes about a value.
type patchKind uint8

const (
	patchUUID     patchKind = iota // id, runId, sender: another UUID, the same for the same one
	patchName                      // name of the query, id of the application: a suffix
	patchTime                      // moved by the copy's shift
	patchInstant                   // the same, in the notation of envelopes
	patchDuration                  // shortened together with the batch's others
	patchRows                      // rows in state: more by the copy's share
)

// patch is a value of an event that copies change: data[at:end], without quotes.
type patch struct {
	at, end int
	kind    patchKind
	num     int64 // hash of a UUID, milliseconds, or a count
}

// template is an event with the places that copies change, in order.
type template struct {
	data     []byte
	patches  []patch
	addBatch int64 // milliseconds; 0: none
}

// scope is the object that a key stands in.
type scope uint8

const (
	scopeOther     scope = iota // nothing in it changes
	scopeEvent                  // an event, its envelope, its wrapper, a query of a heartbeat
	scopeApp                    // the envelope's application
	scopeDurations              // durationMs
	scopeTimes                  // eventTime
	scopeOperator               // an entry of stateOperators
)

var errNoEvent = errors.New("not an event on one line")

// parse finds the places of data, which it keeps a copy of.
func (t *template) parse(data []byte) error {
	t.data = append(t.data[:0], data...)
	t.patches, t.addBatch = t.patches[:0], 0
	if len(data) == 0 || data[0] != '{' {
		return errNoEvent
	}
	if t.object(0, scopeEvent) != len(data) {
		return errNoEvent
	}
	return nil
}

// object reads the object that begins at i and returns what follows it; -1 where
// it is broken. It expects JSON without blanks, as simulations write it.
func (t *template) object(i int, s scope) int {
	d := t.data
	i++
	for i > 0 && i < len(d) && d[i] != '}' {
		if d[i] == ',' {
			i++
		}
		start, end := i+1, t.stringEnd(i)
		if end < 0 || end+1 >= len(d) || d[end] != ':' {
			return -1
		}
		i = t.value(end+1, s, d[start:end-1])
	}
	if i <= 0 || i >= len(d) {
		return -1
	}
	return i + 1
}

// value reads the value of a key and returns what follows it, -1 where it is
// broken.
func (t *template) value(i int, s scope, key []byte) int {
	switch t.data[i] {
	case '{':
		inner := inside(s, key)
		if inner == scopeOther {
			return t.skip(i)
		}
		return t.object(i, inner)
	case '[':
		inner := inside(s, key)
		if inner == scopeOther {
			return t.skip(i)
		}
		return t.array(i, inner)
	case '"':
		end := t.stringEnd(i)
		if end > 0 {
			t.text(s, key, i+1, end-1)
		}
		return end
	}
	end := i
	for end < len(t.data) && t.data[end] != ',' && t.data[end] != '}' && t.data[end] != ']' {
		end++
	}
	t.number(s, key, i, end)
	return end
}

func (t *template) array(i int, s scope) int {
	i++
	for i > 0 && i < len(t.data) && t.data[i] != ']' {
		switch t.data[i] {
		case ',':
			i++
		case '{':
			i = t.object(i, s)
		default:
			return -1
		}
	}
	if i <= 0 || i >= len(t.data) {
		return -1
	}
	return i + 1
}

// inside returns the scope of the object or the objects that a key holds.
func inside(s scope, key []byte) scope {
	if s != scopeEvent {
		return scopeOther
	}
	switch string(key) {
	case "event", "progress", "active":
		return scopeEvent
	case "app":
		return scopeApp
	case "durationMs":
		return scopeDurations
	case "eventTime":
		return scopeTimes
	case "stateOperators":
		return scopeOperator
	}
	return scopeOther
}

// text notes a string value that copies change.
func (t *template) text(s scope, key []byte, at, end int) {
	switch s {
	case scopeEvent:
		switch string(key) {
		case "id", "runId", "sender":
			t.patches = append(t.patches, patch{at, end, patchUUID, int64(hash(t.data[at:end]))})
		case "name":
			t.patches = append(t.patches, patch{at, end, patchName, 0})
		case "timestamp":
			t.time(patchTime, at, end)
		case "at":
			t.time(patchInstant, at, end)
		}
	case scopeApp:
		if string(key) == "id" {
			t.patches = append(t.patches, patch{at, end, patchName, 0})
		}
	case scopeTimes:
		t.time(patchTime, at, end)
	}
}

// time notes a time, unless it is the one of 1970 that stands for none.
func (t *template) time(kind patchKind, at, end int) {
	when, err := time.Parse(time.RFC3339, string(t.data[at:end]))
	if err != nil || when.UnixMilli() == 0 {
		return
	}
	t.patches = append(t.patches, patch{at, end, kind, when.UnixMilli()})
}

// number notes a number that copies change.
func (t *template) number(s scope, key []byte, at, end int) {
	kind := patchDuration
	switch {
	case s == scopeDurations && (string(key) == "addBatch" || string(key) == "triggerExecution"):
	case s == scopeEvent && string(key) == "batchDuration":
	case s == scopeOperator && string(key) == "numRowsTotal":
		kind = patchRows
	default:
		return
	}
	n, err := strconv.ParseInt(string(t.data[at:end]), 10, 64)
	if err != nil {
		return
	}
	if string(key) == "addBatch" {
		t.addBatch = n
	}
	t.patches = append(t.patches, patch{at, end, kind, n})
}

// skip returns what follows the object or array that begins at i.
func (t *template) skip(i int) int {
	depth := 0
	for i < len(t.data) {
		switch t.data[i] {
		case '"':
			if i = t.stringEnd(i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// stringEnd returns what follows the string that begins at i, -1 where there is
// none.
func (t *template) stringEnd(i int) int {
	if i >= len(t.data) || t.data[i] != '"' {
		return -1
	}
	for i++; ; {
		n := bytes.IndexByte(t.data[i:], '"')
		if n < 0 {
			return -1
		}
		i += n + 1
		if !t.escaped(i - 1) {
			return i
		}
	}
}

// escaped reports whether an odd number of backslashes stands before i.
func (t *template) escaped(i int) bool {
	n := 0
	for i > n && t.data[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// render appends the event of a copy, shortened by shorter milliseconds.
func (t *template) render(dst []byte, c *replica, shorter int64) []byte {
	last := 0
	for i := range t.patches {
		p := &t.patches[i]
		dst = append(dst, t.data[last:p.at]...)
		last = p.end
		switch p.kind {
		case patchUUID:
			dst = c.appendID(dst, uint64(p.num))
		case patchName:
			dst = append(append(dst, t.data[p.at:p.end]...), c.suffix...)
		case patchTime:
			dst = spark.AppendTime(dst, p.num+c.shiftMs)
		case patchInstant:
			dst = spark.AppendInstant(dst, p.num+c.shiftMs)
		case patchDuration:
			dst = strconv.AppendInt(dst, p.num-shorter, 10)
		case patchRows:
			dst = strconv.AppendInt(dst, p.num+p.num*c.permille/1000, 10)
		}
	}
	return append(dst, t.data[last:]...)
}

// hash is FNV-1a.
func hash[T []byte | string](text T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}
