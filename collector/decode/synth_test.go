package decode

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
)

// synth writes progress events as Spark 4.1 would, with invented figures that
// follow from the seed and the batch id.
type synth struct {
	run        string
	operators  int
	partitions int
	snapshots  bool // five SnapshotLastUploaded keys per operator, rotating
	text       bool // offsets as text inside strings, as the event log has them
}

func newSynth() *synth {
	return &synth{run: "5b1f0f3e-6d5c-4f7a-9c35-0d7f3c1a2b44", operators: 3, partitions: 32}
}

// customKeys are the metrics of a RocksDB operator in Spark's order.
var customKeys = func() (keys []string) {
	for _, m := range event.Catalog() {
		if m.Provider == event.ProviderRocksDB && m.ID != event.SnapshotLastUploaded {
			keys = append(keys, m.JSON)
		}
	}
	return keys[:35]
}()

func (s *synth) progress(batch int) string {
	rng := rand.New(rand.NewPCG(7, uint64(batch)))
	start := time.Date(2027, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(batch) * 10 * time.Second)
	at := func(back int) string {
		return start.Add(-time.Duration(back) * 137 * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
	}
	var w strings.Builder
	fmt.Fprintf(&w, `{"id":"0d4a6c61-7b29-4c7e-8f0e-2d6f1e9a7b10","runId":"%s","name":"cart_sessions","timestamp":"%s",`, s.run, at(0))
	fmt.Fprintf(&w, `"batchId":%d,"batchDuration":%d,"numInputRows":%d,"inputRowsPerSecond":%.1f,"processedRowsPerSecond":%.14f,`,
		batch, 2000+rng.IntN(3000), rng.IntN(90000), rng.Float64()*9000, rng.Float64()*9000)
	fmt.Fprintf(&w, `"durationMs":{"addBatch":%d,"commitOffsets":%d,"getBatch":1,"latestOffset":%d,"queryPlanning":%d,"triggerExecution":%d,"walCommit":%d},`,
		1500+rng.IntN(900), rng.IntN(90), rng.IntN(20), rng.IntN(120), 1900+rng.IntN(900), rng.IntN(100))
	fmt.Fprintf(&w, `"eventTime":{"avg":"%s","max":"%s","min":"%s","watermark":"%s"},"stateOperators":[`, at(9), at(1), at(40), at(90))
	for o := range s.operators {
		if o > 0 {
			w.WriteByte(',')
		}
		s.operator(&w, rng, o, batch)
	}
	w.WriteString(`],"sources":[{"description":"KafkaV2[Subscribe[carts]]",`)
	for k, key := range []string{"startOffset", "endOffset", "latestOffset"} {
		fmt.Fprintf(&w, `"%s":%s,`, key, s.offsets(batch, k))
	}
	fmt.Fprintf(&w, `"numInputRows":%d,"inputRowsPerSecond":%.1f,"processedRowsPerSecond":%.1f,`, rng.IntN(90000), rng.Float64()*9000, rng.Float64()*9000)
	fmt.Fprintf(&w, `"metrics":{"avgOffsetsBehindLatest":"%.1f","maxOffsetsBehindLatest":"%d","minOffsetsBehindLatest":"%d"}}],`,
		rng.Float64()*1e6, rng.IntN(1e6), rng.IntN(1e5))
	fmt.Fprintf(&w, `"sink":{"description":"ForeachBatchSink","numOutputRows":%d}}`, rng.IntN(5000)-1)
	return w.String()
}

func (s *synth) operator(w *strings.Builder, rng *rand.Rand, index, batch int) {
	fmt.Fprintf(w, `{"operatorName":"%s","numRowsTotal":%d,"numRowsUpdated":%d,"allUpdatesTimeMs":%d,"numRowsRemoved":%d,"allRemovalsTimeMs":%d,`,
		[]string{"stateStoreSave", "dedupe", "symmetricHashJoin"}[index%3], rng.IntN(4e6), rng.IntN(9e4), rng.IntN(9e4), rng.IntN(9e3), rng.IntN(500))
	fmt.Fprintf(w, `"commitTimeMs":%d,"memoryUsedBytes":%d,"numRowsDroppedByWatermark":%d,"numShufflePartitions":32,"numStateStoreInstances":32,"customMetrics":{`,
		rng.IntN(90000), rng.IntN(1<<30), rng.IntN(40))
	if s.snapshots {
		for i := range 5 {
			fmt.Fprintf(w, `"SnapshotLastUploaded.partition_%d_default":%d,`, (batch*3+i*7+index)%32, batch-rng.IntN(30))
		}
	}
	for i, key := range customKeys {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, `"%s":%d`, key, rng.IntN(1<<(4+rng.IntN(24))))
	}
	w.WriteString(`}}`)
}

// offsets writes one offset map: start, end or latest by k.
func (s *synth) offsets(batch, k int) string {
	var w strings.Builder
	w.WriteString(`{"carts":{`)
	for p := range s.partitions {
		if p > 0 {
			w.WriteByte(',')
		}
		base := int64(5_000_000_000) + int64(p)*1_000_003
		fmt.Fprintf(&w, `"%d":%d`, p, base+int64(batch)*977+int64(k)*977+int64(k/2)*11)
	}
	w.WriteString(`}}`)
	if !s.text {
		return w.String()
	}
	return `"` + strings.ReplaceAll(w.String(), `"`, `\"`) + `"`
}
