package app

import (
	"fmt"
	"strings"
)

// loadsTwice reports whether the operator is an aggregation that loads its stores
// twice a batch, as those before 4.1 do.
func (h *account) loadsTwice() bool {
	switch h.f.Job {
	case "agg", "idle", "foreach", "fail":
		return h.before(4, 1)
	}
	return false
}

// near compares figures that Spark cuts to whole milliseconds per store.
func near(p *progressText) float64 { return p.figure("numStateStoreInstances") }

var commitFacts = []fact{
	{"rhythm", "with changelog a snapshot is cut every minDeltasForSnapshot (10) batches, in all partitions at once, save in aggregations before 4.1", func(h *account) (bool, string) {
		can := h.rocksdb() && h.changelog() && h.undisturbed() && h.from(3, 5) && !h.loadsTwice()
		last := int64(-1) // version 0, before the first batch
		return can, h.each(func(p *progressText) string {
			// The first batch of an operator with column families is a snapshot by force.
			if !can || p.BatchID == 0 || p.slow() == 0 {
				return ""
			}
			gap := p.BatchID - last
			last = p.BatchID
			if gap < 10 {
				return fmt.Sprintf("a snapshot after %d batches", gap)
			}
			return ""
		})
	}},
	{"rhythm before 4.1", "an aggregation of 3.5 and 4.0 cuts snapshots in commit after commit, from the tenth version until one has been uploaded", func(h *account) (bool, string) {
		can := h.rocksdb() && h.changelog() && h.from(3, 5) && h.loadsTwice()
		if !can {
			return false, ""
		}
		again := h.share(func(was, p *progressText) bool { return was.slow() > 0 && p.slow() != was.slow() && p.BatchID%10 != 9 })
		if again < 0.1 {
			return true, fmt.Sprintf("only %.0f %% of the batches", again*100)
		}
		return true, ""
	}},
	{"other commits", "with changelog the other commits report 0 for flush and checkpoint, save in 4.0, which repeats the last snapshot's", func(h *account) (bool, string) {
		can := h.rocksdb() && h.changelog() && h.from(3, 5)
		if !can {
			return false, ""
		}
		repeated := h.share(func(was, p *progressText) bool { return p.slow() > 0 && p.slow() == was.slow() })
		if is40 := h.from(4, 0) && h.before(4, 1); is40 != (repeated > 0.2) {
			return true, fmt.Sprintf("%.0f %% of the batches repeat", repeated*100)
		}
		return true, ""
	}},
	{"parts", "flush, compaction, checkpoint and file sync lie inside commitTimeMs, save in 4.0 with changelog", func(h *account) (bool, string) {
		can := h.rocksdb() && h.f.Job != "join" && !(h.changelog() && h.from(4, 0) && h.before(4, 1))
		return can, h.each(func(p *progressText) string {
			parts := p.slow() + p.figure("rocksdbCommitCompactLatency") + p.figure("rocksdbCommitFileSyncLatencyMs")
			if can && parts > p.figure("commitTimeMs")+near(p) {
				return fmt.Sprintf("%g of %g ms", parts, p.figure("commitTimeMs"))
			}
			return ""
		})
	}},
	{"parts of file sync", "from 4.1 on the changelog's commit and the zip are parts of file sync, each 0 where it does not apply", func(h *account) (bool, string) {
		can := h.rocksdb() && h.from(4, 1)
		return can, h.each(func(p *progressText) string {
			changelog, zip := p.figure("rocksdbChangeLogWriterCommitLatencyMs"), p.figure("rocksdbSaveZipFilesLatencyMs")
			switch {
			case !can:
				return ""
			case changelog+zip > p.figure("rocksdbCommitFileSyncLatencyMs")+near(p):
				return fmt.Sprintf("%g and %g", changelog, zip)
			case !h.changelog() && changelog > 0:
				return fmt.Sprintf("changelog %g ms without a changelog", changelog)
			}
			return ""
		})
	}},
	{"uploads with changelog", "with changelog the upload figures repeat the last upload, save in aggregations before 4.1", func(h *account) (bool, string) {
		can := h.rocksdb() && h.changelog() && h.from(3, 5) && !h.loadsTwice() && len(h.batches) > 40
		if !can {
			return false, ""
		}
		repeat := h.share(func(was, p *progressText) bool { return p.uploads()[0] > 0 && p.uploads() == was.uploads() })
		if repeat < 0.5 {
			return true, fmt.Sprintf("%.0f %% of the batches", repeat*100)
		}
		return true, ""
	}},
	{"uploads in steps", "with changelog the sum over the stores changes in several batches of one round, store by store", func(h *account) (bool, string) {
		can := h.rocksdb() && h.changelog() && h.from(3, 5) && len(h.batches) > 40
		// Whether a run shows it depends on how the maintenance thread falls.
		changes := 0
		for i := 1; i < len(h.batches); i++ {
			if h.batches[i].uploads() != h.batches[i-1].uploads() {
				changes++
			}
		}
		return can && changes > len(h.batches)/10+1, ""
	}},
	{"uploads without changelog", "without changelog every commit brings new upload figures", func(h *account) (bool, string) {
		can := h.rocksdb() && !h.changelog() && h.f.Job != "tws"
		if !can {
			return false, ""
		}
		fresh := h.share(func(was, p *progressText) bool { return p.uploads() != was.uploads() })
		if fresh < 0.9 {
			return true, fmt.Sprintf("only %.0f %% of the batches", fresh*100)
		}
		return true, ""
	}},
	{"load", "from 4.1 on a load takes time in most batches though nothing is fetched, since it opens the changelog", func(h *account) (bool, string) {
		can := h.rocksdb() && h.changelog() && h.from(4, 1)
		if !can {
			return false, ""
		}
		busy := h.share(func(_, p *progressText) bool {
			return p.figure("rocksdbLoadLatencyMs") > 0 && !(p.figure("rocksdbNumLoadedFromDfs") > 0)
		})
		if busy < 0.9 {
			return true, fmt.Sprintf("only %.0f %% of the batches", busy*100)
		}
		return true, ""
	}},
	{"forced snapshot", "a first batch that creates column families uploads a snapshot inside the commit", func(h *account) (bool, string) {
		first := h.batches[0]
		can := h.f.Job == "tws" && h.changelog() && h.from(4, 1) && first.BatchID == 0
		if can && !(first.figure("rocksdbSaveZipFilesLatencyMs") > 0) {
			return true, "no zip"
		}
		return can, ""
	}},
	{"snapshot version", "SnapshotLastUploaded is a version: at most the batch number plus one, and that in RocksDB without changelog", func(h *account) (bool, string) {
		can := h.from(4, 1)
		return can, h.each(func(p *progressText) string {
			for _, key := range p.keys(0) {
				if !strings.HasPrefix(key, "SnapshotLastUploaded.") {
					continue
				}
				v, newest := p.figure(key), float64(p.BatchID+1)
				if v > newest || v < -1 || h.rocksdb() && !h.changelog() && v != newest {
					return fmt.Sprintf("%s = %g", key, v)
				}
			}
			return ""
		})
	}},
}
