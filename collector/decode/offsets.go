package decode

import "bytes"

// offset parses one of a source's offsets, which may have any type. Kafka's maps
// from topic to partition to number and plain numbers are kept; all other shapes
// say nothing that could be added up.
func (d *Decoder) offset(k offsetKind) {
	if d.parts.begin(k) {
		d.c.rec.giveUp()
	}
	switch ch := d.c.peek(); {
	case ch == '{':
		if end, ok := d.partMap(d.c.b, d.c.i, k, false, d.c.rec); ok {
			d.c.i = end
			return
		}
		d.c.skip()
	case ch == '"':
		d.quotedOffset(k)
	case ch == '-' || ch-'0' <= 9:
		at := d.parts.place(plainID)
		d.parts.parts[at].set(k, d.c.integer(slot{kind: slotPart, owner: uint16(k), id: uint32(at)}))
	default:
		d.c.skip()
	}
}

// quotedOffset parses an offset inside a string, as the event log and Connect
// write it: JSON, a number, or something that says nothing.
func (d *Decoder) quotedOffset(k offsetKind) {
	c, start := &d.c, d.c.i
	if start+1 < len(c.b) && c.b[start+1] == '{' {
		mark := c.rec.mark()
		if end, ok := d.partMap(c.b, start+1, k, true, c.rec); ok {
			if end < len(c.b) && c.b[end] == '"' {
				c.i = end + 1
				return
			}
			c.rec.rollback(mark)
			d.parts.begin(k)
		}
	}
	lo, hi, plain := c.scanString()
	if c.failed() {
		return
	}
	if n, end := parseInt(c.b[:hi], lo); end == hi && hi > lo {
		at := d.parts.place(plainID)
		d.parts.parts[at].set(k, n)
		if c.rec != nil {
			c.rec.add(slot{kind: slotPart, owner: uint16(k), id: uint32(at)}, lo, hi)
		}
		return
	}
	if flatText(c.b[lo:hi]) {
		if c.rec != nil {
			c.rec.add(slot{kind: slotText}, lo, hi)
		}
		return
	}
	if !plain {
		c.buf = appendUnescaped(c.buf[:0], c.b[lo:hi])
		if end, ok := d.partMap(c.buf, 0, k, false, nil); ok {
			c.rec.giveUp()
			if firstByte(c.buf[end:]) != 0 { // JSON, and something behind it
				d.parts.begin(k)
			}
		}
	}
}

// flatText reports whether the raw text of a string is JSON whose first member is
// no object, so that it cannot be Kafka's map, whatever follows.
func flatText(raw []byte) bool {
	const open = `{\"`
	if len(raw) < len(open) || string(raw[:len(open)]) != open {
		return false
	}
	colon := bytes.Index(raw[len(open):], []byte(`\":`))
	if colon < 0 || bytes.IndexByte(raw[len(open):len(open)+colon], '\\') >= 0 {
		return false
	}
	value := raw[len(open)+colon+len(`\":`):]
	return len(value) > 0 && value[0] != '{' && value[0] > ' ' && (value[0] != '\\' || bytes.HasPrefix(value, []byte(`\"`)))
}

// offsetScan walks over a Kafka offset map. In the text of a string every quote
// has a backslash before it.
type offsetScan struct {
	b       []byte
	i       int
	escaped bool
}

// blanks passes over blanks, of which the text of a string has none.
func (s *offsetScan) blanks() {
	for !s.escaped && s.i < len(s.b) && s.b[s.i] <= ' ' && isBlank(s.b[s.i]) {
		s.i++
	}
}

// at passes over ch, if that comes next.
func (s *offsetScan) at(ch byte) bool {
	s.blanks()
	if s.i < len(s.b) && s.b[s.i] == ch {
		s.i++
		return true
	}
	return false
}

func (s *offsetScan) quote() bool {
	if s.escaped {
		return s.at('\\') && s.at('"')
	}
	return s.at('"')
}

// key returns a key, which no topic needs escapes for.
func (s *offsetScan) key() (k []byte, ok bool) {
	if !s.quote() {
		return nil, false
	}
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= ' ' && s.b[s.i] != '"' && s.b[s.i] != '\\' {
		s.i++
	}
	k = s.b[from:s.i]
	return k, s.quote() && s.at(':')
}

// partMap parses {topic: {partition: offset}} at b[i:]. If anything there is of
// another shape it takes everything back and returns false.
func (d *Decoder) partMap(b []byte, i int, k offsetKind, escaped bool, rec *recorder) (end int, ok bool) {
	s := offsetScan{b, i, escaped}
	mark, n := rec.mark(), len(d.parts.parts)
	if s.at('{') && s.topics(&d.parts, k, rec) {
		return s.i, true
	}
	rec.rollback(mark)
	d.parts.undo(k, n)
	return i, false
}

func (s *offsetScan) topics(t *partTable, k offsetKind, rec *recorder) bool {
	if s.at('}') {
		return true
	}
	for {
		topic, ok := s.key()
		if !ok || !s.at('{') || !s.partitions(t, topicID(topic), k, rec) {
			return false
		}
		if s.at('}') {
			return true
		}
		if !s.at(',') {
			return false
		}
	}
}

func (s *offsetScan) partitions(t *partTable, topic uint64, k offsetKind, rec *recorder) bool {
	if s.at('}') {
		return true
	}
	for {
		partition, ok := s.partition()
		if !ok {
			return false
		}
		s.blanks()
		v, end := parseInt(s.b, s.i)
		if end == s.i {
			return false
		}
		at := t.place(partID(topic, partition))
		t.parts[at].set(k, v)
		if rec != nil {
			rec.add(slot{kind: slotPart, owner: uint16(k), id: uint32(at)}, s.i, end)
		}
		s.i = end
		if s.at('}') {
			return true
		}
		if !s.at(',') {
			return false
		}
	}
}

// partition reads the key of a partition, a number in quotes.
func (s *offsetScan) partition() (p uint64, ok bool) {
	if !s.quote() {
		return 0, false
	}
	p, end := parseDigits(s.b, s.i)
	if n := end - s.i; n == 0 || n > exactDigits {
		return 0, false
	}
	s.i = end
	return p, s.quote() && s.at(':')
}
