package decode

import "github.com/stategauge/stategauge/event"

// wrapperField parses the value of a key that only wrappers have: the event log's
// line, the listener's event around a progress, our own envelope. It returns false
// for all other keys, without reading the value.
func (d *Decoder) wrapperField(key []byte) bool {
	h := &d.head
	switch string(key) {
	case "Event":
		h.typed = typeOfClass(d.c.text())
	case "progress":
		d.nested(levelProgress)
	case "exception":
		h.seen |= seenException
		d.exception()
	case "errorClassOnException":
		h.class = d.intern(d.c.text())
	case "jobTags":
		h.jobTags = d.jobTags()
	case "queryInfo", "queryStatus":
		h.seen |= seenLegacy
		d.c.skip()
	case "active", "queries":
		d.active()
	default:
		return d.level == levelTop && d.envelopeField(key)
	}
	return true
}

// envelopeField parses the keys of our own envelope.
func (d *Decoder) envelopeField(key []byte) bool {
	switch string(key) {
	case "event":
		d.nested(levelEvent)
	case "type":
		d.setType(typeOf(d.c.text()))
	case "v":
		d.envelope()
		d.c.skip()
	case "sender":
		d.envelope().Sender = d.intern(d.c.text())
	case "seq":
		d.repeated(d.envelope().Seq != event.Absent)
		d.envelope().Seq = d.c.integer(slot{kind: slotSeq})
	case "dropped":
		d.repeated(d.envelope().Dropped != event.Absent)
		d.envelope().Dropped = d.c.integer(slot{kind: slotDropped})
	case "at":
		d.repeated(d.envelope().AtMs != event.Absent)
		d.envelope().AtMs = d.c.time(slot{kind: slotAt})
	case "app":
		d.app(&d.envelope().App)
	case "conf":
		d.conf(d.envelope())
	case "executors":
		d.executors(d.envelope())
	default:
		return false
	}
	return true
}

// envelope returns the envelope being filled.
func (d *Decoder) envelope() *event.Envelope {
	if d.env == nil {
		d.env = d.pool.newEnvelope()
	}
	return d.env
}

// exception parses why a query ended. Hand-made events write None for no reason.
func (d *Decoder) exception() {
	h := &d.head
	h.failed, h.message = false, ""
	switch d.c.peek() {
	case '"':
		text := d.c.text()
		h.failed = !isNothing(text)
		h.message = firstLine(text)
	case '{', '[':
		h.failed = true
		d.c.skip()
	default:
		d.c.skip()
	}
}

func isNothing(text []byte) bool {
	switch string(text) {
	case "", "None", "null":
		return true
	}
	return false
}

// maxJobTags bounds the tags kept of a started event.
const maxJobTags = 64

func (d *Decoder) jobTags() (tags []string) {
	if !d.open('[') {
		return nil
	}
	for first := true; d.c.element(first); first = false {
		tag := d.intern(d.c.text())
		if len(tags) < maxJobTags && tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

func (d *Decoder) app(a *event.App) {
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch string(key) {
		case "id":
			a.ID = d.intern(d.c.text())
		case "name":
			a.Name = d.intern(d.c.text())
		case "sparkVersion":
			a.SparkVersion = d.intern(d.c.text())
		case "cluster":
			a.Cluster = d.intern(d.c.text())
		default:
			d.c.skip()
		}
	}
}

// maxConf bounds the settings kept of an envelope.
const maxConf = 128

// conf parses a sender's Spark settings. They come seldom, so their map is made
// anew and may be kept.
func (d *Decoder) conf(env *event.Envelope) {
	d.c.rec.giveUp()
	env.Conf = nil
	if !d.open('{') {
		return
	}
	env.Conf = map[string]string{}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		name := d.intern(key)
		value, ok := d.confValue()
		if ok && len(env.Conf) < maxConf {
			env.Conf[name] = value
		}
	}
}

// confValue parses a setting: a string, or a number or boolean as its text.
func (d *Decoder) confValue() (value string, ok bool) {
	switch ch := d.c.peek(); {
	case ch == '"':
		return d.intern(d.c.text()), true
	case isNumber(ch) || ch == 't' || ch == 'f':
		from := d.c.i
		d.c.skip()
		return d.intern(d.c.b[from:d.c.i]), !d.c.failed()
	}
	d.c.skip()
	return "", false
}

// executors parses what a sender sums up of its executors; they come seldom.
func (d *Decoder) executors(env *event.Envelope) {
	d.c.rec.giveUp()
	env.Executors = nil
	if !d.open('{') {
		return
	}
	const none = event.Absent
	x := &event.Executors{Count: none, Cores: none, MemoryBytes: none, OverheadBytes: none, Losses: none, GCTimeMs: none}
	env.Executors = x
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		field := executorField(x, key)
		if field == nil {
			d.c.skip()
			continue
		}
		*field = d.c.integer(slot{kind: slotNumber})
	}
}

// executorField returns the field of a key, nil for one that is not known.
func executorField(x *event.Executors, key []byte) *int64 {
	switch string(key) {
	case "count":
		return &x.Count
	case "cores":
		return &x.Cores
	case "memoryBytes", "memory":
		return &x.MemoryBytes
	case "overheadBytes", "overhead":
		return &x.OverheadBytes
	case "losses":
		return &x.Losses
	case "gcTimeMs", "gcTime":
		return &x.GCTimeMs
	}
	return nil
}

// maxActive bounds the queries of a heartbeat.
const maxActive = 4096

// active parses the queries of a heartbeat: objects, or bare ids.
func (d *Decoder) active() {
	d.c.rec.giveUp()
	if d.level == levelProgress || !d.open('[') {
		return
	}
	env := d.envelope()
	env.Active = env.Active[:0]
	for first := true; d.c.element(first); first = false {
		q := d.activeQuery()
		if q.ID != "" && len(env.Active) < maxActive {
			env.Active = append(env.Active, q)
		}
	}
}

func (d *Decoder) activeQuery() (q event.ActiveQuery) {
	if d.c.peek() == '"' {
		q.ID = event.QueryID(d.identifier())
		return q
	}
	if !d.open('{') {
		return q
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return q
		}
		switch string(key) {
		case "id":
			q.ID = event.QueryID(d.identifier())
		case "runId":
			q.Run = event.RunID(d.identifier())
		case "triggerActive", "isTriggerActive":
			q.TriggerActive = d.c.flag()
		default:
			d.c.skip()
		}
	}
}
