package proof

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
)

// happening is what a scenario shows by events rather than by a figure.
type happening struct {
	scenario string
	what     string
	// at returns the turn in which it is first seen, -1 for never.
	at      func(all []said) int64
	from    int64
	within  int64
	batches int64 // to play
}

var happenings = []happening{
	{"state-reload-with-envelope", "the listener reports a lost executor", executorsLost, 150, 1, 153},
	{"partitions-changed", "a new run", newRun, 150, 1, 153},
	{"checkpoint-shared", "two runs take turns", runsAlternate, 150, 3, 156},
	{"checkpoint-reset", "a new id of the same name", newHistory, 150, 1, 153},
	{"rewound", "batches go back under one id", goesBack, 150, 1, 175},
	{"restart-loop", "three starts within a quarter of an hour", startsOften, 149, 1, 153},
	{"failed", "an end with an exception", failsWith(""), 149, 1, 160},
	{"failed-error-class", "an end with an error class", failsWith("KAFKA_DATA_LOSS"), 149, 1, 160},
	{"stalled", "silence of an hour", silence(0, 60), 150, 0, 153},
	{"stalled-with-envelope", "heartbeats with one trigger for an hour", longTrigger, 149, 1, 152},
	{"stalled-driver", "one query is silent for an hour while the other is not", outlived, 149, 0, 230},
	{"stalled-driver-with-envelope", "one query is silent for an hour while the other is not", outlived, 149, 0, 230},
	{"sender-lost", "batches that nobody heard of, of all queries", gaps(3, 59), 210, 1, 215},
	{"sender-lost-with-envelope", "batches that nobody heard of, of all queries", gaps(3, 59), 210, 1, 215},
	{"missed-events", "gaps in the numbers of batches", gaps(1, 1), 130, 45, 180},
	{"missed-events-with-envelope", "gaps in the numbers of batches", gaps(1, 1), 130, 45, 180},
}

func TestEventsOfAFaultComeSoonAfterItsStartAndNotBefore(t *testing.T) {
	skipRaced(t)
	for _, h := range happenings {
		t.Run(h.scenario, func(t *testing.T) {
			t.Parallel()
			sc := load(t, h.scenario)
			for seed := range seeds(t) {
				all := play(t, sc, simulator.Options{Seed: uint64(seed + 1), Batches: h.batches})
				if at := h.at(all); at < h.from || at > h.from+h.within {
					t.Errorf("seed %d: %s at batch %d, want it from %d and within %d", seed+1, h.what, at, h.from, h.within)
				}
			}
		})
	}
}

// firstOf returns the turn of the first event of a query that found accepts.
func firstOf(all []said, query int, found func(before, e *said) bool) int64 {
	var before *said
	for i := range all {
		e := &all[i]
		if e.query != query {
			continue
		}
		if before != nil && found(before, e) {
			return e.turn
		}
		before = e
	}
	return -1
}

// batchesOf leaves progress of executed batches only.
func batchesOf(all []said) (out []said) {
	for i := range all {
		if all[i].Kind == event.KindProgress && all[i].Batch.Executed {
			out = append(out, all[i])
		}
	}
	return out
}

func executorsLost(all []said) int64 {
	return firstOf(all, 0, func(_, e *said) bool {
		return e.Envelope != nil && e.Envelope.Executors != nil && e.Envelope.Executors.Losses > 0
	})
}

func newRun(all []said) int64 {
	return firstOf(batchesOf(all), 0, func(before, e *said) bool { return e.Run != before.Run })
}

// runsAlternate finds the second return to a run that another had taken over from.
func runsAlternate(all []said) int64 {
	changes := 0
	return firstOf(batchesOf(all), 0, func(before, e *said) bool {
		if e.Run != before.Run {
			changes++
		}
		return changes >= 4
	})
}

func newHistory(all []said) int64 {
	return firstOf(batchesOf(all), 0, func(before, e *said) bool {
		return e.Query.ID != before.Query.ID && e.Query.Name == before.Query.Name && e.Batch.ID == 0
	})
}

func goesBack(all []said) int64 {
	return firstOf(batchesOf(all), 0, func(before, e *said) bool {
		return e.Query.ID == before.Query.ID && e.Run != before.Run && e.Batch.ID <= before.Batch.ID-2
	})
}

func startsOften(all []said) int64 {
	var starts []int64
	for i := range all {
		if all[i].Kind != event.KindStarted {
			continue
		}
		starts = append(starts, all[i].sentMs)
		if n := len(starts); n >= 3 && starts[n-1]-starts[n-3] <= 15*60_000 {
			return all[i].turn
		}
	}
	return -1
}

// failsWith finds the last word of the first query, after which it is silent
// while the second one goes on.
func failsWith(class string) func([]said) int64 {
	return func(all []said) int64 {
		at := firstOf(all, 0, func(_, e *said) bool {
			return e.Kind == event.KindTerminated && e.Failure != nil && strings.HasPrefix(e.Failure.Class, class) && (class != "" || e.Failure.Class == "")
		})
		first, second := lastOf(all, 0), lastOf(all, 1)
		if first == nil || first.Kind != event.KindTerminated || second.sentMs <= first.sentMs {
			return -1
		}
		return at
	}
}

func lastOf(all []said, query int) (last *said) {
	for i := range all {
		if all[i].query == query && all[i].Kind != event.KindHeartbeat {
			last = &all[i]
		}
	}
	return last
}

// silence finds the batch that comes after so many minutes without a word.
func silence(query int, atLeast float64) func([]said) int64 {
	return func(all []said) int64 {
		return firstOf(all, query, func(before, e *said) bool { return float64(e.sentMs-before.sentMs) >= atLeast*60_000 })
	}
}

// longTrigger finds heartbeats that for an hour tell of a trigger at work.
func longTrigger(all []said) int64 {
	var sinceMs int64 = -1
	for i := range all {
		e := &all[i]
		switch {
		case e.Kind != event.KindHeartbeat:
			sinceMs = -1
		case !busy(e):
		case sinceMs < 0:
			sinceMs = e.sentMs
		case e.sentMs-sinceMs >= 3_600_000:
			return e.turn
		}
	}
	return -1
}

func busy(e *said) bool {
	for _, q := range e.Envelope.Active {
		if q.TriggerActive {
			return true
		}
	}
	return false
}

// outlived is the last turn of the first query if the second goes on for an hour.
func outlived(all []said) int64 {
	first, second := lastOf(all, 0), lastOf(all, 1)
	if first == nil || second == nil || second.sentMs-first.sentMs < 3_600_000 || first.Kind == event.KindTerminated {
		return -1
	}
	return first.turn
}

// gaps finds the batch by which so many queries have missed so many batches at once.
func gaps(queries int, missing int64) func([]said) int64 {
	return func(all []said) int64 {
		last := int64(-1)
		for q := range queries {
			at := firstOf(batchesOf(all), q, func(before, e *said) bool {
				return e.Run == before.Run && e.Batch.ID-before.Batch.ID > missing
			})
			if at < 0 {
				return -1
			}
			last = max(last, at)
		}
		return last
	}
}

// state is how a scenario is from its start to its end.
type state struct {
	scenario string
	holds    func(all []said) error
}

var states = []state{
	{"scales-with-state", func(all []said) error {
		return wants("correlation of file sync with SST bytes", correlation(all, sync, level(event.RocksDBSstFileSize)), 0.4, 1)
	}},
	{"scales-with-state-cannot-separate", func(all []said) error {
		number := func(b *event.Batch) float64 { return float64(b.ID) }
		return errors.Join(
			wants("correlation of rows in state with time", correlation(all, rowsTotal, number), 0.9, 1),
			wants("correlation of file sync with time", correlation(all, sync, number), 0.6, 1))
	}},
	{"periodic-slow", func(all []said) error {
		return wants("duration of every tenth batch in that of the others", everyTenth(all, duration), 2, 1000)
	}},
	{"periodic-slow-compaction", func(all []said) error {
		return wants("compaction of every tenth batch in that of the others", everyTenth(all, level(event.RocksDBCommitCompactLatency)), 5, 1e9)
	}},
	{"state-never-expires", func(all []said) error {
		return wants("share of rows removed", last(series(all, 0, ratio(rowsGone, inputRows))), 0, 0)
	}},
	{"state-never-expires-join", func(all []said) error {
		return wants("share of rows removed", last(series(all, 0, ratio(rowsGone, inputRows))), 0, 0)
	}},
	{"watermark-too-wide", func(all []said) error {
		return wants("minutes from watermark to event time", last(series(all, 0, watermarkBehind)), 1400, 1500)
	}},
	{"watermark-too-wide-cannot-tell", func(all []said) error {
		return wants("minutes from watermark to event time", last(series(all, 0, watermarkBehind)), 1400, 1500)
	}},
	{"provider-hdfs", func(all []said) error {
		return wants("correlation of duration with rows in state", correlation(all, duration, rowsTotal), 0.6, 1)
	}},
	{"posture-without-envelope", func(all []said) error {
		return wants("batches without an upload of their own", last(unchanged(series(all, 0, copied))), 0, 2)
	}},
	{"posture", func(all []said) error {
		for i := range all {
			if all[i].Envelope != nil && all[i].Kind == event.KindStarted {
				return nil
			}
		}
		return fmt.Errorf("no envelope says how the query was started")
	}},
}

func TestScenariosWithoutAFaultAreAsTheySayThroughout(t *testing.T) {
	skipRaced(t)
	for _, s := range states {
		t.Run(s.scenario, func(t *testing.T) {
			t.Parallel()
			sc := load(t, s.scenario)
			for seed := range seeds(t) {
				all := play(t, sc, simulator.Options{Seed: uint64(seed + 1), Batches: min(sc.Batches, 240)})
				if err := s.holds(all); err != nil {
					t.Errorf("seed %d: %v", seed+1, err)
				}
			}
		})
	}
}

func wants(what string, got, low, high float64) error {
	if got >= low && got <= high {
		return nil
	}
	return fmt.Errorf("%s is %.4g, want %v to %v", what, got, low, high)
}

func last(ps []point) float64 { return ps[len(ps)-1].value }

// correlation is that of two statistics after the first batches of a run.
func correlation(all []said, a, b statistic) float64 {
	return rankCorrelation(between(series(all, 0, a), warm, 1<<40), between(series(all, 0, b), warm, 1<<40))
}

// everyTenth is the median of the batches that cut snapshots in that of the rest.
func everyTenth(all []said, s statistic) float64 {
	var on, off []float64
	for _, p := range series(all, 0, s) {
		switch {
		case p.turn < warm:
		case p.turn%10 == 9:
			on = append(on, p.value)
		default:
			off = append(off, p.value)
		}
	}
	return median(on) / max(median(off), 1)
}
