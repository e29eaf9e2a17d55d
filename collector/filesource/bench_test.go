package filesource

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
)

// The peer reads the same event log with bufio and encoding/json, looking at the
// type of every line first.
func BenchmarkEventLogVersusEncodingJSON(b *testing.B) {
	var text []byte
	for i := range 500 {
		text = append(text, lines(jobStart, jobStart, jobStart, logged(i))...)
	}
	pool := decode.NewPool(decode.DefaultLimits())
	handle := func(context.Context, *collector.Step) error { return nil }
	var ours, peer time.Duration
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		src := New(Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(text), Pool: pool})
		sum, err := src.Run(context.Background(), handle, func(Rejected) {})
		if err != nil || sum.Events != 500 {
			b.Fatalf("%+v, error %v", sum, err)
		}
		middle := time.Now()
		if n := readWithEncodingJSON(b, text); n != 500 {
			b.Fatalf("the peer read %d events", n)
		}
		ours += middle.Sub(start)
		peer += time.Since(middle)
	}
	b.ReportMetric(float64(peer)/float64(ours), "x_peer")
}

func readWithEncodingJSON(b *testing.B, text []byte) (n int) {
	in := bufio.NewScanner(bytes.NewReader(text))
	for in.Scan() {
		var typ struct{ Event string }
		if err := json.Unmarshal(in.Bytes(), &typ); err != nil {
			b.Fatal(err)
		}
		if !bytes.Contains([]byte(typ.Event), []byte("StreamingQueryListener")) {
			continue
		}
		var line struct {
			Progress struct {
				ID, RunID, Name, Timestamp string
				BatchID                    int64
				DurationMs                 map[string]int64
				Sources                    []map[string]any
			}
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return n
}
