package decode

import "github.com/stategauge/stategauge/event"

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

// fillSlots walks over the element and the template side by side.
func (d *Decoder) fillSlots(t *template) bool {
	b, i, lits := d.c.b, d.c.i, t.literals
	for k := range t.ops {
		op := &t.ops[k]
		n := int(op.literal)
		if len(b)-i < n || string(b[i:i+n]) != string(lits[:n]) {
			return false
		}
		i += n
		lits = lits[n:]
		if op.kind > slotCommon {
			if i = d.fillOther(op.slot, i); i < 0 {
				return false
			}
			continue
		}
		u, end := parseDigits(b, i)
		// One comparison for 1 to exactDigits digits, no fraction and no exponent.
		if uint(end-i-1) >= exactDigits || end >= len(b) || b[end] == '.' || b[end]|0x20 == 'e' || (b[i] == '0' && end-i > 1) {
			if i = d.fillOther(op.slot, i); i < 0 {
				return false
			}
			continue
		}
		i = end
		switch op.kind {
		case slotOperator:
			d.batch.Operators[op.owner].Values[op.id] = float64(int64(u))
		case slotValue:
			d.batch.Values[op.id] = float64(int64(u))
		case slotPart:
			d.parts.parts[op.id].at[op.owner] = int64(u)
		}
	}
	if len(b)-i < len(lits) || string(b[i:i+len(lits)]) != string(lits) {
		return false
	}
	d.c.i = i + len(lits)
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
