package rules

import (
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// leaf is a name that expressions may use.
type leaf struct {
	eval     Signal
	metric   event.MetricID // where it is one figure of the catalog, otherwise noMetric
	of       SignalOf
	either   bool // known for queries and operators alike
	duration bool // comes from the duration of the trigger or of its phases
	// times are the operator's time figures that a derived one is made from.
	times []event.MetricID
	// fact is set, with isFact, where it is one.
	fact   Fact
	isFact bool
}

const noMetric = event.FirstUnknown

// catalogLeaves are Spark's own keys: those of an operator, those of a query with
// their dots ("durationMs.addBatch").
func catalogLeaves() map[string]leaf {
	out := map[string]leaf{}
	for _, m := range event.Catalog() {
		switch m.Scope {
		case event.ScopeOperator:
			out[m.JSON] = leaf{eval: ofVector(m.ID), metric: m.ID, of: OfOperator}
		case event.ScopeQuery:
			out[m.JSON] = leaf{eval: ofBatch(m.ID), metric: m.ID, of: OfQuery, duration: isDuration(m.ID)}
		}
	}
	return out
}

// isDuration tells the trigger's duration and its phases.
func isDuration(id event.MetricID) bool {
	return id == event.BatchDuration || id == event.DurationCollectSourceMetrics ||
		id >= event.FirstPhase && id <= event.LastPhase
}

func ofVector(id event.MetricID) Signal {
	return func(v *event.Vector, _ *event.Batch, _ *event.Operator, _ *Facts) float64 { return v[id] }
}

func ofBatch(id event.MetricID) Signal {
	return func(_ *event.Vector, b *event.Batch, _ *event.Operator, _ *Facts) float64 { return b.Values[id] }
}

// derivedLeaves are the names that stand for more than one figure of Spark's.
func derivedLeaves() map[string]leaf {
	query := func(f func(b *event.Batch) float64, duration bool) leaf {
		eval := func(_ *event.Vector, b *event.Batch, _ *event.Operator, _ *Facts) float64 { return f(b) }
		return leaf{eval: eval, metric: noMetric, of: OfQuery, duration: duration}
	}
	operator := func(eval Signal) leaf { return leaf{eval: eval, metric: noMetric, of: OfOperator} }
	return map[string]leaf{
		"stores":               operator(func(_ *event.Vector, _ *event.Batch, o *event.Operator, _ *Facts) float64 { return count(o.Stores) }),
		"instances":            operator(func(_ *event.Vector, _ *event.Batch, o *event.Operator, _ *Facts) float64 { return count(o.Instances) }),
		"duration_ms":          query(func(b *event.Batch) float64 { ms, _ := b.DurationMs(); return ms }, true),
		"unaccounted_ms":       query((*event.Batch).UnaccountedMs, true),
		"input_rows":           query(func(b *event.Batch) float64 { return b.Values[event.NumInputRows] }, false),
		"backlog_offsets":      query(backlog, false),
		"event_time_lag_ms":    query(eventTimeLag, false),
		"watermark_lag_ms":     query(watermarkLag, false),
		"rows_updated":         summed(event.NumRowsUpdated),
		"rows_removed":         summed(event.NumRowsRemoved),
		"rows_total":           summed(event.NumRowsTotal),
		"state_commit_ms":      query(perInstance(event.CommitTime), false),
		"state_updates_ms":     query(perInstance(event.AllUpdatesTime), false),
		"state_removals_ms":    query(perInstance(event.AllRemovalsTime), false),
		"state_load_ms":        query(perStore(event.RocksDBLoadLatency), false),
		"state_file_sync_ms":   query(perStore(event.RocksDBCommitFileSyncLatency), false),
		"state_memory_bytes":   summed(event.MemoryUsedBytes),
		"state_sst_file_bytes": summed(event.RocksDBSstFileSize),
	}
}

// count turns a divisor into a number, absent where there is none.
func count(n int32) float64 {
	if n <= 0 {
		return math.NaN()
	}
	return float64(n)
}

// summed is an operator's own figure, and for a query the sum over its operators.
func summed(id event.MetricID) leaf {
	return leaf{metric: noMetric, either: true, eval: func(v *event.Vector, b *event.Batch, o *event.Operator, _ *Facts) float64 {
		if o != nil {
			return v[id]
		}
		return sumOf(b, id)
	}}
}

// perInstance adds up, over the operators, the mean milliseconds that a state
// store instance took.
func perInstance(id event.MetricID) func(*event.Batch) float64 {
	return func(b *event.Batch) float64 {
		return sumOperators(b, func(o *event.Operator) float64 {
			x := o.Values[id]
			if x != x || !b.PlausibleTaskSeconds(o, id) {
				return math.NaN()
			}
			return x / count(o.Instances)
		})
	}
}

// perStore is perInstance for figures that only some of a join's stores report.
func perStore(id event.MetricID) func(*event.Batch) float64 {
	return func(b *event.Batch) float64 {
		return sumOperators(b, func(o *event.Operator) float64 {
			x := o.Values[id]
			if x != x || !b.PlausibleTaskSeconds(o, id) {
				return math.NaN()
			}
			return x / count(o.Stores)
		})
	}
}

// sumOf is sumOperators of one figure.
func sumOf(b *event.Batch, id event.MetricID) float64 {
	sum, any := 0.0, false
	for i := range b.Operators {
		if x := b.Operators[i].Values[id]; x == x {
			sum, any = sum+x, true
		}
	}
	if !any {
		return math.NaN()
	}
	return sum
}

// sumOperators adds up what is present, absent where no operator has it.
func sumOperators(b *event.Batch, f func(*event.Operator) float64) float64 {
	sum, any := 0.0, false
	for i := range b.Operators {
		if x := f(&b.Operators[i]); !math.IsNaN(x) {
			sum, any = sum+x, true
		}
	}
	if !any {
		return math.NaN()
	}
	return sum
}

// backlog adds up newest minus read over the sources that say it.
func backlog(b *event.Batch) float64 {
	sum, any := 0.0, false
	for i := range b.Sources {
		if n := b.Sources[i].Backlog; n != event.Absent {
			sum, any = sum+float64(n), true
		}
	}
	if !any {
		return math.NaN()
	}
	return sum
}

// eventTimeLag is how old the newest row was when the batch ended.
func eventTimeLag(b *event.Batch) float64 {
	end := b.EndMs()
	if end == event.Absent || b.EventTimeMaxMs == event.Absent {
		return math.NaN()
	}
	return float64(end - b.EventTimeMaxMs)
}

// watermarkLag is how far the watermark stays behind the newest row.
func watermarkLag(b *event.Batch) float64 {
	if b.WatermarkMs == event.Absent || b.EventTimeMaxMs == event.Absent {
		return math.NaN()
	}
	return float64(b.EventTimeMaxMs - b.WatermarkMs)
}

// leaves is the table of names that do not come from a rule file.
var leaves = func() map[string]leaf {
	out := catalogLeaves()
	for name, l := range derivedLeaves() {
		out[name] = l
	}
	for name, l := range figureLeaves() {
		out[name] = l
	}
	for name, l := range commitLeaves() {
		out[name] = l
	}
	for name, l := range factLeaves() {
		out[name] = l
	}
	return out
}()

// Names lists every name that an expression of the given kind may use beside the
// signals of its rule files, sorted.
func Names(of SignalOf) []string {
	var out []string
	for name, l := range leaves {
		if of == OfOperator || l.either || l.of == OfQuery {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
