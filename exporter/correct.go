package exporter

import (
	"github.com/stategauge/stategauge/event"
)

// correct puts the figures of an operator right in v, which starts as a copy of
// what Spark sent: impossible values out, sentinels and repeats out, swapped
// pairs back. What it leaves is added or shown as it stands.
func (x *Exporter) correct(q *query, e *entity, b *event.Batch, o *event.Operator, v *event.Vector, ms float64) {
	for id := range v {
		if v[id] == v[id] && !plausible(v[id]) && x.defs[id].row.Kind != event.KindPerInstance {
			x.reject(v, event.MetricID(id))
		}
	}
	swapColumnFamilies(v)
	x.spreadPerTask(v)
	x.growth(q, e, v)
	x.limitTimes(v, taskLimitMs(o, ms))
	x.correctMemory(o, v)
	e.op.correctRows(o, v, q.known.tracked)
	mode := e.op.sticky.mode(v, q.known.changelog)
	if q.past {
		fixPast(v, &x.plan, mode)
		return
	}
	e.op.sticky.fixSlow(v, &x.plan, mode, b.ID)
	e.op.sticky.noteSnapshots(o.SnapshotMin)
	e.op.sticky.fixUpload(v, &x.plan, mode, b.ID)
	if mode != unknown {
		q.inferred = mode
	}
}

// reject takes a value out that cannot be true.
func (x *Exporter) reject(v *event.Vector, id event.MetricID) {
	v[id] = absent
	x.implausible(x.defs[id].row.JSON)
}

// swapColumnFamilies puts the two column family counts under their own names.
// Spark 4.2 got them right in the version that brought rocksdbNumLoadedFromDfs.
func swapColumnFamilies(v *event.Vector) {
	if v.Has(event.RocksDBNumLoadedFromDfs) {
		return
	}
	ext, in := event.RocksDBNumExternalColumnFamilies, event.RocksDBNumInternalColumnFamilies
	v[ext], v[in] = v[in], v[ext]
}

// spreadPerTask divides what every task added by the number of tasks. Without
// that number the figure means nothing.
func (x *Exporter) spreadPerTask(v *event.Vector) {
	parts := v[event.NumShufflePartitions]
	if !(parts > 0) {
		parts = absent
	}
	for _, id := range x.plan.perTask {
		v[id] /= parts
	}
}

// growth replaces figures that only grow by how much they grew. They fall when
// stores move, and the first one says nothing of when it was gathered: neither
// counts. Native statistics are such figures where they are not reset at load.
func (x *Exporter) growth(q *query, e *entity, v *event.Vector) {
	for _, id := range x.plan.cumulative {
		e.op.delta(v, id, q.past)
	}
	if q.known.reset != off {
		return
	}
	for _, id := range x.plan.resetAtLoad {
		e.op.delta(v, id, q.past)
	}
}

// delta leaves how much the figure has grown. The growth of a batch that was
// overtaken is in the batch that overtook it.
func (op *operatorState) delta(v *event.Vector, id event.MetricID, past bool) {
	now := v[id]
	if now != now {
		return
	}
	if past {
		v[id] = 0
		return
	}
	if op.prev == nil {
		op.prev = &event.Vector{}
		op.prev.Clear()
	}
	was := op.prev[id]
	op.prev[id] = now
	v[id] = 0
	if now > was {
		v[id] = now - was
	}
}

// unknownStores is taken for the number of stores where neither instances nor
// partitions are known; more than anybody runs.
const unknownStores = 100_000

// taskLimitMs returns the longest time that the parallel tasks of an operator can
// add up to in a batch of ms milliseconds: every store busy all the time, and a
// millisecond more, since some figures are rounded up. Absent where ms is, or is
// 0, which no batch with state takes.
func taskLimitMs(o *event.Operator, ms float64) float64 {
	if ms == 0 {
		return absent
	}
	stores := float64(o.Instances)
	if stores <= 0 {
		stores = o.Values[event.NumShufflePartitions]
	}
	if !(stores > 0) {
		stores = unknownStores
	}
	return (ms + 1) * stores
}

// limitTimes takes out task times above limitMs.
func (x *Exporter) limitTimes(v *event.Vector, limitMs float64) {
	for _, r := range x.plan.timed {
		// A comparison with an absent value or limit is false.
		if v[r.id] > limitMs*r.perMs {
			x.reject(v, r.id)
		}
	}
}

// Memory above both of these is a figure counted many times over: no operator
// holds a tebibyte with that much in each store.
const (
	maxMemory         = 1 << 40
	maxMemoryPerStore = 8 << 30
)

// correctMemory takes out the memory figure where bounded memory makes Spark hide
// it behind a 0, since a RocksDB store always needs some, and where it is absurd.
func (x *Exporter) correctMemory(o *event.Operator, v *event.Vector) {
	mem := v[event.MemoryUsedBytes]
	switch {
	case mem == 0 && o.Provider == event.ProviderRocksDB:
		v[event.MemoryUsedBytes] = absent
	case mem > maxMemory && mem > maxMemoryPerStore*float64(max(o.Instances, 1)):
		x.reject(v, event.MemoryUsedBytes)
	}
}

// correctRows takes out a row count of 0 that means not tracked: RocksDB has data
// and never showed a row. Once a count was seen, 0 is what it says.
func (op *operatorState) correctRows(o *event.Operator, v *event.Vector, conf tri) {
	rows := v[event.NumRowsTotal]
	holds := v[event.RocksDBSstFileSize] > 0 || v[event.NumRowsUpdated] > 0
	switch {
	case rows > 0:
		op.tracked = on
	case rows == 0 && holds && op.tracked == unknown:
		op.tracked = off
	}
	tracked := conf
	if tracked == unknown {
		tracked = op.tracked
	}
	if rows == 0 && tracked == off && o.Provider == event.ProviderRocksDB {
		v[event.NumRowsTotal] = absent
	}
}
