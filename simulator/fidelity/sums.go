package fidelity

import (
	"github.com/stategauge/stategauge/event"
)

// Sum is a relation between figures of a batch, and in how many batches it does
// not hold.
type Sum struct {
	What                    string
	BrokenSpark, BrokenTwin int
}

// relation is how some figures add up.
type relation struct {
	what string
	// holds tells it of a batch; before is the one before, nil for the first of a run.
	holds func(b, before *Batch) bool
	// of tells which runs it is said of; nil: all.
	of func(r *Run) bool
}

// slack is by how much a sum of times cut to milliseconds may exceed the whole.
const slack = 1

func custom(b *Batch, name string) float64 {
	return b.Values[operatorPath(0)+"customMetrics.rocksdb"+name]
}

func own(b *Batch, name string) float64 { return b.Values[operatorPath(0)+name] }

var relations = []relation{
	{"the phases of a batch are no longer than the trigger", func(b, _ *Batch) bool {
		var sum float64
		for _, phase := range []string{"latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets"} {
			sum += b.Values["durationMs."+phase]
		}
		return sum <= b.Values["durationMs.triggerExecution"]+slack
	}, nil},
	{"batchDuration is the trigger's time", func(b, _ *Batch) bool {
		d := b.Values["batchDuration"] - b.Values["durationMs.triggerExecution"]
		return d >= 0 && d <= 100
	}, since(event.Version{Major: 4})},
	{"the sources' rows are the input rows", func(b, _ *Batch) bool {
		var sum int64
		for _, n := range b.sourceRows(0) {
			sum += n
		}
		return float64(sum) == b.Values["numInputRows"]
	}, nil},
	{"the parts of the commit are no longer than the commit", func(b, _ *Batch) bool {
		sum := custom(b, "CommitWriteBatchLatency") + custom(b, "CommitFlushLatency") + custom(b, "CommitCompactLatency") +
			custom(b, "CommitPauseLatency") + custom(b, "CommitCheckpointLatency") + custom(b, "CommitFileSyncLatencyMs")
		return sum <= own(b, "commitTimeMs")
	}, func(r *Run) bool { return !standing(r) }},
	{"changelog and zip are no longer than the file sync", func(b, _ *Batch) bool {
		return custom(b, "ChangeLogWriterCommitLatencyMs")+custom(b, "SaveZipFilesLatencyMs") <= custom(b, "CommitFileSyncLatencyMs")
	}, since(event.Version{Major: 4, Minor: 1})},
	{"the replay is no longer than the load", func(b, _ *Batch) bool {
		return custom(b, "ReplayChangeLogLatencyMs") <= custom(b, "LoadLatencyMs")
	}, since(event.Version{Major: 4, Minor: 1})},
	{"rows in state change by rows updated less rows removed", func(b, before *Batch) bool {
		return before == nil || own(b, "numRowsTotal") == own(before, "numRowsTotal")+own(b, "numRowsUpdated")-own(b, "numRowsRemoved")
	}, func(r *Run) bool { return r.Job == "dedupe" || r.Job == "join" }},
	{"the tasks' times fit into addBatch on two cores", func(b, _ *Batch) bool {
		return own(b, "allUpdatesTimeMs")+own(b, "allRemovalsTimeMs") <= 2*b.Values["durationMs.addBatch"]
	}, nil},
}

// standing tells whether times of the last snapshot stand until the next.
func standing(r *Run) bool {
	return r.since(event.Version{Major: 4}) && !r.since(event.Version{Major: 4, Minor: 1})
}

func since(v event.Version) func(*Run) bool {
	return func(r *Run) bool { return r.since(v) }
}

func (r *Run) since(v event.Version) bool { return !r.spark().Less(v) }

// hold counts the batches in which a relation does not hold.
func (l *relation) hold(r *Run, spark, twin []Batch) (Sum, bool) {
	if l.of != nil && !l.of(r) {
		return Sum{}, false
	}
	return Sum{What: l.what, BrokenSpark: l.broken(spark), BrokenTwin: l.broken(twin)}, true
}

func (l *relation) broken(batches []Batch) (n int) {
	var before *Batch
	for i := range batches {
		if before != nil && before.RunID != batches[i].RunID {
			before = nil
		}
		if !l.holds(&batches[i], before) {
			n++
		}
		before = &batches[i]
	}
	return n
}
