package proof

import (
	"cmp"
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// statistic is a number of one executed batch; NaN where it has none.
type statistic func(b *event.Batch) float64

// operator is the first of the plan, by which a query of several is judged.
func operator(b *event.Batch) *event.Operator {
	if len(b.Operators) == 0 {
		return nil
	}
	return &b.Operators[0]
}

// level is a figure of the first operator.
func level(id event.MetricID) statistic {
	return func(b *event.Batch) float64 {
		if o := operator(b); o != nil {
			return o.Values[id]
		}
		return math.NaN()
	}
}

// perStore is a figure of the first operator by the stores that report it.
func perStore(ids ...event.MetricID) statistic {
	return func(b *event.Batch) float64 {
		o := operator(b)
		if o == nil || o.Stores == 0 {
			return math.NaN()
		}
		sum := 0.0
		for _, id := range ids {
			sum += o.Values[id]
		}
		return sum / float64(o.Stores)
	}
}

// phase is the sum of figures of the whole batch.
func phase(ids ...event.MetricID) statistic {
	return func(b *event.Batch) float64 {
		sum := 0.0
		for _, id := range ids {
			sum += b.Values[id]
		}
		return sum
	}
}

// ratio divides one statistic by another.
func ratio(a, b statistic) statistic {
	return func(x *event.Batch) float64 {
		if d := b(x); d != 0 {
			return a(x) / d
		}
		return math.NaN()
	}
}

var (
	duration   = phase(event.DurationTriggerExecution)
	logs       = phase(event.DurationWalCommit, event.DurationCommitOffsets)
	listing    = phase(event.DurationLatestOffset)
	inputRows  = phase(event.NumInputRows)
	sync       = perStore(event.RocksDBCommitFileSyncLatency)
	flush      = perStore(event.RocksDBCommitFlushLatency)
	local      = perStore(event.RocksDBCommitFlushLatency, event.RocksDBCommitCheckpointLatency)
	copied     = perStore(event.RocksDBBytesCopied)
	rowsTotal  = level(event.NumRowsTotal)
	rowsGone   = level(event.NumRowsRemoved)
	memory     = level(event.MemoryUsedBytes)
	stall      = level(event.RocksDBWriterStallLatency)
	fetched    = level(event.RocksDBNumLoadedFromDfs)
	replayed   = level(event.RocksDBNumReplayChangelogFiles)
	repaired   = level(event.RocksDBNumSnapshotsAutoRepaired)
	heapMisses = level(event.LoadedMapCacheMissCount)
	missesEach = ratio(level(event.RocksDBReadBlockCacheMissCount), level(event.RocksDBGetCount))
)

// syncEach is what each file of a commit takes to upload: its tables, and the zip
// with all else. Whether a store has one new table or two goes by the rhythm of its
// compactions and doubles what a commit waits for, with a store of files as fast as
// ever.
func syncEach(b *event.Batch) float64 {
	o := operator(b)
	if o == nil || o.Stores == 0 {
		return math.NaN()
	}
	return sync(b) / (1 + o.Values[event.RocksDBFilesCopied]/float64(o.Stores))
}

// dropShare is the part of the rows that came too late.
func dropShare(b *event.Batch) float64 {
	o := operator(b)
	dropped := o.Values[event.NumRowsDroppedByWatermark]
	return dropped / (dropped + o.Values[event.NumRowsUpdated])
}

// instances is how many stores took part.
func instances(b *event.Batch) float64 { return float64(operator(b).Instances) }

// snapshotLag is how many versions the oldest newest snapshot lies back.
func snapshotLag(b *event.Batch) float64 {
	o := operator(b)
	if o.NumSnapshots == 0 {
		return math.NaN()
	}
	return float64(b.ID + 1 - max(o.SnapshotMin, 0))
}

// minutes of a difference of times, NaN where one of them is absent.
func minutes(fromMs, toMs int64) float64 {
	if fromMs == event.Absent || toMs == event.Absent {
		return math.NaN()
	}
	return float64(toMs-fromMs) / 60_000
}

func watermarkBehind(b *event.Batch) float64 { return minutes(b.WatermarkMs, b.EventTimeMaxMs) }
func watermarkAhead(b *event.Batch) float64  { return minutes(b.StartMs, b.WatermarkMs) }
func dataAge(b *event.Batch) float64         { return minutes(b.EventTimeMaxMs, b.StartMs) }

// backlog is what waits in the sources after what the batch read.
func backlog(b *event.Batch) float64 {
	sum := 0.0
	for i := range b.Sources {
		if n := b.Sources[i].Backlog; n != event.Absent {
			sum += float64(n)
		}
	}
	return sum
}

// utilisation is duration over an interval in milliseconds.
func utilisation(intervalMs float64) statistic {
	return func(b *event.Batch) float64 { return duration(b) / intervalMs }
}

// point is a statistic of one batch.
type point struct {
	turn  int64
	value float64
}

// series is a statistic of all batches of a query that have it.
func series(all []said, query int, s statistic) (out []point) {
	for i := range all {
		e := &all[i]
		if e.query != query || e.Kind != event.KindProgress || !e.Batch.Executed {
			continue
		}
		if v := s(e.Batch); !math.IsNaN(v) {
			out = append(out, point{e.turn, v})
		}
	}
	return out
}

// steps are the differences from one batch to the next.
func steps(ps []point) (out []point) {
	for i := 1; i < len(ps); i++ {
		out = append(out, point{ps[i].turn, ps[i].value - ps[i-1].value})
	}
	return out
}

// unchanged counts for how many batches a value has stood.
func unchanged(ps []point) (out []point) {
	n := 0.0
	for i := range ps {
		if i > 0 && ps[i].value == ps[i-1].value {
			n++
		} else {
			n = 0
		}
		out = append(out, point{ps[i].turn, n})
	}
	return out
}

// between are the values of turns in [from, to).
func between(ps []point, from, to int64) (out []float64) {
	for _, p := range ps {
		if p.turn >= from && p.turn < to {
			out = append(out, p.value)
		}
	}
	return out
}

func median(vs []float64) float64 {
	if len(vs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(vs))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// ranks of values, ties sharing theirs.
func ranks(vs []float64) []float64 {
	order := make([]int, len(vs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(vs[a], vs[b]) })
	out := make([]float64, len(vs))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && vs[order[j]] == vs[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

// rankCorrelation is Spearman's.
func rankCorrelation(a, b []float64) float64 {
	ra, rb := ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	var ab, aa, bb float64
	for i := range ra {
		x, y := ra[i]-mean, rb[i]-mean
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}
