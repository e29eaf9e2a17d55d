package output

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stategauge/stategauge/simulator"
)

// BenchmarkCopiesVersusEncodingJSON measures the events per second that copies
// make of a captured progress of 2 KB, on one core and into a sink that counts;
// the peer decodes, changes and encodes each copy with the standard library.
func BenchmarkCopiesVersusEncodingJSON(b *testing.B) {
	all := captured(b, "4.3.0/agg-changelog")
	base := all[len(all)/2]
	const n = 200
	c, err := NewCopies(n, 1)
	if err != nil {
		b.Fatal(err)
	}
	sink := newLines(io.Discard, nil, false)
	events, bytes := 0, 0
	emit := func(m *simulator.Message) error {
		events++
		bytes += len(m.Data)
		return sink.Write(context.Background(), m)
	}
	var ours, theirs time.Duration
	peers, at := 0, int64(0)
	for b.Loop() {
		start := time.Now()
		m := *base
		at += 60_000
		m.AtMs = at
		if err := c.Add(&m, emit); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		start = time.Now()
		for range 4 {
			peers++
			peer(b, base.Data)
		}
		theirs += time.Since(start)
	}
	own := ours.Seconds() / float64(events)
	b.ReportMetric(1/own, "events/s")
	b.ReportMetric(float64(bytes)/float64(events), "bytes/event")
	b.ReportMetric(theirs.Seconds()/float64(peers)/own, "x_peer")
}

func peer(b *testing.B, data []byte) {
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		b.Fatal(err)
	}
	tree["id"], tree["runId"], tree["name"] = "a", "b", "c"
	if err := json.NewEncoder(io.Discard).Encode(tree); err != nil {
		b.Fatal(err)
	}
}
