package spark

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
)

// Prefixes of keys.
const (
	streaming  = "spark.sql.streaming."
	stateStore = streaming + "stateStore."
	rocksDB    = stateStore + "rocksdb."
	joinFormat = streaming + "join.stateFormatVersion"
)

// setting is one key that Spark knows.
type setting struct {
	key string
	// since is the first version that heeds it; zero: all that are played.
	since event.Version
	value string // default, as a session answers it
	// answered says that a session names the default where nothing was given.
	answered bool
	// apply sets the field; nil for settings that change nothing here.
	apply func(c *Conf, text string) error
	// limits are values that only newer versions accept.
	limits map[string]event.Version
}

func (s *setting) allowed(value string, v event.Version) error {
	since, limited := s.limits[value]
	if !limited || AtLeast(v, since) {
		return nil
	}
	return fmt.Errorf("%s (%s) is refused by Spark %d.%d, the first to know it is %d.%d",
		s.key, value, v.Major, v.Minor, since.Major, since.Minor)
}

// settings is the table of all keys of the families that are checked.
var settings = append([]setting{
	{key: stateStore + "providerClass", value: HDFSClass, answered: true, apply: applyProvider},
	{key: rocksDB + "changelogCheckpointing.enabled", since: V35, value: "false", apply: boolean(func(c *Conf) *bool { return &c.Changelog })},
	{key: rocksDB + "compactOnCommit", value: "false", apply: boolean(func(c *Conf) *bool { return &c.CompactOnCommit })},
	{key: rocksDB + "boundedMemoryUsage", since: V35, value: "false", apply: boolean(func(c *Conf) *bool { return &c.BoundedMemory })},
	{key: rocksDB + "maxMemoryUsageMB", since: V35, value: "500", apply: size(1<<20, 1, func(c *Conf) *int64 { return &c.MaxMemoryBytes })},
	{key: rocksDB + "writeBufferCacheRatio", since: V35, value: "0.5", apply: ratio(1, func(c *Conf) *float64 { return &c.WriteBufferCacheRatio })},
	{key: rocksDB + "writeBufferSizeMB", since: V35, value: "-1", apply: size(1<<20, -1, func(c *Conf) *int64 { return &c.WriteBufferBytes })},
	{key: rocksDB + "maxWriteBufferNumber", since: V35, value: "-1", apply: number(-1, func(c *Conf) *int { return &c.MaxWriteBuffers })},
	{key: rocksDB + "blockSizeKB", value: "4", apply: size(1<<10, 1, func(c *Conf) *int64 { return &c.BlockBytes })},
	{key: rocksDB + "blockCacheSizeMB", value: "8", apply: size(1<<20, 1, func(c *Conf) *int64 { return &c.BlockCacheBytes })},
	{key: rocksDB + "trackTotalNumberOfRows", value: "true", apply: boolean(func(c *Conf) *bool { return &c.TrackRows })},
	{key: rocksDB + "resetStatsOnLoad", value: "true", apply: boolean(func(c *Conf) *bool { return &c.ResetStatsOnLoad })},
	{key: rocksDB + "formatVersion", value: "5"},
	{key: stateStore + "minDeltasForSnapshot", value: "10", answered: true, apply: number(1, func(c *Conf) *int { return &c.MinDeltasForSnapshot })},
	{key: stateStore + "maintenanceInterval", value: "60000ms", answered: true, apply: duration(func(c *Conf) *time.Duration { return &c.MaintenanceInterval })},
	{
		key: stateStore + "forceSnapshotUploadOnLag", since: V42, value: "true",
		apply: boolean(func(c *Conf) *bool { return &c.ForceSnapshotUploadOnLag }),
	},
	{key: stateStore + "unloadOnCommit", since: V41, value: "false", apply: boolean(func(c *Conf) *bool { return &c.UnloadOnCommit })},
	{key: stateStore + "autoSnapshotRepair.enabled", since: V42, value: "true", apply: boolean(func(c *Conf) *bool { return &c.AutoSnapshotRepair })},
	{
		key: stateStore + "checkpointFormatVersion", since: V40, value: "1",
		apply: choice(func(c *Conf) *int { return &c.CheckpointFormat }, 1, 2),
	},
	{
		key: joinFormat, value: "2", limits: map[string]event.Version{"3": V41, "4": V42},
		apply: choice(func(c *Conf) *int { return &c.JoinFormat }, 1, 2, 3, 4),
	},
	{key: streaming + "minBatchesToRetain", value: "100", answered: true, apply: number(1, func(c *Conf) *int { return &c.MinBatchesToRetain })},
	{key: streaming + "maxBatchesToRetainInMemory", value: "2", apply: number(0, func(c *Conf) *int { return &c.MaxBatchesInMemory })},
	{
		key: streaming + "ratioExtraSpaceAllowedInCheckpoint", since: V40, value: "0.3",
		apply: ratio(math.Inf(1), func(c *Conf) *float64 { return &c.ExtraSpaceRatio }),
	},
	{
		key: stateStore + "numStateStoreInstanceMetricsToReport", since: V41, value: "5",
		apply: number(0, func(c *Conf) *int { return &c.InstancesToReport }),
	},
	{key: "spark.sql.shuffle.partitions", value: "200", answered: true, apply: number(1, func(c *Conf) *int { return &c.ShufflePartitions })},
	{key: streaming + "noDataMicroBatches.enabled", value: "true", apply: boolean(func(c *Conf) *bool { return &c.NoDataBatches })},
	{key: streaming + "noDataProgressEventInterval", value: "10000ms", apply: duration(func(c *Conf) *time.Duration { return &c.IdleInterval })},
	{key: "spark.locality.wait", value: "3s", apply: duration(func(c *Conf) *time.Duration { return &c.LocalityWait })},
	{key: streaming + "multipleWatermarkPolicy", value: "min", apply: applyPolicy},
	{key: streaming + "aggregation.stateFormatVersion", value: "2"},
	{key: streaming + "flatMapGroupsWithState.stateFormatVersion", value: "2"},
	{key: stateStore + "compression.codec", value: "lz4"},
	{key: stateStore + "encodingFormat", since: V40, value: "unsaferow"},
	{key: streaming + "statefulOperator.useStrictDistribution", value: "true"},
}, unheeded()...)

// unheeded are further settings that Spark knows and that change nothing here.
func unheeded() (out []setting) {
	for _, group := range [...]struct{ prefix, names string }{
		{"spark.locality.", "wait.process wait.node wait.rack"},
		{rocksDB, `highPriorityPoolRatio maxOpenFiles lockAcquireTimeoutMs pauseBackgroundWorkForCommit allowFAllocate compression
			memoryUpdateIntervalMs verifyNonEmptyFilesInZip`},
		{stateStore, `coordinatorReportSnapshotUploadLag multiplierForMinVersionDiffToLog multiplierForMinTimeDiffToLog
			snapshotLagReportInterval maxLaggingStoresToReport autoSnapshotRepair.numFailuresBeforeActivating
			autoSnapshotRepair.maxChangeFileReplay maxVersionsToDeletePerMaintenance minVersionsToDelete numStateStoreMaintenanceThreads
			maintenanceShutdownTimeout maintenanceForceShutdownTimeout maintenanceProcessingTimeout fileChecksumThreadPoolSize
			rowChecksum.enabled rowChecksum.readVerificationRatio formatValidation.enabled stateSchemaCheck
			skipNullsForStreamStreamJoins.enabled commitValidation.enabled stateSchemaFilesThreshold valueStateSchemaEvolutionThreshold
			keySchemaEvolutionThreshold`},
		{streaming, `checkpoint.fileChecksum.enabled checkpoint.fileChecksum.skipCreationIfFileMissingChecksum
			checkpoint.escapedPathCheck.enabled checkpoint.renamedFileCheck.enabled checkpoint.verifyMetadataExists.enabled
			checkpointFileManagerClass checkpointLocation commitProtocolClass forceDeleteTempCheckpointLocation numRecentProgressUpdates
			pollingDelay stopTimeout stopActiveRunOnRestart metricsEnabled schemaInference streamingQueryListeners
			unsupportedOperationCheck asyncLogPurge.enabled metadataCache.enabled optimizeOneRowPlan.enabled
			join.stateFormatV4.enabled offsetLog.formatVersion sessionWindow.stateFormatVersion
			sessionWindow.merge.sessions.in.local.partition statefulOperator.allowMultiple statefulOperator.checkCorrectness.enabled
			transformWithState.stateSchemaVersion triggerAvailableNowWrapper.enabled verifyCheckpointDirectoryEmptyOnStart
			kafka.useDeprecatedOffsetFetching disabledV2MicroBatchReaders disabledV2Writers internal.stateStore.partitions
			continuous.epochBacklogQueueSize continuous.executorPollIntervalMs continuous.executorQueueSize
			fileSink.log.cleanupDelay fileSink.log.compactInterval fileSink.log.deletion fileSource.log.cleanupDelay
			fileSource.log.compactInterval fileSource.log.deletion fileSource.cleaner.numThreads fileSource.schema.forceNullable
			fileStreamSink.ignoreMetadata fileStreamSink.formatCheck.enabled queryEvolution.enableSourceEvolution
			queryEvolution.enableSinkEvolution realTimeMode.minBatchDuration realTimeMode.allowlistCheck ui.enabled
			ui.retainedProgressUpdates ui.retainedQueries ui.enabledCustomMetricList`},
	} {
		for name := range strings.FieldsSeq(group.names) {
			out = append(out, setting{key: group.prefix + name})
		}
	}
	return out
}

func applyProvider(c *Conf, text string) error {
	switch text {
	case RocksDBClass:
		c.Provider = RocksDB
	case HDFSClass:
		c.Provider = HDFS
	default:
		return errProvider
	}
	return nil
}

func applyPolicy(c *Conf, text string) error {
	switch strings.ToLower(text) {
	case "min", "max":
		c.MultipleWatermarkMax = strings.EqualFold(text, "max")
		return nil
	}
	return errors.New("must be min or max")
}

func boolean(field func(*Conf) *bool) func(*Conf, string) error {
	return func(c *Conf, text string) error {
		switch strings.ToLower(text) {
		case "true", "false":
			*field(c) = strings.EqualFold(text, "true")
			return nil
		}
		return errors.New("must be true or false")
	}
}

// number reads a whole number of at least least; -1, where it is allowed, stands
// for RocksDB's own value and becomes 0.
func number(least int, field func(*Conf) *int) func(*Conf, string) error {
	return func(c *Conf, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || int(n) < least {
			return fmt.Errorf("must be a whole number of at least %d", least)
		}
		*field(c) = max(0, int(n))
		return nil
	}
}

// size reads a number of units of unit bytes; -1 as in number.
func size(unit, least int64, field func(*Conf) *int64) func(*Conf, string) error {
	return func(c *Conf, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < least {
			return fmt.Errorf("must be a whole number of at least %d", least)
		}
		*field(c) = max(0, n) * unit
		return nil
	}
}

func ratio(most float64, field func(*Conf) *float64) func(*Conf, string) error {
	return func(c *Conf, text string) error {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || f < 0 || f > most {
			if math.IsInf(most, 1) {
				return errors.New("must be a number of at least 0")
			}
			return fmt.Errorf("must be a number from 0 to %g", most)
		}
		*field(c) = f
		return nil
	}
}

func choice(field func(*Conf) *int, values ...int) func(*Conf, string) error {
	return func(c *Conf, text string) error {
		n, err := strconv.Atoi(text)
		for _, v := range values {
			if err == nil && n == v {
				*field(c) = n
				return nil
			}
		}
		return fmt.Errorf("must be one of %v", values)
	}
}

// suffixes are the units of Spark's durations.
var suffixes = map[string]time.Duration{
	"us": time.Microsecond, "ms": time.Millisecond, "": time.Millisecond, "s": time.Second,
	"m": time.Minute, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// duration reads Spark's durations: a whole number and a unit, without one milliseconds.
func duration(field func(*Conf) *time.Duration) func(*Conf, string) error {
	return func(c *Conf, text string) error {
		digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		unit, known := suffixes[strings.ToLower(text[len(digits):])]
		if err != nil || !known || n < 0 || n > int64(math.MaxInt64/unit) {
			return errors.New("must be a duration such as 500ms, 60s or 1m")
		}
		*field(c) = time.Duration(n) * unit
		return nil
	}
}
