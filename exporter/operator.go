package exporter

import (
	"github.com/stategauge/stategauge/event"
)

// operatorState is what the exporter remembers of an operator from batch to batch.
type operatorState struct {
	gen     uint64            // the query's gen when a batch named it last
	unknown map[string]uint32 // series of keys outside the catalog
	prev    *event.Vector     // figures that only grow, as they came last; nil until needed
	tracked tri               // whether RocksDB counts rows, as far as the figures tell
	sticky  sticky
}

// measureOperators adds the operators. A batch that names some but not all shows
// that the others are no more, so their levels go; a batch that names none says
// nothing.
func (x *Exporter) measureOperators(q *query, b *event.Batch, ms float64) {
	if len(b.Operators) == 0 {
		return
	}
	if !q.past {
		q.gen++
		q.inferred = unknown
	}
	for i := range b.Operators {
		if e := x.operator(q, &b.Operators[i]); e != nil {
			e.op.gen, e.lastMs = q.gen, q.batchMs
			x.measureOperator(q, e, b, &b.Operators[i], ms)
		}
	}
	if q.past || len(q.operators) == len(b.Operators) {
		return
	}
	for _, e := range q.operators {
		if e.op.gen != q.gen {
			x.clear(q, e)
		}
	}
}

// operator returns the entity of o: an index under another name is another
// operator. It returns nil when there are too many.
func (x *Exporter) operator(q *query, o *event.Operator) *entity {
	key := operatorKey{o.Index, cleanValue(o.Name, x.o.LabelBytes)}
	if key.name == "" {
		key.name = unknownName
	}
	if e := q.operators[key]; e != nil {
		return e
	}
	if len(q.operators) >= maxObjects {
		x.drop(dropPerQuery, q)
		return nil
	}
	e := x.newEntity(q, operatorPairs(key)...)
	e.op = &operatorState{}
	if q.operators == nil {
		q.operators = map[operatorKey]*entity{}
	}
	q.operators[key] = e
	return e
}

// measureOperator adds one operator of a batch that took ms milliseconds.
func (x *Exporter) measureOperator(q *query, e *entity, b *event.Batch, o *event.Operator, ms float64) {
	v := o.Values
	x.correct(q, e, b, o, &v, ms)
	for i := range x.plan.operator {
		r := &x.plan.operator[i]
		x.put(q, e, r, v[r.id])
		if r.last != 0 {
			x.set(q, e, r.last, perStore(x.defs[r.id].row, o, v[r.id]))
		}
	}
	sync := event.RocksDBCommitFileSyncLatency
	x.observe(q, e, defSyncHist, perStore(x.defs[sync].row, o, v[sync]), b)
	x.set(q, e, defID(event.SnapshotLastUploaded), q.snapshotLag(b, o))
	x.measureUnknown(q, e, o, taskLimitMs(o, ms))
}

// perStore returns the mean of a figure over the stores that report it, absent
// where their number is not known.
func perStore(m *event.Metric, o *event.Operator, v float64) float64 {
	n := o.Instances
	if m.Quirks&event.QuirkTwoOfFour != 0 {
		n = o.Stores
	}
	if n <= 0 {
		return absent
	}
	return v / float64(n)
}

// snapshotLag returns how many versions the worst partition's last uploaded
// snapshot is behind. A store that has uploaded nothing since its run began is
// counted from the run's first version. globalLimit declares partitions that
// never report, so its figure means nothing.
func (q *query) snapshotLag(b *event.Batch, o *event.Operator) float64 {
	if o.SnapshotMin == event.Absent || b.ID == event.Absent || o.Name == "globalLimit" {
		return absent
	}
	uploaded := o.SnapshotMin
	if uploaded < 0 {
		if q.runFirst == event.Absent {
			return absent
		}
		uploaded = q.runFirst + 1 // batch B writes version B+1
	}
	return float64(max(b.ID+1-uploaded, 0))
}
