package spark

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

// BenchmarkAppendProgressVersusEncodingJSON writes a progress of 4.3 by hand and
// by the standard library from a tree of maps, which also sorts keys.
func BenchmarkAppendProgressVersusEncodingJSON(b *testing.B) {
	var line []byte
	for _, s := range capturedStreams(b, false) {
		if s.name == "4.3.0/agg-changelog" {
			line = newestProgress(s)
		}
	}
	p := fill(b, line)
	var tree map[string]any
	if err := json.Unmarshal(line, &tree); err != nil {
		b.Fatal(err)
	}
	var ours, theirs time.Duration
	var buf []byte
	var out bytes.Buffer
	for b.Loop() {
		start := time.Now()
		buf = AppendProgress(buf[:0], p, supported[5])
		ours += time.Since(start)
		start = time.Now()
		out.Reset()
		if err := json.NewEncoder(&out).Encode(tree); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(start)
	}
	b.SetBytes(int64(len(buf)))
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns_ours")
	b.ReportMetric(float64(theirs)/float64(ours), "x_peer")
}
