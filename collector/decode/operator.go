package decode

import (
	"bytes"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// operators parses stateOperators.
func (d *Decoder) operators() {
	d.repeated(len(d.batch.Operators) > 0)
	d.batch.Operators = d.batch.Operators[:0]
	if !d.open('[') {
		return
	}
	for first := true; d.c.element(first); first = false {
		if len(d.batch.Operators) >= d.pool.lim.Operators {
			d.c.refuse(collector.ReasonTooMany, "too many state operators in one batch")
			return
		}
		if d.open('{') {
			d.operator(d.batch.AddOperator())
		}
	}
}

func (d *Decoder) operator(o *event.Operator) {
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch string(key) {
		case "operatorName":
			o.Name = d.intern(d.c.text())
			continue
		case "customMetrics":
			d.customMetrics(o)
			continue
		}
		if id, ok := event.ByKey(event.ScopeOperator, key); ok {
			d.operatorFigure(o, id)
			continue
		}
		d.c.skip()
	}
}

func (d *Decoder) operatorFigure(o *event.Operator, id event.MetricID) {
	v := &o.Values[id]
	d.repeated(*v == *v)
	*v = d.c.number(slot{kind: slotOperator, owner: uint16(o.Index), id: uint32(id)})
}

// customMetrics parses the open map of an operator's provider metrics.
func (d *Decoder) customMetrics(o *event.Operator) {
	if !d.open('{') {
		return
	}
	d.order.begin()
	for first := true; ; first = false {
		if id, ok := d.order.expected(&d.c, first); ok {
			d.operatorFigure(o, id)
			continue
		}
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch id, ok := event.ByKey(event.ScopeOperator, key); {
		case ok:
			d.order.learn(key, id)
			d.operatorFigure(o, id)
		case bytes.HasPrefix(key, snapshotPrefix):
			foldSnapshot(o, d.c.integer(slot{kind: slotSnapshot, owner: uint16(o.Index)}))
		default:
			o.Unknown = d.keep(o.Unknown, key, slotUnknown, o.Index)
		}
	}
}

// keyOrder remembers in which order the keys of customMetrics came last time. All
// operators of a provider agree on it, so the next key is nearly always foreseen
// and need not be read and looked up, only compared.
type keyOrder struct {
	keys []orderedKey
	next int
}

type orderedKey struct {
	text string // with its quotes and the colon
	id   event.MetricID
}

// maxOrder bounds the keys remembered; the catalog has about that many.
const maxOrder = 128

func (k *keyOrder) begin() { k.next = 0 }

// expected consumes the next member's key if it is the one foreseen.
func (k *keyOrder) expected(c *cursor, first bool) (event.MetricID, bool) {
	if k.next >= len(k.keys) {
		return 0, false
	}
	want, i := &k.keys[k.next], c.i
	if !first {
		if i >= len(c.b) || c.b[i] != ',' {
			return 0, false
		}
		i++
	}
	end := i + len(want.text)
	if end >= len(c.b) || string(c.b[i:end]) != want.text || c.keys >= c.lim.KeysPerEvent {
		return 0, false
	}
	c.i = end
	c.keys++
	k.next++
	c.peek()
	return want.id, true
}

// learn remembers the key that came instead of the one foreseen.
func (k *keyOrder) learn(key []byte, id event.MetricID) {
	if k.next >= maxOrder {
		return
	}
	if k.next == len(k.keys) {
		k.keys = append(k.keys, orderedKey{})
	}
	if have := &k.keys[k.next]; have.id != id || len(have.text) != len(key)+3 {
		*have = orderedKey{`"` + string(key) + `":`, id}
	}
	k.next++
}

// snapshotPrefix starts the keys that carry one value per store instance; which
// instances are told changes from batch to batch.
var snapshotPrefix = []byte("SnapshotLastUploaded.")

// foldSnapshot adds the uploaded version of one store instance.
func foldSnapshot(o *event.Operator, v int64) {
	if v == event.Absent {
		return
	}
	if o.SnapshotMin == event.Absent || v < o.SnapshotMin {
		o.SnapshotMin = v
	}
	o.NumSnapshots++
}
