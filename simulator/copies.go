package simulator

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/operator"
	"github.com/stategauge/stategauge/simulator/seed"
)

// copies lets only some partitions of an operator have real stores. The results
// of the others are copies of a real partition's, brought to their own number of
// rows and a little off in their times. What is lost: a copy has no state of its
// own, so skew between partitions shows in rows and times but not in what the LSM
// trees did, hot keys of a copied partition meet no real store, rows that an
// operator hands to the next come from real partitions only, and after a loss a
// copy's load is that of its model, wherever it was placed: scenarios about losses
// have all stores real.
type copies struct {
	partitions, reals int
	seed              uint64
}

// newCopies makes the first of every partitions/reals partitions real; reals 0
// or too large: all.
func newCopies(partitions, reals int, root uint64) *copies {
	if reals <= 0 || reals > partitions {
		reals = partitions
	}
	return &copies{partitions: partitions, reals: reals, seed: root}
}

// real reports whether a partition has stores of its own.
func (c *copies) real(p int) bool { return c.reals == c.partitions || c.model(p) == p }

// model is the partition that p copies: itself where it is real.
func (c *copies) model(p int) int {
	group := p * c.reals / c.partitions
	return (group*c.partitions + c.reals - 1) / c.reals
}

// fill writes the results of the copied partitions and puts their tasks on the
// cores of the executors that would run them.
func (c *copies) fill(s *stage, execs []*executor, place *placement) {
	if c.reals == c.partitions {
		return
	}
	for p := range s.results {
		if c.real(p) {
			continue
		}
		m := c.model(p)
		rng := seed.New(c.seed, seed.ForCopies, uint64(s.draws()), uint64(p), uint64(s.version))
		c.copy(&s.results[p], &s.results[m], ratio(s.counts[p], s.counts[m]), rng)
		e := execs[place.of[p]]
		e.cores[e.core()] += s.results[p].Total()
	}
}

// ratio is how much more input a copy has than its model; 1 where neither has any.
func ratio(rows, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(rows) / float64(of)
}

// copy makes dst what src would be with load times the rows. Counts of rows and
// of work done for rows follow the load; state, files and the fixed cost of a
// commit do not. Times get a jitter of a few percent, the same for all parts of
// the task, so that parts still add up to no more than the whole.
func (c *copies) copy(dst, src *operator.Result, load float64, rng *rand.Rand) {
	uploaded, out := dst.Uploaded[:0], dst.Out
	*dst = *src
	dst.Uploaded, dst.Out = append(uploaded, src.Uploaded...), out
	jitter := math.Exp(0.06 * rng.NormFloat64())
	dst.Updated = scaleInt(src.Updated, load)
	dst.Dropped = scaleInt(src.Dropped, load)
	dst.Output = scaleInt(src.Output, load)
	dst.Update = scaleTime(src.Update, load*jitter)
	dst.Removal = scaleTime(src.Removal, jitter)
	dst.Commit = scaleTime(src.Commit, jitter)
	dst.Load = scaleTime(src.Load, jitter)
	dst.Other = scaleTime(src.Other, load*jitter)
	for _, id := range followRows {
		dst.Custom[id] = math.Round(src.Custom[id] * load)
	}
	for _, id := range followTime {
		dst.Custom[id] = math.Floor(src.Custom[id] * jitter)
	}
}

// followRows are the figures that grow with a batch's rows, followTime the times
// that lie inside a commit or a load.
var (
	followRows = [...]event.MetricID{
		event.RocksDBGetCount, event.RocksDBPutCount, event.RocksDBTotalBytesRead, event.RocksDBTotalBytesWritten,
		event.RocksDBReadBlockCacheHitCount, event.RocksDBReadBlockCacheMissCount, event.NumDroppedDuplicateRows,
	}
	followTime = [...]event.MetricID{
		event.RocksDBCommitWriteBatchLatency, event.RocksDBCommitFlushLatency, event.RocksDBCommitCompactLatency,
		event.RocksDBCommitCheckpointLatency, event.RocksDBCommitFileSyncLatency, event.RocksDBChangeLogWriterCommitLatency,
		event.RocksDBSaveZipFilesLatency, event.RocksDBLoadLatency, event.RocksDBReplayChangeLogLatency,
	}
)

func scaleInt(n int64, by float64) int64 { return int64(math.Round(float64(n) * by)) }

func scaleTime(d time.Duration, by float64) time.Duration {
	return time.Duration(math.Round(float64(d) * by))
}
