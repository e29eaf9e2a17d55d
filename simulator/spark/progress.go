package spark

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// AppendProgress appends a progress as its json method of version v gives it: one
// line, keys in Spark's order. It sorts the uploads of p's operators in place.
// With enough room in dst it does not allocate.
func AppendProgress(dst []byte, p *Progress, v event.Version) []byte {
	dst = appendIDs(dst, p.ID, p.RunID)
	dst = append(dst, `,"name":`...)
	dst = appendNullable(dst, p.Name)
	dst = appendTimestamp(append(dst, `,"timestamp":`...), p.StartMs)
	dst = appendInt(dst, `,"batchId":`, p.BatchID)
	if AtLeast(v, V40) {
		dst = appendInt(dst, `,"batchDuration":`, p.DurationMs)
	}
	dst = appendRows(dst, p.InputRows, p.InputRate, p.ProcessRate, v)
	dst = appendPhases(dst, &p.Phases)
	dst = appendEventTime(dst, &p.EventTime)
	dst = append(dst, `,"stateOperators":[`...)
	for i := range p.Operators {
		dst = appendOperator(comma(dst, i), &p.Operators[i])
	}
	dst = append(dst, `],"sources":[`...)
	for i := range p.Sources {
		dst = appendSource(comma(dst, i), &p.Sources[i], v)
	}
	dst = append(dst, `],"sink":{"description":`...)
	dst = appendString(dst, p.Sink.Description)
	dst = appendInt(dst, `,"numOutputRows":`, p.Sink.OutputRows)
	return append(dst, `}}`...)
}

// AppendProgressEvent appends a progress as the json method of QueryProgressEvent
// gives it: one level deeper than AppendProgress. Spark has it from 3.5 on.
func AppendProgressEvent(dst []byte, p *Progress, v event.Version) []byte {
	dst = append(dst, `{"progress":`...)
	return append(AppendProgress(dst, p, v), '}')
}

// appendIDs opens an event's object with its two ids.
func appendIDs(dst []byte, id, runID string) []byte {
	dst = appendString(append(dst, `{"id":`...), id)
	return appendString(append(dst, `,"runId":`...), runID)
}

func appendTimestamp(dst []byte, unixMs int64) []byte {
	return append(AppendTime(append(dst, '"'), unixMs), '"')
}

func appendInt(dst []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(dst, key...), n, 10)
}

func comma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}

// appendRows appends rows and both rates, which are left out where they are no
// numbers.
func appendRows(dst []byte, rows int64, inputRate, processRate float64, v event.Version) []byte {
	dst = appendInt(dst, `,"numInputRows":`, rows)
	if isFinite(inputRate) {
		dst = appendRate(append(dst, `,"inputRowsPerSecond":`...), inputRate, v)
	}
	if isFinite(processRate) {
		dst = appendRate(append(dst, `,"processedRowsPerSecond":`...), processRate, v)
	}
	return dst
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// appendPhases appends durationMs, which is left out where nothing ran.
func appendPhases(dst []byte, p *Phases) []byte {
	n := len(dst)
	dst = append(dst, `,"durationMs":{`...)
	open := len(dst)
	for _, phase := range [...]struct {
		key string
		ms  int64
	}{
		{`"addBatch":`, p.AddBatch},
		{`"commitOffsets":`, p.CommitOffsets},
		{`"getBatch":`, p.GetBatch},
		{`"latestOffset":`, p.LatestOffset},
		{`"queryPlanning":`, p.QueryPlanning},
		{`"triggerExecution":`, p.TriggerExecution},
		{`"walCommit":`, p.WalCommit},
	} {
		if phase.ms >= 0 {
			dst = appendInt(comma(dst, len(dst)-open), phase.key, phase.ms)
		}
	}
	if len(dst) == open {
		return dst[:n]
	}
	return append(dst, '}')
}

func appendEventTime(dst []byte, e *EventTime) []byte {
	if !e.HasWatermark {
		return dst
	}
	dst = append(dst, `,"eventTime":{`...)
	if e.HasRows {
		dst = append(appendTimestamp(append(dst, `"avg":`...), e.AvgMs), ',')
		dst = append(appendTimestamp(append(dst, `"max":`...), e.MaxMs), ',')
		dst = append(appendTimestamp(append(dst, `"min":`...), e.MinMs), ',')
	}
	return append(appendTimestamp(append(dst, `"watermark":`...), e.WatermarkMs), '}')
}

// fields are the figures of an operator outside customMetrics, in their order.
var fields = [...]struct {
	id  event.MetricID
	key string
}{
	{event.NumRowsTotal, `,"numRowsTotal":`},
	{event.NumRowsUpdated, `,"numRowsUpdated":`},
	{event.AllUpdatesTime, `,"allUpdatesTimeMs":`},
	{event.NumRowsRemoved, `,"numRowsRemoved":`},
	{event.AllRemovalsTime, `,"allRemovalsTimeMs":`},
	{event.CommitTime, `,"commitTimeMs":`},
	{event.MemoryUsedBytes, `,"memoryUsedBytes":`},
	{event.NumRowsDroppedByWatermark, `,"numRowsDroppedByWatermark":`},
	{event.NumShufflePartitions, `,"numShufflePartitions":`},
	{event.NumStateStoreInstances, `,"numStateStoreInstances":`},
}

// customKeys are the quoted keys of customMetrics with their colons.
var customKeys = func() (out []string) {
	for _, id := range customMetrics {
		out = append(out, `"`+event.Lookup(id).JSON+`":`)
	}
	return out
}()

func appendOperator(dst []byte, o *Operator) []byte {
	dst = appendString(append(dst, `{"operatorName":`...), o.Name)
	for i := range fields {
		if f := o.Values[fields[i].id]; !math.IsNaN(f) {
			dst = appendInt(dst, fields[i].key, int64(f))
		}
	}
	n := len(dst)
	dst = append(dst, `,"customMetrics":{`...)
	open := len(dst)
	dst = appendUploads(dst, o.Uploaded)
	for i, id := range customMetrics {
		if f := o.Values[id]; !math.IsNaN(f) {
			dst = appendInt(comma(dst, len(dst)-open), customKeys[i], int64(f))
		}
	}
	if len(dst) == open {
		return append(dst[:n], '}')
	}
	return append(dst, `}}`...)
}

// appendUploads appends the keys of single stores, which come first since
// capitals sort before small letters.
func appendUploads(dst []byte, uploads []SnapshotKey) []byte {
	slices.SortFunc(uploads, compareUploads)
	for i := range uploads {
		u := &uploads[i]
		dst = append(comma(dst, i), `"SnapshotLastUploaded.partition_`...)
		dst = strconv.AppendInt(dst, int64(u.Partition), 10)
		dst = append(append(dst, '_'), u.Store...)
		dst = appendInt(dst, `":`, u.Version)
	}
	return dst
}

// compareUploads orders keys by their text: partition_10_ before partition_1_.
func compareUploads(a, b SnapshotKey) int {
	var x, y [24]byte
	first := append(strconv.AppendInt(x[:0], int64(a.Partition), 10), '_')
	second := append(strconv.AppendInt(y[:0], int64(b.Partition), 10), '_')
	if c := bytes.Compare(first, second); c != 0 {
		return c
	}
	switch {
	case a.Store < b.Store:
		return -1
	case a.Store > b.Store:
		return 1
	}
	return 0
}

func appendSource(dst []byte, s *Source, v event.Version) []byte {
	dst = appendString(append(dst, `{"description":`...), s.Description)
	dst = appendOffset(append(dst, `,"startOffset":`...), s.StartOffset)
	dst = appendOffset(append(dst, `,"endOffset":`...), s.EndOffset)
	dst = appendOffset(append(dst, `,"latestOffset":`...), s.LatestOffset)
	dst = appendRows(dst, s.Rows, s.InputRate, s.ProcessRate, v)
	if len(s.Metrics) > 0 {
		dst = appendStrings(append(dst, `,"metrics":`...), s.Metrics)
	}
	return append(dst, '}')
}

func appendOffset(dst []byte, json string) []byte {
	if json == "" {
		return append(dst, "null"...)
	}
	return append(dst, json...)
}

// appendStrings appends an object of strings in the order given.
func appendStrings(dst []byte, pairs []KV) []byte {
	dst = append(dst, '{')
	for i := range pairs {
		dst = appendString(comma(dst, i), pairs[i].Key)
		dst = appendString(append(dst, ':'), pairs[i].Value)
	}
	return append(dst, '}')
}
