package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/event"
)

const (
	// slowFactor times the median, and slowest times the 99th percentile, is a batch
	// far above what is usual; where executors are known to have changed less will do.
	slowFactor, slowest       = 3, 1.5
	hintedFactor, hintedLeast = 1.5, 1.0
	// slowMs is how much longer such a batch must be in any case.
	slowMs = 1000
	// hintBatches is how many batches a loss of executors may take to show.
	hintBatches = 3
	// doubtBatches is how many batches a doubt is shown for.
	doubtBatches = 20
	// commitFactor times the usual is a commit that explains a slow batch itself.
	commitFactor = 2
	// replayFactor times the usual number of replayed changelogs, and replayLeast
	// more, is a store that came from the checkpoint.
	replayFactor, replayLeast = 3, 4
	usualWeight               = 0.1
	minDurations              = 20
)

// reload tells batches for which state stores were rebuilt from the checkpoint.
type reload struct {
	hits, misses      float64 // of the HDFS provider's maps, as the batch before said
	replayed, commit  float64 // usual changelogs a batch, usual commit per store
	losses, executors float64 // as last told; NaN unknown
	hint              string  // executors were lost, or came and went
	hinted            int     // batches that the hint is good for
	doubt             string  // a batch that may have rebuilt stores, or not
	doubted           int
	last              int64 // position of the newest batch that did
	told              bool  // losses and executors hold something
}

// pushReload judges one executed batch that has its place. Runs load their stores
// with the first batch; with unloadOnCommit every batch does.
func (s *story) pushReload(q *queryState, b *event.Batch, at int64) {
	r := &s.reload
	r.age()
	r.hear(q)
	first := s.ran <= 1
	why, word := r.evidence(b, first)
	slow, dur := s.slowBy(r, b)
	if first || q.facts[FactUnloadOnCommit] == 1 {
		return
	}
	if why == "" && r.hinted > 0 && slow >= hintedLeast {
		why, word = fmt.Sprintf("the batch took %s where %s is usual", spell(dur), spell(s.durations.p50)), r.hint
	}
	switch {
	case why != "":
		if r.hint != "" {
			word = r.hint
		}
		s.noteReload(occurrence{atMs: at, batch: q.position, count: 1, text: word, why: why})
		r.hint, r.hinted, r.doubt = "", 0, ""
	case slow >= slowFactor/hintedFactor && len(b.Operators) > 0 && !(q.facts[FactSpark] >= 402):
		r.doubted, r.doubt = doubtBatches, doubtful(b.ID, dur, s.durations.p50)
	}
}

// doubtful says why a slow batch is not judged.
func doubtful(batch int64, dur, usual float64) string {
	return fmt.Sprintf("cannot tell from own code or load: batch %d took %s where %s is usual, and its commit did not; events of Spark before 4.2 do not say whether stores were loaded, executor losses in the listener's envelope would",
		batch, spell(dur), spell(usual))
}

// noteReload counts what goes on over two batches in a row once.
func (s *story) noteReload(o occurrence) {
	if s.reload.last != 0 && o.batch == s.reload.last+1 {
		s.reload.last = 0
		return
	}
	s.reload.last = o.batch
	s.note(changeReloaded, o)
}

// age lets hints and doubts grow old by a batch.
func (r *reload) age() {
	if r.hinted--; r.hinted <= 0 {
		r.hint, r.hinted = "", 0
	}
	if r.doubted--; r.doubted <= 0 {
		r.doubt, r.doubted = "", 0
	}
}

// hear compares what is told of executors with what was.
func (r *reload) hear(q *queryState) {
	losses, executors := q.facts[FactExecutorLosses], q.facts[FactExecutors]
	if r.told {
		switch {
		case losses > r.losses:
			r.hint, r.hinted = "executors lost", hintBatches
		case executors != r.executors && executors > 0 && r.executors > 0:
			r.hint, r.hinted = "executors came or went", hintBatches
		}
	}
	r.told, r.losses, r.executors = true, losses, executors
}

// evidence looks for figures that say that stores were loaded.
func (r *reload) evidence(b *event.Batch, first bool) (why, word string) {
	total := func(id event.MetricID) float64 { return sumOf(b, id) }
	fetched, replayed := total(event.RocksDBNumLoadedFromDfs), total(event.RocksDBNumReplayChangelogFiles)
	hits, misses := total(event.LoadedMapCacheHitCount), total(event.LoadedMapCacheMissCount)
	switch {
	case fetched > 0:
		why = fmt.Sprintf("%g state stores fetched a snapshot from the checkpoint", fetched)
	case replayed >= replayFactor*r.replayed+replayLeast:
		why = fmt.Sprintf("%g changelog files were replayed, %s is usual", replayed, digits(r.replayed))
	case misses > r.misses || hits < r.hits:
		why = fmt.Sprintf("state maps were not in memory and had to be loaded: %g of them so far", misses)
	}
	r.hits, r.misses = hits, misses
	if why == "" && replayed >= 0 && !first {
		r.replayed += usualWeight * (replayed - r.replayed)
	}
	return why, "stores loaded"
}

// slowBy says how far a batch is above what is usual: 1 is enough where executors
// are known to have changed, slowFactor/hintedFactor where nothing is. 0 where the
// commit is slow too, which a load does not do, or while nothing is usual yet.
func (s *story) slowBy(r *reload, b *event.Batch) (slow, dur float64) {
	dur, _ = b.DurationMs()
	commit := sumOperators(b, func(o *event.Operator) float64 { return o.Values[event.CommitTime] / count(o.Instances) })
	usual := r.commit
	switch {
	case !(commit > 0):
	case usual == 0:
		r.commit = commit
	case commit <= commitFactor*usual:
		r.commit += usualWeight * (commit - usual)
	}
	if s.durations.n < minDurations || commit > commitFactor*usual || !(dur > s.durations.p50+slowMs) {
		return 0, dur
	}
	slow = dur / s.durations.p50 / hintedFactor
	if slow >= slowFactor/hintedFactor && dur < slowest*s.durations.p99 {
		slow = hintedLeast
	}
	return slow, dur
}
