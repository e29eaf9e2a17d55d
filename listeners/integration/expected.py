"""What the exported series of a query must say, worked out from Spark's events alone.

A second statement of what docs/metrics.md says, in another language and from the raw
JSON: names, units and what adds up are written down here by hand and not taken from the
daemon, so that an error in its catalog shows.
"""

import calendar
import time

# Spark's key -> (series, further labels, divisor to base units). Per-batch work is added
# up over executed batches, a level is that of the last one.
OPERATOR_SUMS = {
    "numRowsUpdated": ("state_rows_updated_total", {}, 1),
    "numRowsRemoved": ("state_rows_removed_total", {}, 1),
    "numRowsDroppedByWatermark": ("late_rows_dropped_total", {}, 1),
    "allUpdatesTimeMs": ("state_update_task_seconds_total", {}, 1e3),
    "allRemovalsTimeMs": ("state_removal_task_seconds_total", {}, 1e3),
    "commitTimeMs": ("state_commit_task_seconds_total", {}, 1e3),
}
OPERATOR_LEVELS = {
    "numRowsTotal": ("state_rows", {}, 1),
    "numShufflePartitions": ("state_partitions", {}, 1),
    "numStateStoreInstances": ("state_store_instances", {}, 1),
    "memoryUsedBytes": ("state_memory_bytes", {}, 1),
}
CUSTOM_SUMS = {
    "rocksdbGetCount": ("rocksdb_operations_total", {"op": "get"}, 1),
    "rocksdbPutCount": ("rocksdb_operations_total", {"op": "put"}, 1),
    "rocksdbGetLatency": ("rocksdb_operation_task_seconds_total", {"op": "get"}, 1e3),
    "rocksdbPutLatency": ("rocksdb_operation_task_seconds_total", {"op": "put"}, 1e3),
    "rocksdbCommitFlushLatency": ("rocksdb_commit_task_seconds_total", {"phase": "flush"}, 1e3),
    "rocksdbCommitCompactLatency": ("rocksdb_commit_task_seconds_total", {"phase": "compact"}, 1e3),
    "rocksdbCommitCheckpointLatency": ("rocksdb_commit_task_seconds_total", {"phase": "checkpoint"}, 1e3),
    "rocksdbCommitFileSyncLatencyMs": ("rocksdb_commit_task_seconds_total", {"phase": "file_sync"}, 1e3),
    "rocksdbReadBlockCacheHitCount": ("rocksdb_block_cache_lookups_total", {"result": "hit"}, 1),
    "rocksdbReadBlockCacheMissCount": ("rocksdb_block_cache_lookups_total", {"result": "miss"}, 1),
    "rocksdbTotalBytesRead": ("rocksdb_total_bytes_read_total", {}, 1),
    "rocksdbTotalBytesWritten": ("rocksdb_total_bytes_written_total", {}, 1),
    "rocksdbTotalBytesReadThroughIterator": ("rocksdb_total_bytes_read_through_iterator_total", {}, 1),
    "rocksdbTotalBytesWrittenByFlush": ("rocksdb_total_bytes_written_by_flush_total", {}, 1),
    "rocksdbTotalBytesReadByCompaction": ("rocksdb_total_bytes_read_by_compaction_total", {}, 1),
    "rocksdbTotalCompactionLatencyMs": ("rocksdb_compaction_task_seconds_total", {}, 1e3),
    "rocksdbWriterStallLatencyMs": ("rocksdb_writer_stall_seconds_total", {}, 1e9),
    "rocksdbLoadLatencyMs": ("rocksdb_load_task_seconds_total", {}, 1e3),
    "rocksdbNumReplayChangelogFiles": ("rocksdb_num_replay_changelog_files_total", {}, 1),
    "numDroppedDuplicateRows": ("num_dropped_duplicate_rows_total", {}, 1),
}
# With changelog checkpointing these repeat the last upload and do not add up.
UPLOAD_SUMS = {
    "rocksdbBytesCopied": ("rocksdb_uploaded_bytes_total", {}, 1),
    "rocksdbFilesCopied": ("rocksdb_uploaded_files_total", {}, 1),
    "rocksdbFilesReused": ("rocksdb_reused_files_total", {}, 1),
    "rocksdbZipFileBytesUncompressed": ("rocksdb_zip_file_bytes_uncompressed_total", {}, 1),
}
CUSTOM_LEVELS = {"rocksdbSstFileSize": ("rocksdb_sst_bytes", {}, 1)}

# The mean per store of the newest batch, by commit phase.
STORE_MEANS = {
    "rocksdbCommitFlushLatency": "flush",
    "rocksdbCommitCheckpointLatency": "checkpoint",
    "rocksdbCommitFileSyncLatencyMs": "file_sync",
}


def seconds(text):
    """Unix seconds of a time in Spark's form, `2026-01-31T12:00:00.000Z`."""
    whole, _, millis = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + int(millis or 0) / 1e3


class Expected:
    """The series of one query: `values` maps (name, labels) to a value."""

    def __init__(self, batches, changelog):
        """Takes the executed batches, each once, in their order."""
        self.values = {}
        self.batches, self.last = batches, batches[-1]
        self.progress()
        for index, operator in enumerate(self.last["stateOperators"]):
            self.operator(index, operator, changelog)

    def put(self, name, labels, value):
        self.values["spark_streaming_" + name, tuple(sorted(labels.items()))] = value

    def progress(self):
        """Rows, durations, event times and counts of the whole query."""
        self.put("last_batch_id", {}, self.last["batchId"])
        self.put("batch_duration_seconds_count", {}, len(self.batches))
        for kind, count in self.kinds().items():
            self.put("batches_total", {"kind": kind}, count)
        for name in ("inputRowsPerSecond", "processedRowsPerSecond"):
            if name in self.last:
                self.put({"i": "input", "p": "processed"}[name[0]] + "_rows_per_second", {}, self.last[name])
        for index in range(len(self.last["sources"])):
            rows = sum(b["sources"][index]["numInputRows"] for b in self.batches)
            self.put("input_rows_total", {"source_index": str(index)}, rows)
        self.durations()
        self.event_times()

    def kinds(self):
        data = sum(b["numInputRows"] > 0 for b in self.batches)
        both = {"data": data, "no_data": len(self.batches) - data}
        return {kind: count for kind, count in both.items() if count}

    def durations(self):
        phases = {}
        for batch in self.batches:
            for phase, millis in batch["durationMs"].items():
                phases[phase] = phases.get(phase, 0) + millis
        self.put("trigger_execution_seconds_total", {}, phases.pop("triggerExecution") / 1e3)
        for phase, millis in phases.items():
            self.put("phase_seconds_total", {"phase": phase}, millis / 1e3)
            if phase in self.last["durationMs"]:
                self.put("last_batch_phase_seconds", {"phase": phase}, self.last["durationMs"][phase] / 1e3)

    def event_times(self):
        for key, text in self.last.get("eventTime", {}).items():
            name = "watermark" if key == "watermark" else "event_time_" + key
            if not text.startswith("1970-01-01T00:00:00"):
                self.put(name + "_timestamp_seconds", {}, seconds(text))

    def operator(self, index, operator, changelog):
        labels = {"operator_index": str(index), "operator": operator["operatorName"]}
        every = [b["stateOperators"][index] for b in self.batches]
        self.sums(labels, every, OPERATOR_SUMS)
        self.levels(labels, operator, OPERATOR_LEVELS)
        customs = [o.get("customMetrics", {}) for o in every]
        self.sums(labels, customs, CUSTOM_SUMS)
        if not changelog:
            self.sums(labels, customs, UPLOAD_SUMS)
        self.levels(labels, customs[-1], CUSTOM_LEVELS)
        # Of the four stores of a join's partition two report.
        stores = operator["numStateStoreInstances"] / (2 if operator["operatorName"] == "symmetricHashJoin" else 1)
        for key, phase in STORE_MEANS.items():
            if key in customs[-1]:
                mean = customs[-1][key] / stores / 1e3
                self.put("rocksdb_last_batch_commit_store_seconds", labels | {"phase": phase}, mean)

    def sums(self, labels, every, table):
        for key, (name, more, divisor) in table.items():
            if key in every[-1]:
                self.put(name, labels | more, sum(values.get(key, 0) for values in every) / divisor)

    def levels(self, labels, values, table):
        for key, (name, more, divisor) in table.items():
            if key in values and not (key == "memoryUsedBytes" and values[key] == 0):
                self.put(name, labels | more, values[key] / divisor)


def compare(expected, samples):
    """Differences between what is expected and the samples of one query, as lines."""
    found = {}
    known = {name for name, _ in expected}
    for labels, value in samples:
        name = labels["__name__"]
        if name in known:
            keys = {k for n, pairs in expected if n == name for k, _ in pairs}
            found[name, tuple(sorted((k, v) for k, v in labels.items() if k in keys))] = value
    lines = []
    for key, value in expected.items():
        got = found.get(key)
        if got is None or abs(got - value) > 1e-9 * max(1.0, abs(value)):
            lines.append(f"{key[0]}{dict(key[1])}: Spark says {value}, exported is {got}")
    return lines
