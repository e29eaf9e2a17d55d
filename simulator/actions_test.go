package simulator

import (
	"fmt"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// twofold is the plain scenario with a sink that takes several actions.
func twofold(version, provider, changelog string) func(string) string {
	return func(s string) string {
		s = replaced(s, "  operators:", "  sink: {kind: foreach_batch}\n  operators:")
		s = replaced(s, "spark_version: 3.5", "spark_version: "+version)
		s = replaced(s, "RocksDBStateStoreProvider", provider)
		return replaced(s, "conf:\n", "conf:\n  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: \""+changelog+"\"\n"+
			"  spark.sql.streaming.stateStore.minDeltasForSnapshot: \"4\"\n")
	}
}

// evaluated are the figures of all batches, with a fault from batch 10 on or, where
// it is empty, without.
func evaluated(t *testing.T, change func(string) string, faults ...string) (out []*event.Batch) {
	t.Helper()
	if len(faults) == 0 {
		faults = []string{"kind: store-slow, from_batch: 23"}
	}
	batches(t, withFaults(t, "false", change, faults...), func(_ *played, b *event.Batch) {
		c := *b
		c.Operators = append([]event.Operator(nil), b.Operators...)
		out = append(out, &c)
	})
	return out
}

// An action that runs once more loads and commits the version that is already
// there: state must come out as if there had been one, also for a later run that
// reads it from the checkpoint.
func TestStateIsTheSameHoweverOftenABatchIsEvaluated(t *testing.T) {
	const rocks, hdfs = "RocksDBStateStoreProvider", "HDFSBackedStateStoreProvider"
	for _, c := range []struct{ version, provider, changelog string }{
		{"3.4", rocks, "true"},
		{"3.5", rocks, "true"},
		{"3.5", rocks, "false"},
		{"4.0", rocks, "true"},
		{"4.3", rocks, "true"},
		{"4.3", rocks, "false"},
		{"4.1", hdfs, "false"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			change := twofold(c.version, c.provider, c.changelog)
			ends := []string{"kind: restart, from_batch: 15", "kind: executor-lost, from_batch: 19"}
			once := evaluated(t, change, ends...)
			again := evaluated(t, change, append(ends, "kind: evaluated-twice, from_batch: 10, count: 3")...)
			if len(once) != len(again) {
				t.Fatalf("%d batches became %d", len(once), len(again))
			}
			for i := range once {
				times := 1.0
				if once[i].ID >= 10 {
					times = 3
				}
				a, b := once[i].Operators[0].Values, again[i].Operators[0].Values
				for _, id := range []event.MetricID{event.NumRowsTotal, event.NumShufflePartitions, event.NumStateStoreInstances} {
					if b[id] != times*a[id] {
						t.Errorf("batch %d: figure %d is %v, and %v with more actions", once[i].ID, id, a[id], b[id])
					}
				}
			}
		})
	}
}

func TestEachActionAfterTheFirstLoadsItsVersionFromTheCheckpoint(t *testing.T) {
	change := func(s string) string {
		return replaced(twofold("4.3", "RocksDBStateStoreProvider", "true")(s), "{kind: aggregation, window: 1m}", "{kind: dedupe}")
	}
	for _, b := range evaluated(t, change, "kind: evaluated-twice, from_batch: 10, to_batch: 20") {
		v := &b.Operators[0].Values
		loaded := v[event.RocksDBNumLoadedFromDfs] + v[event.RocksDBNumReplayChangelogFiles]
		if twice := b.ID >= 10 && b.ID < 20; twice != (loaded > 0) {
			t.Errorf("batch %d: %v snapshots fetched, %v changelogs replayed", b.ID, v[event.RocksDBNumLoadedFromDfs], v[event.RocksDBNumReplayChangelogFiles])
		}
	}
}

// Spark 3.5 counts deltas from nothing once a version was loaded behind a snapshot
// that it had cut and not uploaded: without maintenance each commit cuts another.
func TestASecondActionCutsSnapshotsUntilOneIsUploaded(t *testing.T) {
	change := func(s string) string {
		s = replaced(twofold("3.5", "RocksDBStateStoreProvider", "true")(s), "{kind: aggregation, window: 1m}", "{kind: dedupe}")
		return replaced(s, "conf:\n", "conf:\n  spark.sql.streaming.stateStore.maintenanceInterval: 10h\n")
	}
	cut := func(faults ...string) (n int) {
		for _, b := range evaluated(t, change, faults...) {
			if b.ID >= 10 && b.Operators[0].Values[event.RocksDBTotalBytesWrittenByFlush] > 0 {
				n++
			}
		}
		return n
	}
	if one, two := cut(), cut("kind: evaluated-twice, from_batch: 10"); one > 4 || two != 14 {
		t.Errorf("of 14 batches %d cut a snapshot with one action and %d with two, want at most 4 and all", one, two)
	}
}

// Spark keeps what was written for a shuffle: a further action runs the tasks
// behind the last one and reads no input again.
func TestOnlyTheLastOperatorIsEvaluatedAgain(t *testing.T) {
	change := func(s string) string {
		return replaced(twofold("4.3", "RocksDBStateStoreProvider", "true")(s), "    - {kind: aggregation, window: 1m}\n",
			"    - {kind: dedupe}\n    - {kind: aggregation, window: 1m}\n")
	}
	once, twice := evaluated(t, change), evaluated(t, change, "kind: evaluated-twice, from_batch: 10")
	for i := range twice {
		first, last := twice[i].Operators[0].Instances, twice[i].Operators[1].Instances
		want := int32(4)
		if twice[i].ID >= 10 {
			want = 8
		}
		if first != 4 || last != want {
			t.Errorf("batch %d: %d and %d stores, want 4 and %d", twice[i].ID, first, last, want)
		}
		if a, b := once[i].Values[event.NumInputRows], twice[i].Values[event.NumInputRows]; a != b {
			t.Errorf("batch %d: %v rows became %v", twice[i].ID, a, b)
		}
	}
}
