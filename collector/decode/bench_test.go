package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// peerProgress is a progress as one would write it for encoding/json.
type peerProgress struct {
	ID                     string                     `json:"id"`
	RunID                  string                     `json:"runId"`
	Name                   string                     `json:"name"`
	Timestamp              string                     `json:"timestamp"`
	BatchID                int64                      `json:"batchId"`
	BatchDuration          int64                      `json:"batchDuration"`
	NumInputRows           int64                      `json:"numInputRows"`
	InputRowsPerSecond     float64                    `json:"inputRowsPerSecond"`
	ProcessedRowsPerSecond float64                    `json:"processedRowsPerSecond"`
	DurationMs             map[string]int64           `json:"durationMs"`
	EventTime              map[string]string          `json:"eventTime"`
	StateOperators         []peerOperator             `json:"stateOperators"`
	Sources                []peerSource               `json:"sources"`
	Sink                   peerSink                   `json:"sink"`
	ObservedMetrics        map[string]json.RawMessage `json:"observedMetrics"`
}

type peerOperator struct {
	OperatorName              string           `json:"operatorName"`
	NumRowsTotal              int64            `json:"numRowsTotal"`
	NumRowsUpdated            int64            `json:"numRowsUpdated"`
	AllUpdatesTimeMs          int64            `json:"allUpdatesTimeMs"`
	NumRowsRemoved            int64            `json:"numRowsRemoved"`
	AllRemovalsTimeMs         int64            `json:"allRemovalsTimeMs"`
	CommitTimeMs              int64            `json:"commitTimeMs"`
	MemoryUsedBytes           int64            `json:"memoryUsedBytes"`
	NumRowsDroppedByWatermark int64            `json:"numRowsDroppedByWatermark"`
	NumShufflePartitions      int64            `json:"numShufflePartitions"`
	NumStateStoreInstances    int64            `json:"numStateStoreInstances"`
	CustomMetrics             map[string]int64 `json:"customMetrics"`
}

type peerSource struct {
	Description            string                      `json:"description"`
	StartOffset            map[string]map[string]int64 `json:"startOffset"`
	EndOffset              map[string]map[string]int64 `json:"endOffset"`
	LatestOffset           map[string]map[string]int64 `json:"latestOffset"`
	NumInputRows           int64                       `json:"numInputRows"`
	InputRowsPerSecond     float64                     `json:"inputRowsPerSecond"`
	ProcessedRowsPerSecond float64                     `json:"processedRowsPerSecond"`
	Metrics                map[string]string           `json:"metrics"`
}

type peerSink struct {
	Description   string `json:"description"`
	NumOutputRows int64  `json:"numOutputRows"`
}

// BenchmarkDecodeVersusEncodingJSON decodes progress events of 7 KB (three
// operators of 35 custom metrics, 32 partitions in three offset maps) with ours and
// with encoding/json, in turns.
func BenchmarkDecodeVersusEncodingJSON(b *testing.B) {
	b.Run("any-shape", func(b *testing.B) { versusJSON(b, newSynth(), Limits{TemplateBytes: -1}) })
	b.Run("steady-shape", func(b *testing.B) { versusJSON(b, newSynth(), Limits{}) })
	b.Run("rotating-snapshots", func(b *testing.B) {
		s := newSynth()
		s.snapshots = true
		versusJSON(b, s, Limits{})
	})
}

func versusJSON(b *testing.B, s *synth, l Limits) {
	bodies := make([][]byte, 64)
	size := 0
	for i := range bodies {
		bodies[i] = []byte(s.progress(i))
		size += len(bodies[i])
	}
	pool := NewPool(l)
	d := pool.Get()
	take := func(_ int, ev *event.Event, rej *collector.Reject) bool {
		if rej != nil {
			b.Fatal(rej.Err)
		}
		pool.Release(ev)
		return true
	}
	for _, body := range bodies {
		d.Body(body, take)
	}
	b.SetBytes(int64(size / len(bodies)))
	b.ReportAllocs()
	var ours, peer []time.Duration // per event, one entry per turn
	for done := 0; done < b.N; done += len(bodies) {
		turn := bodies[:min(len(bodies), b.N-done)]
		begin := time.Now()
		for _, body := range turn {
			d.Body(body, take)
		}
		ours = append(ours, time.Since(begin)/time.Duration(len(turn)))
		b.StopTimer() // the peer is slow: a few events are enough
		const few = 4
		begin = time.Now()
		for i := range few {
			var p peerProgress
			if err := json.Unmarshal(bodies[(done/few+i)%len(bodies)], &p); err != nil {
				b.Fatal(err)
			}
		}
		peer = append(peer, time.Since(begin)/few)
		b.StartTimer()
	}
	b.ReportMetric(float64(median(peer))/float64(median(ours)), "x_peer")
}

// median is what a machine with other work to do disturbs least.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkHostileBodies decodes bodies made to be slow at two sizes: linear time
// shows as the same MB/s at both.
func BenchmarkHostileBodies(b *testing.B) {
	for _, name := range []string{"garbage lines", "braces in lines", "open lists", "broken objects", "listener lines", "quotes"} {
		for _, size := range []int{64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", strings.ReplaceAll(name, " ", "-"), size>>10), func(b *testing.B) {
				body := bytes.Repeat([]byte(hostile[name]), size/len(hostile[name]))
				pool := NewPool(Limits{RejectsInRow: len(body)})
				d := pool.Get()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					d.Body(body, func(_ int, ev *event.Event, _ *collector.Reject) bool {
						pool.Release(ev)
						return true
					})
				}
			})
		}
	}
}
