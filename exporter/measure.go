package exporter

import (
	"github.com/stategauge/stategauge/event"
)

// maxPlausible is above what Spark's 64-bit integers hold.
const maxPlausible = 9.3e18

// plausible reports whether v can be a count, a size or a time.
func plausible(v float64) bool { return v >= 0 && v <= maxPlausible }

// maxObjects bounds the operators and the sources kept for one query.
const maxObjects = 1000

// measure adds an executed batch. One that was overtaken by a newer one is counted
// and changes no level.
func (x *Exporter) measure(q *query, u *event.Update) {
	b := u.Event.Batch
	if !q.ran || b.Run != q.run {
		q.startRun(b)
	}
	q.past = u.OutOfOrder
	defer func() { q.past = false }()
	if !q.past {
		q.newest, q.newestMs = b.ID, b.StartMs
	}
	q.known.observe(b)
	q.batchMs = u.Origin.ReceivedMs
	kind := defBatchesData
	if b.NoData {
		kind = defBatchesNoData
	}
	x.count(q, q.base, kind, 1)
	v := b.Values
	x.correctQuery(b, &v)
	ms := x.measureDuration(q, u, &v)
	x.measureQuery(q, &v)
	x.measurePhases(q, b, &v)
	x.measureSources(q, b, &v)
	x.measureOperators(q, b, ms)
	x.measureObserved(q, b)
}

// startRun notes where a run begins. What the figures of the last one implied
// does not hold for it.
func (q *query) startRun(b *event.Batch) {
	q.ran, q.run, q.runFirst = true, b.Run, b.ID
	q.inferred = unknown
	q.known.version = event.Version{}
	for _, e := range q.operators {
		e.op.sticky.startRun()
	}
}

// correctQuery brings the figures of a query together in v and takes those out
// that cannot be true.
func (x *Exporter) correctQuery(b *event.Batch, v *event.Vector) {
	for id := range v {
		d := &x.defs[id]
		if v[id] != v[id] || d.row.Scope != event.ScopeQuery {
			continue
		}
		ok := plausible(v[id])
		if d.row.Unit == event.UnitTimestamp {
			ok = v[id] >= -maxPlausible && v[id] <= maxPlausible
		}
		if !ok {
			v[id] = absent
			x.implausible(d.row.JSON)
		}
	}
	if b.ID != event.Absent {
		v[event.BatchID] = float64(b.ID)
	}
	if b.EventTimeMaxMs != event.Absent {
		v[event.EventTimeMax] = float64(b.EventTimeMaxMs)
	}
	switch {
	case b.WatermarkMs != event.Absent:
		v[event.EventTimeWatermark] = float64(b.WatermarkMs)
	case b.FirstWatermark || v[event.EventTimeWatermark] == 0:
		v[event.EventTimeWatermark] = absent // Spark's stand-in for none yet
	}
}

// measureDuration adds the batch's wall time and returns it in milliseconds,
// absent where the batch does not say.
func (x *Exporter) measureDuration(q *query, u *event.Update, v *event.Vector) float64 {
	b := u.Event.Batch
	ms := v[event.BatchDuration]
	if ms != ms {
		ms = v[event.DurationTriggerExecution]
	}
	// Without an interval nothing is known of how busy the query is: by default the
	// next batch starts at once, however short this one was.
	use := absent
	if u.IntervalMs > 0 && plausible(u.IntervalMs) {
		use = ms / u.IntervalMs
	}
	x.set(q, q.base, defLastDuration, ms)
	x.set(q, q.base, defUtilization, use)
	x.observe(q, q.base, defBatchHist, ms, b)
	return ms
}

// observe adds raw to a histogram of e.
func (x *Exporter) observe(q *query, e *entity, d defID, raw float64, b *event.Batch) {
	if raw != raw {
		return
	}
	if at, ok := x.slot(q, e, d); ok && !q.quiet {
		q.observations = append(q.observations, observation{hist: at, raw: raw, batch: b.ID, endMs: b.EndMs()})
	}
}

// measureQuery copies the rows that go out as they stand.
func (x *Exporter) measureQuery(q *query, v *event.Vector) {
	for i := range x.plan.query {
		r := &x.plan.query[i]
		x.put(q, q.base, r, v[r.id])
		if r.last != 0 {
			x.set(q, q.base, r.last, v[r.id])
		}
	}
}

// phaseSlots are the series of a phase that the catalog does not have.
type phaseSlots struct{ total, last int32 }

// otherPhase takes the time of the phases beyond the limit.
const otherPhase = "other"

// measurePhases adds the phases that the catalog does not have, and the rest of
// the trigger that no phase accounts for, so that phases add up to it.
func (x *Exporter) measurePhases(q *query, b *event.Batch, v *event.Vector) {
	q.clearPhases()
	rest := v[event.DurationTriggerExecution]
	for _, id := range x.plan.phases {
		if v[id] == v[id] {
			rest -= v[id]
		}
	}
	unaccounted := absent
	for i := range b.UnknownPhases {
		kv := &b.UnknownPhases[i]
		switch {
		case kv.Value != kv.Value:
			continue
		case !plausible(kv.Value):
			x.implausible("durationMs")
			continue
		}
		rest -= kv.Value
		if kv.Key == "unaccounted" {
			unaccounted = kv.Value
			continue
		}
		p := x.phase(q, kv.Key)
		q.addPhase(p.total, q.work(kv.Value))
		if !q.past {
			q.addPhase(p.last, kv.Value)
		}
	}
	if rest == rest {
		if unaccounted != unaccounted {
			unaccounted = 0
		}
		unaccounted += max(rest, 0)
	}
	x.count(q, q.base, defUnaccounted, unaccounted)
	x.set(q, q.base, defLastUnaccounted, unaccounted)
}

// clearPhases takes the newest batch's times of unknown phases off the page.
func (q *query) clearPhases() {
	if q.past {
		return
	}
	for _, p := range q.phases {
		q.put(p.last, absent)
	}
}

// put gives a value that has a place; a negative place is none.
func (q *query) put(at int32, v float64) {
	if at >= 0 {
		q.next[at] = v
	}
}

// addPhase adds to the counter and to the newest batch's gauge: a key may come more
// than once, and several stand for one where there are too many.
func (q *query) addPhase(at int32, ms float64) {
	if at < 0 {
		return
	}
	if have := q.next[at]; have == have {
		ms += have
	}
	q.next[at] = ms
}

// phase returns the series of an unknown phase.
func (x *Exporter) phase(q *query, key string) phaseSlots {
	key = cleanValue(key, x.o.LabelBytes)
	if p, ok := q.phases[key]; ok {
		return p
	}
	if id, ok := x.plan.phaseByName[key]; ok {
		return x.knownPhase(q, id)
	}
	if len(q.phases) >= x.o.Phases && key != otherPhase {
		x.drop(dropPhases, q)
		return x.phase(q, otherPhase)
	}
	if q.phases == nil {
		q.phases = map[string]phaseSlots{}
	}
	ex := extra(phasePair(key))
	p := phaseSlots{
		total: x.addDynamic(q, x.defs[defUnaccounted].family, q.base.labels, ex),
		last:  x.addDynamic(q, x.defs[defLastUnaccounted].family, q.base.labels, ex),
	}
	if p.total >= 0 || p.last >= 0 {
		q.phases[key] = p
	}
	return p
}

func phasePair(key string) event.Label { return event.Label{Name: "phase", Value: key} }

// knownPhase returns the series of a catalog row that came once more as an unknown
// phase: one label value must not have two series.
func (x *Exporter) knownPhase(q *query, id event.MetricID) phaseSlots {
	p := phaseSlots{-1, -1}
	if at, ok := x.slot(q, q.base, defID(id)); ok {
		p.total = int32(at)
	}
	if at, ok := x.slot(q, q.base, x.plan.last[id]); ok {
		p.last = int32(at)
	}
	return p
}

// addDynamic makes a series outside the definitions, -1 if a limit forbids it.
func (x *Exporter) addDynamic(q *query, f *family, l, ex *labels) int32 {
	at, ok := x.add(q, f, l, ex, q.stamp())
	if !ok {
		return -1
	}
	return int32(at)
}

// measureSources adds the sources. Rows that no source tells of are kept apart, so
// that the sum over sources is right.
func (x *Exporter) measureSources(q *query, b *event.Batch, v *event.Vector) {
	told := false
	for i := range min(len(b.Sources), maxObjects) {
		s := &b.Sources[i]
		told = told || s.Rows != event.Absent
		x.measureSource(q, x.source(q, i), s)
	}
	for i := len(b.Sources); i < len(q.sources) && len(b.Sources) > 0 && !q.past; i++ {
		x.clear(q, q.sources[i])
	}
	if told || v[event.NumInputRows] != v[event.NumInputRows] {
		return
	}
	if q.unknown == nil {
		q.unknown = x.newEntity(q, event.Label{Name: "source_index", Value: unknownName})
	}
	x.count(q, q.unknown, defID(event.SourceNumInputRows), v[event.NumInputRows])
}

// source returns the entity of a source, whose number is its only identity: what
// it reads from may hold a hash that changes with each start.
func (x *Exporter) source(q *query, i int) *entity {
	for len(q.sources) <= i {
		q.sources = append(q.sources, x.newEntity(q, sourcePair(len(q.sources))))
	}
	return q.sources[i]
}

// measureSource adds one source of a batch.
func (x *Exporter) measureSource(q *query, e *entity, s *event.Source) {
	e.lastMs = q.batchMs
	for _, id := range x.plan.source {
		v := sourceValue(s, id)
		if v == v && !plausible(v) {
			x.implausible(x.defs[id].row.JSON)
			v = absent
		}
		if x.defs[id].family.kind == counter {
			x.count(q, e, defID(id), v)
		} else {
			x.set(q, e, defID(id), v)
		}
	}
	backlog := intValue(s.Backlog)
	if backlog < 0 {
		backlog = 0 // offsets reset or a topic made anew: nothing is left to read
	}
	x.set(q, e, defBacklog, backlog)
}

// sourceValue returns the field of s that a catalog row stands for.
func sourceValue(s *event.Source, id event.MetricID) float64 {
	switch id {
	case event.SourceNumInputRows:
		return intValue(s.Rows)
	case event.SourceInputRowsPerSecond:
		return s.InputRate
	case event.SourceProcessedRowsPerSecond:
		return s.ProcessedRate
	case event.SourceMinOffsetsBehindLatest:
		return s.MinBehind
	case event.SourceMaxOffsetsBehindLatest:
		return s.MaxBehind
	case event.SourceAvgOffsetsBehindLatest:
		return s.AvgBehind
	case event.SourceNumFilesOutstanding:
		return s.FilesOutstanding
	case event.SourceNumBytesOutstanding:
		return s.BytesOutstanding
	default:
		return absent
	}
}

// intValue returns n as a vector would hold it.
func intValue(n int64) float64 {
	if n == event.Absent {
		return absent
	}
	return float64(n)
}
