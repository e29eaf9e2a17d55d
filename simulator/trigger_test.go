package simulator

import (
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

func TestNextTriggerLiesOnTheGridOrComesAtOnce(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name                       string
		start, end, interval, want time.Duration
	}{
		{"in time", 60 * s, 61 * s, 60 * s, 120 * s},
		{"off the grid at first", 62 * s, 70 * s, 60 * s, 120 * s},
		{"ends on the grid", 60 * s, 120 * s, 60 * s, 120 * s},
		{"after an overrun at once", 60 * s, 150 * s, 60 * s, 150 * s},
		{"default trigger", 60 * s, 61 * s, 0, 61 * s},
	} {
		if got := nextTrigger(c.start, c.end, c.interval); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

const onAndOff = `
description: Rows for a minute, then none for a minute
spark_version: VERSION
batches: 20
query:
  trigger: {interval: 5s}
  watermark_delay: 5s
  operators:
    - {kind: aggregation, window: 10s}
  sources:
    - kind: kafka
      rows_per_second: 20
      rate: {on: 1m, off: 1m}
cluster: {executors: 1}
conf:
  spark.sql.shuffle.partitions: "2"
healthy: true
`

func TestIdleSpellsAreToldAsEachVersionDoes(t *testing.T) {
	for _, c := range []struct {
		version string
		copies  bool
	}{{"3.4", true}, {"3.5", false}, {"4.3", false}} {
		t.Run(c.version, func(t *testing.T) {
			ms := play(t, start(t, parse(t, replaced(onAndOff, "VERSION", c.version)), Options{Seed: 2}), all)
			var spells, told int
			var lastEnd, lastIdle, lastBatch int64 = 0, 0, -1
			decoded(t, ms, func(m *played, e *event.Event) {
				idle := e.Kind == event.KindIdle || e.Kind == event.KindProgress && !e.Batch.Executed
				switch {
				case idle:
					told++
					if (e.Kind == event.KindProgress) != c.copies {
						t.Fatalf("an idle trigger is told as %s", e.Kind)
					}
					checkIdle(t, e, lastEnd, lastIdle, lastBatch, c.copies)
					if lastIdle == 0 {
						spells++
					}
					lastIdle = m.AtMs
				case e.Kind == event.KindProgress:
					lastEnd, lastIdle, lastBatch = m.AtMs, 0, e.Batch.ID
				}
			})
			if spells < 1 || told < 3*spells {
				t.Errorf("%d idle spells, %d times told", spells, told)
			}
		})
	}
}

// checkIdle holds an idle event against the rules: at least ten seconds apart; up
// to 3.4 the first one at once and with the next batch's number, later the first
// one ten seconds into the spell.
func checkIdle(t *testing.T, e *event.Event, lastEnd, lastIdle, lastBatch int64, copies bool) {
	t.Helper()
	switch {
	case lastIdle > 0 && e.AtMs-lastIdle < 9_900:
		t.Errorf("idle again after %d ms", e.AtMs-lastIdle)
	case lastIdle == 0 && !copies && e.AtMs-lastEnd < 10_000:
		t.Errorf("idle %d ms after a batch", e.AtMs-lastEnd)
	case lastIdle == 0 && copies && e.AtMs-lastEnd > 5_000:
		t.Errorf("the first copy comes %d ms after a batch", e.AtMs-lastEnd)
	}
	if !copies {
		return
	}
	if e.Batch.ID != lastBatch+1 {
		t.Errorf("a copy has number %d after batch %d", e.Batch.ID, lastBatch)
	}
	if v := &e.Batch.Operators[0].Values; v[event.NumRowsUpdated] != 0 || v[event.CommitTime] == 0 {
		t.Errorf("a copy has %v updated rows and a commit of %v ms", v[event.NumRowsUpdated], v[event.CommitTime])
	}
}

func TestAWatermarkThatMovedGetsABatchWithoutRows(t *testing.T) {
	for _, enabled := range []string{"true", "false"} {
		text := replaced(onAndOff, "VERSION", "4.1") + "\n"
		text = replaced(text, "conf:\n", "conf:\n  spark.sql.streaming.noDataMicroBatches.enabled: \""+enabled+"\"\n")
		s := start(t, parse(t, text), Options{Seed: 2})
		play(t, s, all)
		if a := s.Accounts()[0]; (a.NoData > 0) != (enabled == "true") {
			t.Errorf("enabled %s: %d batches without rows", enabled, a.NoData)
		}
	}
}

func TestAvailableNowRunsReadWhatWasThereAndEnd(t *testing.T) {
	text := replaced(onAndOff, "VERSION", "3.5")
	text = replaced(text, "interval: 5s", "available_now: 10m")
	ms := play(t, start(t, parse(t, text), Options{Seed: 2, Batches: 8}), all)
	var starts []int64
	running := false
	decoded(t, ms, func(_ *played, e *event.Event) {
		switch e.Kind {
		case event.KindStarted:
			starts = append(starts, e.AtMs)
			running = true
		case event.KindTerminated:
			if running = false; e.Failure != nil {
				t.Errorf("a run failed: %+v", e.Failure)
			}
		case event.KindProgress:
			if !running || !e.Batch.Executed {
				t.Error("a batch outside of a run, or none at all")
			}
		}
	})
	for i := 1; i < len(starts); i++ {
		if gap := starts[i] - starts[i-1]; gap < 600_000 || gap > 602_000 {
			t.Errorf("runs start %d ms apart", gap)
		}
	}
	if len(starts) < 3 {
		t.Errorf("%d runs", len(starts))
	}
}

func TestRealTimeBatchesLastAsLongAsConfigured(t *testing.T) {
	text := replaced(onAndOff, "VERSION", "4.3")
	text = replaced(replaced(text, "interval: 5s", "real_time: 1m"), "rate: {on: 1m, off: 1m}", "partitions: 2")
	text = replaced(text, "conf:\n", "conf:\n  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider\n")
	n := 0
	batches(t, play(t, start(t, parse(t, text), Options{Seed: 2, Batches: 6}), all), func(_ *played, b *event.Batch) {
		if d, _ := b.DurationMs(); n > 0 && (d < 60_000 || d > 60_100) {
			t.Errorf("batch %d took %v ms", b.ID, d)
		}
		if b.Values[event.NumInputRows] < 1_000 {
			t.Errorf("batch %d read %v rows", b.ID, b.Values[event.NumInputRows])
		}
		n++
	})
	if n != 6 {
		t.Errorf("%d batches", n)
	}
}
