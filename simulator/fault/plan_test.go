package fault_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/store"
)

func TestEveryKindThatFilesCanNameIsPlanned(t *testing.T) {
	var named []string
	for _, k := range scenario.FaultKinds() {
		named = append(named, k.Name)
	}
	slices.Sort(named)
	if diff := cmp.Diff(named, fault.Kinds()); diff != "" {
		t.Errorf("named (-), planned (+):\n%s", diff)
	}
}

// load makes a scenario of two queries and two sources with the faults given as YAML.
func load(t *testing.T, faults ...string) *scenario.Scenario {
	t.Helper()
	text := `batches: 1000
queries: 2
query:
  watermark_delay: 10m
  operators: [{kind: join}]
  sources: [{}, {}]
  sink: {kind: foreach_batch}
cluster: {executors: 5}
faults:
`
	for _, f := range faults {
		text += "  - {" + f + "}\n"
	}
	sc, err := scenario.Load("test.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func plan(t *testing.T, size float64, faults ...string) *fault.Plan {
	t.Helper()
	p, err := fault.NewPlan(load(t, faults...), 0, size, 7)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// changes says in words what a state has that a healthy one has not.
func changes(s fault.State) string {
	var out []string
	diff("", reflect.ValueOf(fault.Healthy(len(s.Input))), reflect.ValueOf(s), &out)
	if len(out) == 0 {
		return "healthy"
	}
	return strings.Join(out, ", ")
}

func diff(path string, a, b reflect.Value, out *[]string) {
	switch b.Kind() {
	case reflect.Struct:
		for i := range b.NumField() {
			diff(strings.TrimPrefix(path+"."+b.Type().Field(i).Name, "."), a.Field(i), b.Field(i), out)
		}
	case reflect.Slice:
		if b.Type().Elem() == reflect.TypeFor[fault.Action]() {
			for i := range b.Len() {
				*out = append(*out, fmt.Sprintf("%+v", b.Index(i).Interface()))
			}
			return
		}
		for i := range b.Len() {
			diff(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i), out)
		}
	case reflect.Func:
		if !b.IsNil() {
			*out = append(*out, path)
		}
	default:
		if x, y := fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()); x != y {
			*out = append(*out, path+" "+y)
		}
	}
}

func TestWhatEachKindDoes(t *testing.T) {
	for _, c := range []struct {
		fault string
		batch int64
		want  string
	}{
		{"kind: store-slow, from_batch: 10, size: 3", 10, "Device.StoreLatency 3, Device.StoreThroughput 3"},
		{"kind: store-throttled, from_batch: 10, size: 2", 10, "Device.StoreThrottled 0.5"},
		{"kind: disk-slow, from_batch: 10, size: 3", 10, "Device.Disk 3"},
		{"kind: network-slow, from_batch: 10, size: 3", 10, "Device.Network 3"},
		{"kind: cpu-slow, from_batch: 10, size: 3", 10, "Device.CPU 3"},
		{"kind: code-slow, from_batch: 10, size: 3", 10, "Device.Code 3"},
		{"kind: source-listing-slow, from_batch: 10, size: 3", 10, "Device.SourceLatency 3"},
		{"kind: sink-slow, from_batch: 10, size: 2", 10, "OwnWork 10s"},
		{"kind: sink-slow, from_batch: 10, for: 1s", 10, "OwnWork 1s"},
		{"kind: checkpoint-listing-slow, from_batch: 10", 10, "Device.ListLatency 1.5, WalExtra 1s"},
		{"kind: input-growth, from_batch: 10, source: 2", 10, "Input[1].Rate 1.5"},
		{"kind: input-stopped, from_batch: 10, source: 1", 10, "Input[0].StopInput true"},
		{"kind: state-growth, from_batch: 10, size: 3", 10, "Input[0].KeySpace 3, Input[1].KeySpace 3"},
		{"kind: large-writes, from_batch: 10, size: 3, source: 1", 10, "Input[0].RowBytes 3"},
		{"kind: key-skew, from_batch: 10, source: 1", 10, "Input[0].Skew 0.3"},
		{"kind: key-skew, from_batch: 10, source: 1, size: 9", 10, "Input[0].Skew 0.95"},
		{"kind: late-rows, from_batch: 10, source: 1, share: 20%", 10, "Input[0].Late 0.2"},
		{"kind: source-frozen, from_batch: 10, source: 2", 10, "Input[1].Frozen true"},
		{"kind: upstream-late, from_batch: 10, source: 2", 10, "Input[1].DelayMs 3600000"},
		{"kind: kafka-partition-stalled, from_batch: 10, source: 2, count: 3", 10, "Input[1].Stalled 3"},
		{"kind: watermark-future, from_batch: 10, source: 1, for: 1h", 10, "Input[0].FutureMs 3600000"},
		{"kind: watermark-future, from_batch: 10, source: 1, for: 1h", 11, "healthy"},
		{"kind: state-never-expires, from_batch: 10", 10, "NoExpiry true"},
		{"kind: watermark-stuck, from_batch: 10", 10, "WatermarkStuck true"},
		{"kind: memory-unbounded, from_batch: 10, bytes: 1MiB", 10, "healthy"},
		{"kind: memory-unbounded, from_batch: 10, bytes: 1MiB", 13, "Store.LeakBytes 3145728"},
		{"kind: memory-unbounded, from_batch: 10, bytes: 1MiB, every: 5, count: 2", 15, "LoseExecutors 2"},
		{"kind: memory-unbounded, from_batch: 10, bytes: 1MiB, every: 5", 15, "LoseExecutors 5"},
		{"kind: memory-unbounded, from_batch: 10, bytes: 1MiB, every: 5", 16, "Store.LeakBytes 1048576"},
		{"kind: cache-too-small, from_batch: 10, share: 10%", 10, "Store.CacheFactor 0.1"},
		{"kind: cache-too-small, from_batch: 10, share: 10%, size: 2", 10, "Store.CacheFactor 0.010000000000000002"},
		{"kind: compaction-debt, from_batch: 10", 10, "Store.CompactionPaused true"},
		{"kind: maintenance-stuck, from_batch: 10", 10, "Store.MaintenanceStuck true"},
		{"kind: snapshot-damaged, from_batch: 10", 10, "Store.Damaged, LoseExecutors 1"},
		{"kind: snapshot-damaged, from_batch: 10", 11, "Store.Damaged"},
		{"kind: evaluated-twice, from_batch: 10", 10, "Actions 2"},
		{"kind: executor-lost, from_batch: 10", 10, "LoseExecutors 1"},
		{"kind: executor-lost, from_batch: 10", 11, "healthy"},
		{"kind: executor-lost, from_batch: 10, every: 4, count: 2", 18, "LoseExecutors 2"},
		{"kind: executor-lost, from_batch: 10, every: 4, to_batch: 18", 18, "healthy"},
		{"kind: autoscale-churn, from_batch: 10, every: 4", 13, "Executors 7"},
		{"kind: autoscale-churn, from_batch: 10, every: 4", 14, "Executors 5"},
		{"kind: autoscale-churn, from_batch: 10, count: 3", 30, "Executors 8"},
		{"kind: locality-lost, from_batch: 10", 11, "LocalityLost 0.5"},
		{"kind: locality-lost, from_batch: 10, every: 2", 11, "healthy"},
		{"kind: restart, from_batch: 10", 10, "{Kind:0 Pause:1m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: crash, from_batch: 10, for: 2m", 10, "{Kind:1 Pause:2m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: redeploy, from_batch: 10, every: 3", 16, "{Kind:3 Pause:1m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: upgrade, from_batch: 10", 10, "{Kind:6 Pause:1m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: outage, from_batch: 10", 10, "{Kind:7 Pause:2h0m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: conf-changed, from_batch: 10, conf: {spark.locality.wait: 1s}", 10, "{Kind:0 Pause:1m0s Batches:0 Class: Text: Final:false Conf:map[spark.locality.wait:1s]}"},
		{"kind: partitions-changed, from_batch: 10, count: 9", 10, "Partitions 9, {Kind:0 Pause:1m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: partitions-changed, from_batch: 10, count: 9", 11, "Partitions 9"},
		{"kind: checkpoint-rewound, from_batch: 10", 10, "{Kind:4 Pause:1m0s Batches:20 Class: Text: Final:false Conf:map[]}"},
		{"kind: checkpoint-rewound, from_batch: 10", 11, "healthy"},
		{"kind: checkpoint-reset, from_batch: 10", 10, "{Kind:5 Pause:1m0s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: checkpoint-shared, from_batch: 10", 12, "Rival true"},
		{"kind: query-failed, from_batch: 10, error: X, text: y", 10, "{Kind:2 Pause:0s Batches:0 Class:X Text:y Final:true Conf:map[]}"},
		{"kind: restart-loop, from_batch: 10, count: 2, for: 5s", 10, "{Kind:2 Pause:5s Batches:0 Class: Text: Final:false Conf:map[]}, {Kind:2 Pause:5s Batches:0 Class: Text: Final:false Conf:map[]}"},
		{"kind: restart-loop, from_batch: 10, count: 2, for: 5s", 11, "healthy"},
		{"kind: batch-hung, from_batch: 10, for: 1h", 10, "Hang 1h0m0s"},
		{"kind: driver-frozen, from_batch: 10", 10, "DriverFroze true"},
		{"kind: events-dropped, from_batch: 10, share: 100%, size: 9", 10, "DropEvent true"},
		{"kind: sender-lost, from_batch: 10, to_batch: 12", 11, "SenderLost true"},
		{"kind: sender-lost, from_batch: 10, to_batch: 12", 12, "healthy"},
	} {
		p := plan(t, 0, c.fault)
		if got := changes(p.At(c.batch, 0)); got != c.want {
			t.Errorf("{%s} in batch %d: %s, want %s", c.fault, c.batch, got, c.want)
		}
		if got := changes(p.At(9, 0)); got != "healthy" {
			t.Errorf("{%s} before it begins: %s", c.fault, got)
		}
	}
}

func TestTheSizeOfARunReplacesThatOfFaultsThatAreNotFixed(t *testing.T) {
	p := plan(t, 3, "kind: disk-slow, size: 1.2", "kind: cpu-slow, size: 1.2, fixed: true", "kind: sink-slow", "kind: executor-lost")
	if got, want := changes(p.At(0, 0)), "Device.Disk 3, Device.CPU 1.2, LoseExecutors 1, OwnWork 20s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSmallFaultsAreTwoFifthsAndLargeOnesFourTimesTheMediumAmount(t *testing.T) {
	for size, want := range map[float64]time.Duration{1.2: 2 * time.Second, 1.5: 5 * time.Second, 3: 20 * time.Second} {
		if got := plan(t, size, "kind: sink-slow").At(0, 0).OwnWork; (got - want).Abs() > time.Microsecond {
			t.Errorf("x%v: %v, want %v", size, got, want)
		}
	}
}

func TestSizesBelowOneAreRefused(t *testing.T) {
	sc := load(t, "kind: disk-slow")
	for _, size := range []float64{0.5, -1, math.NaN(), math.Inf(1)} {
		if _, err := fault.NewPlan(sc, 0, size, 1); err == nil {
			t.Errorf("size %v is taken", size)
		}
	}
}

func TestAKindThatNobodyKnowsIsAnError(t *testing.T) {
	sc := &scenario.Scenario{Name: "x", Faults: []scenario.Fault{{Kind: "flood"}}}
	if _, err := fault.NewPlan(sc, 0, 0, 1); err == nil || err.Error() != `fault 1 of scenario x: unknown kind "flood"` {
		t.Errorf("got %v", err)
	}
}

func TestARampGrowsInALineAndStays(t *testing.T) {
	p := plan(t, 0, "kind: disk-slow, from_batch: 100, size: 2, ramp: 10")
	for batch, want := range map[int64]float64{99: 1, 100: 1.1, 104: 1.5, 109: 2, 110: 2, 900: 2} {
		if got := p.At(batch, 0).Device.Disk; math.Abs(got-want) > 1e-9 {
			t.Errorf("batch %d: %v, want %v", batch, got, want)
		}
	}
}

func TestFaultsOfOneKindAddUp(t *testing.T) {
	p := plan(t, 0, "kind: store-throttled, size: 2", "kind: store-throttled, size: 2", "kind: disk-slow, size: 2", "kind: disk-slow, size: 3")
	if got, want := changes(p.At(0, 0)), "Device.StoreThrottled 0.75, Device.Disk 6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFaultOfOneQueryLeavesTheOthersAlone(t *testing.T) {
	sc := load(t, "kind: disk-slow, query: 2", "kind: cpu-slow")
	for query, want := range []string{"Device.CPU 1.5", "Device.Disk 1.5, Device.CPU 1.5"} {
		p, err := fault.NewPlan(sc, query, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := changes(p.At(5, 0)); got != want {
			t.Errorf("query %d: %s, want %s", query+1, got, want)
		}
	}
}

func TestTheAnswerDoesNotDependOnTheOrderOfQuestions(t *testing.T) {
	var all []string
	for _, k := range scenario.FaultKinds() {
		f := "kind: " + k.Name + ", from_batch: 20"
		switch k.Name {
		case "cap-too-small":
			continue
		case "partitions-changed":
			f += ", count: 3"
		case "memory-unbounded":
			f += ", bytes: 1KiB, every: 7"
		case "conf-changed":
			f += ", conf: {spark.locality.wait: 1s}"
		case "input-stopped":
			f += ", source: 1"
		}
		all = append(all, f)
	}
	p, q := plan(t, 0, all...), plan(t, 0, all...)
	forward := make([]string, 60)
	for b := range forward {
		forward[b] = changes(p.At(int64(b), 0))
	}
	for b := len(forward) - 1; b >= 0; b-- {
		if got := changes(q.At(int64(b), 0)); got != forward[b] {
			t.Fatalf("batch %d: %s, asked in order %s", b, got, forward[b])
		}
	}
}

func TestDroppedEventsAreAsManyAsTheirShareAndDifferByQueryAndSeed(t *testing.T) {
	drops := func(query int, seed uint64) (out []int64) {
		p, err := fault.NewPlan(load(t, "kind: events-dropped, from_batch: 100, share: 20%"), query, 0, seed)
		if err != nil {
			t.Fatal(err)
		}
		for b := range int64(1000) {
			if p.At(b, 0).DropEvent {
				out = append(out, b)
			}
		}
		return out
	}
	a, again, other, seed := drops(0, 7), drops(0, 7), drops(1, 7), drops(0, 8)
	if len(a) < 120 || len(a) > 240 || a[0] < 100 {
		t.Errorf("%d of 900 events are dropped, from batch %d", len(a), a[0])
	}
	if !slices.Equal(a, again) || slices.Equal(a, other) || slices.Equal(a, seed) {
		t.Error("what is dropped does not depend on query and seed alone")
	}
}

func TestTheNewestSnapshotsOfSomePartitionsAreDamagedForGood(t *testing.T) {
	p := plan(t, 0, "kind: snapshot-damaged, from_batch: 100, count: 10, share: 50%")
	hit := 0
	for partition := range 200 {
		id := store.ID{Partition: partition, Name: "default"}
		first, later := p.At(100, 0).Store.Damaged, p.At(150, 0).Store.Damaged
		if first(id, 100) {
			hit++
		}
		for version := range int64(200) {
			want := first(id, 100) && version > 90 && version <= 100
			if first(id, version) != want || later(id, version) != want {
				t.Fatalf("partition %d version %d: %v, later %v", partition, version, first(id, version), later(id, version))
			}
		}
	}
	if hit < 70 || hit > 130 {
		t.Errorf("%d of 200 partitions are damaged", hit)
	}
}

func TestTwoDamagesAreBothFound(t *testing.T) {
	p := plan(t, 0, "kind: snapshot-damaged, from_batch: 100, count: 5, share: 100%", "kind: snapshot-damaged, from_batch: 50, count: 5, share: 100%")
	damaged := p.At(100, 0).Store.Damaged
	for version, want := range map[int64]bool{50: true, 45: false, 60: false, 96: true, 101: false} {
		if got := damaged(store.ID{}, version); got != want {
			t.Errorf("version %d: %v", version, got)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	sc, err := scenario.Load("b.yml", []byte("faults: [{kind: disk-slow}, {kind: store-slow, ramp: 10}, {kind: events-dropped}]"))
	if err != nil {
		b.Fatal(err)
	}
	p, err := fault.NewPlan(sc, 0, 0, 1)
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		p.At(int64(i), 0)
	}
}
