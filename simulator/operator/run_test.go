package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// kinds is one of each operator, as tests of what all have in common play them.
func kinds() map[string]Spec {
	const second = time.Second
	return map[string]Spec{
		"aggregation append":   {Kind: spark.Aggregation, Mode: Append, Watermark: true, Window: 5 * second},
		"aggregation update":   {Kind: spark.Aggregation, Mode: Update, Watermark: true, Window: 5 * second},
		"aggregation complete": {Kind: spark.Aggregation, Mode: Complete, Watermark: true, Window: 5 * second},
		"dedupe":               {Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true},
		"dedupe within":        {Kind: spark.DedupeWithinWatermark, Watermark: true, Delay: 12 * second},
		"join":                 {Kind: spark.Join, Watermark: true, Bounded: true, Bound: 3 * second},
		"flat map":             {Kind: spark.FlatMapGroups, Watermark: true, Timeout: 9 * second},
		"transform":            {Kind: spark.TransformWithState, Timeout: 9 * second},
		"transform python":     {Kind: spark.TransformWithState, Timeout: 9 * second, Python: true},
		"session":              {Kind: spark.SessionWindow, Watermark: true, Gap: 2 * second},
	}
}

// eachKind runs a test for one of each operator, joins in all formats.
func eachKind(t *testing.T, test func(t *testing.T, spec Spec, conf spark.Conf)) {
	for name, spec := range kinds() {
		formats := []int{2}
		if spec.Kind == spark.Join {
			formats = []int{2, 3, 4}
		}
		for _, format := range formats {
			conf := changelog
			conf.JoinFormat = format
			t.Run(fmt.Sprintf("%s %d", name, format), func(t *testing.T) { test(t, spec, conf) })
		}
	}
}

func TestErrorsOfAStoreEndTheTaskWithNothingCommitted(t *testing.T) {
	eachKind(t, func(t *testing.T, spec Spec, conf spark.Conf) {
		in := newInput(2, 10)
		var before [][]workload.Row
		for range 3 {
			before = append(before, in.next(true))
		}
		for failAt := 1; ; failAt += 1 + failAt/6 {
			b := newBench(t, spec, newest, conf)
			for _, rows := range before {
				b.batch(rows, 0, 0, startMs)
			}
			if !failsAt(t, b, before[0], failAt) {
				if failAt < 5 {
					t.Fatalf("the task used its stores only %d times", failAt)
				}
				return
			}
		}
	})
}

// failsAt breaks the store at an operation of the next task, and reports whether
// the task came that far.
func failsAt(t *testing.T, b *bench, rows []workload.Row, at int) bool {
	t.Helper()
	for _, f := range b.fakes {
		f.ops, f.failAt = 0, at
	}
	b.task.Rows, b.task.EvictMs, b.task.NowMs = rows, 1<<60/1000, startMs+60_000
	err := b.o.Run(&b.task, &b.result)
	if err == nil {
		return false
	}
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), b.o.Name()) {
		t.Fatalf("error %q does not say which operator and why", err)
	}
	for _, f := range b.fakes {
		if f.aborted != 1 {
			t.Fatalf("store was aborted %d times", f.aborted)
		}
		if len(b.fakes) == 1 && f.version != b.task.Version {
			t.Fatal("store was committed all the same")
		}
	}
	return true
}

func TestTasksAtOnceDoWhatTheyDoOneByOne(t *testing.T) {
	eachKind(t, func(t *testing.T, spec Spec, conf spark.Conf) {
		const partitions = 6
		one := newBench(t, spec, newest, conf)
		alone, together := make([]string, partitions), make([]string, partitions)
		for p := range partitions {
			alone[p] = playPartition(t, one.o, uint64(p))
		}
		var wg sync.WaitGroup
		for p := range partitions {
			wg.Go(func() { together[p] = playPartition(t, one.o, uint64(p)) })
		}
		wg.Wait()
		if !slices.Equal(alone, together) {
			t.Errorf("results differ:\n%v\n%v", alone, together)
		}
	})
}

// playPartition plays some batches on stores of its own and returns all results.
func playPartition(t *testing.T, o *Operator, seed uint64) string {
	b := &bench{tb: t, o: o}
	for range o.StoreNames() {
		f := newFake(o.Families())
		b.fakes, b.task.Stores = append(b.fakes, f), append(b.task.Stores, f)
	}
	b.task.Meter, b.task.Collect = &b.meter, true
	in := newInput(seed, 20)
	var out strings.Builder
	for range 8 {
		b.task.Rows = in.next(true)
		b.task.LateMs, b.task.EvictMs, b.task.NowMs = in.lateMs, in.evictMs, in.nowMs
		if err := o.Run(&b.task, &b.result); err != nil {
			t.Error(err)
			return ""
		}
		b.task.Version++
		fmt.Fprintln(&out, b.result)
	}
	return out.String()
}

func TestASteadyTaskAllocatesPerBatchNotPerRow(t *testing.T) {
	eachKind(t, func(t *testing.T, spec Spec, conf spark.Conf) {
		b := newBench(t, spec, newest, conf)
		rows := ordered(0, 400, startMs)
		for i := range rows {
			rows[i].Key %= 100
			rows[i].Side = uint8(i & 1)
		}
		run := func() {
			b.task.Rows, b.task.NowMs, b.task.Out = rows, startMs, b.result.Out
			if err := b.o.Run(&b.task, &b.result); err != nil {
				t.Fatal(err)
			}
			b.task.Version++
		}
		if spec.Kind == spark.Join {
			b.task.EvictMs = startMs + 60_000 // else each batch stores its rows once more
		}
		for range 3 {
			run()
		}
		// The race detector makes pools forget, so that memory grows anew at times.
		if n := testing.AllocsPerRun(5, run); n > float64(len(rows))/4 {
			t.Errorf("%v allocations for %d rows", n, len(rows))
		}
	})
}

func TestOutputIsCountedButNotKeptWhereNobodyWantsIt(t *testing.T) {
	b := newBench(t, Spec{Kind: spark.Dedupe}, newest, changelog)
	b.task.Collect = false
	b.task.Rows = ordered(0, 10, startMs)
	if err := b.o.Run(&b.task, &b.result); err != nil {
		t.Fatal(err)
	}
	if b.result.Output != 10 || len(b.result.Out) != 0 {
		t.Errorf("output is %d, %d rows kept", b.result.Output, len(b.result.Out))
	}
}

func TestEvictionCostsWhatStateHoldsExceptWithAnIndex(t *testing.T) {
	conf2, conf4 := changelog, changelog
	conf4.JoinFormat = 4
	join := Spec{Kind: spark.Join, Watermark: true, Bounded: true, Bound: time.Hour}
	for _, c := range []struct {
		name  string
		spec  Spec
		conf  spark.Conf
		grows bool
	}{
		{"aggregation", kinds()["aggregation update"], conf2, true},
		{"dedupe", kinds()["dedupe"], conf2, true},
		{"dedupe within", kinds()["dedupe within"], conf2, true},
		{"join", join, conf2, true},
		{"join with an index", join, conf4, false},
		{"flat map", Spec{Kind: spark.FlatMapGroups, Timeout: time.Hour}, conf2, true},
		{"session", kinds()["session"], conf2, true},
		{"transform", Spec{Kind: spark.TransformWithState, Timeout: time.Hour}, conf2, false},
	} {
		small, large := removalOf(t, c.spec, c.conf, 500), removalOf(t, c.spec, c.conf, 5000)
		if grew := large > 5*small; grew != c.grows {
			t.Errorf("%s: removal took %v with 500 rows and %v with 5000", c.name, small, large)
		}
	}
}

// removalOf is what an idle batch spends on removal with so many rows in state.
func removalOf(t *testing.T, spec Spec, conf spark.Conf, rows int) time.Duration {
	t.Helper()
	b := newBench(t, spec, newest, conf)
	b.batch(ordered(0, rows, startMs), 0, 0, startMs)
	return b.batch(nil, 1, 1, startMs).Removal
}

func TestTimesGoToThePartThatTheyWereSpentIn(t *testing.T) {
	spec := Spec{Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true}
	b := newBench(t, spec, newest, changelog)
	b.batch(ordered(0, 100, startMs), 0, 0, startMs)
	r := b.batch(ordered(1000, 10, startMs+1000), 0, startMs+49, startMs)
	// Ten rows: code, a read, a write and the read that comes with it. Then 110 steps, and
	// fifty removals with a read each.
	want := Result{
		Update: 10 * (1 + 2 + 2) * time.Microsecond, Removal: 11*time.Microsecond + 50*3*time.Microsecond,
		Load: time.Millisecond, Commit: 2 * time.Millisecond,
	}
	if r.Update != want.Update || r.Removal != want.Removal || r.Load != want.Load || r.Commit != want.Commit || r.Other != 0 {
		t.Errorf("update %v, removal %v, load %v, commit %v, other %v", r.Update, r.Removal, r.Load, r.Commit, r.Other)
	}
}

func TestTransformWithStateSpendsTimersByLanguageAndExpiryInTheCommit(t *testing.T) {
	for _, python := range []bool{false, true} {
		b := newBench(t, Spec{Kind: spark.TransformWithState, Timeout: time.Second, TTL: 2 * time.Second, Python: python}, newest, changelog)
		b.batch(ordered(0, 50, startMs), 0, 0, startMs)
		timers := *b.batch(nil, 0, 0, startMs+1500)
		if inUpdate := timers.Update > timers.Removal; inUpdate != python || (timers.Removal == 0) != python {
			t.Errorf("python %v: timers took %v of updates, %v of removals", python, timers.Update, timers.Removal)
		}
		expiry := *b.batch(nil, 0, 0, startMs+2500)
		if expiry.Removed != 100 || expiry.Commit <= timers.Commit {
			t.Errorf("python %v: %d values expired, commit took %v", python, expiry.Removed, expiry.Commit)
		}
	}
}

func TestCompleteModeReadsStateOutsideOfUpdatesAndRemovals(t *testing.T) {
	b := newBench(t, kinds()["aggregation complete"], newest, changelog)
	b.batch(ordered(0, 100, startMs), 0, 0, startMs)
	r := b.batch(nil, 0, 0, startMs)
	if r.Removal != 0 || r.Update != 0 || r.Other == 0 || r.Output != 100 {
		t.Errorf("update %v, removal %v, other %v, output %d", r.Update, r.Removal, r.Other, r.Output)
	}
}

func TestAggregationsAndSessionsOpenTheirStoreToReadAndToWrite(t *testing.T) {
	eachKind(t, func(t *testing.T, spec Spec, conf spark.Conf) {
		b := newBench(t, spec, newest, conf)
		for i, f := range b.fakes {
			b.task.Stores[i] = reader{f}
		}
		b.batch(nil, 0, 0, startMs)
		want := 0
		if spec.Kind == spark.Aggregation || spec.Kind == spark.SessionWindow {
			want = 1
		}
		for _, f := range b.fakes {
			if f.twice != want || len(f.loads) != 1 {
				t.Errorf("opened twice %d times, want %d; loads %v", f.twice, want, f.loads)
			}
		}
	})
}

func TestOnlyJoinStoresWithRowsReport(t *testing.T) {
	b := newBench(t, Spec{Kind: spark.Join, Watermark: true, Bounded: true, Bound: time.Second}, newest, changelog)
	r := b.batch(pair2(0, 10, startMs), 0, 0, startMs)
	wantCustom(b, event.RocksDBPutCount, 30) // twenty rows, ten of them marked as matched
	if r.RowsTotal != 20 || r.Instances != 4 || r.MemoryBytes != 4000 || r.Commit != 8*time.Millisecond {
		t.Errorf("rows %d, instances %d, memory %d, commit %v", r.RowsTotal, r.Instances, r.MemoryBytes, r.Commit)
	}
}

func TestRowsOfALeftSideThatAreOverAreKeptForTheBatchSince354(t *testing.T) {
	for v, want := range map[string]int64{"3.4.4": 0, "3.5.3": 0, "3.5.4": 10, "3.5.8": 10, "4.3.0": 10} {
		b := newBench(t, Spec{Kind: spark.Join, Watermark: true, Bounded: true, Bound: time.Second}, version(t, v), changelog)
		r := b.batch(pair2(0, 10, startMs), 0, startMs+60_000, startMs)
		if r.Output != want || r.Removed != want || r.RowsTotal != 0 {
			t.Errorf("%s: %d matches, %d removed, %d left; want %d, %d, 0", v, r.Output, r.Removed, r.RowsTotal, want, want)
		}
	}
}

func TestARowIsMarkedAsMatchedOnce(t *testing.T) {
	for format := 2; format <= 4; format++ {
		conf := changelog
		conf.JoinFormat = format
		b := newBench(t, Spec{Kind: spark.Join}, newest, conf)
		var puts [3]float64
		for i := range puts {
			row := workload.Row{Key: 1, EventMs: startMs + int64(i), Side: uint8(min(i, 1))}
			r := b.batch([]workload.Row{row}, 0, 0, startMs)
			puts[i] = r.Custom[event.RocksDBPutCount]
		}
		// The left row alone; a right one that marks it; a right one that finds it marked.
		if puts[1] != puts[0]+1 || puts[2] != puts[0] || b.result.Output != 1 {
			t.Errorf("format %d: writes are %v", format, puts)
		}
	}
}

func TestAGroupTimesOutOnlyAfterItsTime(t *testing.T) {
	b := newBench(t, Spec{Kind: spark.FlatMapGroups, Timeout: time.Second}, newest, changelog)
	b.batch(ordered(0, 1, startMs), 0, 0, startMs)
	b.batch(nil, 0, 0, startMs+1000)
	b.want("at the timeout", 0, 0, 0, 1)
	b.batch(nil, 0, 0, startMs+1001)
	b.want("after it", 0, 1, 0, 0)
}

func TestTimerTimeIsThatOfRemovalsInScalaAndNoneInPython(t *testing.T) {
	for _, python := range []bool{false, true} {
		b := newBench(t, Spec{Kind: spark.TransformWithState, Timeout: time.Second, Python: python}, newest, changelog)
		b.batch(ordered(0, 2000, startMs), 0, 0, startMs)
		r := b.batch(nil, 0, 0, startMs+1000)
		wantCustom(b, event.TimerProcessingTime, r.Removal.Milliseconds())
		if got := r.Custom[event.TimerProcessingTime]; (got == 0) != python {
			t.Errorf("python %v: timers took %v ms", python, got)
		}
	}
}

func TestTheKeyAfterAPrefixIsTheFirstWithoutIt(t *testing.T) {
	for _, c := range []struct{ prefix, want string }{
		{"a", "b"}, {"ab", "ac"}, {"a\xff", "b"}, {"a\xff\xff", "b"}, {"\x00", "\x01"},
	} {
		if got := after(nil, []byte(c.prefix)); string(got) != c.want {
			t.Errorf("after %q comes %q, want %q", c.prefix, got, c.want)
		}
	}
	if got := after(nil, []byte("\xff\xff")); got != nil {
		t.Errorf("after the last prefix comes %q", got)
	}
}

func TestNumbersSortAsTheirBytesDo(t *testing.T) {
	var last []byte
	for _, v := range []int64{-1 << 63, -1000, -1, 0, 1, 255, 256, startMs, 1<<63 - 1} {
		b := appendSortable(nil, v)
		if sortableAt(b, 0) != v || len(b) != sortableBytes {
			t.Errorf("%d comes back as %d", v, sortableAt(b, 0))
		}
		if string(b) <= string(last) {
			t.Errorf("%d does not sort behind smaller ones", v)
		}
		last = b
	}
}

func TestWindowsBeginAtMultiplesBefore1970Too(t *testing.T) {
	for _, c := range [][3]int64{{0, 1000, 0}, {999, 1000, 0}, {1000, 1000, 1000}, {-1, 1000, -1000}, {-1000, 1000, -1000}, {5, 0, 0}} {
		if got := windowStart(c[0], c[1]); got != c[2] {
			t.Errorf("the window of %d is at %d, want %d", c[0], got, c[2])
		}
	}
}

func TestWrongNumberOfStoresIsAnError(t *testing.T) {
	b := newBench(t, Spec{Kind: spark.Join}, newest, changelog)
	b.task.Stores = b.task.Stores[:1]
	if err := b.o.Run(&b.task, &b.result); err == nil || !strings.Contains(err.Error(), "1 stores given, 4 needed") {
		t.Errorf("error is %v", err)
	}
}

func TestWhatAVersionCanNotRunIsRefused(t *testing.T) {
	hdfs := spark.Conf{Provider: spark.HDFS}
	rocks := func(format int) spark.Conf { return spark.Conf{JoinFormat: format} }
	for _, c := range []struct {
		spec    Spec
		version string
		conf    spark.Conf
		want    string
	}{
		{Spec{Kind: spark.TransformWithState}, "3.5", rocks(2), "needs Spark 4.0"},
		{Spec{Kind: spark.TransformWithState}, "4.0", hdfs, "RocksDB provider"},
		{Spec{Kind: spark.TransformWithState, TTL: time.Second}, "4.0", rocks(2), "needs a timeout"},
		{Spec{Kind: spark.TransformWithState, Timeout: -1}, "4.0", rocks(2), "negative"},
		{Spec{Kind: spark.DedupeWithinWatermark, Watermark: true}, "3.4", rocks(2), "needs Spark 3.5"},
		{Spec{Kind: spark.DedupeWithinWatermark}, "3.5", rocks(2), "needs a watermark"},
		{Spec{Kind: spark.Join}, "4.0", rocks(3), "format 3 needs Spark 4.1"},
		{Spec{Kind: spark.Join}, "4.1", rocks(4), "format 4 needs Spark 4.2"},
		{Spec{Kind: spark.Join}, "4.3", rocks(5), "none of 1 to 4"},
		{Spec{Kind: spark.Join}, "4.3", spark.Conf{Provider: spark.HDFS, JoinFormat: 3}, "RocksDB provider"},
		{Spec{Kind: spark.Join, Bounded: true}, "4.3", rocks(2), "needs a watermark"},
		{Spec{Kind: spark.Join, Bounded: true, Watermark: true, Bound: 1}, "4.3", rocks(2), "bound is shorter"},
		{Spec{Kind: spark.Aggregation, Mode: Append}, "4.3", rocks(2), "needs a window and a watermark"},
		{Spec{Kind: spark.Aggregation, Mode: Update, Window: 1}, "4.3", rocks(2), "window is shorter"},
		{Spec{Kind: spark.SessionWindow}, "4.3", rocks(2), "gap is shorter"},
		{Spec{Kind: spark.SessionWindow, Gap: time.Second, Mode: Update}, "4.3", rocks(2), "not possible"},
		{Spec{Kind: spark.SessionWindow, Gap: time.Second}, "4.3", rocks(2), "needs a watermark"},
		{Spec{Kind: 99}, "4.3", rocks(2), "kind 99 is unknown"},
	} {
		_, err := New(c.spec, version(t, c.version), &c.conf)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v on %s: error is %v, want one with %q", c.spec, c.version, err, c.want)
		}
	}
}

func TestParseModeReadsSparksWords(t *testing.T) {
	for text, want := range map[string]Mode{"": Append, "append": Append, "update": Update, "complete": Complete} {
		if got, err := ParseMode(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if _, err := ParseMode("Append"); err == nil {
		t.Error("a capital letter was let through")
	}
}

var _ store.Store = (*fake)(nil)
