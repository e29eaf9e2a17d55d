package replay

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// slowUploads looks at the upload inside the commit: its time per store.
func slowUploads(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		per := o.commit[commitFileSync].mean() / 1000
		if !(per >= syncSlow) {
			return nil
		}
		fix := "look at the checkpoint location: throttling, distance, small files"
		if f.changelog() == off {
			fix = "turn changelog checkpointing on (" + confChangelog + "), so that a commit uploads changes and not files; it applies at the next restart"
		}
		return one(ticket, "commit-sync-slow", fmt.Sprintf("every commit waits %s per store for its upload", seconds(per)), fix,
			fmt.Sprintf("mean over %s batches; longest %s", whole(float64(o.commit[commitFileSync].n)), seconds(o.commit[commitFileSync].max/1000)),
			"copied "+size(o.copied.mean())+" per batch, "+size(o.copied.mean()/o.stores)+" per store")
	})
}

// heavyCommits looks for operators whose tasks spend their time committing.
func heavyCommits(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		share, per := o.commitShare(), o.commitMs.mean()/1000/o.instances
		if !(share >= commitHeavy) || !(per >= commitSlow) || o.commit[commitFileSync].mean()/1000 >= syncSlow {
			return nil
		}
		evidence := []string{fmt.Sprintf("commit %s per store; task time per batch: updates %s, removals %s, commits %s",
			seconds(per), seconds(o.updateMs.mean()/1000), seconds(o.removeMs.mean()/1000), seconds(o.commitMs.mean()/1000))}
		largest, name := 0.0, ""
		for i := range o.commit {
			if o.commit[i].mean() > largest {
				largest, name = o.commit[i].mean(), commitPhases[i].name
			}
		}
		if name != "" {
			evidence = append(evidence, fmt.Sprintf("largest phase of a commit: %s, %s per store", name, seconds(largest/1000)))
		}
		return one(info, "commit-dominates", fmt.Sprintf("commits take %s of the operator's task time", percent(share)), commitFix(f, name), evidence...)
	})
}

func commitFix(f *facts, phase string) string {
	switch {
	case f.provider() == event.ProviderHDFS.String():
		return "every commit of this provider writes a delta file per partition: fewer partitions (new checkpoint), or RocksDB"
	case f.changelog() == off:
		return "turn changelog checkpointing on: " + confChangelog
	case phase == "flush":
		return "much is written per batch: write buffer settings, or more partitions in a new checkpoint"
	case phase == "checkpoint":
		return "the local disk is slow: faster local disks, or fewer stores per node"
	case phase == "compact":
		return "leave compactOnCommit off"
	case phase == "file_sync" && f.changelog() == unknown:
		return "look at the checkpoint location, and whether " + confChangelog + " is on: without it every commit uploads files"
	case phase == "file_sync":
		return "look at the checkpoint location: throttling, distance, small files"
	}
	return "fewer, larger batches pay the fixed cost of commits less often"
}

// offsetPhases are the phases that look for input and write the offset log.
var offsetPhases = map[string]string{
	"latestOffset":   "listing the source takes the time: fewer files or partitions, a notification instead of a listing",
	"getOffset":      "listing the source takes the time: fewer files or partitions, a notification instead of a listing",
	"getEndOffset":   "listing the source takes the time: fewer files or partitions, a notification instead of a listing",
	"setOffsetRange": "listing the source takes the time: fewer files or partitions, a notification instead of a listing",
	"getBatch":       "planning the read takes the time: look at the source's own logs",
	"queryPlanning":  "planning takes the time: a simpler plan, or fewer columns and files to plan over",
	"walCommit":      "writing the offset log takes the time: the checkpoint location is slow",
	"commitOffsets":  "writing the commit log takes the time: the checkpoint location is slow",
	"commitBatch":    "committing to the sink takes the time",
	"unaccounted":    "Spark names no phase for the time: locks, or the start offsets of a first batch",
}

// slowPhases looks for batches that spend their time outside addBatch.
func slowPhases(f *facts) []Finding {
	for _, p := range f.phaseList() {
		fix, ok := offsetPhases[p.Phase]
		if !ok || p.Share < dominantShare || f.duration.mean()/1000 < worthSeconds {
			continue
		}
		return one(ticket, "offsets-slow", fmt.Sprintf("%s takes %s of the trigger", p.Phase, percent(p.Share)), fix,
			fmt.Sprintf("%s of %s per batch, mean over %s batches", seconds(p.Mean), seconds(f.duration.mean()/1000), whole(float64(f.executed))))
	}
	return nil
}

func writerStalls(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		per := o.stall.mean()
		if batch := f.duration.mean() / 1000; !(per >= stallShare*batch) || per == 0 {
			return nil
		}
		return one(ticket, "writer-stall", fmt.Sprintf("writers wait %s per store and batch for compaction", seconds(per)),
			"larger or more write buffers, more background threads, fewer rows written per batch",
			"longest "+seconds(o.stall.max), "mean batch "+seconds(f.duration.mean()/1000))
	})
}

func cacheMisses(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		share := o.missShare()
		if !(share >= missesHigh) {
			return nil
		}
		evidence := fmt.Sprintf("%s lookups, %s misses", count(o.hits+o.miss), count(o.miss))
		if o.gets > 0 {
			evidence += ", " + seconds(o.getMs/1000/o.gets) + " per get"
		}
		sev, fix := info, "a larger block cache per store, or more partitions in a new checkpoint"
		if f.bounded() == on {
			fix = "raise maxMemoryUsageMB: SST bytes per executor (" + size(o.sst.last) + " in all) is the yardstick"
		}
		return one(sev, "cache-misses", fmt.Sprintf("%s of the block cache lookups miss and read from disk", percent(share)), fix, evidence)
	})
}

func compactOnCommit(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		if n := o.commit[commitCompact].n; n == 0 || o.compacted*2 < n {
			return nil
		}
		return one(info, "periodic-slow", "every commit compacts its store",
			"leave spark.sql.streaming.stateStore.rocksdb.compactOnCommit off: RocksDB compacts in the background",
			fmt.Sprintf("compaction in %s of %s commits, %s per store", whole(float64(o.compacted)), whole(float64(o.commit[commitCompact].n)), seconds(o.commit[commitCompact].mean()/1000)))
	})
}

// posture looks at settings that make trouble later.
func posture(f *facts) []Finding {
	if f.provider() != event.ProviderRocksDB.String() {
		return nil
	}
	var evidence, fixes []string
	if f.changelog() == off {
		evidence = append(evidence, "changelog checkpointing is off"+f.because(confChangelog, "every upload has its own size"))
		fixes = append(fixes, "set "+confChangelog+" to true")
	}
	if f.bounded() == off {
		evidence = append(evidence, "RocksDB's memory is not bounded"+f.because(confBounded, "stores report memory of their own"))
		fixes = append(fixes, "set "+confBounded+" to true, with spark.executor.memoryOverhead at least maxMemoryUsageMB")
	}
	if len(evidence) == 0 {
		return nil
	}
	return one(info, "posture", "RocksDB runs with settings that cost later", strings.Join(fixes, "; ")+"; it applies at the next restart", evidence...)
}

// elsewhere looks for slow batches whose time is provably not in the state
// stores: their tasks would not fill the batch even one after another.
func elsewhere(f *facts) []Finding {
	add := f.phases[event.DurationAddBatch-event.FirstPhase] / 1000 / float64(f.executed)
	if f.executed == 0 || add < slowSeconds || add < dominantShare*f.duration.mean()/1000 {
		return nil
	}
	tasks := math.NaN()
	for _, o := range f.operators {
		tasks = plus(tasks, plus(o.commitMs.mean(), plus(o.updateMs.mean(), o.removeMs.mean()))/1000)
	}
	if !(tasks < dominantShare*add) {
		return nil
	}
	return one(info, "time-outside-state", "batches are slow, and the state stores do not account for it",
		"look at the stage in the Spark UI: tasks with long scheduler delay or deserialization are loading state, the rest is the query's own work or its sink",
		fmt.Sprintf("addBatch takes %s a batch; all updates, removals and commits together %s, even if they had run one after another", seconds(add), seconds(tasks)))
}

// because says where a setting is known from.
func (f *facts) because(conf, otherwise string) string {
	if _, ok := f.conf[conf]; ok {
		return " (by its setting)"
	}
	return " (" + otherwise + ")"
}

func onHeap(f *facts) []Finding {
	return perOperator(f, func(o *operatorFacts) []Finding {
		if o.provider != event.ProviderHDFS || !(o.rows.last >= heapRows) && !(o.memory.last >= heapBytes) {
			return nil
		}
		return one(info, "provider-hdfs", "a large state lives on the executors' heap",
			"RocksDBStateStoreProvider, in a new checkpoint",
			fmt.Sprintf("%s rows, %s", count(o.rows.last), size(o.memory.last)))
	})
}

// tinyBatches looks for queries with more stores than rows: each batch pays the
// fixed cost of every store.
func tinyBatches(f *facts) []Finding {
	data := f.executed - f.noData
	if data == 0 || f.tinyBatches*2 <= data || f.duration.mean()/1000 < worthSeconds {
		return nil
	}
	stores := 0.0
	for _, o := range f.operators {
		stores = max(stores, or(o.instances, or(o.partitions, 0)))
	}
	return one(info, "partitions-oversized", "most batches read fewer rows than the query has state stores: the fixed cost of a store dominates",
		"a longer trigger interval, or fewer spark.sql.shuffle.partitions in a new checkpoint",
		fmt.Sprintf("median %s rows a batch for %s stores, %s", count(f.rows.quantile(0.5)), whole(stores), seconds(f.duration.mean()/1000)))
}

func spikes(f *facts) []Finding {
	median := f.duration.quantile(0.5)
	if f.duration.n < 2*enoughBatches || !(f.duration.max >= spike*median) || f.duration.max/1000 < worthSeconds {
		return nil
	}
	evidence := "longest " + seconds(f.duration.max/1000) + ", median " + seconds(median/1000) + ", 95th percentile " + seconds(f.duration.quantile(0.95)/1000)
	if f.duration.first == f.duration.max {
		return one(info, "spikes", "the first batch took "+strconv.FormatFloat(math.Round(f.duration.max/median), 'f', 0, 64)+" times the usual time",
			"nothing: it read what had gathered, or loaded its state", evidence)
	}
	return one(info, "spikes", "single batches take many times the usual time",
		"look at the batches' phases: snapshots come every minDeltasForSnapshot batches, lost executors reload state", evidence)
}

// minDeltas is how many batches lie between two snapshots.
func (f *facts) minDeltas() float64 {
	if n, err := strconv.Atoi(f.conf[confMinDeltas]); err == nil && n > 0 {
		return float64(n)
	}
	return defaultDeltas
}
