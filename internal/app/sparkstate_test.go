package app

import (
	"fmt"
	"strings"
)

var stateFacts = []fact{
	{"stall", "the writer stall figure is in nanoseconds", func(h *account) (bool, string) {
		can, impossible := false, false
		if !h.rocksdb() {
			return false, ""
		}
		against := h.each(func(p *progressText) string {
			raw, limit := p.figure("rocksdbWriterStallLatencyMs"), float64(p.DurationMs["triggerExecution"]+1)*p.figure("numStateStoreInstances")
			can = can || raw > 0
			impossible = impossible || raw/1e3 > limit // as microseconds
			if raw/1e6 > limit {
				return fmt.Sprintf("%g in a batch of at most %g ms of tasks", raw, limit)
			}
			return ""
		})
		if can && !impossible && against == "" {
			against = "every figure could be in microseconds"
		}
		return can, against
	}},
	{"column families", "the two column family counts are swapped in 4.0 and 4.1 and right from 4.2 on", func(h *account) (bool, string) {
		can := h.f.Job == "tws"
		return can, h.each(func(p *progressText) string {
			if !can {
				return ""
			}
			own := 1.0 // the default family
			for _, kind := range []string{"Value", "List", "Map"} {
				for _, ttl := range []string{"StateVars", "StateWithTTLVars"} {
					own += p.figure("num"+kind+ttl) / p.figure("numShufflePartitions")
				}
			}
			key := "rocksdbNumExternalColumnFamilies"
			if h.before(4, 2) {
				key = "rocksdbNumInternalColumnFamilies"
			}
			if got := p.figure(key) / p.figure("numStateStoreInstances"); got != own {
				return fmt.Sprintf("%s is %g per store, the processor has %g", key, got, own)
			}
			return ""
		})
	}},
	{"join stores", "a stream-stream join has four stores per partition and reports puts of two of them", func(h *account) (bool, string) {
		can := h.f.Job == "join"
		if !can {
			return false, ""
		}
		if wrong := h.each(func(p *progressText) string {
			if p.figure("numStateStoreInstances") != 4*p.figure("numShufflePartitions") {
				return fmt.Sprint(p.figure("numStateStoreInstances"))
			}
			return ""
		}); wrong != "" {
			return true, wrong
		}
		// A row is put, put again when it finds its match, and deleted. The two stores
		// that count rows per key would add a put for each of these.
		half := h.share(func(_, p *progressText) bool {
			return p.figure("rocksdbPutCount") <= p.figure("numRowsUpdated")+p.figure("numRowsRemoved")+float64(*p.Sink.Rows)
		})
		if half < 0.9 {
			return true, fmt.Sprintf("more puts in all but %.0f %% of the batches", half*100)
		}
		return true, ""
	}},
	{"partitions", "numShufflePartitions stays that of the checkpoint, whatever spark.sql.shuffle.partitions becomes", func(h *account) (bool, string) {
		can := len(h.f.Legs) > 1 && h.f.Legs[1].Conf["spark.sql.shuffle.partitions"] != h.f.Legs[0].Conf["spark.sql.shuffle.partitions"]
		first := h.batches[0].figure("numShufflePartitions")
		return can, h.each(func(p *progressText) string {
			if p.figure("numShufflePartitions") != first {
				return fmt.Sprint(p.figure("numShufflePartitions"))
			}
			return ""
		})
	}},
	{"actions", "a foreachBatch with two actions counts every store and every partition twice", func(h *account) (bool, string) {
		can := h.f.Job == "foreach"
		return can, h.each(func(p *progressText) string {
			if twice := 2 * h.partitions(); can && (p.figure("numStateStoreInstances") != twice || p.figure("numShufflePartitions") != twice) {
				return fmt.Sprintf("%g stores, %g partitions", p.figure("numStateStoreInstances"), p.figure("numShufflePartitions"))
			}
			return ""
		})
	}},
	{"bounded memory", "with bounded memory memoryUsedBytes is 0 in 4.0, and a share of the process from 4.1 on", func(h *account) (bool, string) {
		can := h.rocksdb() && h.bounded() && h.from(3, 5)
		return can, h.each(func(p *progressText) string {
			if used := p.figure("memoryUsedBytes"); can && (used == 0) != (h.from(4, 0) && h.before(4, 1)) {
				return fmt.Sprint(used)
			}
			return ""
		})
	}},
	{"pinned", "with bounded memory every store of 3.5 and 4.0 reports the whole cache as pinned", func(h *account) (bool, string) {
		can := h.rocksdb() && h.bounded() && h.from(3, 5) && h.before(4, 1) && strings.HasPrefix(h.f.Legs[0].Master, "local[")
		return can, h.each(func(p *progressText) string {
			if pinned := p.figure("rocksdbPinnedBlocksMemoryUsage"); can && pinned < p.figure("numStateStoreInstances") {
				return fmt.Sprint(pinned)
			}
			return ""
		})
	}},
	{"memory in 3.5", "with bounded memory 3.5 adds the shared cache to memoryUsedBytes once per store", func(h *account) (bool, string) {
		can := h.rocksdb() && h.bounded() && h.from(3, 5) && h.before(4, 0)
		return can, h.each(func(p *progressText) string {
			if used, pinned := p.figure("memoryUsedBytes"), p.figure("rocksdbPinnedBlocksMemoryUsage"); can && used < pinned {
				return fmt.Sprintf("%g used, %g pinned", used, pinned)
			}
			return ""
		})
	}},
	{"fetched", "from 4.2 on rocksdbNumLoadedFromDfs counts the stores that fetch a snapshot: all of them after a restart, none otherwise", func(h *account) (bool, string) {
		can := h.rocksdb() && h.from(4, 2) && len(h.f.Legs) == 2 && h.f.Legs[1].Query.RunID != "" && h.f.Job == "dedupe"
		run := h.batches[0].RunID
		return can, h.each(func(p *progressText) string {
			restarted := p.RunID != run
			run = p.RunID
			if can && restarted && p.figure("rocksdbNumLoadedFromDfs") != p.figure("numStateStoreInstances") {
				return fmt.Sprint(p.figure("rocksdbNumLoadedFromDfs"))
			}
			return ""
		})
	}},
	{"moved stores", "when an executor is lost, a join of 4.3 tells of fetched snapshots and replayed changelogs, an aggregation of 4.1 of neither", func(h *account) (bool, string) {
		can := len(h.f.Legs[0].Facts) > 0 && h.from(4, 1) && (h.f.Job == "join" || h.before(4, 2))
		if !can {
			return false, ""
		}
		replayed, fetched, moved := 0.0, 0.0, false
		_ = h.each(func(p *progressText) string {
			if p.BatchID > h.f.Legs[0].Facts[0].BatchID {
				replayed += p.figure("rocksdbNumReplayChangelogFiles")
				fetched += p.figure("rocksdbNumLoadedFromDfs")
				for _, key := range p.keys(0) {
					moved = moved || strings.HasPrefix(key, "SnapshotLastUploaded.") && p.figure(key) == -1
				}
			}
			return ""
		})
		// The second figure is not in 4.1.
		if told := replayed > 0 && (h.before(4, 2) || fetched > 0); !moved || told != (h.f.Job == "join") {
			return true, fmt.Sprintf("moved %v, %g files replayed, %g fetched", moved, replayed, fetched)
		}
		return true, ""
	}},
	{"single writes", "before 3.5 a store writes once a batch, at its commit", func(h *account) (bool, string) {
		can := h.rocksdb() && h.before(3, 5)
		return can, h.each(func(p *progressText) string {
			if can && p.figure("rocksdbPutCount") > 2*p.figure("numStateStoreInstances") {
				return fmt.Sprint(p.figure("rocksdbPutCount"))
			}
			return ""
		})
	}},
	{"cache counts", "the HDFS provider's cache counts only grow", func(h *account) (bool, string) {
		was := 0.0
		can := strings.Contains(h.f.Name, "hdfs")
		return can, h.each(func(p *progressText) string {
			now := p.figure("loadedMapCacheHitCount")
			if can && now < was {
				return fmt.Sprintf("%g after %g", now, was)
			}
			was = now
			return ""
		})
	}},
}

// partitions is the number that the run's first process asked for.
func (h *account) partitions() (n float64) {
	_, _ = fmt.Sscan(h.f.Legs[0].Conf["spark.sql.shuffle.partitions"], &n)
	return n
}

// idleZero are the operator's own figures that an idle copy sets to 0.
func (h *account) idleZero() []string {
	out := []string{"numRowsUpdated", "numRowsDroppedByWatermark"}
	if h.from(4, 2) {
		out = append(out, "numRowsRemoved")
	}
	if h.from(4, 3) {
		out = append(out, "allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs", "rocksdbCommitFileSyncLatencyMs", "rocksdbGetCount", "rocksdbBytesCopied")
	}
	return out
}

// idleKept are figures that an idle copy repeats.
func (h *account) idleKept() []string {
	out := []string{"numRowsTotal", "memoryUsedBytes", "numShufflePartitions", "numStateStoreInstances", "rocksdbSstFileSize", "rocksdbPinnedBlocksMemoryUsage"}
	if h.before(4, 3) {
		out = append(out, "allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs", "rocksdbCommitFileSyncLatencyMs", "rocksdbGetCount", "rocksdbBytesCopied")
	}
	if h.before(4, 2) {
		out = append(out, "numRowsRemoved")
	}
	return out
}

var idleFacts = []fact{
	{"idle events", "from 3.5 on a query without data sends idle events and no copies of its last batch", func(h *account) (bool, string) {
		can := h.f.Job == "idle" && h.from(3, 5)
		copies := 0
		for _, line := range h.lines {
			if strings.Contains(line, `"batchId"`) && !strings.Contains(line, `"addBatch"`) {
				copies++
			}
		}
		if can && (h.idle == 0 || copies > 0) {
			return true, fmt.Sprintf("%d idle events, %d copies", h.idle, copies)
		}
		return can, ""
	}},
	{"idle copies", "the copy kept as last progress has the next batch's number; 4.2 also zeroes rows removed, 4.3 all work", func(h *account) (bool, string) {
		byID := map[int64]*progressText{}
		for _, p := range h.batches {
			byID[p.BatchID] = p
		}
		seen := false
		for _, l := range h.f.Legs {
			for i := range l.Query.RecentIdle {
				c := &l.Query.RecentIdle[i]
				real := byID[c.BatchID-1]
				if real == nil || len(c.Operators) == 0 {
					continue
				}
				seen = true
				for _, key := range h.idleZero() {
					if c.figure(key) != 0 {
						return true, fmt.Sprintf("batch %d: %s is %g", c.BatchID, key, c.figure(key))
					}
				}
				for _, key := range h.idleKept() {
					if c.figure(key) != real.figure(key) {
						return true, fmt.Sprintf("batch %d: %s is %g, was %g", c.BatchID, key, c.figure(key), real.figure(key))
					}
				}
			}
		}
		return seen, ""
	}},
}
