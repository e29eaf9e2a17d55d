package replay

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/output"
)

// manyQueries simulates so many queries , as NDJSON and as a
// history.
func manyQueries(b *testing.B, queries int, batches int64) (file, dir string, events int) {
	b.Helper()
	copies, err := output.NewCopies(queries, 3)
	if err != nil {
		b.Fatal(err)
	}
	var all bytes.Buffer
	emit := func(m *simulator.Message) error {
		all.Write(m.Data)
		all.WriteByte('\n')
		events++
		return nil
	}
	play(b, "steady", batches, func(m *simulator.Message) error { return copies.Add(m, emit) })
	if err := copies.Flush(emit); err != nil {
		b.Fatal(err)
	}
	file, dir = filepath.Join(b.TempDir(), "events.ndjson"), filepath.Join(b.TempDir(), "kept")
	if err := os.WriteFile(file, all.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	k := newKeeper(b, dir)
	k.hearText(all.Bytes())
	k.close()
	return file, dir, events
}

// readAll reads all events of a path and returns how long that took.
func readAll(b *testing.B, path string, events int) time.Duration {
	b.Helper()
	begin := time.Now()
	sum, err := Merge(context.Background(), Inputs{Paths: []string{path}}, func(*collector.Item) {})
	took := time.Since(begin)
	if err != nil || sum.Events != events {
		b.Fatalf("%d events of %d, error %v", sum.Events, events, err)
	}
	return took
}

// BenchmarkReadHistoryVersusNDJSON reads the same events of 100 queries from a
// history and from NDJSON, in turn. x_peer is the median time of NDJSON over that of
// the history.
func BenchmarkReadHistoryVersusNDJSON(b *testing.B) {
	file, dir, events := manyQueries(b, 100, 400)
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, readAll(b, HistoryPrefix+dir, events))
		theirs = append(theirs, readAll(b, file, events))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, peer := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(events)/mine.Seconds(), "events/s")
	b.ReportMetric(float64(peer)/float64(mine), "x_peer")
}

// BenchmarkBacktestOfAHistory judges what it reads by the built-in rules.
func BenchmarkBacktestOfAHistory(b *testing.B) {
	_, dir, events := manyQueries(b, 100, 400)
	o := BacktestOptions{Inputs: Inputs{Paths: []string{HistoryPrefix + dir}}, Rules: builtInRules(b)}
	for b.Loop() {
		if out, err := Backtest(context.Background(), o); err != nil || out.Events != events {
			b.Fatalf("%d events of %d, error %v", out.Events, events, err)
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}
