package proof

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stategauge/stategauge/simulator"
)

// warm is how many batches of a run rules leave out, and so does this.
const warm = 20

// move is how the statistic of a symptom's row behaves in a scenario.
type move struct {
	scenario string
	what     string
	of       statistic
	shape    func([]point) []point // nil: as it is
	window   int64                 // batches whose median is taken; 1: each by itself
	by       float64               // moved: the window's median passes so many times that of all before the fault...
	beyond   float64               // ...and passes it by so much
	falls    bool                  // ...downwards
	from     int64                 // when the fault begins
	within   int64                 // batches after that by which it has moved
	queries  int                   // the first so many, 0: one
}

// moves has a row per fault that a statistic of single batches shows.
//
// How far a median of n batches wanders by itself is 1.25 times the spread of a
// batch by the root of n. Where a time is a few requests to an object store the
// spread is a quarter to a third: a window of 40 batches, as rules have it too,
// stays within six percent, one of 20 does not keep clear of a half more. What
// a fault makes half as slow again is looked for half way, on a scale of factors.
var moves = []move{
	{scenario: "commit-sync-rising", what: "file sync per file", of: syncEach, window: 40, by: 1.25, from: 130, within: 40},
	{scenario: "commit-sync-rising-ramp", what: "file sync per file", of: syncEach, window: 40, by: 1.25, from: 130, within: 110},
	{scenario: "commit-sync-rising-throttled", what: "file sync per file", of: syncEach, window: 40, by: 1.3, from: 130, within: 40},
	{scenario: "commit-sync-rising-more-to-upload", what: "bytes copied", of: copied, window: 20, by: 1.25, from: 130, within: 40},
	{scenario: "commit-sync-rising-more-to-upload", what: "file sync", of: sync, window: 20, by: 1.25, from: 130, within: 45},
	{scenario: "checkpoint-store-slow", what: "file sync per file", of: syncEach, window: 40, by: 1.25, from: 130, within: 40, queries: 6},
	{scenario: "commit-flush-slow", what: "flush", of: flush, window: 20, by: 1.2, from: 130, within: 40},
	{scenario: "local-disk-slow", what: "flush and checkpoint", of: local, window: 20, by: 1.2, from: 130, within: 40},
	{scenario: "writer-stall", what: "writer stall", of: stall, window: 20, by: 1, beyond: 1e6, from: 130, within: 100},
	{scenario: "state-reload", what: "stores fetched", of: fetched, window: 1, by: 1, beyond: 0.5, from: 150, within: 1},
	{scenario: "state-reload-cannot-tell", what: "duration", of: duration, window: 1, by: 4, from: 150, within: 1},
	{scenario: "state-reload-with-envelope", what: "duration", of: duration, window: 1, by: 4, from: 150, within: 1},
	{scenario: "state-reload-hdfs", what: "maps not found", of: heapMisses, shape: steps, window: 1, by: 1, beyond: 0.5, from: 150, within: 1},
	{scenario: "reload-loop", what: "stores fetched", of: fetched, window: 1, by: 1, beyond: 0.5, from: 130, within: 1},
	{scenario: "reload-loop-autoscale", what: "stores fetched", of: fetched, window: 1, by: 1, beyond: 0.5, from: 130, within: 21},
	{scenario: "reload-loop-locality", what: "changelogs replayed", of: replayed, window: 1, by: 1, beyond: 0.5, from: 130, within: 6},
	{scenario: "memory-unbounded", what: "memory", of: memory, window: 10, by: 1.3, from: 60, within: 60},
	{scenario: "memory-unbounded-with-envelope", what: "memory", of: memory, window: 10, by: 1.5, from: 130, within: 80},
	{scenario: "memory-cap-too-small", what: "misses per get", of: missesEach, window: 20, by: 1.5, from: 130, within: 40},
	{scenario: "memory-cap-too-small-with-envelope", what: "misses per get", of: missesEach, window: 20, by: 1.5, from: 130, within: 40},
	{scenario: "cache-misses", what: "misses per get", of: missesEach, window: 20, by: 1.5, from: 130, within: 40},
	{scenario: "cache-misses-growing-keys", what: "misses per get", of: missesEach, window: 20, by: 1.5, from: 130, within: 60},
	{scenario: "checkpoint-growth", what: "batches since an upload", of: copied, shape: unchanged, window: 1, by: 1, beyond: 30, from: 130, within: 60},
	{scenario: "checkpoint-growth-listing", what: "offsets and commits", of: logs, window: 20, by: 1.5, from: 130, within: 100},
	{scenario: "snapshot-lag", what: "versions since a snapshot", of: snapshotLag, window: 1, by: 1, beyond: 30, from: 130, within: 60},
	{scenario: "auto-repair", what: "snapshots repaired", of: repaired, window: 1, by: 1, beyond: 0.5, from: 150, within: 1},
	{scenario: "state-never-expires-begins", what: "rows in state", of: rowsTotal, window: 10, by: 1.5, from: 120, within: 60},
	{scenario: "watermark-stuck", what: "watermark behind event time", of: watermarkBehind, window: 5, by: 1, beyond: 15, from: 130, within: 25},
	{scenario: "watermark-stuck-idle-source", what: "watermark behind event time", of: watermarkBehind, window: 5, by: 1, beyond: 15, from: 130, within: 25},
	{scenario: "watermark-stuck-silent-source", what: "watermark behind event time", of: watermarkBehind, window: 5, by: 1, beyond: 15, from: 130, within: 25},
	{scenario: "watermark-in-future", what: "watermark ahead of now", of: watermarkAhead, window: 1, by: 1, beyond: 1440, from: 150, within: 2},
	{scenario: "watermark-in-future", what: "share of late rows", of: dropShare, window: 1, by: 1, beyond: 0.5, from: 150, within: 3},
	{scenario: "late-data-dropped", what: "share of late rows", of: dropShare, window: 5, by: 1, beyond: 0.01, from: 130, within: 8},
	{scenario: "late-data-dropped-sessions", what: "share of late rows", of: dropShare, window: 5, by: 1, beyond: 0.01, from: 130, within: 8},
	{scenario: "falling-behind", what: "utilisation", of: utilisation(60_000), window: 5, by: 1.3, beyond: 0.3, from: 130, within: 60},
	{scenario: "falling-behind", what: "backlog", of: backlog, window: 5, by: 1, beyond: 8000, from: 130, within: 80},
	{scenario: "falling-behind-default-trigger", what: "backlog", of: backlog, window: 5, by: 1.3, beyond: 3000, from: 260, within: 40},
	{scenario: "falling-behind-partition", what: "backlog", of: backlog, window: 5, by: 1.3, beyond: 2000, from: 260, within: 40},
	{scenario: "headroom-forecast", what: "duration", of: duration, window: 20, by: 1.25, from: 60, within: 120},
	{scenario: "duration-rising", what: "duration", of: duration, window: 20, by: 1.2, from: 130, within: 40},
	{scenario: "duration-rising-sink", what: "duration", of: duration, window: 20, by: 1.5, from: 130, within: 60},
	{scenario: "duration-rising-skew", what: "duration", of: duration, window: 20, by: 1.5, from: 130, within: 40},
	{scenario: "duration-rising-neighbour", what: "duration", of: duration, window: 20, by: 1.2, from: 130, within: 40},
	{scenario: "duration-rising-network", what: "duration", of: duration, window: 20, by: 1.3, from: 130, within: 40},
	{scenario: "load-rising", what: "input rows", of: inputRows, window: 20, by: 1.2, from: 130, within: 60},
	{scenario: "load-rising", what: "duration", of: duration, window: 20, by: 1.15, from: 130, within: 80},
	{scenario: "offsets-slow", what: "latestOffset", of: listing, window: 40, by: 1.25, from: 130, within: 40},
	{scenario: "offsets-slow-checkpoint", what: "offsets and commits", of: logs, window: 20, by: 1.5, from: 130, within: 40},
	{scenario: "posture-after-restart", what: "flush", of: flush, window: 5, by: 1, beyond: 0.5, from: 150, within: 6},
	{scenario: "state-evaluated-twice", what: "stores", of: instances, window: 1, by: 1.99, from: 130, within: 1},
	{scenario: "partitions-changed", what: "stores", of: instances, window: 1, by: 1.99, from: 150, within: 1},
	{scenario: "freshness", what: "age of the newest row", of: dataAge, window: 5, by: 1, beyond: 30, from: 130, within: 50},
}

// seeds are how many runs each row is tried on: STATEGAUGE_SEEDS, or two, one
// where time is short.
func seeds(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("STATEGAUGE_SEEDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("STATEGAUGE_SEEDS (%s) must be a number of at least 1", text)
		}
		return n
	}
	if testing.Short() {
		return 1
	}
	return 2
}

// skipRaced leaves out what needs hundreds of batches: the driver's own tests
// play enough of them under the race detector.
func skipRaced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("hundreds of batches are too slow under the race detector")
	}
}

func TestStatisticsMoveSoonAfterTheirFaultAndNotBefore(t *testing.T) {
	skipRaced(t)
	for name, rows := range byScenario() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := load(t, name)
			for seed := range seeds(t) {
				all := play(t, sc, simulator.Options{Seed: uint64(seed + 1), Batches: lastTurn(rows)})
				for i := range rows {
					for query := range max(1, rows[i].queries) {
						if err := rows[i].check(all, query); err != nil {
							t.Errorf("seed %d, query %d: %s %v", seed+1, query+1, rows[i].what, err)
						}
					}
				}
			}
		})
	}
}

// lastTurn is how many batches it takes to see all that rows say.
func lastTurn(rows []move) (n int64) {
	for i := range rows {
		n = max(n, rows[i].from+rows[i].within+2)
	}
	return n
}

func byScenario() map[string][]move {
	out := map[string][]move{}
	for _, m := range moves {
		out[m.scenario] = append(out[m.scenario], m)
	}
	return out
}

// errStill is in the error of a statistic that does not move at all.
var errStill = errors.New("does not move")

// check says what is wrong with how a query's statistic behaves.
func (m *move) check(all []said, query int) error {
	ps := series(all, query, m.of)
	if m.shape != nil {
		ps = m.shape(ps)
	}
	before := median(between(ps, warm, m.from))
	for i := range ps {
		end := ps[i].turn
		if end < warm+m.window {
			continue
		}
		now := median(between(ps, end-m.window+1, end+1))
		if !m.moved(before, now) {
			continue
		}
		switch {
		case end < m.from:
			return fmt.Errorf("moves at batch %d, before the fault: %.4g, in the mean %.4g", end, now, before)
		case end > m.from+m.within:
			return fmt.Errorf("moves at batch %d only: %.4g, before the fault %.4g", end, now, before)
		}
		return nil
	}
	after := median(between(ps, m.from+m.within-m.window, m.from+m.within+1))
	return fmt.Errorf("%w: %.4g, before the fault %.4g", errStill, after, before)
}

func (m *move) moved(before, now float64) bool {
	if m.falls {
		return now < before/m.by && now < before-m.beyond
	}
	return now > before*m.by && now > before+m.beyond
}
