package spark

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// OperatorName returns the operatorName that Spark writes. python is for
// operators whose function is a Python one.
func OperatorName(kind OperatorKind, python bool, v event.Version) string {
	switch kind {
	case Aggregation:
		return "stateStoreSave"
	case Dedupe:
		return "dedupe"
	case DedupeWithinWatermark:
		return "dedupeWithinWatermark"
	case Join:
		return "symmetricHashJoin"
	case FlatMapGroups:
		if python {
			return "applyInPandasWithState"
		}
		return "flatMapGroupsWithState"
	case TransformWithState:
		if python {
			return "transformWithStateInPandasExec"
		}
		return "transformWithStateExec"
	case SessionWindow:
		if v.Less(V40) {
			return "defaultName"
		}
		return "sessionWindowStateStoreSaveExec"
	}
	return ""
}

// Keys returns the customMetrics that an operator of version v has in every
// batch, sorted by key: Spark lists them even at 0. SnapshotLastUploaded is not
// among them, since its keys differ from batch to batch. The slice is the caller's.
func Keys(v event.Version, provider Provider, kind OperatorKind) []event.MetricID {
	return keys(v, provider, kind, false)
}

// PythonKeys is Keys for an operator whose function is a Python one.
func PythonKeys(v event.Version, provider Provider, kind OperatorKind) []event.MetricID {
	return keys(v, provider, kind, true)
}

// ReportsUploads reports whether operators list SnapshotLastUploaded.
func ReportsUploads(v event.Version) bool { return AtLeast(v, V41) }

func keys(v event.Version, provider Provider, kind OperatorKind, python bool) []event.MetricID {
	var out []event.MetricID
	for _, id := range customMetrics {
		if inVersion(id, v) && (ofProvider(id, provider) || ofOperator(id, kind, python, v)) {
			out = append(out, id)
		}
	}
	return out
}

// customMetrics are the metrics that stand in customMetrics, sorted by key, but
// for those that come once per store.
var customMetrics = func() (out []event.MetricID) {
	for _, m := range event.Catalog() {
		if m.Scope == event.ScopeOperator && m.Kind != event.KindPerInstance && !isField(m.ID) {
			out = append(out, m.ID)
		}
	}
	slices.SortFunc(out, func(a, b event.MetricID) int {
		return strings.Compare(event.Lookup(a).JSON, event.Lookup(b).JSON)
	})
	return out
}()

func isField(id event.MetricID) bool {
	return id >= event.NumRowsTotal && id <= event.NumStateStoreInstances
}

// inVersion tells the versions that have a metric from those before and after.
func inVersion(id event.MetricID, v event.Version) bool {
	switch id {
	case event.RocksDBCommitWriteBatchLatency, event.RocksDBCommitPauseLatency:
		return v.Less(V40)
	}
	return AtLeast(v, event.Lookup(id).Since)
}

func ofProvider(id event.MetricID, p Provider) bool {
	switch event.Lookup(id).Provider {
	case event.ProviderRocksDB:
		return p == RocksDB
	case event.ProviderHDFS:
		return p == HDFS
	}
	return false
}

// ofOperator tells the metrics that operators add to those of the provider.
func ofOperator(id event.MetricID, kind OperatorKind, python bool, v event.Version) bool {
	switch id {
	case event.NumDroppedDuplicateRows, event.NumRowsReadDuringEviction, event.NumRowsIncrementallyRemoved:
		return kind == Dedupe || kind == DedupeWithinWatermark
	case event.InitialStateProcessingTime, event.TimerProcessingTime:
		// The Python operator took no times before 4.1.
		return kind == TransformWithState && (!python || AtLeast(v, V41))
	}
	return kind == TransformWithState && id >= event.NumValueStateVars && id <= event.NumValuesRemovedDueToTTLExpiry
}
