package simulator

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// busy is a scenario in which much happens: two operators, two queries, moves,
// losses, restarts and batches that are evaluated twice.
const busy = `
description: Everything at once
spark_version: 4.3
queries: 2
envelope: true
batches: 24
query:
  trigger: {interval: 10s}
  watermark_delay: 20s
  operators:
    - kind: dedupe
    - kind: aggregation
      window: 20s
  sources:
    - rows_per_second: 60
      keys: {count: 500}
      duplicates: 10%
      late: {typical: 2s, share: 2%, by: 2m}
  sink: {kind: foreach_batch}
cluster:
  executors: 3
  cores: 2
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: "true"
  spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage: "true"
  spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB: "24"
  spark.sql.streaming.stateStore.maintenanceInterval: 30s
  spark.sql.shuffle.partitions: "6"
faults:
  - {kind: evaluated-twice, from_batch: 9, to_batch: 21}
  - {kind: executor-lost, from_batch: 13}
  - {kind: restart, from_batch: 17}
  - {kind: locality-lost, from_batch: 20, share: 30%}
healthy: true
`

func TestSameScenarioAndSeedGiveTheSameBytes(t *testing.T) {
	sc := parse(t, busy)
	record := func(procs, parallel int, seed uint64) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		return lines(play(t, start(t, sc, Options{Seed: seed, Parallel: parallel}), all))
	}
	want := record(2, 1, 3)
	for _, c := range []struct {
		name            string
		procs, parallel int
	}{
		{"again", 2, 1},
		{"on one processor", 1, 1},
		{"with executors at once", 2, 2},
		{"with all executors at once on one processor", 1, 3},
	} {
		if raced && c.procs*c.parallel != 4 {
			continue // only what runs at once can race
		}
		if got := record(c.procs, c.parallel, 3); !bytes.Equal(got, want) {
			t.Errorf("%s: %s", c.name, firstDifference(want, got))
		}
	}
	if bytes.Equal(record(2, 1, 4), want) {
		t.Error("another seed changes nothing")
	}
}

func TestWhereTheCheckpointLiesChangesNoEvent(t *testing.T) {
	sc := parse(t, busy)
	want := lines(play(t, start(t, sc, Options{Seed: 3}), 20))
	got := lines(play(t, start(t, sc, Options{Seed: 3, FS: vfs.Default, Dir: t.TempDir()}), 20))
	if !bytes.Equal(got, want) {
		t.Error(firstDifference(want, got))
	}
}

// firstDifference shows where two outputs part.
func firstDifference(want, got []byte) string {
	w, g := bytes.Split(want, []byte("\n")), bytes.Split(got, []byte("\n"))
	for i := range min(len(w), len(g)) {
		if bytes.Equal(w[i], g[i]) {
			continue
		}
		at := 0
		for at < min(len(w[i]), len(g[i])) && w[i][at] == g[i][at] {
			at++
		}
		from := max(0, at-80)
		return "line " + string(rune('0'+i%10)) + " differs: ..." + string(w[i][from:min(len(w[i]), at+40)]) + " became ..." + string(g[i][from:min(len(g[i]), at+40)])
	}
	return "one output is longer"
}
