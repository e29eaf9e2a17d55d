package simulator

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

const sized = `
description: For measuring
spark_version: 4.1
batches: 1000000
query:
  trigger: {interval: 1m}
  operators:
    - {kind: aggregation, initial_rows: KEYS}
  sources:
    - kind: rate
      rows_per_second: RATE
      row_bytes: 100
      keys: {count: KEYS}
cluster: {executors: 4, cores: 4, real_stores: REAL}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: "CHANGELOG"
  spark.sql.shuffle.partitions: "PARTITIONS"
healthy: true
`

// BenchmarkBatches measures whole batches: the sizes that the simulator is meant
// for, and how their cost grows with partitions, rows of state and rows of a
// batch. Batches a second are those of the clock, which others' work slows down;
// processor time a batch is the program's own.
func BenchmarkBatches(b *testing.B) {
	for _, c := range []struct {
		partitions, keys, rows, real int
		changelog                    bool
	}{
		{16, 100_000, 1000, 0, false}, // at least 30 batches/s on two cores
		{16, 100_000, 1000, 0, true},  // 120
		{200, 100_000, 2000, 0, true}, // 8
		{200, 100_000, 2000, 4, true}, // 200
		{4, 100_000, 1000, 0, true},
		{64, 100_000, 1000, 0, true},
		{16, 10_000, 1000, 0, true},
		{16, 400_000, 1000, 0, true},
		{16, 100_000, 10_000, 0, true},
	} {
		b.Run(fmt.Sprintf("partitions=%d/keys=%d/rows=%d/real=%d/changelog=%t", c.partitions, c.keys, c.rows, c.real, c.changelog), func(b *testing.B) {
			text := replaced(replaced(sized, "RATE", fmt.Sprint(float64(c.rows)/60)), "KEYS", fmt.Sprint(c.keys))
			text = replaced(replaced(text, "REAL", fmt.Sprint(c.real)), "CHANGELOG", fmt.Sprint(c.changelog))
			s := start(b, parse(b, replaced(text, "PARTITIONS", fmt.Sprint(c.partitions))), Options{Seed: 1, Parallel: 2})
			play(b, s, 13)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if _, err := s.Next(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/1e6/float64(b.N), "cpu-ms/batch")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
		})
	}
}

// cpuTime is the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
