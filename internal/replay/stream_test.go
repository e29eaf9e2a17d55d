package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// batch is one progress of a made-up query; the zero value of a field leaves the
// usual figure as it is, and edit changes whatever it likes.
type batch = map[string]any

// stream makes the events of one query, as NDJSON.
type stream struct {
	id, run, name string
	start         time.Time
	every         time.Duration
	lines         []string
}

func newStream(name string) *stream {
	return &stream{
		id: "id-" + name, run: "run-" + name, name: name,
		start: time.Date(2031, 2, 3, 4, 0, 0, 0, time.UTC), every: 30 * time.Second,
	}
}

// base is a healthy batch: RocksDB with changelog and bounded memory, 8 stores.
func (s *stream) base(n int) batch {
	wobble := n * 7 % 5
	return batch{
		"id": s.id, "runId": s.run, "name": s.name,
		"timestamp": s.at(n), "batchId": n, "numInputRows": 1000 + wobble,
		"durationMs": map[string]any{
			"addBatch": 800 + wobble, "getBatch": 1, "latestOffset": 20, "queryPlanning": 30,
			"walCommit": 25, "commitOffsets": 24, "triggerExecution": 910 + wobble,
		},
		"eventTime": map[string]any{"max": s.at(n), "watermark": s.at(n - 20)},
		"stateOperators": []any{map[string]any{
			"operatorName": "dedupe", "numRowsTotal": 5000, "numRowsUpdated": 900, "numRowsRemoved": 900,
			"allUpdatesTimeMs": 3000, "allRemovalsTimeMs": 400, "commitTimeMs": 480, "memoryUsedBytes": 0,
			"numRowsDroppedByWatermark": 0, "numShufflePartitions": 8, "numStateStoreInstances": 8,
			"customMetrics": map[string]any{
				"rocksdbCommitFileSyncLatencyMs": 400 + wobble, "rocksdbCommitFlushLatency": 0, "rocksdbCommitCheckpointLatency": 0,
				"rocksdbCommitCompactLatency": 0, "rocksdbBytesCopied": 4096, "rocksdbZipFileBytesUncompressed": 100,
				"rocksdbSstFileSize": 1 << 20, "rocksdbGetCount": 900, "rocksdbGetLatency": 9, "rocksdbWriterStallLatencyMs": 0,
				"rocksdbReadBlockCacheHitCount": 900, "rocksdbReadBlockCacheMissCount": 10, "rocksdbTotalBytesWrittenByFlush": 0,
			},
		}},
		"sources": []any{map[string]any{
			"description": "KafkaV2[Subscribe[shop]]", "numInputRows": 1000 + wobble,
			"startOffset": offsets(1000 * n), "endOffset": offsets(1000 * (n + 1)), "latestOffset": offsets(1000*(n+1) + 50),
		}},
		"sink": map[string]any{"description": "ForeachBatchSink", "numOutputRows": -1},
	}
}

func offsets(n int) map[string]any { return map[string]any{"shop": map[string]any{"0": n}} }

func (s *stream) at(n int) string {
	return s.start.Add(time.Duration(n) * s.every).Format("2006-01-02T15:04:05.000Z")
}

// add appends batches from (inclusive) to (exclusive), edited.
func (s *stream) add(from, to int, edit func(n int, b batch)) *stream {
	for n := from; n < to; n++ {
		b := s.base(n)
		if edit != nil {
			edit(n, b)
		}
		s.append(b)
	}
	return s
}

func (s *stream) append(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	s.lines = append(s.lines, string(line))
}

// started and ended append the events around a run.
func (s *stream) started(n int) *stream {
	s.append(map[string]any{"id": s.id, "runId": s.run, "name": s.name, "timestamp": s.at(n)})
	return s
}

func (s *stream) ended(exception any) *stream {
	s.append(map[string]any{"id": s.id, "runId": s.run, "exception": exception, "errorClassOnException": nil})
	return s
}

func (s *stream) text() string { return strings.Join(s.lines, "\n") + "\n" }

// operator and metrics reach into a batch.
func operator(b batch) map[string]any { return b["stateOperators"].([]any)[0].(map[string]any) }

func metrics(b batch) map[string]any { return operator(b)["customMetrics"].(map[string]any) }

func phases(b batch) map[string]any { return b["durationMs"].(map[string]any) }

func source(b batch) map[string]any { return b["sources"].([]any)[0].(map[string]any) }

// examine runs a text through the replay.
func examine(t *testing.T, text string) *Report {
	t.Helper()
	r, err := Examine(t.Context(), Options{Paths: []string{"-"}, Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// symptoms lists what a report found, in order.
func symptoms(r *Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s", f.Severity, f.Symptom))
	}
	return out
}
