package store

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/event"
)

// captured is what a batch of running Spark said of its first operator.
type captured struct {
	ID         int64     `json:"batchId"`
	At         time.Time `json:"timestamp"`
	DurationMs map[string]int64
	Operators  []struct {
		CommitTimeMs  float64
		NumRowsTotal  float64
		CustomMetrics map[string]float64
		NumStores     float64 `json:"numStateStoreInstances"`
		Partitions    float64 `json:"numShufflePartitions"`
	} `json:"stateOperators"`
}

// readCaptured returns the executed batches of a recorded run.
func readRun(t testing.TB, run string) []captured {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "spark", run+".ndjson.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var out []captured
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var wrapped struct{ Progress *captured }
		line := lines.Bytes()
		var c captured
		if err := json.Unmarshal(line, &wrapped); err == nil && wrapped.Progress != nil {
			c = *wrapped.Progress
		} else if err := json.Unmarshal(line, &c); err != nil {
			continue // an event that is no progress
		}
		if len(c.Operators) > 0 && c.DurationMs["addBatch"] > 0 {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		t.Fatalf("run %s has no batch", run)
	}
	return out
}

func (c *captured) custom(key string) float64 { return c.Operators[0].CustomMetrics[key] }

// end is when the batch was over.
func (c *captured) end() time.Time {
	return c.At.Add(time.Duration(c.DurationMs["triggerExecution"]) * time.Millisecond)
}

// rhythmOf plays as many batches as a recorded run has, at its times, with a
// round of maintenance each interval from phase on, and returns in which batches
// bytes were flushed. Tasks load in the first quarter of a batch and commit in
// its last: a round in between finds what the load has left.
func rhythmOf(r *rig, run []captured, twice bool, interval, phase time.Duration) []bool {
	r.tb.Helper()
	next := run[0].At.Add(phase)
	round := func(until time.Time) {
		for next.Before(until) {
			_, err := r.x.Maintain()
			r.must(err)
			next = next.Add(interval)
		}
	}
	flushed := make([]bool, len(run))
	for i := range run {
		took := run[i].end().Sub(run[i].At)
		round(run[i].At.Add(took / 4))
		var ops []op
		if run[i].custom("rocksdbPutCount") > 0 {
			ops = puts(i*3, 5, 20)
		}
		r.loaded = func() { round(run[i].At.Add(took * 3 / 4)) }
		f := r.batch(0, twice, ops...)
		flushed[i] = f.Custom[event.RocksDBTotalBytesWrittenByFlush] > 0
	}
	return flushed
}

func TestSnapshotsAreCutInTheRhythmOfRunningSpark(t *testing.T) {
	for _, c := range []struct {
		run      string
		twice    bool
		interval time.Duration
		families []Family
		agree    float64 // share of batches; the phase of maintenance is not recorded
	}{
		{"3.5.8/join-changelog", false, 10 * time.Second, nil, 1},
		{"3.5.8/quiet-dedupe", false, 10 * time.Second, nil, 1},
		{"3.5.8/idle", true, 10 * time.Second, nil, 0.9},
		{"4.1.4/tws-changelog", false, 10 * time.Second, []Family{{"count", false}, {"$ttl_count", true}}, 1},
		{"4.2.1/dedupe-changelog", false, 10 * time.Second, nil, 1},
		{"4.3.0/quiet-agg", true, time.Minute, nil, 1},
		{"4.3.0/agg-changelog", true, 10 * time.Second, nil, 1},
	} {
		t.Run(strings.ReplaceAll(c.run, "/", "-"), func(t *testing.T) {
			run := readRun(t, c.run)
			best := 0.0
			for phase := time.Second; phase <= 10*time.Second && best < c.agree; phase += time.Second {
				r := newRig(t, run0(c.run), 1, changelogOn())
				r.families = c.families
				best = max(best, agreement(run, rhythmOf(r, run, c.twice, c.interval, phase)))
			}
			if best < c.agree {
				t.Errorf("snapshots are cut in the same batches %.0f %% of the time, want %.0f %%", best*100, c.agree*100)
			}
		})
	}
}

// run0 is the version that a run's name begins with.
func run0(run string) string { return run[:strings.IndexByte(run, '/')] }

// agreement compares in which batches bytes were flushed.
func agreement(run []captured, cuts []bool) float64 {
	same := 0
	for i := range run {
		if (run[i].custom("rocksdbTotalBytesWrittenByFlush") > 0) == cuts[i] {
			same++
		}
	}
	return float64(same) / float64(len(run))
}

// quietSpells returns how long each spell without a flush was that lies between
// two with one, without short ones: those come from partitions that were uploaded
// in different rounds.
func quietSpells(flushed []bool) (spells []int, share float64) {
	quiet, cut := -1, 0
	for _, f := range flushed {
		switch {
		case f && quiet > 3:
			spells = append(spells, quiet)
			fallthrough
		case f:
			quiet = 0
			cut++
		case quiet >= 0:
			quiet++
		}
	}
	return spells, float64(cut) / float64(len(flushed))
}

// Until a snapshot is uploaded, a store that loads anew in each batch counts from
// an older one and cuts one commit after the other.
func TestAggregationsBeforeSpark41CutSpellsOfSnapshotsAsRunningSparkDoes(t *testing.T) {
	for _, run := range []string{"4.0.5/fail", "4.0.5/agg-restart"} {
		real := readRun(t, run)[:45] // before the restart
		var flushed []bool
		for i := range real {
			flushed = append(flushed, real[i].custom("rocksdbTotalBytesWrittenByFlush") > 0)
		}
		spells, share := quietSpells(flushed)
		for phase := 2 * time.Second; phase <= 10*time.Second; phase += 4 * time.Second {
			r := newRig(t, "4.0.5", 1, changelogOn())
			ours := rhythmOf(r, real, true, 10*time.Second, phase)
			got, gotShare := quietSpells(ours)
			for _, n := range got {
				if n != 9 {
					t.Errorf("%s: a quiet spell of %d batches, want 9", run, n)
				}
			}
			if len(got) < len(spells)-2 || len(got) > len(spells)+2 || gotShare < share/3 || gotShare > share*2.5 {
				t.Errorf("%s: quiet spells %v and a share of cuts of %.2f, running Spark %v and %.2f", run, got, gotShare, spells, share)
			}
			if first := slices.Index(ours, true); first != slices.Index(flushed, true) {
				t.Errorf("%s: first snapshot in batch %d", run, first)
			}
		}
	}
}

func TestEachVersionHasTheKeysOfRunningSpark(t *testing.T) {
	for _, name := range []string{
		"3.4.4/agg-plain", "3.5.8/join-changelog", "3.5.8/foreach-two-actions", "4.0.5/agg-restart", "4.0.5/tws-bounded",
		"4.1.4/join-bounded", "4.2.1/dedupe-changelog", "4.3.0/stall", "4.3.0/tws-bounded",
	} {
		r := newRig(t, run0(name), 1, nil)
		f := r.batch(0, false, puts(0, 3, 10)...)
		want := map[string]bool{}
		for key := range readRun(t, name)[0].Operators[0].CustomMetrics {
			if strings.HasPrefix(key, "rocksdb") {
				want[key] = true
			}
		}
		for id := range event.MetricID(event.NumMetrics) {
			key := event.Lookup(id).JSON
			key = key[strings.LastIndexByte(key, '.')+1:]
			if f.Custom.Has(id) && !want[key] {
				t.Errorf("%s: %s is not reported by Spark", name, key)
			}
			if !f.Custom.Has(id) && want[key] {
				t.Errorf("%s: %s is missing", name, key)
			}
		}
	}
}
