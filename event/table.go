package event

const (
	prefix = "spark_streaming_"
	milli  = 1e-3
	nano   = 1e-9
)

// catalog is the one table that decoder, exporter, rules and docs/metrics.md read.
var catalog = [NumMetrics]Metric{
	{
		ID: RocksDBSstFileSize, JSON: "rocksdbSstFileSize", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindLevel, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour, Series: prefix + "rocksdb_sst_bytes",
		Help: "Size of all SST files that the stores hold on local disk, files of older versions still referenced included.",
	},
	{
		ID: RocksDBGetLatency, JSON: "rocksdbGetLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkResetAtLoad | QuirkMsFloor, Series: prefix + "rocksdb_operation_task_seconds_total", LabelName: "op", LabelValue: "get",
		Help: "Time in native point reads and writes, summed over parallel tasks.",
	},
	{
		ID: RocksDBPutLatency, JSON: "rocksdbPutLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkResetAtLoad | QuirkMsFloor, Series: prefix + "rocksdb_operation_task_seconds_total", LabelName: "op", LabelValue: "put",
		Help: "Time in native point reads and writes, summed over parallel tasks.",
	},
	{
		ID: RocksDBGetCount, JSON: "rocksdbGetCount", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_operations_total", LabelName: "op", LabelValue: "get",
		Help: "Native point reads and writes; tracking the row count adds one read per write.",
	},
	{
		ID: RocksDBPutCount, JSON: "rocksdbPutCount", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_operations_total", LabelName: "op", LabelValue: "put",
		Help: "Native point reads and writes; tracking the row count adds one read per write.",
	},
	{
		ID: RocksDBCommitWriteBatchLatency, JSON: "rocksdbCommitWriteBatchLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor, Series: prefix + "rocksdb_commit_task_seconds_total", LabelName: "phase", LabelValue: "write_batch",
		Help: "Time in each phase of the state store commit, summed over parallel tasks.",
	},
	{
		ID: RocksDBCommitFlushLatency, JSON: "rocksdbCommitFlushLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor | QuirkSticky40, Series: prefix + "rocksdb_commit_task_seconds_total", LabelName: "phase", LabelValue: "flush",
		Help: "Time in each phase of the state store commit, summed over parallel tasks.",
	},
	{
		ID: RocksDBCommitCompactLatency, JSON: "rocksdbCommitCompactLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor | QuirkSticky40, Series: prefix + "rocksdb_commit_task_seconds_total", LabelName: "phase", LabelValue: "compact",
		Help: "Time in each phase of the state store commit, summed over parallel tasks.",
	},
	{
		ID: RocksDBCommitPauseLatency, JSON: "rocksdbCommitPauseLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkConstantZero, Series: prefix + "rocksdb_commit_task_seconds_total", LabelName: "phase", LabelValue: "pause",
		Help: "Time in each phase of the state store commit, summed over parallel tasks.",
	},
	{
		ID: RocksDBCommitCheckpointLatency, JSON: "rocksdbCommitCheckpointLatency", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor | QuirkSticky40, Series: prefix + "rocksdb_commit_task_seconds_total", LabelName: "phase", LabelValue: "checkpoint",
		Help: "Time in each phase of the state store commit, summed over parallel tasks.",
	},
	{
		ID: RocksDBCommitFileSyncLatency, JSON: "rocksdbCommitFileSyncLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor, Series: prefix + "rocksdb_commit_task_seconds_total", LabelName: "phase", LabelValue: "file_sync",
		Help: "Time in each phase of the state store commit, summed over parallel tasks.",
	},
	{
		ID: RocksDBChangeLogWriterCommitLatency, JSON: "rocksdbChangeLogWriterCommitLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 1, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor | QuirkPart, Series: prefix + "rocksdb_changelog_commit_task_seconds_total",
		Help: "Time to commit changelog files, summed over parallel tasks; a part of the file_sync phase.",
	},
	{
		ID: RocksDBSaveZipFilesLatency, JSON: "rocksdbSaveZipFilesLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 1, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor | QuirkPart, Series: prefix + "rocksdb_zip_task_seconds_total",
		Help: "Time to write snapshot zips inside the commit, summed over parallel tasks; a part of the file_sync phase.",
	},
	{
		ID: RocksDBLoadLatency, JSON: "rocksdbLoadLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 1, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkMsFloor, Series: prefix + "rocksdb_load_task_seconds_total",
		Help: "Time to load the state store at the start of the batch, summed over parallel tasks; opening the changelog is part of it, so it is not 0 where nothing had to be fetched.",
	},
	{
		ID: RocksDBLoadFromSnapshotLatency, JSON: "rocksdbLoadFromSnapshotLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 1, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkConstantZero, Series: prefix + "rocksdb_load_from_snapshot_latency_seconds_total",
		Help: "Time of loads that name a snapshot, summed over parallel tasks; only the state reader does that, so a streaming query shows 0.",
	},
	{
		ID: RocksDBReplayChangeLogLatency, JSON: "rocksdbReplayChangeLogLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 1, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkPart, Series: prefix + "rocksdb_replay_change_log_latency_seconds_total",
		Help: "Time to replay changelog files during a load, summed over parallel tasks; a part of the load time.",
	},
	{
		ID: RocksDBNumReplayChangelogFiles, JSON: "rocksdbNumReplayChangelogFiles", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{4, 1, 0}, Scale: 1, Quirks: QuirkTwoOfFour, Series: prefix + "rocksdb_num_replay_changelog_files_total",
		Help: "Changelog files replayed while loading state; in 4.1 an aggregation shows 0 even when its stores had to be fetched.",
	},
	{
		ID: RocksDBBytesCopied, JSON: "rocksdbBytesCopied", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkStickyUpload, Series: prefix + "rocksdb_uploaded_bytes_total",
		Help: "Bytes of SST and log files copied to the checkpoint location; a figure that Spark repeats is counted once.",
	},
	{
		ID: RocksDBFilesCopied, JSON: "rocksdbFilesCopied", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkStickyUpload, Series: prefix + "rocksdb_uploaded_files_total",
		Help: "SST and log files copied to the checkpoint location; a figure that Spark repeats is counted once.",
	},
	{
		ID: RocksDBFilesReused, JSON: "rocksdbFilesReused", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkStickyUpload, Series: prefix + "rocksdb_reused_files_total",
		Help: "SST and log files that were already in the checkpoint location; a figure that Spark repeats is counted once.",
	},
	{
		ID: RocksDBZipFileBytesUncompressed, JSON: "rocksdbZipFileBytesUncompressed", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkStickyUpload | QuirkMinusOne, Series: prefix + "rocksdb_zip_file_bytes_uncompressed_total",
		Help: "Bytes put into snapshot zips before compression; a figure that Spark repeats is counted once.",
	},
	{
		ID: RocksDBReadBlockCacheMissCount, JSON: "rocksdbReadBlockCacheMissCount", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_block_cache_lookups_total", LabelName: "result", LabelValue: "miss",
		Help: "Block cache lookups by result.",
	},
	{
		ID: RocksDBReadBlockCacheHitCount, JSON: "rocksdbReadBlockCacheHitCount", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_block_cache_lookups_total", LabelName: "result", LabelValue: "hit",
		Help: "Block cache lookups by result.",
	},
	{
		ID: RocksDBTotalBytesRead, JSON: "rocksdbTotalBytesRead", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_total_bytes_read_total",
		Help: "Uncompressed bytes that point reads returned.",
	},
	{
		ID: RocksDBTotalBytesWritten, JSON: "rocksdbTotalBytesWritten", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_total_bytes_written_total",
		Help: "Uncompressed bytes handed to writes.",
	},
	{
		ID: RocksDBTotalBytesReadThroughIterator, JSON: "rocksdbTotalBytesReadThroughIterator", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_total_bytes_read_through_iterator_total",
		Help: "Uncompressed bytes read by iterators: eviction scans and prefix scans.",
	},
	{
		ID: RocksDBWriterStallLatency, JSON: "rocksdbWriterStallLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: nano, Quirks: QuirkTwoOfFour | QuirkResetAtLoad | QuirkNanoseconds, Series: prefix + "rocksdb_writer_stall_seconds_total",
		Help: "Time that writers waited for compaction or flush, summed over stores; Spark sends nanoseconds under a name that says milliseconds.",
	},
	{
		ID: RocksDBTotalCompactionLatency, JSON: "rocksdbTotalCompactionLatencyMs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: QuirkTwoOfFour | QuirkResetAtLoad | QuirkMsFloor, Series: prefix + "rocksdb_compaction_task_seconds_total",
		Help: "Compaction time between load and commit, summed over stores; what ends while a store idles is not seen.",
	},
	{
		ID: RocksDBTotalBytesReadByCompaction, JSON: "rocksdbTotalBytesReadByCompaction", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_total_bytes_read_by_compaction_total",
		Help: "Bytes that compactions read between load and commit.",
	},
	{
		ID: RocksDBTotalBytesWrittenByCompaction, JSON: "rocksdbTotalBytesWrittenByCompaction", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_total_bytes_written_by_compaction_total",
		Help: "Bytes that compactions wrote between load and commit.",
	},
	{
		ID: RocksDBTotalBytesWrittenByFlush, JSON: "rocksdbTotalBytesWrittenByFlush", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindWork, Since: Version{3, 5, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkResetAtLoad, Series: prefix + "rocksdb_total_bytes_written_by_flush_total",
		Help: "Bytes that memtable flushes wrote between load and commit.",
	},
	{
		ID: RocksDBPinnedBlocksMemoryUsage, JSON: "rocksdbPinnedBlocksMemoryUsage", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitBytes, Kind: KindLevel, Since: Version{3, 5, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkSharedCache, Series: prefix + "rocksdb_pinned_blocks_memory_usage_bytes",
		Help: "Bytes pinned in the block cache; lies inside the memory figure, and with bounded memory before 4.1 every store reports the whole shared cache.",
	},
	{
		ID: RocksDBNumInternalColFamiliesKeys, JSON: "rocksdbNumInternalColFamiliesKeys", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkTwoOfFour, Series: prefix + "rocksdb_num_internal_col_families_keys",
		Help: "Keys in internal column families: timers, TTL and join indexes.",
	},
	{
		ID: RocksDBNumExternalColumnFamilies, JSON: "rocksdbNumExternalColumnFamilies", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkSwapped, Series: prefix + "rocksdb_num_external_column_families",
		Help: "Column families of the user's own state, summed over stores; Spark 4.0 and 4.1 swap this with the internal count, which is put right here.",
	},
	{
		ID: RocksDBNumInternalColumnFamilies, JSON: "rocksdbNumInternalColumnFamilies", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkTwoOfFour | QuirkSwapped, Series: prefix + "rocksdb_num_internal_column_families",
		Help: "Column families that Spark keeps for itself, summed over stores; Spark 4.0 and 4.1 swap this with the external count, which is put right here.",
	},
	{
		ID: RocksDBNumSnapshotsAutoRepaired, JSON: "rocksdbNumSnapshotsAutoRepaired", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{4, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour, Series: prefix + "rocksdb_num_snapshots_auto_repaired_total",
		Help: "Loads that had to pass over a damaged snapshot and rebuild from an older one.",
	},
	{
		ID: RocksDBForceSnapshotCount, JSON: "rocksdbForceSnapshotCount", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{4, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour, Series: prefix + "rocksdb_force_snapshot_count_total",
		Help: "Stores told to upload a snapshot inside the commit because their uploads lag.",
	},
	{
		ID: RocksDBNumLoadedFromDfs, JSON: "rocksdbNumLoadedFromDfs", Scope: ScopeOperator, Provider: ProviderRocksDB, Unit: UnitCount, Kind: KindWork, Since: Version{4, 2, 0}, Scale: 1, Quirks: QuirkTwoOfFour, Series: prefix + "rocksdb_num_loaded_from_dfs_total",
		Help: "Loads that had to fetch a snapshot from the checkpoint location.",
	},
	{
		ID: SnapshotLastUploaded, JSON: "SnapshotLastUploaded", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitVersions, Kind: KindPerInstance, Since: Version{4, 1, 0}, Scale: 1, Quirks: QuirkLowestFew, Series: prefix + "rocksdb_snapshot_lag_versions",
		Help: "State versions between the newest commit and the oldest last uploaded snapshot of the partitions reported, the worst partition; one that has uploaded nothing since its run began counts from the run's first version.",
	},
	{
		ID: StateOnCurrentVersionSizeBytes, JSON: "stateOnCurrentVersionSizeBytes", Scope: ScopeOperator, Provider: ProviderHDFS, Unit: UnitBytes, Kind: KindLevel, Since: Version{2, 4, 0}, Scale: 1, Quirks: 0, Series: prefix + "hdfs_state_on_current_version_size_bytes",
		Help: "Estimated heap size of the state of the current version.",
	},
	{
		ID: LoadedMapCacheHitCount, JSON: "loadedMapCacheHitCount", Scope: ScopeOperator, Provider: ProviderHDFS, Unit: UnitCount, Kind: KindCumulative, Since: Version{2, 4, 0}, Scale: 1, Quirks: 0, Series: prefix + "hdfs_loaded_map_cache_hit_count_total",
		Help: "State loads answered from the cache of versions in memory.",
	},
	{
		ID: LoadedMapCacheMissCount, JSON: "loadedMapCacheMissCount", Scope: ScopeOperator, Provider: ProviderHDFS, Unit: UnitCount, Kind: KindCumulative, Since: Version{2, 4, 0}, Scale: 1, Quirks: 0, Series: prefix + "hdfs_loaded_map_cache_miss_count_total",
		Help: "State loads that had to read delta and snapshot files.",
	},
	{
		ID: HDFSNumSnapshotsAutoRepaired, JSON: "numSnapshotsAutoRepaired", Scope: ScopeOperator, Provider: ProviderHDFS, Unit: UnitCount, Kind: KindWork, Since: Version{4, 2, 0}, Scale: 1, Quirks: 0, Series: prefix + "hdfs_num_snapshots_auto_repaired_total",
		Help: "Loads that had to pass over a damaged snapshot and rebuild from an older one.",
	},
	{
		ID: HDFSForceSnapshotCount, JSON: "forceSnapshotCount", Scope: ScopeOperator, Provider: ProviderHDFS, Unit: UnitCount, Kind: KindWork, Since: Version{4, 2, 0}, Scale: 1, Quirks: 0, Series: prefix + "hdfs_force_snapshot_count_total",
		Help: "Stores told to write a snapshot inside the commit because their snapshots lag.",
	},
	{
		ID: NumDroppedDuplicateRows, JSON: "numDroppedDuplicateRows", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_dropped_duplicate_rows_total",
		Help: "Rows dropped as duplicates.",
	},
	{
		ID: SkippedNullValueCount, JSON: "skippedNullValueCount", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{3, 4, 0}, Scale: 1, Quirks: 0, Series: prefix + "skipped_null_value_count_total",
		Help: "Null state values that a stream-stream join passed over; more than none hints at damaged state.",
	},
	{
		ID: InitialStateProcessingTime, JSON: "initialStateProcessingTimeMs", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 0, 0}, Scale: milli, Quirks: 0, Series: prefix + "initial_state_processing_time_seconds_total",
		Help: "Time to process the initial state of transformWithState, summed over parallel tasks.",
	},
	{
		ID: NumValueStateVars, JSON: "numValueStateVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkPerTask, Series: prefix + "num_value_state_vars",
		Help: "Value state variables of transformWithState, per task.",
	},
	{
		ID: NumListStateVars, JSON: "numListStateVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkPerTask, Series: prefix + "num_list_state_vars",
		Help: "List state variables of transformWithState, per task.",
	},
	{
		ID: NumMapStateVars, JSON: "numMapStateVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkPerTask, Series: prefix + "num_map_state_vars",
		Help: "Map state variables of transformWithState, per task.",
	},
	{
		ID: NumDeletedStateVars, JSON: "numDeletedStateVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindWork, Since: Version{4, 0, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_deleted_state_vars_total",
		Help: "State variables that transformWithState code deleted.",
	},
	{
		ID: TimerProcessingTime, JSON: "timerProcessingTimeMs", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{4, 0, 0}, Scale: milli, Quirks: 0, Series: prefix + "timer_processing_time_seconds_total",
		Help: "Time to process expired timers and what follows from them, summed over parallel tasks.",
	},
	{
		ID: NumRegisteredTimers, JSON: "numRegisteredTimers", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindWork, Since: Version{4, 0, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_registered_timers_total",
		Help: "Timers registered.",
	},
	{
		ID: NumDeletedTimers, JSON: "numDeletedTimers", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindWork, Since: Version{4, 0, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_deleted_timers_total",
		Help: "Timers deleted.",
	},
	{
		ID: NumExpiredTimers, JSON: "numExpiredTimers", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindWork, Since: Version{4, 0, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_expired_timers_total",
		Help: "Timers that fired.",
	},
	{
		ID: NumValueStateWithTTLVars, JSON: "numValueStateWithTTLVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkPerTask, Series: prefix + "num_value_state_with_ttl_vars",
		Help: "Value state variables with a time to live, per task.",
	},
	{
		ID: NumListStateWithTTLVars, JSON: "numListStateWithTTLVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkPerTask, Series: prefix + "num_list_state_with_ttl_vars",
		Help: "List state variables with a time to live, per task.",
	},
	{
		ID: NumMapStateWithTTLVars, JSON: "numMapStateWithTTLVars", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{4, 0, 0}, Scale: 1, Quirks: QuirkPerTask, Series: prefix + "num_map_state_with_ttl_vars",
		Help: "Map state variables with a time to live, per task.",
	},
	{
		ID: NumValuesRemovedDueToTTLExpiry, JSON: "numValuesRemovedDueToTTLExpiry", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindWork, Since: Version{4, 0, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_values_removed_due_to_ttl_expiry_total",
		Help: "State values removed because their time to live ran out.",
	},
	{
		ID: NumRowsTotal, JSON: "numRowsTotal", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: 1, Quirks: QuirkZeroUntracked, Series: prefix + "state_rows",
		Help: "Keys in state after the newest batch; absent while RocksDB does not track the row count.",
	},
	{
		ID: NumRowsUpdated, JSON: "numRowsUpdated", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "state_rows_updated_total",
		Help: "Rows put into state.",
	},
	{
		ID: NumRowsRemoved, JSON: "numRowsRemoved", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{3, 2, 0}, Scale: 1, Quirks: 0, Series: prefix + "state_rows_removed_total",
		Help: "Rows evicted or removed from state.",
	},
	{
		ID: AllUpdatesTime, JSON: "allUpdatesTimeMs", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: 0, Series: prefix + "state_update_task_seconds_total",
		Help: "Time in the update loop, operators upstream of it included, summed over parallel tasks.",
	},
	{
		ID: AllRemovalsTime, JSON: "allRemovalsTimeMs", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: 0, Series: prefix + "state_removal_task_seconds_total",
		Help: "Time in eviction, summed over parallel tasks.",
	},
	{
		ID: CommitTime, JSON: "commitTimeMs", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 2, 0}, Scale: milli, Quirks: 0, Series: prefix + "state_commit_task_seconds_total",
		Help: "Time in state store commits, summed over parallel tasks.",
	},
	{
		ID: MemoryUsedBytes, JSON: "memoryUsedBytes", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitBytes, Kind: KindLevel, Since: Version{2, 3, 0}, Scale: 1, Quirks: QuirkZeroBounded, Series: prefix + "state_memory_bytes",
		Help: "Memory of the state stores; absent where bounded memory makes Spark hide it.",
	},
	{
		ID: NumRowsDroppedByWatermark, JSON: "numRowsDroppedByWatermark", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{3, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "late_rows_dropped_total",
		Help: "Rows dropped as later than the watermark, counted at the operator's input.",
	},
	{
		ID: NumShufflePartitions, JSON: "numShufflePartitions", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkMinusOne, Series: prefix + "state_partitions",
		Help: "State partitions of the operator.",
	},
	{
		ID: NumStateStoreInstances, JSON: "numStateStoreInstances", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{3, 2, 0}, Scale: 1, Quirks: 0, Series: prefix + "state_store_instances",
		Help: "State store instances that reported.",
	},
	{
		ID: BatchID, JSON: "batchId", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitCount, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "last_batch_id",
		Help: "Id of the newest executed batch.",
	},
	{
		ID: BatchDuration, JSON: "batchDuration", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "batch_duration_seconds",
		Help: "Wall time of executed batches.",
	},
	{
		ID: NumInputRows, JSON: "numInputRows", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "input_rows_total",
		Help: "Rows read, by source.",
	},
	{
		ID: InputRowsPerSecond, JSON: "inputRowsPerSecond", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitRowsPerSecond, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "input_rows_per_second",
		Help: "Input rate that Spark reports for the newest batch; inflated after an idle spell with the default trigger.",
	},
	{
		ID: ProcessedRowsPerSecond, JSON: "processedRowsPerSecond", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitRowsPerSecond, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "processed_rows_per_second",
		Help: "Processing rate that Spark reports for the newest batch.",
	},
	{
		ID: DurationTriggerExecution, JSON: "durationMs.triggerExecution", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 1, 0}, Scale: milli, Quirks: QuirkWhole, Series: prefix + "trigger_execution_seconds_total",
		Help: "Driver time of whole triggers; the phases and the unaccounted rest add up to it.",
	},
	{
		ID: DurationLatestOffset, JSON: "durationMs.latestOffset", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 0, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "latestOffset",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationGetOffset, JSON: "durationMs.getOffset", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "getOffset",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationWalCommit, JSON: "durationMs.walCommit", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "walCommit",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationGetBatch, JSON: "durationMs.getBatch", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "getBatch",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationQueryPlanning, JSON: "durationMs.queryPlanning", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "queryPlanning",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationAddBatch, JSON: "durationMs.addBatch", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "addBatch",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationCommitOffsets, JSON: "durationMs.commitOffsets", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{3, 4, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "commitOffsets",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationRunContinuous, JSON: "durationMs.runContinuous", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: Version{2, 3, 0}, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "runContinuous",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: DurationCommitBatch, JSON: "durationMs.commitBatch", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: databricksOnly, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "commitBatch",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: EventTimeMax, JSON: "eventTime.max", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitTimestamp, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "event_time_max_timestamp_seconds",
		Help: "Largest event time that the newest batch saw.",
	},
	{
		ID: EventTimeMin, JSON: "eventTime.min", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitTimestamp, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "event_time_min_timestamp_seconds",
		Help: "Smallest event time that the newest batch saw.",
	},
	{
		ID: EventTimeAvg, JSON: "eventTime.avg", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitTimestamp, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: milli, Quirks: 0, Series: prefix + "event_time_avg_timestamp_seconds",
		Help: "Mean event time that the newest batch saw.",
	},
	{
		ID: EventTimeWatermark, JSON: "eventTime.watermark", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitTimestamp, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: milli, Quirks: QuirkSentinel1970, Series: prefix + "watermark_timestamp_seconds",
		Help: "Watermark that the newest batch used; absent before the first.",
	},
	{
		ID: SourceNumInputRows, JSON: "sources.numInputRows", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "input_rows_total",
		Help: "Rows read, by source.",
	},
	{
		ID: SourceInputRowsPerSecond, JSON: "sources.inputRowsPerSecond", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitRowsPerSecond, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "source_input_rows_per_second",
		Help: "Input rate that Spark reports for a source in the newest batch.",
	},
	{
		ID: SourceProcessedRowsPerSecond, JSON: "sources.processedRowsPerSecond", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitRowsPerSecond, Kind: KindLevel, Since: Version{2, 1, 0}, Scale: 1, Quirks: 0, Series: prefix + "source_processed_rows_per_second",
		Help: "Processing rate that Spark reports for a source in the newest batch.",
	},
	{
		ID: SourceMinOffsetsBehindLatest, JSON: "sources.metrics.minOffsetsBehindLatest", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitOffsets, Kind: KindLevel, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkZeroWithoutLimit, Series: prefix + "source_min_offsets_behind_latest",
		Help: "Smallest backlog over the partitions of a Kafka source when the batch was planned; always 0 without maxOffsetsPerTrigger.",
	},
	{
		ID: SourceMaxOffsetsBehindLatest, JSON: "sources.metrics.maxOffsetsBehindLatest", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitOffsets, Kind: KindLevel, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkZeroWithoutLimit, Series: prefix + "source_max_offsets_behind_latest",
		Help: "Largest backlog over the partitions of a Kafka source when the batch was planned; always 0 without maxOffsetsPerTrigger.",
	},
	{
		ID: SourceAvgOffsetsBehindLatest, JSON: "sources.metrics.avgOffsetsBehindLatest", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitOffsets, Kind: KindLevel, Since: Version{3, 2, 0}, Scale: 1, Quirks: QuirkZeroWithoutLimit, Series: prefix + "source_avg_offsets_behind_latest",
		Help: "Mean backlog over the partitions of a Kafka source when the batch was planned; always 0 without maxOffsetsPerTrigger.",
	},
	{
		ID: SinkNumOutputRows, JSON: "sink.numOutputRows", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{3, 0, 0}, Scale: 1, Quirks: QuirkMinusOne, Series: prefix + "sink_output_rows_total",
		Help: "Rows written by the sink; absent for sinks that do not count.",
	},
	{
		ID: TriggerIntervalMs, JSON: "trigger.intervalMs", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindLevel, Since: Version{4, 4, 0}, Scale: milli, Quirks: 0, Series: prefix + "trigger_interval_seconds",
		Help: "Interval of the trigger: as the listener or the configuration says, or inferred from the starts of batches.",
	},
	{
		ID: TriggerBatchDurationMs, JSON: "trigger.batchDurationMs", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindLevel, Since: Version{4, 4, 0}, Scale: milli, Quirks: 0, Series: prefix + "trigger_batch_duration_seconds",
		Help: "Configured length of a real-time mode batch.",
	},
	{
		ID: RTMProcessingLatency, JSON: "rtmMetrics.processingLatencyMs", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindLevel, Since: databricksOnly, Scale: milli, Quirks: QuirkPercentile, Series: prefix + "rtm_processing_latency_seconds",
		Help: "Percentiles of the time from reading a record to handing it on, real-time mode.",
	},
	{
		ID: RTMSourceQueuingLatency, JSON: "rtmMetrics.sourceQueuingLatencyMs", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindLevel, Since: databricksOnly, Scale: milli, Quirks: QuirkPercentile, Series: prefix + "rtm_source_queuing_latency_seconds",
		Help: "Percentiles of the time from a record's append to its first read, real-time mode.",
	},
	{
		ID: RTME2ELatency, JSON: "rtmMetrics.e2eLatencyMs", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindLevel, Since: databricksOnly, Scale: milli, Quirks: QuirkPercentile, Series: prefix + "rtm_e2e_latency_seconds",
		Help: "Percentiles of the time from a record's append to its being processed, real-time mode.",
	},
	{
		ID: DurationCollectSourceMetrics, JSON: "durationMs.collectSourceMetrics", Scope: ScopeQuery, Provider: ProviderAny, Unit: UnitSeconds, Kind: KindWork, Since: databricksOnly, Scale: milli, Quirks: 0, Series: prefix + "phase_seconds_total", LabelName: "phase", LabelValue: "collectSourceMetrics",
		Help: "Driver time by phase of the trigger, named as in durationMs.",
	},
	{
		ID: SourceNumFilesOutstanding, JSON: "sources.metrics.numFilesOutstanding", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitFiles, Kind: KindLevel, Since: databricksOnly, Scale: 1, Quirks: 0, Series: prefix + "source_num_files_outstanding",
		Help: "Files that a Delta or Auto Loader source has still to read.",
	},
	{
		ID: SourceNumBytesOutstanding, JSON: "sources.metrics.numBytesOutstanding", Scope: ScopeSource, Provider: ProviderAny, Unit: UnitBytes, Kind: KindLevel, Since: databricksOnly, Scale: 1, Quirks: 0, Series: prefix + "source_num_bytes_outstanding",
		Help: "Bytes that a Delta or Auto Loader source has still to read.",
	},
	{
		ID: NumRowsReadDuringEviction, JSON: "numRowsReadDuringEviction", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{4, 3, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_rows_read_during_eviction_total",
		Help: "State rows that eviction read in search of expired ones; far above the rows removed, it scans the whole state.",
	},
	{
		ID: NumRowsIncrementallyRemoved, JSON: "numRowsIncrementallyRemoved", Scope: ScopeOperator, Provider: ProviderAny, Unit: UnitRows, Kind: KindWork, Since: Version{4, 3, 0}, Scale: 1, Quirks: 0, Series: prefix + "num_rows_incrementally_removed_total",
		Help: "State rows that were evicted while the batch was still being processed, and not at its end.",
	},
}
