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
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch id, ok := event.ByKey(event.ScopeOperator, key); {
		case ok:
			d.operatorFigure(o, id)
		case bytes.HasPrefix(key, snapshotPrefix):
			foldSnapshot(o, d.c.integer(slot{kind: slotSnapshot, owner: uint16(o.Index)}))
		default:
			o.Unknown = d.keep(o.Unknown, key, slotUnknown, o.Index)
		}
	}
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
