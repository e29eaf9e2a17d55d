package simulator

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

// replayed is a run as it really was: one batch of two seconds every three, each
// of two seconds of a rate source, with a restart before the fifth.
func replayed(startMs int64, batches int64) func(int64) (Pace, bool) {
	return func(batch int64) (Pace, bool) {
		p := Pace{StartMs: startMs + 3000*batch, DurationMs: 2000 + batch, Rows: []int64{1000}}
		p.NewRun = batch == 5
		p.LoseExecutors = int(batch) / 7 % 2
		return p, batch < batches
	}
}

func TestAPaceDictatesTimesRowsAndRuns(t *testing.T) {
	text := replaced(plain, "FAULTS\n", "  - {kind: store-slow, from_batch: 20}\n")
	text = replaced(replaced(text, "ENVELOPE", "false"), "{rows_per_second: 3, keys: {count: 50}}", "{kind: rate, rows_per_second: 500, rate: {noise: 0}}")
	const startMs = 1_790_000_000_000
	ms := play(t, start(t, parse(t, text), Options{Seed: 1, Pace: replayed(startMs, 12)}), all)
	n, runs := int64(0), map[event.RunID]bool{}
	batches(t, ms, func(_ *played, b *event.Batch) {
		d := b.Values[event.DurationTriggerExecution]
		if b.ID != n || b.StartMs != startMs+3000*n || d != float64(2000+n) || b.Values[event.NumInputRows] != 1000 {
			t.Errorf("batch %d at %d took %v ms for %v rows", b.ID, b.StartMs-startMs, d, b.Values[event.NumInputRows])
		}
		checkPhases(t, b)
		o := &b.Operators[0]
		for id := range event.MetricID(event.NumMetrics) {
			if !b.PlausibleTaskSeconds(o, id) {
				t.Errorf("batch %d: %s of %v", b.ID, event.Lookup(id).JSON, o.Values[id])
			}
		}
		runs[b.Run] = true
		n++
	})
	if n != 12 || len(runs) != 2 {
		t.Errorf("%d batches in %d runs", n, len(runs))
	}
}

func TestMeansOfOffsetsAreWrittenAsJavaDoes(t *testing.T) {
	for f, want := range map[float64]string{0: "0.0", 3: "3.0", 2.5: "2.5", 1234567.125: "1234567.125"} {
		if got := decimal(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}

func TestUploadedSnapshotsNameTheOldestFew(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.1"), "CHANGELOG", "false")
	text = replaced(replaced(text, "FAULT", "restart"), `partitions: "3"`, `partitions: "9"`)
	seen := 0
	batches(t, play(t, start(t, parse(t, text), Options{Seed: 8}), all), func(_ *played, b *event.Batch) {
		o := &b.Operators[0]
		if o.NumSnapshots != 5 {
			t.Fatalf("batch %d names %d stores", b.ID, o.NumSnapshots)
		}
		if o.SnapshotMin == b.ID+1 {
			seen++ // without changelog every commit uploads
		}
	})
	if seen < 15 {
		t.Errorf("only %d batches have uploaded their own version", seen)
	}
}
