package decode

import (
	"github.com/stategauge/stategauge/event"
)

// Decoder splits bodies into events. It is not safe for concurrent use; get one
// per goroutine from a Pool.
type Decoder struct {
	pool *Pool
	c    cursor
	head header
	rec  recorder

	batch *event.Batch    // being filled; handed over with the event
	env   *event.Envelope // being filled; nil for bare events

	level   level // object that the cursor is in
	deepest level // innermost object seen so far
	unknown int   // metrics outside the catalog stored so far

	order keyOrder
	parts partTable
	row   observedRow
}

// level says which object a key stands in: an inner one knows better than the
// wrappers around it.
type level uint8

const (
	levelTop level = iota
	levelEvent
	levelProgress
)

// seen is a set of keys that tell an event's kind.
type seen uint16

const (
	seenID seen = 1 << iota
	seenRun
	seenName
	seenException
	seenProgress // a progress member with something in it
	seenBatch    // keys that only a progress has
	seenLegacy   // keys of the event log before Spark 2.1
)

// header gathers what is known of an event besides its batch.
type header struct {
	seen    seen
	typed   eventType
	id      string
	run     string
	name    string
	atMs    int64
	failed  bool
	message string
	class   string
	jobTags []string
}

// sawMember notes that a member of level l has something in it.
func (h *header) sawMember(l level) {
	if l == levelProgress {
		h.seen |= seenProgress
	}
}

// begin makes the decoder ready for an element.
func (d *Decoder) begin() {
	if d.batch == nil {
		d.batch = d.pool.newBatch()
	}
	d.batch.Reset()
	if d.env != nil {
		d.pool.env.Put(d.env)
		d.env = nil
	}
	d.head = header{atMs: event.Absent}
	d.level, d.deepest = levelTop, levelTop
	d.unknown = 0
	d.parts.reset()
}

// shrink lets go of scratch memory that one odd event made large.
func (d *Decoder) shrink() {
	if cap(d.c.buf) > scratchBytes {
		d.c.buf = nil
	}
	if cap(d.rec.spans) > scratchBytes/32 {
		d.rec.spans = nil
	}
	if cap(d.row.names) > scratchBytes/16 {
		d.row.names = nil
	}
	d.parts.shrink()
	if d.batch != nil && cap(d.batch.Operators) > restingOperators {
		d.batch = nil
	}
}

// intern returns the shared string of text, cut to the limit.
func (d *Decoder) intern(text []byte) string {
	return d.pool.strings.get(cut(text, d.pool.lim.StringBytes))
}

// outcome is what became of one element.
type outcome uint8

const (
	isEvent   outcome = iota
	isSkipped         // a line that is none of a streaming query's business
	isReject
)

// element parses the value at the cursor. After isReject the reason is in c.fault.
func (d *Decoder) element() outcome {
	d.begin()
	d.value()
	if d.c.failed() {
		return isReject
	}
	if d.head.typed == typeOther {
		return isSkipped
	}
	if reason, want := d.judge(); reason != "" {
		d.c.fault = fault{reason: reason, off: -1, want: want}
		return isReject
	}
	return isEvent
}

// value parses a top-level value: an object, or a string that holds one.
func (d *Decoder) value() {
	switch d.c.peek() {
	case '{':
		d.object()
	case '"':
		d.insideString()
	default:
		d.c.skip()
	}
}

// object parses the object at the cursor on the present level.
func (d *Decoder) object() {
	d.deepest = max(d.deepest, d.level)
	d.c.enter()
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		if d.level == levelProgress || !d.wrapperField(key) {
			d.progressField(key)
		}
		if d.head.typed == typeOther && d.level == levelTop {
			d.c.i = len(d.c.b) // nothing in it is of interest; the caller finds its end
			return
		}
	}
}

// nested parses the value of a progress or event member on its own level.
func (d *Decoder) nested(l level) {
	was := d.level
	d.level = l
	switch d.c.peek() {
	case '{':
		d.head.sawMember(l)
		d.object()
	case '"':
		d.nestedString(l)
	default:
		d.c.skip()
	}
	d.level = was
}

// nestedString parses a member that should be an object and is a string: JSON in
// it, or the bare name of a kind.
func (d *Decoder) nestedString(l level) {
	start := d.c.i
	text := d.c.text()
	if d.c.failed() {
		return
	}
	if len(text) == 0 || firstByte(text) != '{' {
		if l == levelEvent {
			d.setType(typeOf(text))
		}
		return
	}
	d.c.i = start
	d.head.sawMember(l)
	d.insideString()
}

// insideString parses the JSON object that the string at the cursor holds. Faults
// in it are reported at the string. Each level has one string at most, so that
// strings in strings come to an end.
func (d *Decoder) insideString() {
	start := d.c.i
	text := d.c.str()
	if d.c.failed() || firstByte(text) != '{' {
		return
	}
	outer := d.c
	outer.rec.giveUp()
	inner := append([]byte(nil), text...)
	d.c.b, d.c.i, d.c.rec = inner, 0, nil
	d.object()
	if !d.c.failed() && d.c.peek() != 0 {
		d.c.fail("expected the end of the JSON in a string")
	}
	f, buf, keys := d.c.fault, d.c.buf, d.c.keys
	d.c = outer
	d.c.buf, d.c.keys = buf, keys
	if f.reason != "" {
		d.c.i = start
		d.c.refuse(f.reason, "JSON in a string: "+f.want)
	}
}

// firstByte returns the first byte of b that is no blank, 0 if there is none.
func firstByte(b []byte) byte {
	for _, ch := range b {
		if !isBlank(ch) {
			return ch
		}
	}
	return 0
}
