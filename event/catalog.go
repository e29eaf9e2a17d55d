package event

import (
	"fmt"
	"strings"
)

// Metric is one row of the catalog.
type Metric struct {
	ID       MetricID
	JSON     string // Spark's key; dotted below the object that Scope names
	Scope    Scope
	Provider Provider
	Unit     Unit // of the exported value, after Scale
	Kind     MetricKind
	Since    Version // first Apache Spark version that sends it
	// Scale turns Spark's raw number into Unit. It is applied once, on the way out.
	Scale  float64
	Quirks Quirks
	Series string // Prometheus family; rows of one family differ in LabelValue
	// LabelName and LabelValue tell rows of one family apart; empty where the
	// family is this row's alone.
	LabelName, LabelValue string
	Help                  string
}

// Scope is the object of a progress that holds a metric.
type Scope uint8

// The scopes. Sink figures count as the query's.
const (
	ScopeQuery Scope = iota
	ScopeOperator
	ScopeSource
)

// String returns the scope in lower case.
func (s Scope) String() string { return nameOf([]string{"query", "operator", "source"}, int(s)) }

// Provider is the state store provider that reports a metric or runs an operator.
type Provider uint8

// The providers. Any marks a metric that does not depend on one; Unknown an
// operator whose keys do not tell.
const (
	ProviderAny Provider = iota
	ProviderRocksDB
	ProviderHDFS
	ProviderUnknown
)

// String returns the provider as labels show it.
func (p Provider) String() string {
	return nameOf([]string{"any", "rocksdb", "hdfs", "unknown"}, int(p))
}

// Unit is the unit of an exported value.
type Unit uint8

// The units, base units only.
const (
	UnitCount Unit = iota
	UnitSeconds
	UnitBytes
	UnitRows
	UnitVersions
	UnitRowsPerSecond
	UnitTimestamp
	UnitOffsets
	UnitFiles
)

// String returns the unit as docs/metrics.md shows it.
func (u Unit) String() string {
	return nameOf([]string{"count", "seconds", "bytes", "rows", "versions", "rows per second", "unix seconds", "offsets", "files"}, int(u))
}

// MetricKind says how a metric behaves from batch to batch, which decides how it
// may be added up.
type MetricKind uint8

// The kinds.
const (
	// KindLevel is a state of things: a gauge, never summed over batches.
	KindLevel MetricKind = iota
	// KindWork is what one batch did: added once to a counter.
	KindWork
	// KindCumulative only grows within one provider instance: positive
	// differences are added to a counter.
	KindCumulative
	// KindPerInstance comes as one key per store instance and is folded.
	KindPerInstance
)

// String returns the kind as docs/metrics.md shows it.
func (k MetricKind) String() string {
	return nameOf([]string{"level", "per-batch work", "cumulative", "per-instance"}, int(k))
}

// Quirks is a bit set of ways in which a metric is not what its name says.
type Quirks uint32

// The quirks.
const (
	// QuirkTwoOfFour: a stream-stream join of state format 1 or 2 reports it for
	// two of its four stores only.
	QuirkTwoOfFour Quirks = 1 << iota
	// QuirkResetAtLoad: native statistic, wiped at each load; with
	// resetStatsOnLoad=false it is cumulative instead.
	QuirkResetAtLoad
	// QuirkMsFloor: whole milliseconds per store before summing, so small stores show 0.
	QuirkMsFloor
	// QuirkSticky40: Spark 4.0 with changelog repeats the last snapshot's figure in every batch.
	QuirkSticky40
	// QuirkConstantZero: always 0 in a streaming query.
	QuirkConstantZero
	// QuirkPart: lies inside another metric; the two must not be added.
	QuirkPart
	// QuirkStickyUpload: repeats the last upload (or download) until the next one
	// when changelog checkpointing is on.
	QuirkStickyUpload
	// QuirkMinusOne: -1 stands for unknown.
	QuirkMinusOne
	// QuirkNanoseconds: nanoseconds in spite of an Ms in the name.
	QuirkNanoseconds
	// QuirkSharedCache: with bounded memory before 4.1 every store reports the whole shared cache.
	QuirkSharedCache
	// QuirkSwapped: Spark 4.0 and 4.1 write the two column family counts the wrong way round.
	QuirkSwapped
	// QuirkLowestFew: only the few lowest values are reported, and which ones changes from batch to batch.
	QuirkLowestFew
	// QuirkPerTask: added once per task; divide by the number of partitions.
	QuirkPerTask
	// QuirkZeroUntracked: 0 in every batch where RocksDB does not track the row count.
	QuirkZeroUntracked
	// QuirkZeroBounded: with bounded memory 3.5 counts the shared cache once per store,
	// 4.0 says 0, and 4.1 and newer a share of the process.
	QuirkZeroBounded
	// QuirkWhole: contains its sibling phases.
	QuirkWhole
	// QuirkSentinel1970: 1970-01-01T00:00:00.000Z stands for none yet.
	QuirkSentinel1970
	// QuirkZeroWithoutLimit: always 0 unless the source has a rate limit.
	QuirkZeroWithoutLimit
	// QuirkPercentile: one value per percentile; never added or averaged.
	QuirkPercentile
)

var quirkNames = []string{
	"two of a join's four stores", "reset at load", "whole milliseconds per store", "repeats in 4.0 with changelog",
	"constant 0", "part of another metric", "repeats the last upload", "-1 is unknown", "nanoseconds",
	"shared cache counted per store before 4.1", "swapped in 4.0 and 4.1", "lowest few instances only", "once per task",
	"0 where rows are not tracked", "with bounded memory 0 in 4.0, the shared cache once per store in 3.5", "contains the phases", "1970 is none yet",
	"0 without a rate limit", "percentile",
}

// String lists the quirks in words.
func (q Quirks) String() string {
	var out []string
	for i, n := range quirkNames {
		if q&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return strings.Join(out, "; ")
}

// Version is an Apache Spark version.
type Version struct{ Major, Minor, Patch uint16 }

// databricksOnly marks metrics that Apache Spark does not send.
var databricksOnly = Version{}

// IsZero reports whether nothing is known: no version, or a Databricks-only metric.
func (v Version) IsZero() bool { return v == Version{} }

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	if v.Major != w.Major {
		return v.Major < w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}

// String returns major.minor.patch, or an empty string for the zero version.
func (v Version) String() string {
	if v.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Lookup returns the catalog row of id. It panics for an id outside the catalog.
func Lookup(id MetricID) *Metric { return &catalog[id] }

// Catalog returns all rows in id order. The slice is the caller's.
func Catalog() []Metric { return append([]Metric(nil), catalog[:]...) }

// byKey finds a metric by scope and JSON key.
var byKey = func() (m [3]map[string]MetricID) {
	for s := range m {
		m[s] = map[string]MetricID{}
	}
	for i := range catalog {
		m[catalog[i].Scope][catalog[i].JSON] = catalog[i].ID
	}
	m[ScopeOperator]["numLateInputs"] = NumRowsDroppedByWatermark                // its name in Spark 3.0
	m[ScopeOperator]["numDuplicatesDropped"] = NumDroppedDuplicateRows           // its name in 3.2 development builds
	m[ScopeOperator]["rocksdbTotalBytesReadByGet"] = RocksDBTotalBytesRead       // its name on Databricks
	m[ScopeOperator]["rocksdbTotalBytesWrittenByPut"] = RocksDBTotalBytesWritten // its name on Databricks
	return m
}()

// ByKey finds a metric by the object it stands in and its JSON key. It does not
// allocate.
func ByKey(s Scope, key []byte) (MetricID, bool) {
	id, ok := byKey[s][string(key)]
	return id, ok
}

// minusOneUnknown lists the operator metrics in which -1 stands for unknown.
var minusOneUnknown = func() (out []MetricID) {
	for i := range catalog {
		if catalog[i].Scope == ScopeOperator && catalog[i].Quirks&QuirkMinusOne != 0 {
			out = append(out, catalog[i].ID)
		}
	}
	return out
}()
