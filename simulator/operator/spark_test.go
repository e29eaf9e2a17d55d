package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// What running Spark reported of the jobs in listeners/integration. The numbers
// are those of batches in testdata/spark: reads and writes follow from what an
// operator does for its rows, so they must come out the same to the last one.

// native is what RocksDB counted in a batch; -1: sizes that ours does not share.
type native struct{ gets, puts, read, written, scanned int64 }

func (b *bench) wantNative(what string, want native) {
	b.tb.Helper()
	for _, f := range []struct {
		id   event.MetricID
		want int64
	}{
		{event.RocksDBGetCount, want.gets},
		{event.RocksDBPutCount, want.puts},
		{event.RocksDBTotalBytesRead, want.read},
		{event.RocksDBTotalBytesWritten, want.written},
		{event.RocksDBTotalBytesReadThroughIterator, want.scanned},
	} {
		if got := b.result.Custom[f.id]; f.want >= 0 && got != float64(f.want) {
			b.tb.Errorf("%s: %s is %v, Spark had %d", what, event.Lookup(f.id).JSON, got, f.want)
		}
	}
}

// ordered makes n rows with keys of their own, a millisecond apart.
func ordered(from, n int, ms int64) []workload.Row {
	rows := make([]workload.Row, n)
	for i := range rows {
		rows[i] = workload.Row{Key: uint64(from + i), EventMs: ms + int64(i), Bytes: 16}
	}
	return rows
}

func TestDedupeReadsAndWritesWhatSparkDid(t *testing.T) {
	spec := Spec{Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true}
	// 3.5.8, quiet-dedupe: first 1800 rows and 180 copies, then in every batch 400
	// and 40, while as many leave.
	b := newBench(t, spec, version(t, "3.5.8"), changelog)
	first := ordered(0, 1800, startMs)
	b.batch(append(first, first[:180]...), 0, 0, startMs)
	b.wantNative("first batch", native{3780, 1800, 3060, 102600, 75600})
	b.want("first batch", 1800, 0, 0, 1800)

	rest := ordered(1800, 2600, startMs+1800)
	b.batch(rest, 0, 0, startMs)
	next := ordered(4400, 400, startMs+4400)
	b.batch(append(next, next[:40]...), 0, startMs+399, startMs)
	b.wantNative("steady batch", native{1240, 800, 7480, 38400, 201600})
	b.want("steady batch", 400, 400, 0, 4400)
}

func TestDedupeAsksTwiceForWhatExistsFrom42On(t *testing.T) {
	spec := Spec{Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true}
	// 4.2.1, dedupe-changelog: 499 rows and 50 copies in time, 499 leave, one is late.
	b := newBench(t, spec, version(t, "4.2.1"), changelog)
	b.batch(ordered(0, 10479, startMs), 0, 0, startMs)
	next := ordered(10479, 499, startMs+10479)
	late := workload.Row{Key: 1 << 40, EventMs: startMs - 1000}
	b.batch(append(append(next, next[:50]...), late), startMs-1000, startMs+498, startMs)
	b.wantNative("steady batch", native{1597, 998, 10183, 47904, 461076})
	b.want("steady batch", 499, 499, 1, 10479)

	// 4.3.0, dedupe-restart, first batch: what was read to evict is reported too.
	b = newBench(t, spec, version(t, "4.3.0"), changelog)
	first := ordered(0, 6000, startMs)
	b.batch(append(first, first[:600]...), 0, 0, startMs)
	b.wantNative("first batch", native{13200, 6000, 20400, 342000, 252000})
	wantCustom(b, event.NumRowsReadDuringEviction, 6000)
}

func TestDedupeWithLongKeysWritesWhatSparkDid(t *testing.T) {
	// 4.3.0, stall: a thousand bytes more in each key. RocksDB's lengths take two
	// bytes there, which the fake does not know.
	spec := Spec{Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true, ValueBytes: 1000}
	b := newBench(t, spec, newest, changelog)
	b.batch(ordered(0, 14000, startMs), 0, 0, startMs)
	b.wantNative("first batch", native{-1, 14000, 0, 14924000 - 14000, 14700000})
}

func TestAggregationReadsAndWritesWhatSparkDid(t *testing.T) {
	spec := Spec{Kind: spark.Aggregation, Mode: Update, Watermark: true, Window: 10 * time.Second}
	// 4.3.0, agg-changelog: 3803 groups, then 1023 of which 490 are there already
	// and 16 windows close.
	b := newBench(t, spec, version(t, "4.3.0"), changelog)
	b.batch(same(0, 3803, startMs), 0, 0, startMs)
	b.wantNative("first batch", native{7606, 3803, 0, 338467, 281422})
	old := same(90_000, 16, startMs-60_000)
	b.batch(old, 0, 0, startMs)
	known := same(0, 482, startMs)
	b.batch(append(known, same(10_000, 541, startMs)...), 0, startMs-50_000, startMs)
	b.wantNative("second batch", native{2062, 1039, 2*482*25 + 16*25, 92055, (3803 + 16 + 541) * 74})
	b.want("second batch", 1023, 16, 0, 3803+541)
	// A late group is read, and only then dropped: batch 22 had one, 405 others,
	// and 811 reads.
	late := same(0, 1, startMs-60_000)
	b.batch(append(same(20_000, 405, startMs), late...), startMs-50_000, startMs-50_000, startMs)
	b.wantNative("batch with a late group", native{811, 405, -1, 36045, -1})
	b.want("batch with a late group", 405, 0, 1, 3803+541+405)
}

// same makes n rows with keys of their own at one event time.
func same(from, n int, ms int64) []workload.Row {
	rows := ordered(from, n, ms)
	for i := range rows {
		rows[i].EventMs = ms
	}
	return rows
}

func TestJoinReadsAndWritesWhatSparkDid(t *testing.T) {
	// 4.1.4, join-bounded: 5000 pairs; then 2500, of which five are late on both
	// sides: the left ones are stored and removed, the right ones not stored; with
	// twenty from before they make 25 removed.
	for _, v := range []string{"3.5.8", "4.1.4", "4.3.0"} {
		spec := Spec{Kind: spark.Join, Watermark: true, Bounded: true, Bound: 5 * time.Second}
		b := newBench(t, spec, version(t, v), changelog)
		pairs := append(pair2(10, 4990, startMs), pair2(0, 10, startMs-30_000)...)
		b.batch(pairs, 0, 0, startMs)
		b.wantNative(v+" first batch", native{30000, 15000, 660000, 1095000, 0})
		b.want(v+" first batch", 10000, 0, 0, 10000)
		if b.result.Output != 5000 {
			t.Errorf("output is %d, want 5000", b.result.Output)
		}
		pairs = append(pair2(10_000, 2495, startMs), pair2(20_000, 5, startMs-30_000)...)
		b.batch(pairs, 0, startMs-10_000, startMs)
		b.wantNative(v+" second batch", native{25015, 7520, 660660, 548110, 0})
		b.want(v+" second batch", 4995, 25, 0, 14970)
		if b.result.Output != 2500 {
			t.Errorf("output is %d, want 2500", b.result.Output)
		}
	}
}

// pair2 makes rows on both sides.
func pair2(from, n int, ms int64) []workload.Row {
	left, right := same(from, n, ms), same(from, n, ms)
	for i := range right {
		right[i].Side = 1
	}
	return append(right, left...)
}

func TestTransformWithStateReadsAndWritesWhatSparkDid(t *testing.T) {
	// 4.3.0, tws-bounded: 40 keys with 118 values at first; every key then counts
	// nine writes and four reads, an entry that is new to its map one write less.
	spec := Spec{Kind: spark.TransformWithState, Timeout: 15 * time.Second, TTL: 20 * time.Second, Python: true}
	b := newBench(t, spec, version(t, "4.3.0"), changelog)
	var rows []workload.Row
	for i, r := range same(0, 40, startMs) {
		values := 3
		if i < 2 {
			values = 2
		}
		for range values {
			rows = append(rows, r)
		}
	}
	b.batch(rows, 0, 0, startMs)
	b.wantNative("first batch", native{638, 478, -1, -1, -1})
	b.want("first batch", 198, 0, 0, 120)
	wantCustom(b, event.RocksDBNumInternalColFamiliesKeys, 240)
	wantCustom(b, event.NumRegisteredTimers, 40)

	b.batch(rows[:4], 0, 0, startMs+5000)
	b.wantNative("two keys again", native{2*9 + 4 + 2*4, 2*9 + 4, -1, -1, -1})

	b.batch(nil, 0, 0, startMs+15_000)
	b.wantNative("timers fire", native{40 * 6, 40 * 3, -1, -1, -1})
	b.want("timers fire", 0, 40, 0, 80)
	wantCustom(b, event.NumDeletedTimers, 40)
	wantCustom(b, event.NumExpiredTimers, 0)
}

func TestOwnFiguresAreThoseOfTheVersion(t *testing.T) {
	for _, kind := range []spark.OperatorKind{
		spark.Aggregation, spark.Dedupe, spark.DedupeWithinWatermark, spark.Join, spark.FlatMapGroups,
		spark.TransformWithState, spark.SessionWindow,
	} {
		for _, v := range spark.Versions() {
			for _, python := range []bool{false, true} {
				checkOwnFigures(t, kind, v, python)
			}
		}
	}
}

func checkOwnFigures(t *testing.T, kind spark.OperatorKind, v event.Version, python bool) {
	t.Helper()
	spec := Spec{
		Kind: kind, Watermark: true, Window: time.Second, Gap: time.Second, Timeout: time.Second,
		EventTimeInKey: true, Python: python,
	}
	conf := changelog
	if _, err := New(spec, v, &conf); err != nil {
		return // the version does not have it; said so elsewhere
	}
	b := newBench(t, spec, v, conf)
	b.batch(ordered(0, 3, startMs), 0, 0, startMs)
	want := map[event.MetricID]bool{}
	keys := spark.Keys(v, spark.RocksDB, kind)
	if python {
		keys = spark.PythonKeys(v, spark.RocksDB, kind)
	}
	for _, id := range keys {
		if event.Lookup(id).Provider == event.ProviderAny {
			want[id] = true
		}
	}
	for id := event.MetricID(0); id < event.NumMetrics; id++ {
		if event.Lookup(id).Provider == event.ProviderRocksDB {
			continue
		}
		if b.result.Custom.Has(id) != want[id] {
			t.Errorf("%s of %v: %s there: %v, want %v", b.o.Name(), v, event.Lookup(id).JSON, b.result.Custom.Has(id), want[id])
		}
	}
}

func TestStateVariablesAreCountedOncePerTask(t *testing.T) {
	with := newBench(t, Spec{Kind: spark.TransformWithState, Timeout: time.Minute}, newest, changelog)
	without := newBench(t, Spec{Kind: spark.TransformWithState}, newest, changelog)
	for _, b := range []*bench{with, without} {
		b.batch(nil, 0, 0, startMs)
		ttl := int64(0)
		if b == with {
			ttl = 1
		}
		wantCustom(b, event.NumValueStateVars, 1)
		wantCustom(b, event.NumValueStateWithTTLVars, 0)
		wantCustom(b, event.NumListStateVars, 1-ttl)
		wantCustom(b, event.NumListStateWithTTLVars, ttl)
		wantCustom(b, event.NumMapStateVars, 1-ttl)
		wantCustom(b, event.NumMapStateWithTTLVars, ttl)
	}
	// 16 and 24 in four stores, the default family among the former.
	var external, internal int
	for _, f := range with.o.Families() {
		if f.Internal {
			internal++
		} else {
			external++
		}
	}
	if external+1 != 4 || internal != 6 {
		t.Errorf("%d and %d families, Spark had 4 and 6", external+1, internal)
	}
}

func TestSkippedNullsAreReportedOnlyWhereAsked(t *testing.T) {
	for _, given := range []string{"", "true"} {
		conf := changelog
		conf.Given = map[string]string{nullsSkipped: given}
		b := newBench(t, Spec{Kind: spark.Join}, newest, conf)
		b.batch(nil, 0, 0, startMs)
		if got := b.result.Custom.Has(event.SkippedNullValueCount); got != (given == "true") {
			t.Errorf("setting %q: reported %v", given, got)
		}
	}
}

func TestStoresAndNamesAreThoseOfSpark(t *testing.T) {
	for _, c := range []struct {
		spec    Spec
		version string
		format  int
		name    string
		stores  []string
		reports []bool
	}{
		{Spec{Kind: spark.Join}, "3.4", 2, "symmetricHashJoin", joinNames, []bool{false, true, false, true}},
		{Spec{Kind: spark.Join}, "4.1", 3, "symmetricHashJoin", []string{"default"}, []bool{true}},
		{Spec{Kind: spark.Join}, "4.2", 4, "symmetricHashJoin", []string{"default"}, []bool{true}},
		{Spec{Kind: spark.Aggregation, Mode: Update}, "3.4", 2, "stateStoreSave", []string{"default"}, []bool{true}},
		{Spec{Kind: spark.SessionWindow, Mode: Complete, Gap: time.Second}, "3.5", 2, "defaultName", []string{"default"}, []bool{true}},
		{Spec{Kind: spark.TransformWithState, Python: true}, "4.0", 2, "transformWithStateInPandasExec", []string{"default"}, []bool{true}},
	} {
		conf := changelog
		conf.JoinFormat = c.format
		o, err := New(c.spec, version(t, c.version), &conf)
		if err != nil {
			t.Fatal(err)
		}
		var reports []bool
		for i := range o.StoreNames() {
			reports = append(reports, o.Reports(i))
		}
		if o.Name() != c.name || fmt.Sprint(o.StoreNames(), reports) != fmt.Sprint(c.stores, c.reports) {
			t.Errorf("%s: stores %v, reports %v; want %s %v %v", o.Name(), o.StoreNames(), reports, c.name, c.stores, c.reports)
		}
	}
}
