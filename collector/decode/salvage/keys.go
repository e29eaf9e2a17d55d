package salvage

import (
	"bytes"
	"math/bits"
)

// keyset is a set of the keys by which objects are told apart.
type keyset uint64

// The keys of events and of their parts.
const (
	kID keyset = 1 << iota
	kRunID
	kName
	kTimestamp
	kBatchID
	kBatchDuration
	kDurationMs
	kStateOperators
	kSources
	kSink
	kEventTime
	kObservedMetrics
	kInputRows
	kRates
	kException
	kJobTags
	kProgress
	kEventType // "Event" of the event log
	kEventBody // "event" of the envelope
	kType
	kVersion
	kSender
	kTriggerExecution
	kPhase
	kOperatorName
	kRows
	kCustomMetrics
	kRocksDB
	kDescription
	kOffsets
	kBehind
	kMetrics
	kRTM
	kExecutorStats
	kOutputRows
	kLegacy
)

// strong are the keys that hardly anything but a Spark streaming event has: text
// with one of them is worth a reject, text without is none of our business.
const strong = kBatchDuration | kDurationMs | kStateOperators | kInputRows | kRates | kTriggerExecution |
	kOperatorName | kRows | kCustomMetrics | kRocksDB | kOffsets | kBehind | kRTM | kExecutorStats | kOutputRows | kLegacy

var knownKeys = map[string]keyset{
	"id": kID, "runId": kRunID, "name": kName, "timestamp": kTimestamp, "batchId": kBatchID,
	"batchDuration": kBatchDuration, "durationMs": kDurationMs, "stateOperators": kStateOperators,
	"sources": kSources, "sink": kSink, "eventTime": kEventTime, "observedMetrics": kObservedMetrics,
	"numInputRows": kInputRows, "numRecords": kInputRows,
	"inputRowsPerSecond": kRates, "processedRowsPerSecond": kRates,
	"exception": kException, "errorClassOnException": kException, "jobTags": kJobTags,
	"progress": kProgress, "Event": kEventType, "event": kEventBody, "type": kType, "v": kVersion, "sender": kSender,
	"triggerExecution": kTriggerExecution, "addBatch": kPhase, "walCommit": kPhase, "queryPlanning": kPhase,
	"latestOffset": kPhase, "getOffset": kPhase, "getBatch": kPhase, "commitOffsets": kPhase, "getEndOffset": kPhase,
	"operatorName": kOperatorName, "numRowsTotal": kRows, "numRowsUpdated": kRows, "commitTimeMs": kRows,
	"memoryUsedBytes": kRows, "allUpdatesTimeMs": kRows, "allRemovalsTimeMs": kRows, "numRowsRemoved": kRows,
	"numRowsDroppedByWatermark": kRows, "numShufflePartitions": kRows, "numStateStoreInstances": kRows,
	"customMetrics": kCustomMetrics, "description": kDescription, "startOffset": kOffsets, "endOffset": kOffsets,
	"avgOffsetsBehindLatest": kBehind, "maxOffsetsBehindLatest": kBehind, "minOffsetsBehindLatest": kBehind,
	"estimatedTotalBytesBehindLatest": kBehind, "numFilesOutstanding": kBehind, "numBytesOutstanding": kBehind,
	"metrics": kMetrics, "rtmMetrics": kRTM, "numCommittedKeys": kExecutorStats, "lastCommitLatencyMs": kExecutorStats,
	"numOutputRows": kOutputRows, "queryInfo": kLegacy, "queryStatus": kLegacy,
}

// keyOf finds a key.
func keyOf(key []byte) (keyset, bool) {
	if k, ok := knownKeys[string(key)]; ok {
		return k, true
	}
	if bytes.HasPrefix(key, []byte("rocksdb")) || bytes.HasPrefix(key, []byte("SnapshotLastUploaded.")) {
		return kRocksDB, true
	}
	return 0, false
}

func (k keyset) has(all keyset) bool   { return k&all == all }
func (k keyset) hasAny(of keyset) bool { return k&of != 0 }
func (k keyset) any() bool             { return k != 0 }
func (k keyset) count() int            { return bits.OnesCount64(uint64(k)) }

// eventKind is what the "Event" member of an event log line names.
type eventKind uint8

const (
	noEventType eventKind = iota
	streamingEvent
	otherEvent
)

func eventTypeOf(value []byte) eventKind {
	if bytes.Contains(value, []byte("StreamingQueryListener$Query")) {
		return streamingEvent
	}
	return otherEvent
}

// isEvent judges an object by its keys. inner tells that it holds an event.
func (f *frame) isEvent(inner bool) bool {
	k := f.keys
	switch {
	case f.event == streamingEvent:
		return true
	case k.has(kVersion | kSender | kType):
		return true
	case k.hasAny(kProgress|kEventBody) && inner:
		return !k.hasAny(kEventBody) || k.hasAny(kType|kVersion|kSender)
	case !k.has(kID):
		return false
	case k.hasAny(kDurationMs | kStateOperators):
		return true
	case k.has(kBatchID):
		return k.hasAny(kSources | kInputRows | kTimestamp)
	}
	return k.has(kRunID)
}

// isAnonymous reports a progress that lacks nothing but the query's id.
func (k keyset) isAnonymous() bool {
	return !k.has(kID) && k.has(kDurationMs) && k.hasAny(kBatchID|kTimestamp) && k.hasAny(kSources|kInputRows)
}

// describe says what an object that is no event looks like.
func (k keyset) describe() string {
	switch {
	case k.has(kExecutorStats):
		return "an executor's commit statistics of one state store"
	case k.hasAny(kID|kBatchID|kDurationMs|kBatchDuration|kStateOperators|kSink) && k.count() > 2:
		return "a part of a progress"
	case k.has(kRTM):
		return "the rtmMetrics of a progress"
	case k.hasAny(kOperatorName | kRows):
		return "one state operator of a progress"
	case k.hasAny(kCustomMetrics | kRocksDB):
		return "the custom metrics of one state operator"
	case k.hasAny(kTriggerExecution):
		return "the durationMs of a progress"
	case k.hasAny(kSources | kDescription | kOffsets | kBehind):
		return "a source of a progress"
	}
	return "a part of a progress"
}
