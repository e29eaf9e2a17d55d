package event

// backgroundJobs is how many threads may work for one store at a time where a
// figure counts background work. Compactions run beside the task, several at once.
const backgroundJobs = 4

// PlausibleTaskSeconds reports whether an operator's time figure can be true: the
// tasks of a batch cannot together have spent more than its wall time on every
// store. RocksDB statistics now and then come out as overflowed counters or in the
// wrong unit, millions of times too large; such a value is kept out of series and
// rules. Values that are absent, no times, or without anything to compare with
// are plausible; negative ones are not. o must be an operator of b.
func (b *Batch) PlausibleTaskSeconds(o *Operator, id MetricID) bool {
	seconds := o.Values[id] * taskScale[id]
	if seconds != seconds {
		return true
	}
	if seconds < 0 {
		return false
	}
	limit := b.taskSeconds(o)
	if id == RocksDBTotalCompactionLatency {
		limit *= backgroundJobs
	}
	return !(seconds > limit) // an unknown limit is NaN and refuses nothing
}

// taskScale makes seconds of a time figure, and NaN of any other. It stands apart from
// the catalog because rules ask for each figure of each batch.
var taskScale = func() (out [NumMetrics]float64) {
	for id := range out {
		out[id] = nan
		if m := &catalog[id]; m.Unit == UnitSeconds {
			out[id] = m.Scale
		}
	}
	return out
}()

// taskSeconds is the wall time of the batch times the operator's stores, NaN where
// either is unknown. Durations are cut to whole milliseconds, so one is added.
func (b *Batch) taskSeconds(o *Operator) float64 {
	ms, _ := b.DurationMs()
	stores := float64(max(o.Instances, o.Stores))
	if stores == 0 {
		stores = o.Values[NumShufflePartitions]
	}
	if !(stores > 0) {
		return nan
	}
	return (ms + 1) * stores / 1000
}
