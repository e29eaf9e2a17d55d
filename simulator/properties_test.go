package simulator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
)

// generated draws a scenario: any operator, version, provider, trigger, source
// and size that go together.
func generated(t testing.TB, n uint64) *scenario.Scenario {
	t.Helper()
	r := seed.New(99, n)
	versions := []string{"3.4", "3.5", "4.0", "4.1", "4.2", "4.3"}
	v := versions[n%uint64(len(versions))]
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("description: drawn\nspark_version: %s\nbatches: 25\nquery:", v)
	line("  trigger: {%s}", pick(r, "interval: 5s", "interval: 30s", "default: true", "available_now: 1m"))
	line("  watermark_delay: %s", pick(r, "0s", "10s", "2m"))
	op := drawOperator(r, v)
	line("  operators:\n%s", op)
	sources := 1
	if strings.Contains(op, "kind: join") {
		sources = 2
	}
	line("  sources:")
	for range sources {
		line("    - kind: %s", pick(r, "kafka", "rate", "files"))
		line("      rows_per_second: %d", 5+r.IntN(60))
		line("      keys: {count: %d, skew: %s}", 10+r.IntN(3000), pick(r, "0", "0.8", "1.3"))
		line("      duplicates: %d%%", r.IntN(20))
	}
	line("cluster:\n  executors: %d\n  cores: %d\n  real_stores: %d", 1+r.IntN(3), 1+r.IntN(3), r.IntN(3))
	line("conf:\n  spark.sql.shuffle.partitions: \"%d\"", 2+r.IntN(6))
	if r.IntN(4) > 0 || strings.Contains(op, "transform_with_state") {
		line("  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
		line("  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: \"%t\"", r.IntN(2) == 0)
		line("  spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage: \"%t\"", r.IntN(2) == 0)
		line("  spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB: \"24\"")
	}
	line("faults:")
	line("  - {kind: %s, from_batch: %d}", pick(r, "restart", "crash", "executor-lost", "locality-lost", "store-slow"), 5+r.IntN(15))
	line("healthy: true")
	return parse(t, b.String())
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func drawOperator(r *rand.Rand, version string) string {
	ops := []string{
		"    - {kind: aggregation, window: 20s}", "    - {kind: aggregation, mode: complete}", "    - {kind: dedupe}",
		"    - {kind: join, bound: 20s}", "    - {kind: flat_map_groups, timeout: 1m}", "    - {kind: session_window, gap: 10s}",
	}
	if version >= "3.5" {
		ops = append(ops, "    - {kind: dedupe_within_watermark}")
	}
	if version >= "4.0" {
		ops = append(ops, "    - {kind: transform_with_state, timeout: 1m}")
	}
	return pick(r, ops...)
}

// drawn is how many scenarios the property tests draw.
func drawn() uint64 {
	if raced {
		return 6
	}
	if testing.Short() {
		return 12
	}
	return 36
}

func TestNoEventSaysWhatSparkCouldNotSay(t *testing.T) {
	for n := range drawn() {
		sc := generated(t, n)
		t.Run(fmt.Sprintf("%d-%s-%s", n, sc.SparkVersion, sc.Query.Operators[0].Kind), func(t *testing.T) {
			ms := play(t, start(t, sc, Options{Seed: n}), all)
			checkOrder(t, ms)
			last := map[string]int64{}
			v, err := spark.ParseVersion(sc.SparkVersion)
			if err != nil {
				t.Fatal(err)
			}
			batches(t, ms, func(m *played, b *event.Batch) {
				if before, ok := last[string(b.Run)]; ok && b.ID != before+1 {
					t.Errorf("batch %d follows batch %d in one run", b.ID, before)
				}
				last[string(b.Run)] = b.ID
				checkPhases(t, b)
				for i := range b.Operators {
					checkOperator(t, b, &b.Operators[i], v)
				}
			})
			if len(last) == 0 {
				t.Error("no batch was executed")
			}
		})
	}
}

// checkPhases fails unless the phases lie inside the trigger, and the trigger
// inside the batch.
func checkPhases(t *testing.T, b *event.Batch) {
	t.Helper()
	whole := b.Values[event.DurationTriggerExecution]
	sum := 0.0
	for id := event.FirstPhase + 1; id <= event.LastPhase; id++ {
		if b.Values.Has(id) {
			sum += b.Values[id]
		}
	}
	if sum > whole || whole < 0 {
		t.Errorf("batch %d: phases add up to %v ms of %v", b.ID, sum, whole)
	}
	if b.Values.Has(event.BatchDuration) && b.Values[event.BatchDuration] < whole {
		t.Errorf("batch %d lasts %v ms, its trigger %v", b.ID, b.Values[event.BatchDuration], whole)
	}
	if b.WatermarkMs != event.Absent && b.EventTimeMaxMs != event.Absent && b.EventTimeMaxMs > b.EndMs() {
		t.Errorf("batch %d has rows from the future", b.ID)
	}
}

func checkOperator(t *testing.T, b *event.Batch, o *event.Operator, v event.Version) {
	t.Helper()
	for id := range event.MetricID(event.NumMetrics) {
		x := o.Values[id]
		if x != x {
			continue
		}
		if x < 0 || x != float64(int64(x)) {
			t.Errorf("batch %d: %s is %v", b.ID, event.Lookup(id).JSON, x)
		}
		if !b.PlausibleTaskSeconds(o, id) {
			ms, _ := b.DurationMs()
			t.Errorf("batch %d of %v ms: %s of %v cannot be on %d stores", b.ID, ms, event.Lookup(id).JSON, x, o.Instances)
		}
	}
	commit := o.Values[event.CommitTime]
	sum := 0.0
	for _, id := range []event.MetricID{
		event.RocksDBCommitWriteBatchLatency, event.RocksDBCommitFlushLatency, event.RocksDBCommitCompactLatency,
		event.RocksDBCommitPauseLatency, event.RocksDBCommitCheckpointLatency, event.RocksDBCommitFileSyncLatency,
	} {
		if o.Values.Has(id) {
			sum += o.Values[id]
		}
	}
	if sticky := v.Major == 4 && v.Minor == 0; sum > commit && !sticky {
		t.Errorf("batch %d: parts of the commit take %v ms, the commit %v", b.ID, sum, commit)
	}
	if sync := o.Values[event.RocksDBCommitFileSyncLatency]; o.Values[event.RocksDBChangeLogWriterCommitLatency] > sync {
		t.Errorf("batch %d: the changelog took longer than file sync, which it is a part of", b.ID)
	}
	if o.Values[event.NumShufflePartitions] < 1 || o.Instances < 1 {
		t.Errorf("batch %d: %v partitions, %d stores", b.ID, o.Values[event.NumShufflePartitions], o.Instances)
	}
}

func TestAccountIsTheSumOfWhatWasSaid(t *testing.T) {
	sc := parse(t, busy)
	s := start(t, sc, Options{Seed: 5})
	type sums struct {
		rows, batches, ms float64
		updated, removed  float64
	}
	said := map[int]*sums{}
	ms := play(t, s, all)
	batches(t, ms, func(m *played, b *event.Batch) {
		x := said[m.Query]
		if x == nil {
			x = &sums{}
			said[m.Query] = x
		}
		x.batches++
		x.rows += b.Values[event.NumInputRows]
		x.ms += b.Values[event.DurationTriggerExecution]
		x.updated += b.Operators[1].Values[event.NumRowsUpdated]
		x.removed += b.Operators[1].Values[event.NumRowsRemoved]
	})
	for i, a := range s.Accounts() {
		x := said[i]
		if x == nil || x.batches != float64(a.Delivered) || x.rows != float64(a.InputRows) {
			t.Fatalf("query %d: said %+v, accounted %d batches and %d rows", i, x, a.Delivered, a.InputRows)
		}
		if x.ms != float64(a.PhaseMs[event.DurationTriggerExecution]) {
			t.Errorf("query %d: said %v ms, accounted %v", i, x.ms, a.PhaseMs)
		}
		op := a.Operators[1]
		if x.updated != op[event.NumRowsUpdated] || x.removed != op[event.NumRowsRemoved] || x.removed == 0 {
			t.Errorf("query %d: said %+v, accounted %v updated, %v removed", i, x, op[event.NumRowsUpdated], op[event.NumRowsRemoved])
		}
	}
}
