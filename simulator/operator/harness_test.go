package operator

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// bench is one partition of an operator with its stores.
type bench struct {
	tb     testing.TB
	o      *Operator
	fakes  []*fake
	task   Task
	result Result
	meter  meter
}

// newest is the Spark version that tests play where it does not matter.
var newest = event.Version{Major: 4, Minor: 3}

func version(tb testing.TB, text string) event.Version {
	tb.Helper()
	v, err := spark.ParseVersion(text)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func newBench(tb testing.TB, spec Spec, v event.Version, conf spark.Conf) *bench {
	tb.Helper()
	o, err := New(spec, v, &conf)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{tb: tb, o: o}
	for range o.StoreNames() {
		f := newFake(o.Families())
		b.fakes = append(b.fakes, f)
		b.task.Stores = append(b.task.Stores, store.Store(f))
	}
	b.task.Meter = &b.meter
	b.task.Collect = true
	return b
}

// batch runs the next batch with the watermark so far, and checks what is true of all.
func (b *bench) batch(rows []workload.Row, lateMs, evictMs, nowMs int64) *Result {
	b.tb.Helper()
	b.task.Rows, b.task.LateMs, b.task.EvictMs, b.task.NowMs = rows, lateMs, evictMs, nowMs
	b.task.Out = b.result.Out
	if err := b.o.Run(&b.task, &b.result); err != nil {
		b.tb.Fatal(err)
	}
	b.task.Version++
	b.check()
	return &b.result
}

func (b *bench) check() {
	b.tb.Helper()
	r := &b.result
	for _, n := range []int64{
		r.Updated, r.Removed, r.Dropped, r.RowsTotal, r.Output, r.MemoryBytes,
		int64(r.Update), int64(r.Removal), int64(r.Commit), int64(r.Load), int64(r.Other),
	} {
		if n < 0 {
			b.tb.Fatalf("negative figure in %+v", r)
		}
	}
	for id, v := range r.Custom {
		if v < 0 {
			b.tb.Fatalf("%s is %v", event.Lookup(event.MetricID(id)).JSON, v)
		}
	}
	if r.Output != int64(len(r.Out)) {
		b.tb.Fatalf("output is %d, rows handed on %d", r.Output, len(r.Out))
	}
	if r.Instances != len(b.fakes) || len(r.Uploaded) != len(b.fakes) {
		b.tb.Fatalf("instances %d, uploads %v, stores %d", r.Instances, r.Uploaded, len(b.fakes))
	}
	var rows int64
	var spent time.Duration
	for i, f := range b.fakes {
		if b.o.Reports(i) {
			rows += f.rows(false)
		}
		spent += f.figures.Load + f.figures.Get + f.figures.Put + f.figures.Scan + f.figures.Commit
	}
	if r.RowsTotal != rows {
		b.tb.Fatalf("rows total %d, in state %d", r.RowsTotal, rows)
	}
	spent += time.Duration(b.meter.rows) * time.Microsecond
	b.meter.rows = 0
	if r.Total() != spent {
		b.tb.Fatalf("task took %v, its parts %v", spent, r.Total())
	}
}

// want compares the counts that a model says.
func (b *bench) want(what string, updated, removed, dropped, total int64) {
	b.tb.Helper()
	r := &b.result
	got := [4]int64{r.Updated, r.Removed, r.Dropped, r.RowsTotal}
	if want := [4]int64{updated, removed, dropped, total}; got != want {
		b.tb.Fatalf("%s: updated, removed, dropped, total are %v, want %v", what, got, want)
	}
}

// wantOut compares output regardless of order.
func wantOut(tb testing.TB, got, want []workload.Row) {
	tb.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortFunc(got, compareRows)
	slices.SortFunc(want, compareRows)
	if !slices.EqualFunc(got, want, func(a, b workload.Row) bool { return compareRows(a, b) == 0 }) {
		tb.Fatalf("output is %v,\nwant %v", got, want)
	}
}

func compareRows(a, b workload.Row) int {
	if a.Key != b.Key {
		return cmpInt(a.Key, b.Key)
	}
	return cmpInt(a.EventMs, b.EventMs)
}

func cmpInt[T uint64 | int64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// input makes rows with few keys, times that trail behind now, and copies.
type input struct {
	rng  *rand.Rand
	keys uint64
	nowMs,
	lateMs, evictMs int64
}

const startMs = 1_772_409_600_000

func newInput(seed, keys uint64) *input {
	return &input{rng: rand.New(rand.NewPCG(seed, 7)), keys: keys, nowMs: startMs}
}

// next moves on by some seconds: event time trails, the watermark follows.
func (in *input) next(watermark bool) []workload.Row {
	in.nowMs += 1000 + in.rng.Int64N(4000)
	if watermark {
		in.lateMs = in.evictMs
		in.evictMs = in.nowMs - 12_000
	}
	n := in.rng.IntN(60)
	if in.rng.IntN(8) == 0 {
		n = 0
	}
	var rows []workload.Row
	for range n {
		row := workload.Row{
			Key: in.rng.Uint64N(in.keys), Bytes: int32(20 + in.rng.IntN(100)), Side: uint8(in.rng.IntN(2)),
			EventMs: in.nowMs - in.rng.Int64N(4000)/100*100,
		}
		if in.rng.IntN(12) == 0 {
			row.EventMs -= 20_000
		}
		rows = append(rows, row)
		if in.rng.IntN(6) == 0 {
			row.Again = true
			rows = append(rows, row)
		}
	}
	return rows
}

func (b *bench) feed(in *input, rows []workload.Row) *Result {
	b.tb.Helper()
	return b.batch(rows, in.lateMs, in.evictMs, in.nowMs)
}

var changelog = spark.Conf{Provider: spark.RocksDB, Changelog: true, TrackRows: true, JoinFormat: 2}
