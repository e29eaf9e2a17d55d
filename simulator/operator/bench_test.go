package operator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// hollow is a store with nothing in it that takes no time: what is left is the
// operator's own cost.
type hollow struct {
	figures store.Figures
	version int64
}

func (h *hollow) Load(int64) error                                         { return nil }
func (h *hollow) Get(byte, []byte) ([]byte, bool, error)                   { return nil, false, nil }
func (h *hollow) Put(byte, []byte, []byte) error                           { return nil }
func (h *hollow) Delete(byte, []byte) error                                { return nil }
func (h *hollow) Scan(_ byte, _, _ []byte, _ func(_, _ []byte) bool) error { return nil }
func (h *hollow) Commit() error                                            { h.version++; return nil }
func (h *hollow) Abort() error                                             { return nil }
func (h *hollow) Figures() *store.Figures                                  { return &h.figures }

// mixed is rows of few keys on both sides.
func mixed(n int) []workload.Row {
	rows := ordered(0, n, startMs)
	for i := range rows {
		rows[i].Key = uint64(i*7919) % uint64(max(n/3, 1))
		rows[i].Side = uint8(i & 1)
	}
	return rows
}

// BenchmarkRows is what operators cost per row, stores aside.
func BenchmarkRows(b *testing.B) {
	all := kinds()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			conf := changelog
			o, err := New(all[name], newest, &conf)
			if err != nil {
				b.Fatal(err)
			}
			task, result := hollowTask(o), Result{}
			task.Rows = mixed(1000)
			b.ReportAllocs()
			for b.Loop() {
				if err := o.Run(&task, &result); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(task.Rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func hollowTask(o *Operator) Task {
	task := Task{Meter: &meter{}, NowMs: startMs}
	for range o.StoreNames() {
		task.Stores = append(task.Stores, &hollow{})
	}
	return task
}

// BenchmarkGroupingVersusGoMap measures the table of groups beside a Go map, which
// would not keep the order either.
func BenchmarkGroupingVersusGoMap(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rows := mixed(n)
			var g groups
			peer := map[cell]int64{}
			var ours, theirs time.Duration
			for b.Loop() {
				start := time.Now()
				g.fill(rows, 1000)
				middle := time.Now()
				clear(peer)
				for i := range rows {
					peer[cell{rows[i].Key, windowStart(rows[i].EventMs, 1000)}]++
				}
				ours += middle.Sub(start)
				theirs += time.Since(middle)
			}
			if len(peer) != len(g.list) {
				b.Fatalf("%d groups, the map has %d", len(g.list), len(peer))
			}
			b.ReportMetric(float64(ours)/float64(theirs), "x_peer")
		})
	}
}

// BenchmarkTaskVersusBareStore measures batches of deduplication on real stores
// beside the same reads, writes and scan made by hand: what the operator adds.
func BenchmarkTaskVersusBareStore(b *testing.B) {
	conf := realConf(spark.RocksDB, true, 2)
	conf.MinDeltasForSnapshot = 10
	spec := Spec{Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true}
	v := event.Version{Major: 4, Minor: 1, Patch: 4}
	o, err := New(spec, v, &conf)
	if err != nil {
		b.Fatal(err)
	}
	ours, bare := newReal(b, o, v, conf), newReal(b, o, v, conf)
	var took, peer time.Duration
	n := 0
	for b.Loop() {
		rows := ordered(n, 1000, startMs+int64(n))
		n += len(rows)
		evict := startMs + int64(n) - 10_000 // ten batches stay
		start := time.Now()
		ours.task.Rows, ours.task.EvictMs, ours.task.Collect = rows, evict, false
		if err := o.Run(&ours.task, &ours.result); err != nil {
			b.Fatal(err)
		}
		ours.task.Version++
		middle := time.Now()
		byHand(b, bare.task.Stores[0], int64(n/1000-1), rows, evict)
		took += middle.Sub(start)
		peer += time.Since(middle)
	}
	b.ReportMetric(float64(took)/float64(peer), "x_peer")
	b.ReportMetric(float64(n)/took.Seconds(), "rows/s")
}

func byHand(b *testing.B, s store.Store, version int64, rows []workload.Row, evictMs int64) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(s.Load(version))
	value := appendRow(nil, 0)
	var key []byte
	for i := range rows {
		key = appendRow(key[:0], rows[i].Key, micros(rows[i].EventMs))
		if _, found, err := s.Get(0, key); found || err != nil {
			b.Fatal(found, err)
		}
		must(s.Put(0, key, value))
	}
	var gone [][]byte
	must(s.Scan(0, nil, nil, func(key, _ []byte) bool {
		if millisAt(key, prefix+word) <= evictMs {
			gone = append(gone, slices.Clone(key))
		}
		return true
	}))
	for _, key := range gone {
		must(s.Delete(0, key))
	}
	must(s.Commit())
}
