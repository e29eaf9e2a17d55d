package decode

import (
	"bytes"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// phases finds a catalog row by its key in durationMs.
var phases = func() map[string]event.MetricID {
	m := map[string]event.MetricID{}
	for _, row := range event.Catalog() {
		if key, ok := strings.CutPrefix(row.JSON, "durationMs."); ok {
			m[key] = row.ID
		}
	}
	return m
}()

// progressField parses the value of a key that a progress or one of the other
// listener events may have. Unknown keys are passed over.
func (d *Decoder) progressField(key []byte) {
	if d.identityField(key) {
		return
	}
	b := d.batch
	switch string(key) {
	case "batchId":
		d.head.seen |= seenBatch
		d.repeated(b.ID != event.Absent)
		b.ID = d.c.integer(slot{kind: slotBatchID})
		setWhole(&b.Values[event.BatchID], b.ID)
	case "batchDuration":
		d.figure(event.BatchDuration)
	case "numInputRows":
		d.figure(event.NumInputRows)
	case "inputRowsPerSecond":
		d.figure(event.InputRowsPerSecond)
	case "processedRowsPerSecond":
		d.figure(event.ProcessedRowsPerSecond)
	case "durationMs":
		d.head.seen |= seenBatch
		d.durations()
	case "eventTime":
		d.eventTime()
	case "currentWatermark": // its place before Spark 2.1 was released
		d.timeFigure(event.EventTimeWatermark)
	case "stateOperators":
		d.head.seen |= seenBatch
		d.operators()
	case "sources":
		d.head.seen |= seenBatch
		d.sources()
	case "sink":
		d.sink()
	case "observedMetrics":
		d.observed()
	case "trigger":
		d.trigger()
	case "rtmMetrics", "latencies":
		b.Databricks = true
		d.latencies()
	default:
		d.c.skip()
	}
}

// identityField parses the keys that all listener events share. An outer object
// never overrules what an inner one said.
func (d *Decoder) identityField(key []byte) bool {
	h := &d.head
	var bit seen
	switch string(key) {
	case "id":
		bit = seenID
	case "runId":
		bit = seenRun
	case "name":
		bit = seenName
	case "timestamp":
	default:
		return false
	}
	if d.level < d.deepest {
		d.c.skip()
		d.c.rec.giveUp()
		return true
	}
	h.seen |= bit
	switch bit {
	case seenID:
		h.id = d.identifier()
	case seenRun:
		h.run = d.identifier()
	case seenName:
		h.name = d.intern(d.c.text())
	default:
		d.repeated(h.atMs != event.Absent)
		h.atMs = d.c.time(slot{kind: slotStart})
		if h.atMs == event.Absent {
			d.c.rec.giveUp()
		}
	}
	return true
}

// identifier parses a query or run id. Hand-made events write numbers, too.
func (d *Decoder) identifier() string {
	from := d.c.i
	if d.c.peek() == '"' {
		text := d.c.str()
		if len(text) > d.pool.lim.StringBytes {
			d.c.i = from
			d.c.refuse(collector.ReasonTooLarge, "the id is too long")
			return ""
		}
		return d.pool.strings.get(text)
	}
	d.c.rec.giveUp()
	number := d.c.b[d.c.i:]
	d.c.skip()
	if d.c.failed() || number[0] != '-' && number[0]-'0' > 9 {
		return ""
	}
	return d.intern(number[:len(number)-(len(d.c.b)-d.c.i)])
}

// repeated is told whether a key has had a value already. The last one counts,
// which no template can say.
func (d *Decoder) repeated(yes bool) {
	if yes {
		d.c.rec.giveUp()
	}
}

// figure parses a query metric.
func (d *Decoder) figure(id event.MetricID) {
	v := &d.batch.Values[id]
	d.repeated(*v == *v)
	*v = d.c.number(slot{kind: slotValue, id: uint32(id)})
}

// durations parses durationMs, an open map.
func (d *Decoder) durations() {
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		if id, ok := phases[string(key)]; ok {
			d.figure(id)
			continue
		}
		d.batch.UnknownPhases = d.keep(d.batch.UnknownPhases, key, slotPhase, 0)
	}
}

// open enters the value at the cursor if it starts with bracket; any other value
// is passed over.
func (d *Decoder) open(bracket byte) bool {
	if d.c.peek() != bracket {
		d.c.skip()
		return false
	}
	d.c.enter()
	return true
}

// room says whether the event may have one more metric outside the catalog, and
// counts the ones that it may not.
func (d *Decoder) room() bool {
	if d.unknown < d.pool.lim.UnknownKeys {
		return true
	}
	d.pool.unknown.Add(1)
	return false
}

// keep parses a metric outside the catalog and appends it to list, as long as the
// event may have more of them.
func (d *Decoder) keep(list []event.KV, key []byte, kind slotKind, owner int) []event.KV {
	if !d.room() {
		d.c.rec.giveUp()
		d.c.skip()
		return list
	}
	name := d.intern(key)
	v := d.c.number(slot{kind: kind, owner: uint16(owner), id: uint32(len(list))})
	if v != v {
		d.c.rec.giveUp()
		return list
	}
	for i := range list {
		if list[i].Key == name {
			d.c.rec.giveUp()
			list[i].Value = v
			return list
		}
	}
	d.unknown++
	return append(list, event.KV{Key: name, Value: v})
}

// eventTime parses the times of a batch's rows and its watermark.
func (d *Decoder) eventTime() {
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch string(key) {
		case "max":
			d.timeFigure(event.EventTimeMax)
		case "min":
			d.timeFigure(event.EventTimeMin)
		case "avg":
			d.timeFigure(event.EventTimeAvg)
		case "watermark":
			d.timeFigure(event.EventTimeWatermark)
		default:
			d.c.skip()
		}
	}
}

func (d *Decoder) timeFigure(id event.MetricID) {
	d.repeated(d.batch.Values.Has(id))
	setTime(d.batch, id, d.c.time(slot{kind: slotTime, id: uint32(id)}))
}

// setTime stores a time of eventTime where consumers look for it. Spark's
// watermark of 1970 stands for none yet.
func setTime(b *event.Batch, id event.MetricID, ms int64) {
	switch id {
	case event.EventTimeMax:
		b.EventTimeMaxMs = ms
	case event.EventTimeWatermark:
		b.FirstWatermark = ms == 0
		if ms == 0 {
			ms = event.Absent
		}
		b.WatermarkMs = ms
	}
	setWhole(&b.Values[id], ms)
}

// sink parses what is known of the sink.
func (d *Decoder) sink() {
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch string(key) {
		case "description":
			d.batch.Description = d.description()
		case "numOutputRows":
			d.figure(event.SinkNumOutputRows)
		default:
			d.c.skip()
		}
	}
}

var databricksName = []byte("com.databricks")

// description parses the text of a source or sink, which tells Databricks' own
// classes by their names.
func (d *Decoder) description() string {
	text := d.c.text()
	if bytes.Contains(text, databricksName) {
		d.batch.Databricks = true
	}
	return d.intern(text)
}

// trigger parses the trigger, an object or just its name.
func (d *Decoder) trigger() {
	b := d.batch
	if d.c.peek() == '"' {
		b.Trigger = triggerOf(d.c.text())
		return
	}
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch string(key) {
		case "type":
			b.Trigger = triggerOf(d.c.text())
		case "intervalMs":
			d.figure(event.TriggerIntervalMs)
		case "batchDurationMs":
			d.figure(event.TriggerBatchDurationMs)
		default:
			d.c.skip()
		}
	}
}

// triggerOf reads the name of a trigger as Spark's classes have it, arguments or
// not: ProcessingTime(10000), AvailableNowTrigger, ...
func triggerOf(name []byte) event.TriggerKind {
	for _, t := range triggers {
		if bytes.HasPrefix(name, t.prefix) {
			return t.kind
		}
	}
	return event.TriggerUnknown
}

var triggers = []struct {
	prefix []byte
	kind   event.TriggerKind
}{
	{[]byte("ProcessingTime(0"), event.TriggerDefault},
	{[]byte("ProcessingTimeTrigger(0"), event.TriggerDefault},
	{[]byte("ProcessingTime"), event.TriggerInterval},
	{[]byte("AvailableNow"), event.TriggerAvailableNow},
	{[]byte("Once"), event.TriggerOnce},
	{[]byte("OneTime"), event.TriggerOnce},
	{[]byte("RealTime"), event.TriggerRealTime},
	{[]byte("Continuous"), event.TriggerContinuous},
}
