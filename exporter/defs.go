package exporter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// defID names a series of a query, operator or source that is known beforehand:
// the catalog's rows first, under their own ids, then what is derived from them.
type defID int

const (
	defInfo defID = event.NumMetrics + iota
	defLastEvent
	defLastDuration
	defUtilization
	defBatchesData
	defBatchesNoData
	defUnaccounted
	defLastUnaccounted
	defBacklog
	defBatchHist
	defSyncHist

	defState       // one for each of event.States
	defStateEnd    = defState + 6
	defInterval    = defStateEnd // one for each origin
	defIntervalEnd = defInterval + 3
	defMissed      = defIntervalEnd // one for each reason
	defMissedEnd   = defMissed + 3
	// defLast holds, for a row of work that has one, the gauge of the newest batch.
	defLast    = defMissedEnd
	defLastEnd = defLast + 20
	numDefs    = int(defLastEnd)
)

// def is the place of a series that is known beforehand.
type def struct {
	family  *family
	extra   *labels
	row     *event.Metric // nil for what the catalog does not have
	lasting bool          // a gauge that stays until retirement
}

const (
	prefix         = "spark_streaming_"
	commitFamily   = prefix + "rocksdb_commit_task_seconds_total"
	phaseFamily    = prefix + "phase_seconds_total"
	intervalFamily = prefix + "trigger_interval_seconds"
)

// plan is what New works out of the catalog: which rows are copied as they are,
// for which object.
type plan struct {
	query, operator []planned
	source          []event.MetricID
	phases          []event.MetricID // parts of the trigger
	phaseByName     map[string]event.MetricID
	begin           []event.MetricID // counters that every query has from its start
	timed           []timed          // task times, which a batch bounds
	sticky          []event.MetricID // uploads, repeated with changelog checkpointing
	slow            []event.MetricID // commit times, repeated by Spark 4.0
	perTask         []event.MetricID // added once per task
	cumulative      []event.MetricID // only grow
	resetAtLoad     []event.MetricID // only grow where a setting says so
	last            [event.NumMetrics]defID
}

// planned is a row that goes out as it stands.
type planned struct {
	id      event.MetricID
	counter bool
	keep    bool  // a gauge that a batch without the figure leaves alone
	last    defID // gauge of the newest batch, 0 for none
}

// timed is a task time and how much of its raw unit is a millisecond.
type timed struct {
	id    event.MetricID
	perMs float64
}

// special lists the rows that do not go out as they stand: a histogram, a figure
// that needs more than the row, or one that comes from another field.
var special = []event.MetricID{
	event.BatchDuration, event.NumInputRows, event.TriggerIntervalMs, event.SnapshotLastUploaded,
	event.RTMProcessingLatency, event.RTMSourceQueuingLatency, event.RTME2ELatency,
}

// define makes the families of the catalog and those derived from it.
func (x *Exporter) define(rows []event.Metric) {
	x.plan.phaseByName = map[string]event.MetricID{}
	for i := range rows {
		x.defineRow(&rows[i])
	}
	x.defineQuery()
	x.defineLast(rows)
	sync := rows[event.RocksDBCommitFileSyncLatency]
	x.defs[defSyncHist].family = x.addFamily(newHistogram(prefix+"rocksdb_commit_file_sync_seconds",
		"Time of the file_sync phase of the state store commit, mean per store, one observation per batch.",
		unitOf(sync.Unit), scaleOf(sync.Scale), syncBounds))
}

// defineRow makes the family and the place of one row of the catalog.
func (x *Exporter) defineRow(m *event.Metric) {
	d := &x.defs[m.ID]
	d.row = m
	d.family = x.rowFamily(m)
	if m.LabelName != "" {
		d.extra = extra(event.Label{Name: m.LabelName, Value: m.LabelValue})
	}
	x.plan.note(m, d.family.scale)
	if slices.Contains(special, m.ID) {
		return
	}
	row := planned{id: m.ID, counter: d.family.kind == counter, keep: m.Unit == event.UnitTimestamp}
	switch m.Scope {
	case event.ScopeOperator:
		x.plan.operator = append(x.plan.operator, row)
	case event.ScopeSource:
		x.plan.source = append(x.plan.source, m.ID)
	default:
		x.plan.query = append(x.plan.query, row)
	}
}

// note files a row under its quirks.
func (p *plan) note(m *event.Metric, s scale) {
	file := func(to *[]event.MetricID, yes bool) {
		if yes {
			*to = append(*to, m.ID)
		}
	}
	operator := m.Scope == event.ScopeOperator
	file(&p.phases, m.Series == phaseFamily)
	if m.Series == phaseFamily {
		p.phaseByName[m.LabelValue] = m.ID
	}
	file(&p.begin, m.Scope == event.ScopeQuery && m.Kind == event.KindWork && everyQueryHas(m))
	if operator && m.Unit == event.UnitSeconds && kindOf(m.Kind) == counter {
		p.timed = append(p.timed, timed{m.ID, s.div / 1000})
	}
	file(&p.sticky, m.Quirks&event.QuirkStickyUpload != 0)
	file(&p.slow, m.Quirks&event.QuirkSticky40 != 0)
	file(&p.perTask, m.Quirks&event.QuirkPerTask != 0)
	file(&p.cumulative, operator && m.Kind == event.KindCumulative)
	file(&p.resetAtLoad, m.Quirks&event.QuirkResetAtLoad != 0)
	if len(p.sticky) > maxSticky || len(p.slow) > maxSticky {
		panic("more repeated figures in the catalog than there is room for") // a fault of the table, not of input
	}
}

// everyQueryHas reports whether a work row of a query is sent by every
// micro-batch query of Apache Spark.
func everyQueryHas(m *event.Metric) bool {
	switch m.ID {
	case event.BatchDuration, event.NumInputRows, event.DurationGetOffset, event.DurationRunContinuous:
		return false
	}
	return !m.Since.IsZero() && m.Quirks&event.QuirkMinusOne == 0
}

// rowFamily finds or makes the family of a row.
func (x *Exporter) rowFamily(m *event.Metric) *family {
	factor := m.Scale
	if m.Quirks&event.QuirkNanoseconds != 0 && x.o.StallMilliseconds {
		factor = 1e-3
	}
	s := scaleOf(factor)
	if f := x.byName[m.Series]; f != nil {
		if f.scale != s || f.kind != kindOf(m.Kind) || f.help != m.Help {
			panic(fmt.Sprintf("catalog rows of %s disagree on scale, kind or help", m.Series)) // a fault of the table, not of input
		}
		return f
	}
	if m.ID == event.BatchDuration {
		f := x.addFamily(newHistogram(m.Series, m.Help, unitOf(m.Unit), s, batchBounds))
		x.defs[defBatchHist].family = f
		return f
	}
	return x.addFamily(newFamily(m.Series, m.Help, unitFor(m.Series, m.Unit), kindOf(m.Kind), s))
}

// kindOf returns the kind of a row's family. Figures that only grow are counters
// too: their increases are added.
func kindOf(k event.MetricKind) kind {
	if k == event.KindWork || k == event.KindCumulative {
		return counter
	}
	return gauge
}

// unitOf returns the unit as OpenMetrics knows it, empty where it has none.
func unitOf(u event.Unit) string {
	switch u {
	case event.UnitSeconds, event.UnitTimestamp:
		return "seconds"
	case event.UnitBytes:
		return "bytes"
	default:
		return ""
	}
}

// unitFor leaves the unit out where the name does not end in it, which
// OpenMetrics forbids.
func unitFor(name string, u event.Unit) string {
	unit := unitOf(u)
	if !strings.HasSuffix(strings.TrimSuffix(name, "_total"), "_"+unit) {
		return ""
	}
	return unit
}

// defineQuery makes the families of a query that the catalog does not have.
func (x *Exporter) defineQuery() {
	milli, one := scaleOf(1e-3), scaleOf(1)
	mk := func(d defID, name, help, unit string, k kind, s scale) {
		x.defs[d].family = x.addFamily(newFamily(prefix+name, help, unit, k, s))
	}
	mk(defInfo, "query_info", "What is known of a query; always 1.", "", gauge, one)
	mk(defLastEvent, "last_event_timestamp_seconds", "Arrival of the newest event of the query, by the clock of this process.", "seconds", gauge, milli)
	mk(defLastDuration, "last_batch_duration_seconds", "Wall time of the newest executed batch.", "seconds", gauge, milli)
	mk(defUtilization, "utilization_ratio", "Wall time of the newest executed batch over the trigger interval.", "", gauge, one)
	mk(defBacklog, "source_backlog_offsets", "Newest offset less the last one read, summed over partitions, when the batch was planned.", "", gauge, one)
	mk(defState, "query_state", "1 for the state that the query is in, 0 for the others.", "", gauge, one)
	mk(defMissed, "missed_batches_total", "Batches whose progress never arrived, by what is known of why.", "", counter, one)
	mk(defBatchesData, "batches_total", "Executed batches, each counted once; no_data batches read no rows.", "", counter, one)
	x.observedFamily = x.addFamily(newFamily(prefix+"observed_value", "Columns of Dataset.observe in the newest executed batch.", "", gauge, one))
	x.spread(defBatchesData, "kind", "data", "no_data")
	x.spread(defMissed, "reason", event.MissedDropped.String(), event.MissedAcrossRuns.String(), event.MissedSender.String())
	x.defs[defInterval].family = x.byName[intervalFamily]
	x.spread(defInterval, "origin", event.IntervalInferred.String(), event.IntervalConfig.String(), event.IntervalListener.String())
	var states []string
	for _, s := range event.States() {
		states = append(states, s.String())
	}
	x.spread(defState, "state", states...)
	x.defs[defUnaccounted].family = x.byName[phaseFamily]
	x.spread(defUnaccounted, "phase", "unaccounted")
	x.defs[defInfo].lasting, x.defs[defLastEvent].lasting = true, true
	for d := defState; d < defStateEnd; d++ {
		x.defs[d].lasting = true
	}
}

// spread gives d and the definitions behind it d's family and one value each of a label.
func (x *Exporter) spread(d defID, label string, values ...string) {
	f := x.defs[d].family
	for i, v := range values {
		x.defs[d+defID(i)].family = f
		x.defs[d+defID(i)].extra = extra(event.Label{Name: label, Value: v})
	}
}

// defineLast makes the gauges that show the newest batch of work rows: the phases
// of the trigger, and the mean per store of the phases of the commit.
func (x *Exporter) defineLast(rows []event.Metric) {
	phase := x.byName[phaseFamily]
	lastPhase := x.addFamily(newFamily(prefix+"last_batch_phase_seconds",
		"Driver time of the newest executed batch by phase of the trigger, named as in durationMs.", phase.unit, gauge, phase.scale))
	commit := x.byName[commitFamily]
	lastCommit := x.addFamily(newFamily(prefix+"rocksdb_last_batch_commit_store_seconds",
		"Time in each phase of the state store commit of the newest executed batch, mean per store.", commit.unit, gauge, commit.scale))
	d := defLast
	for i := range rows {
		m := &rows[i]
		f := lastPhase
		switch {
		case m.Series == commitFamily && m.Quirks&event.QuirkConstantZero == 0:
			f = lastCommit
		case m.Series != phaseFamily:
			continue
		}
		x.plan.last[m.ID] = d
		x.defs[d] = def{family: f, extra: x.defs[m.ID].extra}
		d++
	}
	if d > defLastEnd {
		panic("more phases in the catalog than places for their last batch") // a fault of the table, not of input
	}
	x.defs[defLastUnaccounted] = def{family: lastPhase, extra: x.defs[defUnaccounted].extra}
	for ; d < defLastEnd; d++ {
		x.defs[d].family = lastPhase // never used; no nil families
	}
	for _, rows := range [][]planned{x.plan.query, x.plan.operator} {
		for i := range rows {
			rows[i].last = x.plan.last[rows[i].id]
		}
	}
}
