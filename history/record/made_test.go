package record

import (
	"math"
	"math/rand/v2"

	"github.com/stategauge/stategauge/event"
)

// madeUpdate is batch n of a made-up query of three operators on RocksDB, as a
// tracker hands it on: some 45 figures an operator, half of them 0.
func madeUpdate(n int) *event.Update {
	rng := rand.New(rand.NewPCG(11, uint64(n)))
	about := func(v float64) float64 { return math.Round(v * (0.9 + 0.2*rng.Float64())) }
	startMs := int64(1_930_000_000_000 + 60_000*n)
	b := &event.Batch{}
	b.Reset()
	b.Query = event.QueryRef{ID: "0d7ff1a0-9c33-4c5b-8a2f-7e0a6f6b1c11", Name: "orders_by_region", Application: "shop"}
	b.Run = "b3f8a1de-55c0-4f0e-9a61-3f3c1d2e4f50"
	b.ID, b.StartMs, b.Description = int64(4_000+n), startMs, "ForeachBatchSink"
	queryFigures(b, startMs, about)
	for i, name := range []string{"dedupe", "symmetricHashJoin", "stateStoreSave"} {
		operatorFigures(b.AddOperator(), name, b.ID-int64(i), about)
	}
	s := b.AddSource()
	s.Description = "KafkaV2[Subscribe[orders]]"
	s.Rows, s.Read, s.Backlog = int64(b.Values[event.NumInputRows]), int64(b.Values[event.NumInputRows]), int64(about(900))
	s.InputRate, s.ProcessedRate = b.Values[event.InputRowsPerSecond], b.Values[event.ProcessedRowsPerSecond]
	s.MinBehind, s.MaxBehind, s.AvgBehind = 0, about(90), about(90)/8
	b.Settle()
	e := &event.Event{Kind: event.KindProgress, Batch: b, Query: b.Query, Run: b.Run, AtMs: startMs, Cluster: "eu-1"}
	return &event.Update{
		Event: e, Outcome: event.OutcomeExecuted, State: event.StateRunning, Was: event.StateRunning,
		Trigger: event.TriggerInterval, IntervalMs: 60_000, IntervalFrom: event.IntervalInferred, StartedSeen: true,
		Origin: event.Origin{Source: "kafka", Topic: "spark-events", Partition: 5, Offset: int64(880_000 + 7*n), ReceivedMs: b.EndMs() + 25},
	}
}

func queryFigures(b *event.Batch, startMs int64, about func(float64) float64) {
	v := &b.Values
	rows, ms := about(60_000), about(9_000)
	v[event.BatchID], v[event.NumInputRows] = float64(b.ID), rows
	v[event.BatchDuration], v[event.DurationTriggerExecution] = ms, ms
	v[event.InputRowsPerSecond] = perSecond(rows, 60_003, false)
	v[event.ProcessedRowsPerSecond] = perSecond(rows, int64(ms), false)
	v[event.DurationAddBatch], v[event.DurationQueryPlanning] = ms-300, about(90)
	v[event.DurationLatestOffset], v[event.DurationGetBatch] = about(20), 0
	v[event.DurationWalCommit], v[event.DurationCommitOffsets] = about(60), about(55)
	v[event.EventTimeMax], v[event.EventTimeMin] = float64(startMs)-about(1000), float64(startMs)-about(70_000)
	v[event.EventTimeAvg], v[event.EventTimeWatermark] = float64(startMs)-about(30_000), float64(startMs)-about(700_000)
	b.EventTimeMaxMs, b.WatermarkMs = int64(v[event.EventTimeMax]), int64(v[event.EventTimeWatermark])
	v[event.SinkNumOutputRows] = about(5_000)
}

// zeros are the figures of RocksDB that are 0 in most batches.
var zeros = []event.MetricID{
	event.RocksDBPutLatency, event.RocksDBCommitWriteBatchLatency, event.RocksDBCommitCompactLatency, event.RocksDBCommitPauseLatency,
	event.RocksDBLoadLatency, event.RocksDBLoadFromSnapshotLatency, event.RocksDBReplayChangeLogLatency, event.RocksDBNumReplayChangelogFiles,
	event.RocksDBWriterStallLatency, event.RocksDBTotalCompactionLatency, event.RocksDBTotalBytesReadByCompaction,
	event.RocksDBTotalBytesWrittenByCompaction, event.RocksDBNumInternalColFamiliesKeys, event.RocksDBNumExternalColumnFamilies,
	event.RocksDBNumInternalColumnFamilies, event.NumRowsDroppedByWatermark, event.NumRowsRemoved, event.AllRemovalsTime,
}

// usual are figures of RocksDB and of the operator about which batches move.
var usual = []struct {
	id    event.MetricID
	value float64
}{
	{event.RocksDBSstFileSize, 4e9},
	{event.RocksDBGetLatency, 800},
	{event.RocksDBGetCount, 60_000},
	{event.RocksDBPutCount, 55_000},
	{event.RocksDBCommitFlushLatency, 3_100},
	{event.RocksDBCommitCheckpointLatency, 900},
	{event.RocksDBCommitFileSyncLatency, 21_000},
	{event.RocksDBChangeLogWriterCommitLatency, 20_000},
	{event.RocksDBBytesCopied, 7e7},
	{event.RocksDBFilesCopied, 210},
	{event.RocksDBFilesReused, 1_800},
	{event.RocksDBZipFileBytesUncompressed, 9e5},
	{event.RocksDBReadBlockCacheHitCount, 190_000},
	{event.RocksDBReadBlockCacheMissCount, 2_500},
	{event.RocksDBTotalBytesRead, 3e7},
	{event.RocksDBTotalBytesWritten, 2.5e7},
	{event.RocksDBTotalBytesReadThroughIterator, 6e7},
	{event.RocksDBTotalBytesWrittenByFlush, 8e7},
	{event.RocksDBPinnedBlocksMemoryUsage, 1.1e7},
	{event.NumRowsTotal, 3.1e7},
	{event.NumRowsUpdated, 55_000},
	{event.AllUpdatesTime, 31_000},
	{event.CommitTime, 26_000},
	{event.MemoryUsedBytes, 2.2e9},
}

func operatorFigures(o *event.Operator, name string, snapshot int64, about func(float64) float64) {
	o.Name, o.SnapshotMin, o.NumSnapshots = name, snapshot-8, 10
	v := &o.Values
	for _, id := range zeros {
		v[id] = 0
	}
	for _, f := range usual {
		v[f.id] = about(f.value)
	}
	v[event.NumShufflePartitions], v[event.NumStateStoreInstances] = 200, 200
}
