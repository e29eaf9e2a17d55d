package decode

import (
	"bytes"
	"encoding/binary"

	"github.com/stategauge/stategauge/event"
)

// match decodes the element at the cursor by a template. On true the decoder is
// as the parser would have left it; on false it must begin anew.
func (d *Decoder) match(t *template) bool {
	d.begin()
	d.head = t.head
	if t.env != nil {
		d.env = d.pool.newEnvelope()
		active := d.env.Active
		*d.env = *t.env
		d.env.Active = active
	}
	t.frame.fill(d.batch, &d.parts)
	d.c.keys = t.keys
	if !d.fillSlots(t) || d.c.keys > d.c.lim.KeysPerEvent {
		return false
	}
	return !d.c.failed()
}

// fillSlots walks over the element and the template side by side. This is the
// loop that decoding consists of in the steady state; whatever is unusual goes to
// fillRest.
func (d *Decoder) fillSlots(t *template) bool {
	b, i, at, from := d.c.b, d.c.i, 0, 0
	operators, values, parts := d.batch.Operators, &d.batch.Values, d.parts.parts
	for k := range t.ops {
		op := &t.ops[k]
		n := int(op.literal)
		if len(b)-i < n+16 {
			return d.fillRest(t, k, i, at)
		}
		if n <= 8 {
			if (binary.LittleEndian.Uint64(b[i:i+8])^op.word)<<(op.shift&63) != 0 {
				return d.retry(t, k, from, at)
			}
		} else if string(b[i:i+n]) != string(t.literals[at:at+n]) {
			return d.retry(t, k, from, at)
		}
		i += n
		at += n
		from = i
		if !op.digits {
			if i = d.fillOther(op.slot, i); i < 0 {
				return false
			}
			continue
		}
		w := binary.LittleEndian.Uint64(b[i:i+8]) ^ ones*'0'
		n = countDigits(w)
		if n == 0 || (w&0xff == 0 && n > 1) {
			return d.retry(t, k+1, from, at)
		}
		u := sumDigits(w, n)
		i += n
		if n == 8 {
			w = binary.LittleEndian.Uint64(b[i:i+8]) ^ ones*'0'
			n = countDigits(w)
			if n == 8 {
				return d.retry(t, k+1, from, at)
			}
			u = u*tens[n&7] + sumDigits(w, n)&-uint64((n+7)>>3)
			i += n
		}
		switch op.kind {
		case slotOperator:
			operators[op.owner].Values[op.id] = float64(int64(u))
		case slotValue:
			values[op.id] = float64(int64(u))
		case slotPart:
			parts[op.id].at[op.owner] = int64(u)
		}
	}
	if !bytes.HasPrefix(b[i:], t.literals[at:]) {
		return d.retry(t, len(t.ops), from, at)
	}
	d.c.i = i + len(t.literals) - at
	return true
}

// retry is where fillSlots turns to when something after the value of op k-1 does
// not fit. If that value is a number, it may be of an unusual form.
func (d *Decoder) retry(t *template, k, from, at int) bool {
	if k == 0 || !t.ops[k-1].digits {
		return false
	}
	n := int(t.ops[k-1].literal)
	return d.fillRest(t, k-1, from-n, at-n)
}

// fillRest does what fillSlots does, from the literal before op k on, for every
// form of value and up to the last byte. The literal begins at b[i] and at
// t.literals[at].
func (d *Decoder) fillRest(t *template, k, i, at int) bool {
	b := d.c.b
	for ; k < len(t.ops); k++ {
		n := int(t.ops[k].literal)
		if !bytes.HasPrefix(b[i:], t.literals[at:at+n]) {
			return false
		}
		at += n
		if i = d.fillOther(t.ops[k].slot, i+n); i < 0 {
			return false
		}
	}
	if !bytes.HasPrefix(b[i:], t.literals[at:]) {
		return false
	}
	d.c.i = i + len(t.literals) - at
	return true
}

// fillOther fills any kind of slot from any form of value at b[i:] and returns the
// end of the value, -1 where there is none that the slot takes.
func (d *Decoder) fillOther(s slot, i int) (end int) {
	switch s.kind {
	case slotString, slotText:
		end = d.passText(s.kind, i)
	case slotStart, slotTime, slotAt:
		end = d.fillTime(s, i)
	case slotSnapshots:
		return d.fillSnapshots(int(s.owner), i)
	case slotBatchID, slotSeq, slotDropped, slotSnapshot, slotPart, slotRows:
		end = d.fillWhole(s, i)
	default:
		end = d.fillFigure(s, i)
	}
	if end == i {
		return -1
	}
	return end
}

// fillFigure fills a figure and returns its end, i where there is none. Figures
// that are kept in a list are left out of it when they are not finite, so there
// such a value fits no slot.
func (d *Decoder) fillFigure(s slot, i int) (end int) {
	f, end := parseFloat(d.c.b, i)
	f = finite(f)
	switch s.kind {
	case slotNumber:
		return end
	case slotOperator:
		d.batch.Operators[s.owner].Values[s.id] = f
		return end
	case slotValue:
		d.batch.Values[s.id] = f
		return end
	case slotSource:
		*sourceFigure(&d.batch.Sources[s.owner], s.id) = f
		return end
	}
	if f != f {
		return i
	}
	switch s.kind {
	case slotUnknown:
		d.batch.Operators[s.owner].Unknown[s.id].Value = f
	case slotPhase:
		d.batch.UnknownPhases[s.id].Value = f
	case slotObserved:
		d.batch.Observed[s.id].Value = f
	case slotPercentile:
		d.batch.Percentiles[s.id].Value = f
	}
	return end
}

// passText passes over a string that nobody reads, or over the text of one.
func (d *Decoder) passText(kind slotKind, i int) (end int) {
	d.c.i = i
	if kind == slotText {
		d.c.i--
	} else if i >= len(d.c.b) || d.c.b[i] != '"' {
		return i
	}
	lo, hi, _ := d.c.scanString()
	if d.c.failed() {
		return i
	}
	if kind == slotString {
		return d.c.i
	}
	if !flatText(d.c.b[lo:hi]) {
		return i
	}
	return hi
}

// fillTime fills a time in the form that Spark writes.
func (d *Decoder) fillTime(s slot, i int) (end int) {
	ms, ok := parseISO(d.c.b[i:])
	if !ok {
		return i
	}
	switch s.kind {
	case slotStart:
		d.head.atMs = ms
	case slotAt:
		d.env.AtMs = ms
	default:
		setTime(d.batch, event.MetricID(s.id), ms)
	}
	return i + isoLength
}

// fillWhole fills a whole number.
func (d *Decoder) fillWhole(s slot, i int) (end int) {
	v, end := parseInt(d.c.b, i)
	switch s.kind {
	case slotBatchID:
		d.batch.ID = v
		setWhole(&d.batch.Values[event.BatchID], v)
	case slotRows:
		d.batch.Sources[s.owner].Rows = v
	case slotPart:
		d.parts.parts[s.id].set(offsetKind(s.owner), v)
	case slotSeq:
		d.env.Seq = v
	case slotDropped:
		d.env.Dropped = v
	case slotSnapshot:
		foldSnapshot(&d.batch.Operators[s.owner], v)
	}
	return end
}

// fillSnapshots folds a run of SnapshotLastUploaded members, which may be empty.
func (d *Decoder) fillSnapshots(owner, i int) (end int) {
	s := snapshotScan{b: d.c.b, i: i}
	for {
		v, ok := s.member()
		if !ok {
			return s.i
		}
		d.c.keys++
		foldSnapshot(&d.batch.Operators[owner], v)
	}
}
