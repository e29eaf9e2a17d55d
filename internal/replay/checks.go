package replay

import (
	"fmt"
	"math"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// Thresholds of the checks. They look at sums and levels of what was read, so
// they work on a handful of batches; trends are the rules' business.
const (
	dominantShare   = 0.5  // of the trigger, for a phase other than addBatch
	commitHeavy     = 0.5  // of an operator's task time, for its commits
	commitSlow      = 0.1  // seconds per store
	syncSlow        = 0.5  // seconds per store, for the upload
	slowSeconds     = 5.0  // for a batch to be looked at as a whole
	worthSeconds    = 1.0  // shorter batches are not worth tuning by phase
	lateShare       = 0.01 // of rows dropped and updated
	stallShare      = 0.1  // of the batch, per store
	missesHigh      = 0.3  // of block cache lookups
	backlogBatches  = 5.0  // batches of input still waiting
	enoughBatches   = 10
	enoughForTicket = 3         // batches, for a level that may pass
	aheadMs         = 3_600_000 // of the batch, for a watermark
	restartMs       = 15 * 60 * 1000
	restartRuns     = 3
	heapRows        = 1e6
	heapBytes       = 512 << 20
	defaultDeltas   = 10.0
	maintenanceSecs = 60.0
	spike           = 10.0 // longest batch over the median
)

// check looks at one query and reports what stands out, nil for nothing.
type check func(*facts) []Finding

// checks are in the order in which findings of one severity are shown.
var checks = []check{
	failed, restarting, sharedCheckpoint, fallingBehind, watermarkAhead, lateData, stuckWatermark, neverExpires,
	missedBatches, slowUploads, heavyCommits, slowPhases, elsewhere, writerStalls, cacheMisses, snapshotLag, autoRepair,
	compactOnCommit, posture, onHeap, tinyBatches, spikes, rewinds,
}

// findings runs all checks.
func (f *facts) findings() (out []Finding) {
	for _, c := range checks {
		for _, found := range c(f) {
			found.Query, found.QueryID = f.label(), string(f.id)
			out = append(out, found)
		}
	}
	return out
}

// one returns a list of the one finding.
func one(severity, symptom, summary, fix string, evidence ...string) []Finding {
	return []Finding{{Severity: severity, Symptom: symptom, Summary: summary, Fix: fix, Evidence: evidence}}
}

// perOperator runs a check on each operator and names the operator in the result.
func perOperator(f *facts, c func(*operatorFacts) []Finding) (out []Finding) {
	for _, o := range f.operators {
		for _, found := range c(o) {
			found.Operator = o.title()
			out = append(out, found)
		}
	}
	return out
}

// stops are words of exceptions that a deliberate stop leaves behind.
var stops = []string{"SparkContext was shut down", "cancelled", "canceled"}

func failed(f *facts) []Finding {
	if f.status.State != event.StateFailed || f.status.Failure == nil {
		return nil
	}
	for _, word := range stops {
		if strings.Contains(f.status.Failure.Message, word) {
			return one(info, "failed", "the query was stopped from outside", "nothing, if it was on purpose", failureText(f.status.Failure))
		}
	}
	return one(ticket, "failed", "the query died and no newer run was seen",
		"look the error class up; fix the cause before the restart, or the next run dies as well",
		failureText(f.status.Failure))
}

func restarting(f *facts) []Finding {
	for i := restartRuns - 1; i < len(f.startsMs); i++ {
		if span := f.startsMs[i] - f.startsMs[i-restartRuns+1]; span >= 0 && span <= restartMs && !chainedRuns(f) {
			return one(ticket, "restart-loop", fmt.Sprintf("%d starts within %s", restartRuns, seconds(float64(span)/1000)),
				"read the exception of the runs between; a query that dies in its first batch never gets going",
				fmt.Sprintf("%s starts in all, %s batches", whole(float64(len(f.startsMs))), whole(float64(f.executed))))
		}
	}
	return nil
}

// chainedRuns tells queries that are made of short runs.
func chainedRuns(f *facts) bool {
	return f.status.Trigger == event.TriggerAvailableNow || f.status.Trigger == event.TriggerOnce
}

func sharedCheckpoint(f *facts) []Finding {
	if !f.shared {
		return nil
	}
	return one(page, "checkpoint-shared", "two runs of one query id take turns: two queries write one checkpoint",
		"stop one of them and give each its own checkpointLocation",
		fmt.Sprintf("%s runs of this id", whole(float64(f.status.Runs))))
}

// fallingBehind compares what waits with what a batch reads, and a batch with its
// interval. A backlog that shrinks is a query catching up.
func fallingBehind(f *facts) []Finding {
	const fix = "find the phase that takes the time below; more input per batch (maxOffsetsPerTrigger) helps only where batches have a fixed cost"
	if f.status.Trigger == event.TriggerInterval && f.status.IntervalMs > 0 && f.executed >= enoughBatches {
		if median := f.duration.quantile(0.5); median >= f.status.IntervalMs {
			return one(ticket, "falling-behind", fmt.Sprintf("half of the batches take longer than the trigger interval of %s", seconds(f.status.IntervalMs/1000)), fix,
				"median batch "+seconds(median/1000), "95th percentile "+seconds(f.duration.quantile(0.95)/1000))
		}
	}
	waiting, perBatch := f.backlog.last, f.read.mean()
	if f.backlog.n == 0 || !(waiting > backlogBatches*perBatch) || perBatch <= 0 {
		return nil
	}
	evidence := []string{
		fmt.Sprintf("%s offsets behind after the newest batch, %s read per batch: %s batches' worth", count(waiting), count(perBatch), whole(waiting/perBatch)),
	}
	if f.backlog.n < 2 {
		return one(info, "falling-behind", "much input waits; one batch cannot tell whether it grows", fix, evidence...)
	}
	if waiting < f.backlog.first || f.backlog.n >= 6 && f.backlog.third(true) <= f.backlog.third(false) {
		return one(info, "falling-behind", "much input waits, but it shrinks: the query is catching up", "wait, or raise the input per batch", evidence...)
	}
	evidence = append(evidence, fmt.Sprintf("%s when the first batch was read", count(f.backlog.first)))
	return one(ticket, "falling-behind", "input arrives faster than it is processed", fix, evidence...)
}

func watermarkAhead(f *facts) []Finding {
	if f.watermarkAhead <= aheadMs {
		return nil
	}
	return one(ticket, "watermark-in-future", fmt.Sprintf("the watermark was %s ahead of the clock: every row on time is late", seconds(float64(f.watermarkAhead)/1000)),
		"drop rows with timestamps in the future before withWatermark; it never goes back within this checkpoint",
		"watermark "+stamp(f.watermarkMs), "newest event time "+stamp(f.eventMaxMs))
}

func lateData(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		share := o.dropped / (o.dropped + o.updated.sum)
		if o.dropped == 0 || !(share > lateShare) {
			return nil
		}
		sev := ticket
		if o.updated.n < enoughForTicket {
			sev = info
		}
		return one(sev, "late-data-dropped", fmt.Sprintf("%s of the rows came too late and were dropped", percent(share)),
			"widen the watermark's delay, or find the source that delivers late",
			fmt.Sprintf("%s rows dropped, %s updated", count(o.dropped), count(o.updated.sum)))
	})
}

// stuckWatermark looks for a watermark that never left its start although batches
// had rows.
func stuckWatermark(f *facts) []Finding {
	data := f.executed - f.noData
	if f.watermarks == 0 || f.sentinels < f.watermarks || data < enoughBatches {
		return nil
	}
	return one(ticket, "watermark-stuck", "the watermark never moved: no state expires",
		"check that the watermark's column holds event time, and that no idle source holds it back (multipleWatermarkPolicy)",
		fmt.Sprintf("at its start in all of %s batches", whole(float64(f.watermarks))), "newest event time "+stampOr(f.eventMaxMs, none))
}

func stampOr(ms int64, otherwise string) string {
	if s := stamp(ms); s != "" {
		return s
	}
	return otherwise
}

// neverExpires looks for state that only grows in a query without watermark.
func neverExpires(f *facts) []Finding {
	if f.watermarks > 0 || f.executed < enoughBatches {
		return nil
	}
	return perOperator(f, func(o *operatorFacts) []Finding {
		if o.rows.n < enoughBatches || o.rows.last <= o.rows.first || o.removed.sum > 0 {
			return nil
		}
		return one(ticket, "state-never-expires", "state grows and nothing ever leaves it: the query has no watermark",
			"add withWatermark, use dropDuplicatesWithinWatermark, or bound the join in time; tuning the store will not help",
			fmt.Sprintf("%s rows, %s in the first batch read, none removed in %s batches", count(o.rows.last), count(o.rows.first), whole(float64(o.rows.n))))
	})
}

func missedBatches(f *facts) []Finding {
	if f.status.Missed == 0 {
		return nil
	}
	return one(info, "missed-events", fmt.Sprintf("%s batches ran whose events are not here", whole(float64(f.status.Missed))),
		"where Spark's listener queue dropped them, raise spark.scheduler.listenerbus.eventqueue.capacity; polling lastProgress misses batches by nature",
		fmt.Sprintf("%s batches read", whole(float64(f.executed))))
}

func snapshotLag(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		gap := f.gapSeconds()
		allowed := f.minDeltas() + 2*maintenanceSecs/gap
		if math.IsNaN(gap) {
			allowed = 3 * f.minDeltas()
		}
		if !(o.lag > allowed) {
			return nil
		}
		return one(ticket, "snapshot-lag", fmt.Sprintf("the newest uploaded snapshot of a store is %s versions old: recovery replays as many changelogs", whole(o.lag)),
			"see whether state store maintenance runs and uploads: executor logs, maintenanceInterval, numStateStoreMaintenanceThreads",
			fmt.Sprintf("version %s of the worst store reported, batch %s writes version %s; about %s versions are usual",
				whole(float64(o.lagMin)), whole(float64(f.lastBatch)), whole(float64(f.lastBatch+1)), whole(allowed)))
	})
}

func autoRepair(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		if o.repaired == 0 {
			return nil
		}
		return one(ticket, "auto-repair", "Spark skipped broken snapshots and rebuilt state from older ones",
			"find out why files of the checkpoint were damaged; the storage is suspect",
			fmt.Sprintf("%s repairs", whole(o.repaired)))
	})
}

func rewinds(f *facts) []Finding {
	if f.rewound == 0 {
		return nil
	}
	return one(info, "rewound", "batches ran again under older ids: the checkpoint was restored or partly deleted",
		"nothing, if it was on purpose; outputs of the batches in between may be there twice",
		fmt.Sprintf("%s times", whole(float64(f.rewound))))
}
