package event

// MetricID is a metric's place in the catalog and in a Vector. Ids are written
// down here, append-only and never reused: they go to disk.
type MetricID uint16

// FirstUnknown is the first id free for keys that are not in the catalog.
const FirstUnknown MetricID = 0x8000

// The metrics of the catalog.
const (
	RocksDBSstFileSize                   MetricID = 0
	RocksDBGetLatency                    MetricID = 1
	RocksDBPutLatency                    MetricID = 2
	RocksDBGetCount                      MetricID = 3
	RocksDBPutCount                      MetricID = 4
	RocksDBCommitWriteBatchLatency       MetricID = 5
	RocksDBCommitFlushLatency            MetricID = 6
	RocksDBCommitCompactLatency          MetricID = 7
	RocksDBCommitPauseLatency            MetricID = 8
	RocksDBCommitCheckpointLatency       MetricID = 9
	RocksDBCommitFileSyncLatency         MetricID = 10
	RocksDBChangeLogWriterCommitLatency  MetricID = 11
	RocksDBSaveZipFilesLatency           MetricID = 12
	RocksDBLoadLatency                   MetricID = 13
	RocksDBLoadFromSnapshotLatency       MetricID = 14
	RocksDBReplayChangeLogLatency        MetricID = 15
	RocksDBNumReplayChangelogFiles       MetricID = 16
	RocksDBBytesCopied                   MetricID = 17
	RocksDBFilesCopied                   MetricID = 18
	RocksDBFilesReused                   MetricID = 19
	RocksDBZipFileBytesUncompressed      MetricID = 20
	RocksDBReadBlockCacheMissCount       MetricID = 21
	RocksDBReadBlockCacheHitCount        MetricID = 22
	RocksDBTotalBytesRead                MetricID = 23
	RocksDBTotalBytesWritten             MetricID = 24
	RocksDBTotalBytesReadThroughIterator MetricID = 25
	RocksDBWriterStallLatency            MetricID = 26
	RocksDBTotalCompactionLatency        MetricID = 27
	RocksDBTotalBytesReadByCompaction    MetricID = 28
	RocksDBTotalBytesWrittenByCompaction MetricID = 29
	RocksDBTotalBytesWrittenByFlush      MetricID = 30
	RocksDBPinnedBlocksMemoryUsage       MetricID = 31
	RocksDBNumInternalColFamiliesKeys    MetricID = 32
	RocksDBNumExternalColumnFamilies     MetricID = 33
	RocksDBNumInternalColumnFamilies     MetricID = 34
	RocksDBNumSnapshotsAutoRepaired      MetricID = 35
	RocksDBForceSnapshotCount            MetricID = 36
	RocksDBNumLoadedFromDfs              MetricID = 37
	SnapshotLastUploaded                 MetricID = 38
	StateOnCurrentVersionSizeBytes       MetricID = 39
	LoadedMapCacheHitCount               MetricID = 40
	LoadedMapCacheMissCount              MetricID = 41
	HDFSNumSnapshotsAutoRepaired         MetricID = 42
	HDFSForceSnapshotCount               MetricID = 43
	NumDroppedDuplicateRows              MetricID = 44
	SkippedNullValueCount                MetricID = 45
	InitialStateProcessingTime           MetricID = 46
	NumValueStateVars                    MetricID = 47
	NumListStateVars                     MetricID = 48
	NumMapStateVars                      MetricID = 49
	NumDeletedStateVars                  MetricID = 50
	TimerProcessingTime                  MetricID = 51
	NumRegisteredTimers                  MetricID = 52
	NumDeletedTimers                     MetricID = 53
	NumExpiredTimers                     MetricID = 54
	NumValueStateWithTTLVars             MetricID = 55
	NumListStateWithTTLVars              MetricID = 56
	NumMapStateWithTTLVars               MetricID = 57
	NumValuesRemovedDueToTTLExpiry       MetricID = 58
	NumRowsTotal                         MetricID = 59
	NumRowsUpdated                       MetricID = 60
	NumRowsRemoved                       MetricID = 61
	AllUpdatesTime                       MetricID = 62
	AllRemovalsTime                      MetricID = 63
	CommitTime                           MetricID = 64
	MemoryUsedBytes                      MetricID = 65
	NumRowsDroppedByWatermark            MetricID = 66
	NumShufflePartitions                 MetricID = 67
	NumStateStoreInstances               MetricID = 68
	BatchID                              MetricID = 69
	BatchDuration                        MetricID = 70
	NumInputRows                         MetricID = 71
	InputRowsPerSecond                   MetricID = 72
	ProcessedRowsPerSecond               MetricID = 73
	DurationTriggerExecution             MetricID = 74
	DurationLatestOffset                 MetricID = 75
	DurationGetOffset                    MetricID = 76
	DurationWalCommit                    MetricID = 77
	DurationGetBatch                     MetricID = 78
	DurationQueryPlanning                MetricID = 79
	DurationAddBatch                     MetricID = 80
	DurationCommitOffsets                MetricID = 81
	DurationRunContinuous                MetricID = 82
	DurationCommitBatch                  MetricID = 83
	EventTimeMax                         MetricID = 84
	EventTimeMin                         MetricID = 85
	EventTimeAvg                         MetricID = 86
	EventTimeWatermark                   MetricID = 87
	SourceNumInputRows                   MetricID = 88
	SourceInputRowsPerSecond             MetricID = 89
	SourceProcessedRowsPerSecond         MetricID = 90
	SourceMinOffsetsBehindLatest         MetricID = 91
	SourceMaxOffsetsBehindLatest         MetricID = 92
	SourceAvgOffsetsBehindLatest         MetricID = 93
	SinkNumOutputRows                    MetricID = 94
	TriggerIntervalMs                    MetricID = 95
	TriggerBatchDurationMs               MetricID = 96
	RTMProcessingLatency                 MetricID = 97
	RTMSourceQueuingLatency              MetricID = 98
	RTME2ELatency                        MetricID = 99
	DurationCollectSourceMetrics         MetricID = 100
	SourceNumFilesOutstanding            MetricID = 101
	SourceNumBytesOutstanding            MetricID = 102
	NumRowsReadDuringEviction            MetricID = 103
	NumRowsIncrementallyRemoved          MetricID = 104

	// NumMetrics is the length of a Vector.
	NumMetrics = 105
)

// FirstPhase and LastPhase bound the durationMs keys that Apache Spark writes,
// the whole trigger first.
const (
	FirstPhase = DurationTriggerExecution
	LastPhase  = DurationCommitBatch
)
