package simulator

import (
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

const plain = `
description: A small aggregation
spark_version: 3.5
envelope: ENVELOPE
batches: 24
query:
  trigger: {interval: 1m}
  watermark_delay: 30s
  operators:
    - {kind: aggregation, window: 1m}
  sources:
    - {rows_per_second: 3, keys: {count: 50}}
cluster: {executors: 2, cores: 2}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.shuffle.partitions: "4"
faults:
FAULTS
healthy: true
`

// withFaults plays the plain scenario with faults, each a YAML flow mapping.
func withFaults(t *testing.T, envelope string, change func(string) string, faults ...string) []played {
	t.Helper()
	list := ""
	for _, f := range faults {
		list += "  - {" + f + "}\n"
	}
	text := replaced(replaced(plain, "FAULTS\n", list), "ENVELOPE", envelope)
	if change != nil {
		text = change(text)
	}
	return play(t, start(t, parse(t, text), Options{Seed: 4}), all)
}

// said is a short form of what a stream says, for comparing.
func said(t *testing.T, ms []played) []string {
	t.Helper()
	var out []string
	decoded(t, ms, func(_ *played, e *event.Event) {
		word := e.Kind.String()
		if e.Kind == event.KindTerminated && e.Failure != nil {
			word = "failed " + e.Failure.Class
		}
		out = append(out, strings.TrimSpace(word))
	})
	return out
}

func count(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

func TestEndsOfRunsAreToldAsSparkDoes(t *testing.T) {
	for _, c := range []struct {
		fault                               string
		started, terminated, failed, newIDs int
	}{
		{"kind: restart, from_batch: 10", 2, 1, 0, 1},
		{"kind: crash, from_batch: 10", 2, 0, 0, 1},
		{"kind: outage, from_batch: 10", 2, 1, 0, 1},
		{"kind: redeploy, from_batch: 10", 2, 1, 0, 1},
		{"kind: upgrade, from_batch: 10", 2, 1, 0, 1},
		{"kind: checkpoint-reset, from_batch: 10", 2, 1, 0, 2},
		{"kind: checkpoint-rewound, from_batch: 10, count: 4", 2, 1, 0, 1},
		{"kind: restart-loop, from_batch: 10, count: 4, error: BOOM", 5, 0, 4, 1},
		{"kind: query-failed, from_batch: 10, error: BOOM", 1, 0, 1, 1},
		{"kind: partitions-changed, from_batch: 10, count: 8", 2, 1, 0, 1},
	} {
		t.Run(c.fault, func(t *testing.T) {
			ms := withFaults(t, "false", nil, c.fault)
			words := said(t, ms)
			ids := map[string]bool{}
			for _, m := range ms {
				ids[m.QueryID] = true
			}
			got := [4]int{count(words, "started"), count(words, "terminated"), count(words, "failed BOOM"), len(ids)}
			if want := [4]int{c.started, c.terminated, c.failed, c.newIDs}; got != want {
				t.Errorf("started, terminated, failed, ids: %v, want %v", got, want)
			}
		})
	}
}

func TestARewoundCheckpointRunsBatchesAgain(t *testing.T) {
	var ids []int64
	batches(t, withFaults(t, "false", nil, "kind: checkpoint-rewound, from_batch: 10, count: 4"), func(_ *played, b *event.Batch) { ids = append(ids, b.ID) })
	if ids[9] != 9 || ids[10] != 6 || ids[len(ids)-1] != 19 || len(ids) != 24 {
		t.Errorf("batches %v", ids)
	}
}

func TestChangedPartitionsShowFromTheNextRunOn(t *testing.T) {
	batches(t, withFaults(t, "false", nil, "kind: partitions-changed, from_batch: 10, count: 8"), func(m *played, b *event.Batch) {
		o := &b.Operators[0]
		want := 4.0
		if m.AtMs > 1772409600000+11*60_000 {
			want = 8
		}
		if o.Values[event.NumShufflePartitions] != want || float64(o.Instances) != want {
			t.Errorf("batch %d at %d: %v partitions and %d stores, want %v", b.ID, m.AtMs, o.Values[event.NumShufflePartitions], o.Instances, want)
		}
	})
}

func TestEvaluatingTwiceMultipliesAllFigures(t *testing.T) {
	foreach := func(s string) string {
		return replaced(s, "  operators:", "  sink: {kind: foreach_batch}\n  operators:")
	}
	var once, twice []float64
	gather := func(to *[]float64, faults ...string) {
		batches(t, withFaults(t, "false", foreach, faults...), func(_ *played, b *event.Batch) {
			v := &b.Operators[0].Values
			*to = append(*to, v[event.NumShufflePartitions], v[event.NumRowsTotal], v[event.RocksDBGetCount], b.Values[event.NumInputRows])
		})
	}
	gather(&once, "kind: store-slow, from_batch: 23")
	gather(&twice, "kind: evaluated-twice, from_batch: 10")
	for i := range 4 * 10 {
		if once[i] != twice[i] {
			t.Fatalf("figure %d of batch %d differs before the fault", i%4, i/4)
		}
	}
	for i := 0; i < 3; i++ {
		if at := 4*10 + i; twice[at] != 2*once[at] {
			t.Errorf("figure %d: %v became %v", i, once[at], twice[at])
		}
	}
	if once[4*10+3] != twice[4*10+3] {
		t.Error("input rows must not multiply")
	}
}

func TestTheSecondRunOnOneCheckpointAlternatesAndLoses(t *testing.T) {
	ms := withFaults(t, "false", nil, "kind: checkpoint-shared, from_batch: 8, to_batch: 14")
	words := said(t, ms)
	if count(words, "failed CONCURRENT_STREAM_LOG_UPDATE") != 1 || count(words, "started") != 2 {
		t.Fatalf("%v", words)
	}
	runs, changes, last := map[string]int{}, 0, ""
	batches(t, ms, func(_ *played, b *event.Batch) {
		runs[string(b.Run)]++
		if last != "" && last != string(b.Run) {
			changes++
		}
		last = string(b.Run)
	})
	if len(runs) != 2 || changes < 6 {
		t.Errorf("runs %v take turns %d times", runs, changes)
	}
}

func TestDroppedEventsAreMissingAndNotCounted(t *testing.T) {
	ms := withFaults(t, "true", nil, "kind: events-dropped, from_batch: 5, share: 60%")
	var seqs []int64
	seen := 0
	decoded(t, ms, func(_ *played, e *event.Event) {
		seqs = append(seqs, e.Envelope.Seq)
		if e.Envelope.Dropped != 0 {
			t.Error("the sender counts what it never saw")
		}
		if e.Kind == event.KindProgress {
			seen++
		}
	})
	if seen == 24 || seen < 6 {
		t.Errorf("%d batches arrive", seen)
	}
	for i, n := range seqs {
		if n != int64(i+1) {
			t.Fatalf("envelope %d has number %d", i+1, n)
		}
	}
}

func TestALostSenderIsSilentAndCountsWhatItDropped(t *testing.T) {
	ms := withFaults(t, "true", nil, "kind: sender-lost, from_batch: 8, to_batch: 12")
	var longest, last, dropped int64
	decoded(t, ms, func(m *played, e *event.Event) {
		if last > 0 {
			longest = max(longest, m.AtMs-last)
		}
		last, dropped = m.AtMs, e.Envelope.Dropped
	})
	if dropped != 4 || longest < 3*60_000 {
		t.Errorf("%d dropped, the longest silence is %d ms", dropped, longest)
	}
}

func TestHeartbeatsTellALongBatchFromADeadDriver(t *testing.T) {
	hung := withFaults(t, "true", nil, "kind: batch-hung, from_batch: 8, for: 1h")
	busy := 0
	decoded(t, hung, func(_ *played, e *event.Event) {
		if e.Kind == event.KindHeartbeat && len(e.Envelope.Active) == 1 && e.Envelope.Active[0].TriggerActive {
			busy++
		}
	})
	if busy < 110 || busy > 130 {
		t.Errorf("%d heartbeats say that a batch runs", busy)
	}
	frozen := withFaults(t, "true", nil, "kind: driver-frozen, from_batch: 8")
	beats := 0
	for i := len(frozen) - 1; frozen[i].Kind != event.KindProgress; i-- {
		beats++
	}
	if last := frozen[len(frozen)-1-beats]; last.Batch != 7 || beats > 2 {
		t.Errorf("a dead driver reports batch %d at last, and sends %d heartbeats", last.Batch, beats)
	}
}

func TestHeartbeatsComeEveryThirtySecondsWhileAQueryRuns(t *testing.T) {
	ms := withFaults(t, "true", nil, "kind: outage, from_batch: 8, for: 30m")
	checkOrder(t, ms)
	var last int64
	decoded(t, ms, func(m *played, e *event.Event) {
		if e.Kind != event.KindHeartbeat {
			return
		}
		if last > 0 && m.AtMs-last != 30_000 && m.AtMs-last < 20*60_000 {
			t.Errorf("a heartbeat %d ms after the last", m.AtMs-last)
		}
		last = m.AtMs
		if len(e.Envelope.Active) == 0 {
			t.Error("a heartbeat without a query")
		}
	})
	if last == 0 {
		t.Error("no heartbeat")
	}
}

func TestQueriesOfAScenarioAreTheirOwn(t *testing.T) {
	ms := withFaults(t, "true", func(s string) string { return replaced(s, "batches: 24", "batches: 5\nqueries: 3") },
		"kind: store-slow, from_batch: 2, query: 2", "kind: crash, from_batch: 3, query: 3")
	names, senders := map[string]int{}, map[string]int{}
	decoded(t, ms, func(_ *played, e *event.Event) {
		senders[e.Envelope.Sender]++
		if e.Kind == event.KindProgress {
			names[e.Query.Name]++
		}
	})
	if len(names) != 3 || names["test-2"] != 5 {
		t.Errorf("batches by query: %v", names)
	}
	// The one that crashes by itself has an application of its own, and a second
	// one after the crash.
	if len(senders) != 3 {
		t.Errorf("envelopes by sender: %v", senders)
	}
}

func TestExecutorsComeAndGo(t *testing.T) {
	ms := withFaults(t, "true", nil, "kind: autoscale-churn, from_batch: 6, every: 4, count: 3", "kind: executor-lost, from_batch: 12")
	counts := map[int64]bool{}
	losses := int64(0)
	decoded(t, ms, func(_ *played, e *event.Event) {
		if x := e.Envelope.Executors; x != nil {
			counts[x.Count] = true
			losses = max(losses, x.Losses)
		}
	})
	if !counts[2] || !counts[5] || losses != 1 {
		t.Errorf("numbers of executors %v, %d lost", counts, losses)
	}
}
