package replay

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAHealthyQueryHasNoFinding(t *testing.T) {
	r := examine(t, newStream("healthy").started(0).add(0, 200, nil).ended(nil).text())
	if diff := cmp.Diff([]string{}, symptoms(r)); diff != "" {
		t.Errorf("%s\n%+v", diff, r.Findings)
	}
}

// fault makes a stream with something wrong in it and says what must be found.
type fault struct {
	make func(s *stream)
	want []string
	say  string // part of summary, evidence or fix
}

var faults = map[string]fault{
	"late rows": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { operator(b)["numRowsDroppedByWatermark"] = 100 })
	}, []string{"ticket late-data-dropped"}, "10 % of the rows"},
	"late rows in a single batch": {func(s *stream) {
		s.add(0, 1, func(_ int, b batch) { operator(b)["numRowsDroppedByWatermark"] = 100 })
	}, []string{"info late-data-dropped"}, "100 rows dropped, 900 updated"},
	"slow uploads": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) {
			metrics(b)["rocksdbCommitFileSyncLatencyMs"], operator(b)["commitTimeMs"] = 6400, 6500
		})
	}, []string{"ticket commit-sync-slow"}, "800 ms per store"},
	"commits take the tasks' time": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) {
			metrics(b)["rocksdbCommitFileSyncLatencyMs"], operator(b)["commitTimeMs"] = 3200, 3900
		})
	}, []string{"info commit-dominates"}, "largest phase of a commit: file_sync, 400 ms per store"},
	"changelog off": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) { metrics(b)["rocksdbBytesCopied"] = 4096 + n })
	}, []string{"info posture"}, "changelog checkpointing is off (every upload has its own size)"},
	"unbounded memory": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { operator(b)["memoryUsedBytes"] = 1 << 30 })
	}, []string{"info posture"}, "RocksDB's memory is not bounded"},
	"backlog growing": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) { source(b)["latestOffset"] = offsets(1000*(n+1) + 6000 + 500*n) })
	}, []string{"ticket falling-behind"}, "21 batches' worth"},
	"backlog shrinking": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) { source(b)["latestOffset"] = offsets(1000*(n+1) + 90000 - 500*n) })
	}, []string{"info falling-behind"}, "catching up"},
	"batches longer than the interval": {func(s *stream) {
		s.every = time.Second
		s.add(0, 60, func(_ int, b batch) {
			b["trigger"] = map[string]any{"type": "ProcessingTime", "intervalMs": 500}
		})
	}, []string{"ticket falling-behind"}, "longer than the trigger interval of 500 ms"},
	"state without watermark": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) {
			delete(b, "eventTime")
			operator(b)["numRowsTotal"], operator(b)["numRowsRemoved"] = 5000+n*900, 0
		})
	}, []string{"ticket state-never-expires"}, "31,100 rows, 5,000 in the first batch read"},
	"watermark never moves": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { b["eventTime"].(map[string]any)["watermark"] = "1970-01-01T00:00:00.000Z" })
	}, []string{"ticket watermark-stuck"}, "in all of 30 batches"},
	"watermark in the future": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) { b["eventTime"].(map[string]any)["watermark"] = s.at(n + 1200) })
	}, []string{"ticket watermark-in-future"}, "10 h 0 m ahead"},
	"listing takes the time": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { phases(b)["latestOffset"], phases(b)["triggerExecution"] = 2000, 2900 })
	}, []string{"ticket offsets-slow"}, "latestOffset takes 69 % of the trigger"},
	"time outside the state": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { phases(b)["addBatch"], phases(b)["triggerExecution"] = 19000, 19100 })
	}, []string{"info time-outside-state"}, "3.9 s, even if they had run one after another"},
	"writer stalls": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { metrics(b)["rocksdbWriterStallLatencyMs"] = 8 * 400 * 1_000_000 })
	}, []string{"ticket writer-stall"}, "400 ms per store"},
	"cache misses": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { metrics(b)["rocksdbReadBlockCacheMissCount"] = 900 })
	}, []string{"info cache-misses"}, "50 % of the block cache lookups"},
	"snapshot lag": {func(s *stream) {
		s.add(0, 60, func(_ int, b batch) { metrics(b)["SnapshotLastUploaded.partition_3_default"] = 9 })
	}, []string{"ticket snapshot-lag"}, "51 versions old"},
	"snapshots repaired": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) {
			metrics(b)["rocksdbNumSnapshotsAutoRepaired"] = n / 29
		})
	}, []string{"ticket auto-repair"}, "1 repairs"},
	"compaction at every commit": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) { metrics(b)["rocksdbCommitCompactLatency"] = 64 })
	}, []string{"info periodic-slow"}, "compaction in 30 of 30 commits, 8 ms per store"},
	"a large state on the heap": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) {
			operator(b)["customMetrics"] = map[string]any{"stateOnCurrentVersionSizeBytes": 1 << 30, "loadedMapCacheHitCount": 8}
			operator(b)["numRowsTotal"], operator(b)["memoryUsedBytes"] = 4_000_000, 1<<30
		})
	}, []string{"info provider-hdfs"}, "4.0 M rows, 1.0 GiB"},
	"fewer rows than stores": {func(s *stream) {
		s.add(0, 30, func(_ int, b batch) {
			b["numInputRows"], source(b)["numInputRows"] = 3, 3
			phases(b)["addBatch"], phases(b)["triggerExecution"] = 2000, 2100
		})
	}, []string{"info partitions-oversized"}, "median 3 rows a batch for 8 stores"},
	"a long first batch": {func(s *stream) {
		s.add(0, 30, func(n int, b batch) {
			if n == 0 {
				phases(b)["addBatch"], phases(b)["triggerExecution"] = 25000, 25100
			}
		})
	}, []string{"info spikes"}, "the first batch took 28 times the usual time"},
	"a failure": {func(s *stream) {
		s.add(0, 30, nil).ended("org.apache.spark.SparkException: disk full\n\tat x")
	}, []string{"ticket failed"}, "disk full"},
	"a stop from outside": {func(s *stream) {
		s.add(0, 30, nil).ended("org.apache.spark.SparkException: Job 5 cancelled because SparkContext was shut down")
	}, []string{"info failed"}, "stopped from outside"},
	"events missing": {func(s *stream) {
		s.add(0, 30, nil).add(35, 60, nil)
	}, []string{"info missed-events"}, "5 batches ran"},
	"starts in a row": {func(s *stream) {
		for i := range 4 {
			s.run = "run-" + string(rune('a'+i))
			s.started(i).add(i, i+1, nil).ended("java.lang.IllegalStateException: no")
		}
		s.run = "run-z"
		s.started(4).add(4, 40, nil)
	}, []string{"ticket restart-loop"}, "3 starts within"},
	"a restored checkpoint": {func(s *stream) {
		s.add(0, 30, nil).ended(nil)
		s.run, s.start = "run-2", s.start.Add(time.Hour)
		s.add(20, 50, nil)
	}, []string{"info rewound"}, "1 times"},
}

func TestEachFaultIsFoundAndNothingElse(t *testing.T) {
	for name, tt := range faults {
		t.Run(name, func(t *testing.T) {
			s := newStream("q")
			tt.make(s)
			r := examine(t, s.text())
			if diff := cmp.Diff(tt.want, symptoms(r)); diff != "" {
				t.Fatalf("%s\n%+v", diff, r.Findings)
			}
			f := r.Findings[0]
			said := f.Summary + "\n" + strings.Join(f.Evidence, "\n") + "\n" + f.Fix
			if !strings.Contains(said, tt.say) {
				t.Errorf("no %q in:\n%s", tt.say, said)
			}
			if f.Query != "q" || f.QueryID != "id-q" || f.Fix == "" || len(f.Evidence) == 0 {
				t.Errorf("incomplete: %+v", f)
			}
		})
	}
}

func TestTwoRunsTakingTurnsShareACheckpoint(t *testing.T) {
	s := newStream("q")
	for n := range 12 {
		s.run = []string{"run-a", "run-b"}[n%2]
		s.add(n, n+1, nil)
	}
	r := examine(t, s.text())
	if got := symptoms(r); len(got) == 0 || got[0] != "page checkpoint-shared" {
		t.Errorf("found %v", got)
	}
}

func TestFindingsAreOrderedBySeverity(t *testing.T) {
	s := newStream("q").add(0, 30, func(_ int, b batch) {
		operator(b)["memoryUsedBytes"] = 1 << 30
		operator(b)["numRowsDroppedByWatermark"] = 100
	}).ended("x: y")
	want := []string{"ticket failed", "ticket late-data-dropped", "info posture"}
	if diff := cmp.Diff(want, symptoms(examine(t, s.text()))); diff != "" {
		t.Error(diff)
	}
}

func TestValuesThatCannotBeTrueAreLeftOut(t *testing.T) {
	s := newStream("q").add(0, 30, func(n int, b batch) {
		if n == 12 {
			metrics(b)["rocksdbCommitFileSyncLatencyMs"] = 9e15
		}
	})
	r := examine(t, s.text())
	if got := symptoms(r); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	o := r.Queries[0].Operators[0]
	if o.Implausible != 1 {
		t.Errorf("%d implausible values, want 1", o.Implausible)
	}
	for _, c := range o.Commit {
		if c.Phase == "file_sync" && c.Mean > 0.1 {
			t.Errorf("file sync %v s per store", c.Mean)
		}
	}
}

func TestJoinsDivideByTheStoresThatReport(t *testing.T) {
	s := newStream("q").add(0, 1, func(_ int, b batch) {
		operator(b)["operatorName"] = "symmetricHashJoin"
		operator(b)["numStateStoreInstances"] = 32
		metrics(b)["rocksdbCommitFileSyncLatencyMs"] = 1600
	})
	o := examine(t, s.text()).Queries[0].Operators[0]
	for _, c := range o.Commit {
		if c.Phase == "file_sync" && c.Mean != 0.1 {
			t.Errorf("file sync %v s per store, want 1.6 s over 16 stores", c.Mean)
		}
	}
	if *o.Stores != 16 || *o.Instances != 32 {
		t.Errorf("stores %v of %v", *o.Stores, *o.Instances)
	}
}

func TestASettingOutranksWhatFiguresShow(t *testing.T) {
	s := newStream("q").add(0, 30, func(n int, b batch) { metrics(b)["rocksdbBytesCopied"] = 4096 + n })
	env := `{"v":1,"sender":"s","seq":0,"type":"started","conf":{"` + confChangelog + `":"true"},"app":{"sparkVersion":"4.2.0"},` +
		`"event":{"id":"id-q","runId":"run-q","name":"q","timestamp":"2031-02-03T04:00:00.000Z"}}` + "\n"
	q := examine(t, env+s.text()).Queries[0]
	if q.Changelog != "on" || q.Spark != "4.2.0" {
		t.Errorf("changelog %s, spark %s", q.Changelog, q.Spark)
	}
	if q = examine(t, s.text()).Queries[0]; q.Changelog != "off" || q.Spark != "3.5+" {
		t.Errorf("without it: changelog %s, spark %s", q.Changelog, q.Spark)
	}
}

func TestTheFixOfHeavyCommitsFollowsTheirLargestPhase(t *testing.T) {
	tests := map[string]struct {
		key  string
		say  string
		more func(n int, b batch)
	}{
		"flush":      {"rocksdbCommitFlushLatency", "write buffer", nil},
		"checkpoint": {"rocksdbCommitCheckpointLatency", "local disk", nil},
		"compact":    {"rocksdbCommitCompactLatency", "compactOnCommit", nil},
		"file sync":  {"rocksdbCommitFileSyncLatencyMs", "checkpoint location", nil},
		"changelog off": {"rocksdbCommitFileSyncLatencyMs", "turn changelog checkpointing on", func(n int, b batch) {
			metrics(b)["rocksdbBytesCopied"] = 5000 + n
		}},
		"heap": {"loadedMapCacheHitCount", "delta file per partition", func(_ int, b batch) {
			operator(b)["customMetrics"] = map[string]any{"stateOnCurrentVersionSizeBytes": 9, "loadedMapCacheHitCount": 8}
		}},
	}
	for name, tt := range tests {
		s := newStream("q").add(0, 30, func(n int, b batch) {
			metrics(b)["rocksdbCommitFileSyncLatencyMs"] = 800
			operator(b)["commitTimeMs"], metrics(b)[tt.key] = 3900, 2900
			if tt.more != nil {
				tt.more(n, b)
			}
		})
		fix := ""
		for _, f := range examine(t, s.text()).Findings {
			if f.Symptom == "commit-dominates" {
				fix = f.Fix
			}
		}
		if !strings.Contains(fix, tt.say) {
			t.Errorf("%s: fix %q, want %q in it", name, fix, tt.say)
		}
	}
}

func TestSnapshotLagIsMeasuredByTheQuerysOwnSettings(t *testing.T) {
	s := newStream("q").add(0, 60, func(_ int, b batch) { metrics(b)["SnapshotLastUploaded.partition_3_default"] = 9 })
	env := `{"v":1,"sender":"s","seq":0,"type":"started","conf":{"` + confMinDeltas + `":"60","` + confBounded + `":"false"},` +
		`"event":{"id":"id-q","runId":"run-q","name":"q","timestamp":"2031-02-03T04:00:00.000Z"}}` + "\n"
	r := examine(t, env+s.text())
	if diff := cmp.Diff([]string{"info posture"}, symptoms(r)); diff != "" {
		t.Fatalf("60 deltas between snapshots explain a lag of 51: %s", diff)
	}
	if e := r.Findings[0].Evidence; len(e) != 1 || e[0] != "RocksDB's memory is not bounded (by its setting)" {
		t.Errorf("evidence %q", e)
	}
}

func TestAnIdleQueryShowsItsStateAndNoBatch(t *testing.T) {
	s := newStream("q").add(5, 9, func(_ int, b batch) {
		b["durationMs"] = map[string]any{"latestOffset": 1, "triggerExecution": 1}
		b["numInputRows"], source(b)["numInputRows"] = 0, 0
	})
	q := examine(t, s.text()).Queries[0]
	if q.Batches != 0 || q.Duration != nil || len(q.Phases) != 0 || q.IdleCopies != 4 || q.State != "idle" {
		t.Errorf("%+v", q)
	}
	if o := q.Operators[0]; o.Rows == nil || *o.Rows != 5000 || o.CommitTask != nil || len(o.Commit) != 0 {
		t.Errorf("an idle copy has levels, but its work is of an earlier batch: %+v", o)
	}
	if len(q.Notes) != 1 || !strings.Contains(q.Notes[0], "no batch ran") {
		t.Errorf("notes %q", q.Notes)
	}
}

func TestHiddenCommitsAreNotedAndNotJudged(t *testing.T) {
	s := newStream("q").add(0, 30, func(_ int, b batch) {
		metrics(b)["rocksdbCommitFileSyncLatencyMs"], metrics(b)["rocksdbBytesCopied"] = 0, 0
	})
	q := examine(t, s.text()).Queries[0]
	if q.Changelog != "unknown" || !strings.Contains(strings.Join(q.Notes, "\n"), "asynchronous checkpointing hides them") {
		t.Errorf("changelog %s, notes %q", q.Changelog, q.Notes)
	}
}

func TestBoundedMemoryIsToldByWhatCachesHavePinned(t *testing.T) {
	for _, c := range []struct {
		name           string
		memory, pinned int // of 8 stores; below 0: not reported
		want           setting
	}{
		{"3.5, each store counts the shared cache", 38 << 20, 8 * 262320, on},
		{"4.0, no memory is shown", 0, 8 * 262320, on},
		{"3.5, a cache for each store", 12 << 20, 8 * 88, off},
		{"3.4, no such figure", 12 << 20, -1, off},
		{"no figure that tells", 0, -1, on},
	} {
		s := newStream("q").add(0, 30, func(_ int, b batch) {
			operator(b)["memoryUsedBytes"] = c.memory
			if c.pinned >= 0 {
				metrics(b)["rocksdbPinnedBlocksMemoryUsage"] = c.pinned
			}
		})
		if got := examine(t, s.text()).Queries[0].Bounded; got != string(c.want) {
			t.Errorf("%s: bounded memory %s, want %s", c.name, got, c.want)
		}
	}
}
