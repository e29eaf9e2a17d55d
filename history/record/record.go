// Package record turns one update of a query into the bytes that go to disk, and
// back. A record holds everything of an update, so that replaying stored ones
// gives the same series, windows and verdicts as the events once did.
//
// # Form
//
// A record starts with the version of its form and is read alone, given the words
// of its Dictionary: reads go by query and time. The dictionary takes the strings
// that repeat (ids and names of queries, operators, sources, settings, labels, keys
// outside the catalog) and the sets of columns that vectors have; strings of a
// single run or event stand in the record. Integers are varints, most of them as
// the distance from another figure of the record; other numbers are decimals where
// that is exact, otherwise eight bytes. Rates are written as the milliseconds that
// Spark divided by. Zeros cost a bit, absent values none.
//
// Metrics go by their id in the catalog. Ids are append-only, so older records
// stay readable; ids of a newer catalog are passed over. A version that this
// program does not know is an error.
//
// Two things are not told apart: an empty list and none, and one NaN and another.
package record

import (
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// Version is the first byte of a record of Append. It rises whenever the bytes of the
// same update change, to a number that no form has had; records of earlier versions
// stay readable. Heartbeats have a form and a version of their own.
const Version = 1

// MaxBytes bounds a record that Decode looks at, far above what events can fill.
const MaxBytes = 16 << 20

// Append appends the record of u to dst. It adds words to d, which must be stored
// with the record or before it: see Dictionary. u is not changed and nothing of it
// is kept. It does not allocate where dst has room and all words are known.
func Append(dst []byte, u *event.Update, d *Dictionary) []byte {
	c := codec{buf: append(dst, Version), d: d, writing: true}
	c.update(u, nil)
	return c.buf
}

// Decode reads a record into u, reusing u.Event with its batch and envelope. The
// words that the record names must be in d. After an error u holds nothing of use.
// Whoever reads many records uses a Decoder, which keeps memory also where events
// without a batch come in between.
func Decode(b []byte, d *Dictionary, u *event.Update) error {
	var x Decoder
	if e := u.Event; e != nil {
		x.spare = spare{event: e, batch: e.Batch, envelope: e.Envelope, extra: e.Extra}
	}
	return x.decode(b, d, u)
}

// Decoder reads one record after another into the same memory. It is for one
// goroutine; the zero value is ready.
type Decoder struct {
	update event.Update
	spare  spare
}

// Decode reads a record, given the words that it names. The update and what it
// points to are valid until the next call, but for settings, executors, failures
// and strings, which may be kept. The error says what is wrong with the bytes;
// whatever they are, Decode neither panics nor takes memory without bound.
func (x *Decoder) Decode(b []byte, d *Dictionary) (*event.Update, error) {
	if err := x.decode(b, d, &x.update); err != nil {
		return nil, err
	}
	return &x.update, nil
}

func (x *Decoder) decode(b []byte, d *Dictionary, u *event.Update) error {
	switch {
	case len(b) == 0:
		return errors.New("decode record: it is empty")
	case len(b) > MaxBytes:
		return fmt.Errorf("decode record: %d bytes, at most %d", len(b), MaxBytes)
	case b[0] != Version && b[0] != heartbeatVersion:
		return fmt.Errorf("decode record: version %d, this program reads %d and %d", b[0], Version, heartbeatVersion)
	}
	c := codec{buf: b[1:], d: d}
	if b[0] == heartbeatVersion {
		c.heartbeat(u, &x.spare)
	} else {
		c.update(u, &x.spare)
	}
	if c.err == nil && len(c.buf) > 0 {
		c.err = fmt.Errorf("%d bytes too many", len(c.buf))
	}
	if c.err != nil {
		return fmt.Errorf("decode record: %w", c.err)
	}
	return nil
}

// spare is the memory of parts that not every update has, while it is not in use.
type spare struct {
	event    *event.Event
	batch    *event.Batch
	envelope *event.Envelope
	extra    []event.Label
}

func (s *spare) eventIf(has bool) *event.Event { return spareIf(&s.event, has) }

func (s *spare) batchIf(has bool) *event.Batch { return spareIf(&s.batch, has) }

func (s *spare) envelopeIf(has bool) *event.Envelope { return spareIf(&s.envelope, has) }

// spareIf returns *p, made where it is missing, or nil where there is none.
func spareIf[T any](p **T, has bool) *T {
	if !has {
		return nil
	}
	if *p == nil {
		*p = new(T)
	}
	return *p
}

// newIf returns a new T or nil.
func newIf[T any](has bool) *T {
	if has {
		return new(T)
	}
	return nil
}

// keepExtra keeps the memory of labels that were read.
func (s *spare) keepExtra(c *codec, e *event.Event) {
	if !c.writing {
		s.extra = e.Extra
	}
}
