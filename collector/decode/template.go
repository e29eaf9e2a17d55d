package decode

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// op is a value of a template and the literal that stands before it.
type op struct {
	word    uint64 // the literal itself, if it is no longer than that
	literal uint32 // its length
	shift   uint8  // bits to shift out of a word to compare such a literal
	digits  bool   // the value is of a common kind and was a plain number when seen
	slot
}

// opBytes is the size of an op.
const opBytes = 32

// newOp makes the op of a slot that was filled by value and stands behind literal.
func newOp(literal, value []byte, s slot) op {
	_, end := parseDigits(value, 0)
	o := op{literal: uint32(len(literal)), digits: s.kind <= slotCommon && end == len(value), slot: s}
	if n := len(literal); n <= 8 {
		var word [8]byte
		copy(word[:], literal)
		o.word, o.shift = binary.LittleEndian.Uint64(word[:]), uint8(64-8*n)
	}
	return o
}

// template is the shape of one event: the bytes that stay the same and the slots
// between them. It is immutable once it is published.
type template struct {
	literals []byte // of all ops one after another, then what follows the last value
	ops      []op
	head     header          // as parsed; atMs comes from the event
	env      *event.Envelope // as parsed, nil for bare events; seq, dropped and at come from the event
	frame    frame
	keys     int // object members, those in runs of snapshots left out
	bytes    int // memory taken, roughly
}

// frame is a batch without its figures.
type frame struct {
	operators   []frameOperator
	sources     []event.Source
	phases      []event.KV
	observed    []event.Observed
	percentiles []event.Percentile
	trigger     event.TriggerKind
	description string
	databricks  bool
	parts       int   // partitions of all sources
	firstPart   []int // as partTable.first
}

type frameOperator struct {
	name    string
	unknown []event.KV
}

// learn makes a template of the event that the decoder has just parsed from
// body[start:d.c.i]; nil if its shape cannot be told by literals and slots.
func (d *Decoder) learn(start int) *template {
	if d.rec.abandoned || d.head.kind() != event.KindProgress {
		return nil
	}
	t := &template{head: d.head, frame: frameOf(d.batch, &d.parts), keys: d.c.keys}
	if d.env != nil {
		env := *d.env
		env.Active = nil
		t.env = &env
	}
	at := start
	for spans := d.rec.spans; len(spans) > 0; {
		n, lo, hi := snapshotRun(d.c.b[:d.c.i], at, spans)
		s := spans[0].slot
		if n > 0 {
			s.kind = slotSnapshots
			t.keys -= n
		} else {
			n, lo, hi = 1, spans[0].lo, spans[0].hi
		}
		t.literals = append(t.literals, d.c.b[at:lo]...)
		t.ops = append(t.ops, newOp(d.c.b[at:lo], d.c.b[lo:hi], s))
		at, spans = hi, spans[n:]
	}
	t.literals = bytes.Clone(append(t.literals, d.c.b[at:d.c.i]...))
	t.ops = append([]op(nil), t.ops...)
	t.bytes = len(t.literals) + opBytes*len(t.ops) + t.frame.size() + 512
	return t
}

// snapshotRun looks for members of SnapshotLastUploaded that stand one after
// another, with another member behind them. Which instances are told changes from
// batch to batch, so the whole run, commas included, becomes one slot. It returns
// the number of spans in the run, 0 for none, and its bounds.
func snapshotRun(b []byte, at int, spans []span) (n, lo, hi int) {
	if spans[0].kind != slotSnapshot {
		return 0, 0, 0
	}
	lo = bytes.LastIndex(b[at:spans[0].lo], snapshotKey)
	if lo < 0 {
		return 0, 0, 0
	}
	lo += at
	for s := (snapshotScan{b: b, i: lo}); n < len(spans) && spans[n].kind == slotSnapshot; n++ {
		if _, ok := s.member(); !ok {
			break
		}
		hi = s.i
	}
	return n, lo, hi
}

// snapshotKey is the begin of a member that holds one store instance's upload.
var snapshotKey = []byte(`"SnapshotLastUploaded.`)

// snapshotScan reads members of SnapshotLastUploaded, each with the comma behind it.
type snapshotScan struct {
	b []byte
	i int
}

// member reads one member and stops at the key after its comma. If there is no
// such member, or no comma, it returns false and stays where it was.
func (s *snapshotScan) member() (version int64, ok bool) {
	if !bytes.HasPrefix(s.b[s.i:], snapshotKey) {
		return 0, false
	}
	i := s.i + len(snapshotKey)
	for i < len(s.b) && s.b[i] > ' ' && s.b[i] < 0x7f && s.b[i] != '"' && s.b[i] != '\\' {
		i++
	}
	if i >= len(s.b) || s.b[i] != '"' {
		return 0, false
	}
	i = afterBlanks(s.b, i+1)
	if i >= len(s.b) || s.b[i] != ':' {
		return 0, false
	}
	i = afterBlanks(s.b, i+1)
	version, end := parseInt(s.b, i)
	if end == i {
		return 0, false
	}
	i = afterBlanks(s.b, end)
	if i >= len(s.b) || s.b[i] != ',' {
		return 0, false
	}
	s.i = afterBlanks(s.b, i+1)
	return version, true
}

func afterBlanks(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

func frameOf(b *event.Batch, parts *partTable) frame {
	f := frame{
		sources:     append([]event.Source(nil), b.Sources...),
		phases:      append([]event.KV(nil), b.UnknownPhases...),
		observed:    append([]event.Observed(nil), b.Observed...),
		percentiles: append([]event.Percentile(nil), b.Percentiles...),
		trigger:     b.Trigger,
		description: b.Description,
		databricks:  b.Databricks,
		parts:       len(parts.parts),
		firstPart:   append([]int(nil), parts.first...),
	}
	for i := range b.Operators {
		o := &b.Operators[i]
		f.operators = append(f.operators, frameOperator{o.Name, append([]event.KV(nil), o.Unknown...)})
	}
	return f
}

// size is roughly what a frame takes, in bytes; its strings belong to others.
func (f *frame) size() int {
	n := 48*len(f.operators) + 112*len(f.sources) + 24*len(f.phases) + 40*len(f.observed) + 24*len(f.percentiles) + 8*len(f.firstPart)
	for i := range f.operators {
		n += 24 * len(f.operators[i].unknown)
	}
	return n
}

// fill makes b and parts what they were when the frame was taken, figures left out.
func (f *frame) fill(b *event.Batch, parts *partTable) {
	b.Reset()
	for i := range f.operators {
		o := b.AddOperator()
		o.Name = f.operators[i].name
		o.Unknown = append(o.Unknown, f.operators[i].unknown...)
	}
	b.Sources = append(b.Sources, f.sources...)
	b.UnknownPhases = append(b.UnknownPhases, f.phases...)
	b.Observed = append(b.Observed, f.observed...)
	b.Percentiles = append(b.Percentiles, f.percentiles...)
	b.Trigger, b.Description, b.Databricks = f.trigger, f.description, f.databricks
	parts.first = append(parts.first[:0], f.firstPart...)
	parts.parts = slices.Grow(parts.parts[:0], f.parts)[:f.parts]
	for i := range parts.parts {
		parts.parts[i].at = absentPart
	}
}

var absentPart = [3]int64{event.Absent, event.Absent, event.Absent}
