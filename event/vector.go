package event

import "math"

// Vector holds one raw value per catalog metric, indexed by MetricID. NaN means
// absent. Values are Spark's own numbers, exact up to 2^53; Metric.Scale is
// applied once, on the way out.
type Vector [NumMetrics]float64

var nan = math.NaN()

var emptyVector = func() (v Vector) {
	for i := range v {
		v[i] = nan
	}
	return v
}()

// Clear sets every value to absent.
func (v *Vector) Clear() { *v = emptyVector }

// Has reports whether the metric is present.
func (v *Vector) Has(id MetricID) bool { return v[id] == v[id] }

// Scaled returns the metric in its catalog unit, NaN where absent.
func (v *Vector) Scaled(id MetricID) float64 { return v[id] * catalog[id].Scale }

// Reset makes b as good as new and keeps its memory.
func (b *Batch) Reset() {
	ops, srcs := b.Operators[:0], b.Sources[:0]
	ph, obs, pct := b.UnknownPhases[:0], b.Observed[:0], b.Percentiles[:0]
	*b = Batch{
		ID: Absent, StartMs: Absent, WatermarkMs: Absent, EventTimeMaxMs: Absent,
		Values: emptyVector, Operators: ops, Sources: srcs,
		UnknownPhases: ph, Observed: obs, Percentiles: pct,
	}
}

// AddOperator appends an empty operator, reusing memory, and returns it. The
// pointer is valid until the next AddOperator.
func (b *Batch) AddOperator() *Operator {
	n := len(b.Operators)
	if n < cap(b.Operators) {
		b.Operators = b.Operators[:n+1]
	} else {
		b.Operators = append(b.Operators, Operator{})
	}
	o := &b.Operators[n]
	unknown := o.Unknown[:0]
	*o = Operator{Index: n, SnapshotMin: Absent, Unknown: unknown, Values: emptyVector}
	return o
}

// AddSource appends an empty source, reusing memory, and returns it. The pointer
// is valid until the next AddSource.
func (b *Batch) AddSource() *Source {
	b.Sources = append(b.Sources, Source{
		Rows: Absent, Backlog: Absent, Read: Absent,
		InputRate: nan, ProcessedRate: nan, MinBehind: nan, MaxBehind: nan, AvgBehind: nan,
		FilesOutstanding: nan, BytesOutstanding: nan,
	})
	return &b.Sources[len(b.Sources)-1]
}

// CopyFrom makes b a deep copy of src that shares only interned strings, reusing
// b's memory.
func (b *Batch) CopyFrom(src *Batch) {
	ops, srcs := b.Operators[:cap(b.Operators)], b.Sources[:0]
	ph, obs, pct := b.UnknownPhases[:0], b.Observed[:0], b.Percentiles[:0]
	*b = *src
	for len(ops) < len(src.Operators) {
		ops = append(ops, Operator{})
	}
	ops = ops[:len(src.Operators)]
	for i := range src.Operators {
		unknown := ops[i].Unknown[:0]
		ops[i] = src.Operators[i]
		ops[i].Unknown = append(unknown, src.Operators[i].Unknown...)
	}
	b.Operators = ops
	b.Sources = append(srcs, src.Sources...)
	b.UnknownPhases = append(ph, src.UnknownPhases...)
	b.Observed = append(obs, src.Observed...)
	b.Percentiles = append(pct, src.Percentiles...)
}

// Settle derives what follows from the decoded values and must be called once
// after decoding: whether the batch ran, the stores behind each operator's
// custom metrics, total input rows, the sender's version, and missing fields.
//
// A batch ran if durationMs has addBatch. Where durationMs is missing
// altogether, or rows were read all the same (hand-made and very old events), it
// is taken to have run too: only a durationMs without addBatch and without rows
// is the copy that an idle query sends.
func (b *Batch) Settle() {
	b.settleRows()
	rows := b.Values[NumInputRows]
	b.Executed = b.Values.Has(DurationAddBatch) || rows > 0 || !b.hasPhases()
	b.NoData = b.Executed && rows == 0
	for i := range b.Operators {
		b.Operators[i].settle()
	}
	b.Spark, b.Databricks = b.fingerprint()
	b.Missing = b.missing()
}

// settleRows fills the totals that the event log and Connect leave out from the
// sources, and drops Spark's -1 for unknown.
func (b *Batch) settleRows() {
	if b.Values[SinkNumOutputRows] < 0 {
		b.Values[SinkNumOutputRows] = nan
	}
	if b.Values.Has(NumInputRows) || len(b.Sources) == 0 {
		return
	}
	sum := 0.0
	for i := range b.Sources {
		if b.Sources[i].Rows == Absent {
			return
		}
		sum += float64(b.Sources[i].Rows)
	}
	b.Values[NumInputRows] = sum
}

func (b *Batch) hasPhases() bool {
	for id := FirstPhase; id <= LastPhase; id++ {
		if b.Values.Has(id) {
			return true
		}
	}
	return b.Values.Has(DurationCollectSourceMetrics) || len(b.UnknownPhases) > 0
}

func (b *Batch) missing() Missing {
	var m Missing
	set := func(gone bool, bit Missing) {
		if gone {
			m |= bit
		}
	}
	set(!b.Values.Has(BatchDuration), MissingBatchDuration)
	set(!b.Values.Has(DurationTriggerExecution), MissingTriggerExecution)
	set(b.StartMs == Absent, MissingTimestamp)
	set(b.ID == Absent, MissingBatchID)
	set(b.Run == "", MissingRunID)
	return m
}

// settle derives the divisor of customMetrics and drops values that stand for
// unknown. A stream-stream join of state format 1 or 2 runs four stores per
// partition, and only two of them report custom metrics.
func (o *Operator) settle() {
	for _, id := range minusOneUnknown {
		if o.Values[id] < 0 {
			o.Values[id] = nan
		}
	}
	if n := o.Values[NumStateStoreInstances]; n > 0 && n <= math.MaxInt32 {
		o.Instances = int32(n)
	}
	o.Stores = o.Instances
	parts := o.Values[NumShufflePartitions]
	if o.Name == "symmetricHashJoin" && parts > 0 && float64(o.Instances) == 4*parts {
		o.Stores = o.Instances / 2
	}
	o.Provider = o.provider()
}

func (o *Operator) provider() Provider {
	switch {
	case o.Values.Has(RocksDBSstFileSize) || o.Values.Has(RocksDBGetCount) || o.Values.Has(RocksDBCommitFileSyncLatency):
		return ProviderRocksDB
	case o.Values.Has(StateOnCurrentVersionSizeBytes) || o.Values.Has(LoadedMapCacheHitCount) || o.Values.Has(LoadedMapCacheMissCount):
		return ProviderHDFS
	}
	return ProviderUnknown
}

// DurationMs returns the wall time of the trigger in milliseconds and whether it
// had to be taken from durationMs.triggerExecution because the carrier has no
// batchDuration (.json before Spark 4.0). NaN where neither came.
func (b *Batch) DurationMs() (ms float64, derived bool) {
	if b.Values.Has(BatchDuration) {
		return b.Values[BatchDuration], false
	}
	return b.Values[DurationTriggerExecution], true
}

// maxDurationMs bounds what is taken for a duration, about 300 years: beyond it
// the sum with a start time would not fit.
const maxDurationMs = 1e13

// EndMs returns when the trigger ended, Unix milliseconds: its start plus its
// duration. Absent where either is unknown or the duration cannot be true.
func (b *Batch) EndMs() int64 {
	d, _ := b.DurationMs()
	if b.StartMs == Absent || !(d >= 0 && d <= maxDurationMs) {
		return Absent
	}
	return b.StartMs + int64(d)
}

// UnaccountedMs returns the part of triggerExecution that no phase explains, in
// milliseconds, never below zero; NaN where triggerExecution is absent.
func (b *Batch) UnaccountedMs() float64 {
	rest := b.Values[DurationTriggerExecution]
	for id := FirstPhase; id <= LastPhase; id++ {
		if id != DurationTriggerExecution && b.Values.Has(id) {
			rest -= b.Values[id]
		}
	}
	if b.Values.Has(DurationCollectSourceMetrics) {
		rest -= b.Values[DurationCollectSourceMetrics]
	}
	for _, p := range b.UnknownPhases {
		if p.Value == p.Value {
			rest -= p.Value
		}
	}
	if rest < 0 {
		return 0
	}
	return rest
}

// fingerprint tells the sender's Spark version from the keys present, as a lower
// bound; events carry no version of their own.
func (b *Batch) fingerprint() (v Version, databricks bool) {
	databricks = b.Databricks || b.Values.Has(DurationCollectSourceMetrics) || b.Values.Has(DurationCommitBatch)
	raise := func(to Version) {
		if v.Less(to) {
			v = to
		}
	}
	if b.Values.Has(DurationCommitOffsets) {
		raise(Version{3, 4, 0})
	}
	if b.Values.Has(BatchDuration) {
		raise(Version{3, 1, 0})
	}
	for i := range b.Operators {
		vals := &b.Operators[i].Values
		for _, f := range fingerprints {
			if vals.Has(f.id) {
				raise(f.since)
			}
		}
	}
	return v, databricks
}

var fingerprints = []struct {
	id    MetricID
	since Version
}{
	{NumStateStoreInstances, Version{3, 2, 0}},
	{RocksDBTotalBytesWrittenByFlush, Version{3, 5, 0}},
	{RocksDBNumInternalColFamiliesKeys, Version{4, 0, 0}},
	{RocksDBLoadLatency, Version{4, 1, 0}},
	{RocksDBNumLoadedFromDfs, Version{4, 2, 0}},
}
