package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// figureLeaves are names for figures that rules would otherwise all work out for
// themselves, and those that no expression can: they need a source, a time or a
// setting.
func figureLeaves() map[string]leaf {
	out := map[string]leaf{
		"utilization":           {eval: utilization, metric: noMetric, of: OfQuery, duration: true},
		"snapshot_lag_versions": {eval: snapshotLag, metric: noMetric, of: OfOperator},
		"late_rows":             summed(event.NumRowsDroppedByWatermark),
		"late_share":            {eval: lateShare, metric: noMetric, either: true},
	}
	for name, f := range queryFigures {
		out[name] = leaf{metric: noMetric, of: OfQuery, eval: func(_ *event.Vector, b *event.Batch, _ *event.Operator, _ *Facts) float64 { return f(b) }}
	}
	for name, f := range operatorFigures {
		out[name] = leaf{metric: noMetric, of: OfOperator, times: figureTimes[name], eval: func(_ *event.Vector, _ *event.Batch, o *event.Operator, _ *Facts) float64 { return f(o) }}
	}
	return out
}

var queryFigures = map[string]func(*event.Batch) float64{
	"batch_start_ms":     func(b *event.Batch) float64 { return moment64(b.StartMs) },
	"batch_end_ms":       func(b *event.Batch) float64 { return moment64(b.EndMs()) },
	"event_time_max_ms":  func(b *event.Batch) float64 { return moment64(b.EventTimeMaxMs) },
	"event_time_span_ms": eventTimeSpan,
	"watermark_ms":       watermark,
	"watermark_ahead_ms": func(b *event.Batch) float64 { return moment64(b.WatermarkMs) - moment64(b.EndMs()) },
	"operators":          func(b *event.Batch) float64 { return float64(len(b.Operators)) },
	"sources":            func(b *event.Batch) float64 { return float64(len(b.Sources)) },
	"read_offsets": func(b *event.Batch) float64 {
		return sumSources(b, func(s *event.Source) float64 { return moment64(s.Read) })
	},
	"backlog_files": func(b *event.Batch) float64 {
		return sumSources(b, func(s *event.Source) float64 { return s.FilesOutstanding })
	},
	"backlog_bytes": func(b *event.Batch) float64 {
		return sumSources(b, func(s *event.Source) float64 { return s.BytesOutstanding })
	},
	"backlog_batches": backlogBatches,
	"planning_ms":     planning,
}

var operatorFigures = map[string]func(*event.Operator) float64{
	"partitions": func(o *event.Operator) float64 { return o.Values[event.NumShufflePartitions] },
	"stores_per_partition": func(o *event.Operator) float64 {
		return quotient(count(o.Instances), o.Values[event.NumShufflePartitions])
	},
	"is_rocksdb": func(o *event.Operator) float64 { return provided(o, event.ProviderRocksDB) },
	"is_hdfs":    func(o *event.Operator) float64 { return provided(o, event.ProviderHDFS) },
	"get_ms_per_get": func(o *event.Operator) float64 {
		return quotient(o.Values[event.RocksDBGetLatency], o.Values[event.RocksDBGetCount])
	},
	"put_ms_per_put": func(o *event.Operator) float64 {
		return quotient(o.Values[event.RocksDBPutLatency], o.Values[event.RocksDBPutCount])
	},
	"lookups": lookups,
	"cache_miss_share": func(o *event.Operator) float64 {
		return quotient(o.Values[event.RocksDBReadBlockCacheMissCount], lookups(o))
	},
	"writer_stall_ms": func(o *event.Operator) float64 { return 1000 * o.Values.Scaled(event.RocksDBWriterStallLatency) },
	"sst_bytes_per_row": func(o *event.Operator) float64 {
		return quotient(o.Values[event.RocksDBSstFileSize], o.Values[event.NumRowsTotal])
	},
	"sst_bytes_per_store": func(o *event.Operator) float64 { return quotient(o.Values[event.RocksDBSstFileSize], count(o.Stores)) },
}

// figureTimes are the times behind a figure: where one cannot be true, the figure
// is not used.
var figureTimes = map[string][]event.MetricID{
	"get_ms_per_get":  {event.RocksDBGetLatency},
	"put_ms_per_put":  {event.RocksDBPutLatency},
	"writer_stall_ms": {event.RocksDBWriterStallLatency},
}

// moment64 is a time or count as a number, absent where it is.
func moment64(x int64) float64 {
	if x == event.Absent {
		return math.NaN()
	}
	return float64(x)
}

// quotient is absent where there is nothing to divide by.
func quotient(x, by float64) float64 {
	if !(by > 0) {
		return math.NaN()
	}
	return x / by
}

// sumSources adds up what is present, absent where no source has it.
func sumSources(b *event.Batch, f func(*event.Source) float64) float64 {
	sum, any := 0.0, false
	for i := range b.Sources {
		if x := f(&b.Sources[i]); !math.IsNaN(x) {
			sum, any = sum+x, true
		}
	}
	if !any {
		return math.NaN()
	}
	return sum
}

// utilization is the share of the trigger interval that the batch took. Only a
// trigger on a grid has one: without, the next batch starts at once and it would
// always be 1.
func utilization(_ *event.Vector, b *event.Batch, _ *event.Operator, f *Facts) float64 {
	ms, _ := b.DurationMs()
	return quotient(ms, f[FactIntervalMs])
}

// watermark is 0, Spark's 1970, for one that has not moved yet.
func watermark(b *event.Batch) float64 {
	if b.FirstWatermark {
		return 0
	}
	return moment64(b.WatermarkMs)
}

// eventTimeSpan is from the oldest to the newest row of the batch.
func eventTimeSpan(b *event.Batch) float64 {
	return moment64(b.EventTimeMaxMs) - b.Values[event.EventTimeMin]
}

// backlogBatches is how many batches like this one the backlog would take.
func backlogBatches(b *event.Batch) float64 {
	return quotient(backlog(b), sumSources(b, func(s *event.Source) float64 { return moment64(s.Read) }))
}

// planning is the part of the trigger before and after the work: asking sources,
// planning, and writing what was read and done.
func planning(b *event.Batch) float64 {
	sum, any := 0.0, false
	for id := event.FirstPhase + 1; id <= event.LastPhase; id++ {
		if id == event.DurationAddBatch || id == event.DurationRunContinuous || !b.Values.Has(id) {
			continue
		}
		sum, any = sum+b.Values[id], true
	}
	if !any {
		return math.NaN()
	}
	return sum
}

func provided(o *event.Operator, p event.Provider) float64 {
	if o.Provider == event.ProviderUnknown {
		return math.NaN()
	}
	return truth(o.Provider == p)
}

// lookups are the reads of blocks that the cache was asked for.
func lookups(o *event.Operator) float64 {
	return o.Values[event.RocksDBReadBlockCacheMissCount] + o.Values[event.RocksDBReadBlockCacheHitCount]
}

// lateShare is the part of the rows for the state that came too late for it.
func lateShare(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
	late := leafLate(v, b, o, f)
	return quotient(late, late+leafUpdated(v, b, o, f))
}

var (
	leafLate    = summed(event.NumRowsDroppedByWatermark).eval
	leafUpdated = summed(event.NumRowsUpdated).eval
)

// snapshotLag is how many versions the least recent snapshot of the partitions
// reported lies behind the newest commit. Batch 41 writes version 42. A partition
// that has uploaded nothing since the run began counts from the run's first version.
func snapshotLag(_ *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
	switch {
	case o.SnapshotMin == event.Absent || b.ID == event.Absent:
		return math.NaN()
	case o.SnapshotMin < 0:
		return f[FactRunBatches]
	}
	return max(float64(b.ID+1-o.SnapshotMin), 0)
}
