package rules

import (
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// figureOf evaluates a name for an operator of the batch.
func figureOf(t *testing.T, name string, b *event.Batch, f *Facts) float64 {
	t.Helper()
	x, err := compileExpression(name, aNumber, noSignals(OfOperator))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := x.at(b, &b.Operators[0], f)
	return v
}

func figureBatch() *event.Batch {
	b := &event.Batch{}
	b.Reset()
	b.ID, b.StartMs, b.EventTimeMaxMs, b.WatermarkMs = 41, 1_000_000, 990_000, 900_000
	b.Values[event.BatchDuration], b.Values[event.DurationTriggerExecution] = 6000, 6000
	b.Values[event.DurationAddBatch], b.Values[event.DurationLatestOffset], b.Values[event.DurationWalCommit] = 5000, 300, 200
	b.Values[event.EventTimeMin] = 930_000
	o := b.AddOperator()
	for id, x := range map[event.MetricID]float64{
		event.NumStateStoreInstances: 8, event.NumShufflePartitions: 4, event.NumRowsTotal: 1000, event.NumRowsUpdated: 90,
		event.NumRowsDroppedByWatermark: 10, event.RocksDBGetLatency: 50, event.RocksDBGetCount: 200, event.RocksDBPutLatency: 30,
		event.RocksDBPutCount: 60, event.RocksDBReadBlockCacheMissCount: 300, event.RocksDBReadBlockCacheHitCount: 700,
		event.RocksDBWriterStallLatency: 2_000_000_000, event.RocksDBSstFileSize: 64_000,
	} {
		o.Values[id] = x
	}
	o.SnapshotMin = 35
	b.AddSource().Read, b.Sources[0].Backlog, b.Sources[0].FilesOutstanding = 100, 250, 7
	b.AddSource().Read = event.Absent
	b.Settle()
	return b
}

func TestFiguresAreWorkedOutFromABatch(t *testing.T) {
	f := unknownFacts
	f[FactIntervalMs] = 10_000
	b := figureBatch()
	for name, want := range map[string]float64{
		"utilization": 0.6, "snapshot_lag_versions": 7, "late_rows": 10, "late_share": 0.1, "get_ms_per_get": 0.25,
		"put_ms_per_put": 0.5, "cache_miss_share": 0.3, "lookups": 1000, "writer_stall_ms": 2000, "sst_bytes_per_row": 64,
		"sst_bytes_per_store": 8000, "partitions": 4, "stores_per_partition": 2, "is_rocksdb": 1, "is_hdfs": 0,
		"batch_start_ms": 1_000_000, "batch_end_ms": 1_006_000, "event_time_max_ms": 990_000, "event_time_span_ms": 60_000,
		"watermark_ms": 900_000, "watermark_ahead_ms": -106_000, "operators": 1, "sources": 2, "read_offsets": 100,
		"backlog_files": 7, "backlog_batches": 2.5, "planning_ms": 500,
	} {
		if got := figureOf(t, name, b, &f); math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestFiguresAreAbsentWhereAnythingTheyNeedIs(t *testing.T) {
	b := &event.Batch{}
	b.Reset()
	b.AddOperator()
	b.Settle()
	f := unknownFacts
	for name := range figureLeaves() {
		if got := figureOf(t, name, b, &f); !math.IsNaN(got) && name != "operators" && name != "sources" {
			t.Errorf("%s of an empty batch: got %v", name, got)
		}
	}
	f[FactIntervalMs] = 0
	b.Values[event.BatchDuration] = 5
	if got := figureOf(t, "utilization", b, &f); !math.IsNaN(got) {
		t.Errorf("without an interval the utilization is %v", got)
	}
}

func TestAPartitionWithoutASnapshotCountsFromTheRunsFirstVersion(t *testing.T) {
	b, f := figureBatch(), unknownFacts
	b.Operators[0].SnapshotMin = -1
	if got := figureOf(t, "snapshot_lag_versions", b, &f); !math.IsNaN(got) {
		t.Errorf("nothing known of the run: got %v", got)
	}
	f[FactRunBatches] = 12
	if got := figureOf(t, "snapshot_lag_versions", b, &f); got != 12 {
		t.Errorf("after 12 batches: got %v", got)
	}
}

func TestAWatermarkThatHasNotMovedYetIsAtItsSentinel(t *testing.T) {
	b, f := figureBatch(), unknownFacts
	b.WatermarkMs, b.FirstWatermark = event.Absent, true
	if got := figureOf(t, "watermark_ms", b, &f); got != 0 {
		t.Errorf("got %v, want 1970", got)
	}
}

func TestTimesThatCannotBeTrueAreInNoFigure(t *testing.T) {
	b, f := figureBatch(), unknownFacts
	for name, id := range figureTimes {
		b.Operators[0].Values[id[0]] = 1e18
		if got := figureOf(t, name, b, &f); !math.IsNaN(got) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTheFactsKnowTheTriggerAndWhereTheWatchBegan(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule))
	for i := range 10 {
		u := s.update(figures{rows: 1})
		u.Event.Batch.EventTimeMaxMs = int64(1000 + i%3*100 + i/6*5000)
		s.verdicts = s.e.Apply(&u, s.verdicts)
	}
	f := s.e.queries[event.QueryID(s.id)].facts
	if f[FactIntervalTrigger] != 1 || f[FactDefaultTrigger] != 0 || f[FactChainedTrigger] != 0 {
		t.Errorf("an interval trigger: got %v, %v, %v", f[FactIntervalTrigger], f[FactDefaultTrigger], f[FactChainedTrigger])
	}
	if got := f[FactFirstEventMs]; got != 1200 {
		t.Errorf("the first five batches went up to 1200, got %v", got)
	}
}
