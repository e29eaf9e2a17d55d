// Package spark holds what the simulator knows of Spark itself: which version
// does and reports what, the settings of a query, and the events that a
// StreamingQueryListener sees, with the JSON that each version writes.
package spark

import (
	"time"

	"github.com/stategauge/stategauge/event"
)

// OperatorKind is a stateful operator that the simulator can play.
type OperatorKind uint8

// The operators.
const (
	Aggregation           OperatorKind = iota // windowed or plain groupBy
	Dedupe                                    // dropDuplicates, with the watermark column among the keys or without a watermark
	DedupeWithinWatermark                     // dropDuplicatesWithinWatermark, 3.5 and newer
	Join                                      // stream-stream join
	FlatMapGroups                             // flatMapGroupsWithState
	TransformWithState                        // 4.0 and newer
	SessionWindow                             // groupBy(session_window)
)

// Provider is a state store provider.
type Provider uint8

// The providers.
const (
	RocksDB Provider = iota
	HDFS
)

// Conf is the settings of a query that the simulator heeds, by what they do.
// ParseConf makes one from Spark's own keys and fills in each version's defaults.
type Conf struct {
	Provider                 Provider
	Changelog                bool          // rocksdb.changelogCheckpointing.enabled
	CompactOnCommit          bool          // rocksdb.compactOnCommit
	BoundedMemory            bool          // rocksdb.boundedMemoryUsage
	MaxMemoryBytes           int64         // rocksdb.maxMemoryUsageMB, per executor
	WriteBufferCacheRatio    float64       // rocksdb.writeBufferCacheRatio
	WriteBufferBytes         int64         // rocksdb.writeBufferSizeMB; 0: RocksDB's own 64 MiB
	MaxWriteBuffers          int           // rocksdb.maxWriteBufferNumber; 0: RocksDB's own 2
	BlockBytes               int64         // rocksdb.blockSizeKB
	BlockCacheBytes          int64         // rocksdb.blockCacheSizeMB, per store where memory is not bounded
	TrackRows                bool          // rocksdb.trackTotalNumberOfRows
	ResetStatsOnLoad         bool          // rocksdb.resetStatsOnLoad
	MinDeltasForSnapshot     int           // stateStore.minDeltasForSnapshot
	MaintenanceInterval      time.Duration // stateStore.maintenanceInterval
	ForceSnapshotUploadOnLag bool          // stateStore.forceSnapshotUploadOnLag, 4.2 and newer
	UnloadOnCommit           bool          // stateStore.unloadOnCommit, 4.1 and newer
	AutoSnapshotRepair       bool          // stateStore.autoSnapshotRepair.enabled, 4.2 and newer
	CheckpointFormat         int           // stateStore.checkpointFormatVersion, 1 or 2
	JoinFormat               int           // join.stateFormatVersion: 2, or 3 and 4 with one store of column families
	MinBatchesToRetain       int           // minBatchesToRetain
	MaxBatchesInMemory       int           // maxBatchesToRetainInMemory, HDFS provider
	ExtraSpaceRatio          float64       // ratioExtraSpaceAllowedInCheckpoint, 4.0 and newer
	InstancesToReport        int           // stateStore.numStateStoreInstanceMetricsToReport, 4.1 and newer
	ShufflePartitions        int           // spark.sql.shuffle.partitions
	NoDataBatches            bool          // noDataMicroBatches.enabled
	IdleInterval             time.Duration // noDataProgressEventInterval
	LocalityWait             time.Duration // spark.locality.wait
	MultipleWatermarkMax     bool          // multipleWatermarkPolicy = max
	// Given holds the settings that were given, by Spark's key, for offset logs
	// and envelopes.
	Given map[string]string
}

// Progress is one StreamingQueryProgress, before it is written as JSON. Times
// are Unix milliseconds, durations milliseconds.
type Progress struct {
	ID, RunID   string
	Name        string // empty: null
	StartMs     int64
	BatchID     int64
	DurationMs  int64 // batchDuration
	InputRows   int64
	InputRate   float64 // rows per second; NaN is left out
	ProcessRate float64
	Phases      Phases
	EventTime   EventTime
	Operators   []Operator
	Sources     []Source
	Sink        Sink
}

// Phases is durationMs. A negative value is a phase that did not run: no key.
type Phases struct {
	TriggerExecution, LatestOffset, WalCommit, GetBatch, QueryPlanning, AddBatch, CommitOffsets int64
}

// EventTime is the eventTime map. HasWatermark false leaves it out altogether;
// HasRows false leaves out all but the watermark.
type EventTime struct {
	HasWatermark, HasRows            bool
	MinMs, MaxMs, AvgMs, WatermarkMs int64 // WatermarkMs 0: the sentinel of 1970
}

// Operator is one entry of stateOperators, summed over its stores.
type Operator struct {
	Name   string       // operatorName, e.g. stateStoreSave
	Values event.Vector // numRowsTotal ... customMetrics by catalog id, raw as Spark writes them; NaN: no such key
	// Uploaded holds the SnapshotLastUploaded keys that the version reports.
	Uploaded []SnapshotKey
}

// SnapshotKey is one SnapshotLastUploaded.partition_<n>_<store>.
type SnapshotKey struct {
	Partition int
	Store     string // "default" where a partition has one store
	Version   int64  // -1: nothing uploaded by this instance
}

// Source is one entry of sources. Offsets are JSON text; empty: null.
type Source struct {
	Description                          string
	StartOffset, EndOffset, LatestOffset string
	Rows                                 int64
	InputRate, ProcessRate               float64
	Metrics                              []KV // string values, sorted by key; none: no map
}

// KV is a metric of a source or sink.
type KV struct{ Key, Value string }

// Sink is the sink object.
type Sink struct {
	Description string
	OutputRows  int64 // -1: unknown
}
