package operator

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
)

// real is one partition of an operator on the stores of a simulated executor.
type real struct {
	tb       testing.TB
	o        *Operator
	options  store.Options
	executor *store.Executor
	task     Task
	result   Result
}

func newReal(tb testing.TB, o *Operator, v event.Version, conf spark.Conf) *real {
	tb.Helper()
	dir, err := checkpoint.Open(vfs.NewMem(), "checkpoint")
	if err != nil {
		tb.Fatal(err)
	}
	node, err := device.NewNode(device.DefaultModel(), device.DefaultNoise(), device.Name{})
	if err != nil {
		tb.Fatal(err)
	}
	r := &real{tb: tb, o: o, options: store.Options{
		FS: vfs.NewMem(), Checkpoint: dir, Conf: &conf, Version: v, Meter: node, Seed: 1,
	}}
	r.task.Meter, r.task.Collect = node, true
	r.restart()
	return r
}

// restart loses the executor with its disk: the next load is from the checkpoint.
func (r *real) restart() {
	r.tb.Helper()
	if r.executor != nil {
		if err := r.executor.Lose(); err != nil {
			r.tb.Fatal(err)
		}
	}
	r.options.Salt++
	r.options.Dir = fmt.Sprintf("disk%d", r.options.Salt)
	x, err := store.NewExecutor(r.options)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.executor, r.task.Stores = x, nil
	for _, name := range r.o.StoreNames() {
		s, err := x.Store(store.ID{Name: name}, r.o.Families())
		if err != nil {
			r.tb.Fatal(err)
		}
		r.task.Stores = append(r.task.Stores, s)
	}
}

func (r *real) run(like *bench) *Result {
	r.tb.Helper()
	t := &like.task
	r.task.Rows, r.task.LateMs, r.task.EvictMs, r.task.NowMs = t.Rows, t.LateMs, t.EvictMs, t.NowMs
	r.task.Out = r.result.Out
	if err := r.o.Run(&r.task, &r.result); err != nil {
		r.tb.Fatal(err)
	}
	r.task.Version++
	return &r.result
}

// realConf is what stores need to know, with snapshots and uploads every few batches.
func realConf(provider spark.Provider, withChangelog bool, format int) spark.Conf {
	return spark.Conf{
		Provider: provider, Changelog: withChangelog, TrackRows: true, ResetStatsOnLoad: true, BlockBytes: 4 << 10,
		BlockCacheBytes: 1 << 20, MinDeltasForSnapshot: 4, MinBatchesToRetain: 10, MaxBatchesInMemory: 2,
		CheckpointFormat: 1, JoinFormat: format,
	}
}

func TestRealStoresGiveTheSameFiguresAsTheFake(t *testing.T) {
	for name, spec := range kinds() {
		for _, v := range []string{"3.4", "3.5", "4.0", "4.3"} {
			for _, conf := range []spark.Conf{
				realConf(spark.RocksDB, true, 2), realConf(spark.RocksDB, false, 3), realConf(spark.RocksDB, true, 4),
				realConf(spark.HDFS, false, 2),
			} {
				o, err := New(spec, version(t, v), &conf)
				if err != nil || conf.JoinFormat > 2 && spec.Kind != spark.Join || conf.Changelog && v == "3.4" {
					continue // not to be had together
				}
				t.Run(fmt.Sprintf("%s %s provider %d format %d", name, v, conf.Provider, conf.JoinFormat), func(t *testing.T) {
					compareReal(t, o, newBench(t, spec, version(t, v), conf), newReal(t, o, version(t, v), conf))
				})
			}
		}
	}
}

func compareReal(t *testing.T, o *Operator, b *bench, r *real) {
	t.Helper()
	in := newInput(4, 25)
	for batch := range 12 {
		want, got := b.feed(in, in.next(true)), r.run(b)
		if got.Updated != want.Updated || got.Removed != want.Removed || got.Dropped != want.Dropped ||
			got.RowsTotal != want.RowsTotal || got.Output != want.Output {
			t.Fatalf("batch %d: real stores gave %+v, the fake %+v", batch, got, want)
		}
		wantOut(t, got.Out, want.Out)
		if got.Load < 0 || got.Update < 0 || got.Removal < 0 || got.Commit <= 0 {
			t.Fatalf("batch %d: times %v %v %v %v", batch, got.Load, got.Update, got.Removal, got.Commit)
		}
		compareNative(t, batch, &got.Custom, &want.Custom, o.version)
		if batch%3 == 2 {
			if _, err := r.executor.Maintain(); err != nil {
				t.Fatal(err)
			}
		}
		if batch == 4 || batch == 9 {
			r.restart()
		}
	}
}

// compareNative compares what RocksDB counts. In 3.4 it counts a batch of writes
// as one, and reads of what was just written not at all.
func compareNative(t *testing.T, batch int, got, want *event.Vector, v event.Version) {
	t.Helper()
	if !got.Has(event.RocksDBGetCount) || v.Less(spark.V35) {
		return
	}
	for _, id := range []event.MetricID{
		event.RocksDBGetCount, event.RocksDBPutCount, event.RocksDBTotalBytesRead, event.RocksDBNumInternalColFamiliesKeys,
	} {
		if got.Has(id) && got[id] != want[id] {
			t.Fatalf("batch %d: %s is %v, the fake has %v", batch, event.Lookup(id).JSON, got[id], want[id])
		}
	}
}
