package app

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// stream writes the events of one made-up query the way Spark's renderer does:
// keys sorted, counts as integers, three operators with the custom metrics of
// Spark 4.1, a Kafka source with many partitions. About 7 KB an event.
type stream struct {
	id, run, name string
	operators     int
	partitions    int
	stepMs        int64 // from trigger to trigger
	start         time.Time
	batch         int64
	fileSyncMs    int64 // per operator, summed over 32 stores
	addBatchMs    int64
	rows          int64
	buf           bytes.Buffer
}

func newStream(n int) *stream {
	return &stream{
		id:  fmt.Sprintf("%08d-1111-4222-8333-444444444444", n),
		run: fmt.Sprintf("%08d-5555-4666-8777-888888888888", n), name: fmt.Sprintf("orders_%d", n),
		operators: 3, partitions: 32, stepMs: 10_000,
		start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), fileSyncMs: 6400, addBatchMs: 3000, rows: 50_000,
	}
}

const sparkTime = "2006-01-02T15:04:05.000Z"

// at is when the trigger of the present batch started.
func (s *stream) at() time.Time {
	return s.start.Add(time.Duration(s.batch*s.stepMs) * time.Millisecond)
}

// next returns the progress of the next batch; the bytes are valid until the next
// call.
func (s *stream) next() []byte {
	b := &s.buf
	b.Reset()
	at := s.at()
	total := s.addBatchMs + 240
	fmt.Fprintf(b, `{"id":%q,"runId":%q,"name":%q,"timestamp":%q,"batchId":%d,"batchDuration":%d,"numInputRows":%d,"inputRowsPerSecond":%d.5,"processedRowsPerSecond":%d.25,`,
		s.id, s.run, s.name, at.Format(sparkTime), s.batch, total+1, s.rows, s.rows/10, s.rows/4)
	fmt.Fprintf(b, `"durationMs":{"addBatch":%d,"commitOffsets":60,"getBatch":1,"latestOffset":9,"queryPlanning":80,"triggerExecution":%d,"walCommit":70},`, s.addBatchMs, total)
	fmt.Fprintf(b, `"eventTime":{"avg":%q,"max":%q,"min":%q,"watermark":%q},"stateOperators":[`,
		at.Add(-5*time.Second).Format(sparkTime), at.Add(-time.Second).Format(sparkTime), at.Add(-20*time.Second).Format(sparkTime), at.Add(-60*time.Second).Format(sparkTime))
	for i := range s.operators {
		if i > 0 {
			b.WriteByte(',')
		}
		s.operator(b, i)
	}
	b.WriteString(`],"sources":[`)
	s.source(b)
	b.WriteString(`],"sink":{"description":"DeltaSink[dbfs:/out]","numOutputRows":-1}}`)
	s.batch++
	return b.Bytes()
}

var operatorNames = []string{"stateStoreSave", "dedupe", "stateStoreSave", "transformWithStateExec"}

func (s *stream) operator(b *bytes.Buffer, i int) {
	k := s.batch
	fmt.Fprintf(b, `{"operatorName":%q,"numRowsTotal":%d,"numRowsUpdated":%d,"allUpdatesTimeMs":%d,"numRowsRemoved":%d,"allRemovalsTimeMs":%d,"commitTimeMs":%d,"memoryUsedBytes":%d,"numRowsDroppedByWatermark":%d,"numShufflePartitions":32,"numStateStoreInstances":32,"customMetrics":{`,
		operatorNames[i%len(operatorNames)], 600000+100*k, s.rows/10, 9800+k%7, 1850, 30, s.fileSyncMs+2400, 268435456+k, 0)
	type kv struct {
		k string
		v int64
	}
	for j, m := range []kv{
		{"rocksdbBytesCopied", 18874368 + 4096*k},
		{"rocksdbChangeLogWriterCommitLatencyMs", 0},
		{"rocksdbCommitCheckpointLatency", 410},
		{"rocksdbCommitCompactLatency", 0},
		{"rocksdbCommitFileSyncLatencyMs", s.fileSyncMs},
		{"rocksdbCommitFlushLatency", 1830},
		{"rocksdbFilesCopied", 64 + k%5},
		{"rocksdbFilesReused", 140},
		{"rocksdbGetCount", 265300 + k},
		{"rocksdbGetLatency", 1020},
		{"rocksdbLoadFromSnapshotLatencyMs", 0},
		{"rocksdbLoadLatencyMs", 6},
		{"rocksdbNumExternalColumnFamilies", 64},
		{"rocksdbNumInternalColFamiliesKeys", 36900},
		{"rocksdbNumInternalColumnFamilies", 96},
		{"rocksdbNumReplayChangelogFiles", 0},
		{"rocksdbNumSnapshotsAutoRepaired", 0},
		{"rocksdbPinnedBlocksMemoryUsage", 7340032},
		{"rocksdbPutCount", 112640},
		{"rocksdbPutLatency", 410},
		{"rocksdbReadBlockCacheHitCount", 301244 + k},
		{"rocksdbReadBlockCacheMissCount", 5120},
		{"rocksdbReplayChangeLogLatencyMs", 0},
		{"rocksdbSaveZipFilesLatencyMs", 30},
		{"rocksdbSstFileSize", 402653184 + 1024*k},
		{"rocksdbTotalBytesRead", 20971520},
		{"rocksdbTotalBytesReadByCompaction", 50331648},
		{"rocksdbTotalBytesReadThroughIterator", 3145728},
		{"rocksdbTotalBytesWritten", 14680064},
		{"rocksdbTotalBytesWrittenByCompaction", 46137344},
		{"rocksdbTotalBytesWrittenByFlush", 9437184},
		{"rocksdbTotalCompactionLatencyMs", 730},
		{"rocksdbWriterStallLatencyMs", 41000000},
		{"rocksdbZipFileBytesUncompressed", 291200 + k},
	} {
		if j > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, `%q:%d`, m.k, m.v)
	}
	b.WriteString("}}")
}

func (s *stream) source(b *bytes.Buffer) {
	offsets := func(ahead int64) {
		b.WriteString(`{"orders":{`)
		for p := range s.partitions {
			if p > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + strconv.Itoa(p) + `":`)
			b.WriteString(strconv.FormatInt(7_001_000_000+int64(p)*1000+(s.batch+ahead)*1500, 10))
		}
		b.WriteString("}}")
	}
	b.WriteString(`{"description":"KafkaV2[Subscribe[orders]]","startOffset":`)
	offsets(0)
	b.WriteString(`,"endOffset":`)
	offsets(1)
	b.WriteString(`,"latestOffset":`)
	offsets(2)
	fmt.Fprintf(b, `,"numInputRows":%d,"inputRowsPerSecond":%d.5,"processedRowsPerSecond":%d.25,"metrics":{"avgOffsetsBehindLatest":"1500.0","maxOffsetsBehindLatest":"1500","minOffsetsBehindLatest":"1500"}}`,
		s.rows, s.rows/10, s.rows/4)
}

// started returns the Started event of the stream's run.
func (s *stream) started() []byte {
	return fmt.Appendf(nil, `{"id":%q,"runId":%q,"name":%q,"timestamp":%q}`, s.id, s.run, s.name, s.at().Format(sparkTime))
}

// ndjson returns the next n events, one a line.
func (s *stream) ndjson(n int) []byte {
	var out bytes.Buffer
	for range n {
		out.Write(s.next())
		out.WriteByte('\n')
	}
	return out.Bytes()
}
