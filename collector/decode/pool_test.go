package decode

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

func TestZeroLimitsAreTheDefaults(t *testing.T) {
	if got := (Limits{}).withDefaults(); got != DefaultLimits() {
		t.Errorf("got %+v, want %+v", got, DefaultLimits())
	}
	l := Limits{EventBytes: 1, KeysPerEvent: 2, Operators: 3, Sources: 4, Depth: 5, UnknownKeys: 6, StringBytes: 7, RejectsInRow: 8, TemplateBytes: -1, InternBytes: 9}
	if got := l.withDefaults(); got != l {
		t.Errorf("limits that are set must stay: %+v became %+v", l, got)
	}
}

func TestStringsOutliveTheirEvent(t *testing.T) {
	pool := NewPool(Limits{})
	body := []byte(`{"id":"query-a","runId":"run-a","name":"name-a","batchId":1,"sink":{"description":"sink-a"}}`)
	var query event.QueryRef
	var sink string
	d := pool.Get()
	d.Body(body, func(_ int, ev *event.Event, _ *collector.Reject) bool {
		query, sink = ev.Query, ev.Batch.Description
		pool.Release(ev)
		return true
	})
	for i := range body {
		body[i] = 'z'
	}
	d.Body([]byte(`{"id":"query-b","runId":"run-b","name":"name-b","batchId":1,"sink":{"description":"sink-b"}}`),
		func(_ int, ev *event.Event, _ *collector.Reject) bool {
			pool.Release(ev)
			return true
		})
	if query.ID != "query-a" || query.Name != "name-a" || sink != "sink-a" {
		t.Errorf("got %+v and %q", query, sink)
	}
}

func TestAnEventThatComesBackLeavesNothingBehind(t *testing.T) {
	pool := NewPool(Limits{})
	rich := `{"v":1,"sender":"s","seq":5,"dropped":1,"at":"2027-05-06T07:08:09.123Z","app":{"id":"a","name":"n","cluster":"c"},"conf":{"k":"v"},"executors":{"count":1},"active":[{"id":"x"}],` +
		`"event":{"id":"q","runId":"r","name":"n","timestamp":"2027-05-06T07:08:09.123Z","exception":"boom","jobTags":["t"],"batchId":1,"durationMs":{"addBatch":1,"newPhase":2},` +
		`"eventTime":{"watermark":"1970-01-01T00:00:00.000Z"},"stateOperators":[{"operatorName":"o","customMetrics":{"new":1,"rocksdbGetCount":2,"SnapshotLastUploaded.partition_0_default":3}}],` +
		`"sources":[{"description":"d","startOffset":1,"endOffset":2,"latestOffset":3,"numInputRows":1,"metrics":{"numFilesOutstanding":"4"}}],"trigger":"Once",` +
		`"observedMetrics":{"o":{"x":1}},"rtmMetrics":{"e2eLatencyMs":{"P50":1}},"sink":{"description":"com.databricks.X"}}}`
	for _, bare := range []string{
		`{"id":"q","runId":"r","batchId":2}`,
		`{"id":"q","runId":"r","timestamp":null}`,
		`{"id":"q","runId":"r","exception":null}`,
		`{"seq":1,"event":{"id":"q","runId":"r","batchId":2,"stateOperators":[{}],"sources":[{}]}}`,
		`{"type":"heartbeat"}`,
	} {
		fresh := decodeAll(NewPool(Limits{}), []byte(bare))
		for range 3 {
			decodeAll(pool, []byte(rich))
			used := decodeAll(pool, []byte(bare))
			if got, want := dump(used[0]), dump(fresh[0]); got != want {
				t.Fatalf("%s\nafter another event:\n%son its own:\n%s", bare, got, want)
			}
			if len(used[0].Event.Extra) != 0 {
				t.Fatal("extra labels stayed")
			}
		}
	}
}

func TestLabelsAddedToAnEventGoWithIt(t *testing.T) {
	pool := NewPool(Limits{})
	ev := pool.newEvent()
	ev.Extra = append(ev.Extra, event.Label{Name: "team", Value: "x"})
	pool.Release(ev)
	if got := pool.newEvent(); len(got.Extra) != 0 || got.AtMs != event.Absent {
		t.Errorf("got %+v", got)
	}
	pool.Release(nil)
}

func TestHugeBatchesAreNotKept(t *testing.T) {
	pool := NewPool(Limits{})
	body := []byte(`{"id":"q","runId":"r","batchId":1,"stateOperators":[` + strings.TrimSuffix(strings.Repeat("{},", 100), ",") + `]}`)
	d := pool.Get()
	d.Body(body, func(_ int, ev *event.Event, _ *collector.Reject) bool {
		if len(ev.Batch.Operators) != 100 {
			t.Errorf("%d operators", len(ev.Batch.Operators))
		}
		pool.Release(ev)
		return true
	})
	d.c.buf = make([]byte, 2*scratchBytes)
	d.rec.spans = make([]span, scratchBytes)
	d.row.names = make([]string, scratchBytes)
	d.parts.parts = make([]part, scratchBytes)
	pool.Put(d)
	if d.c.buf != nil || d.rec.spans != nil || d.row.names != nil || d.parts.parts != nil {
		t.Error("a resting decoder keeps large scratch memory")
	}
	if b := pool.newBatch(); cap(b.Operators) > restingOperators {
		t.Errorf("a batch with room for %d operators came back", cap(b.Operators))
	}
}

func TestADecoderOfAnotherPoolIsNotTaken(t *testing.T) {
	a, b := NewPool(Limits{}), NewPool(Limits{Depth: 3})
	a.Put(b.Get())
	a.Put(nil)
	if d := a.Get(); d.pool != a || d.c.lim != &a.lim {
		t.Error("a pool handed out another pool's decoder")
	}
}

func TestMetricsOverTheLimitAreCounted(t *testing.T) {
	pool := NewPool(Limits{UnknownKeys: 1})
	decodeAll(pool, []byte(`{"id":"q","runId":"r","batchId":1,"durationMs":{"a":1,"b":2},"stateOperators":[{"customMetrics":{"c":3}}],"observedMetrics":{"o":{"x":1}},"rtmMetrics":{"e2eLatencyMs":{"P50":1}}}`))
	if got := pool.Stats().UnknownDropped; got != 4 {
		t.Errorf("%d left out, want 4", got)
	}
}

func TestEqualStringsShareTheirMemory(t *testing.T) {
	in := newInterner(1 << 20)
	a, b := in.get([]byte("orders")), in.get([]byte("orders"))
	if unsafe.StringData(a) != unsafe.StringData(b) {
		t.Error("two copies of one string")
	}
	if in.get(nil) != "" || in.size() != 1 {
		t.Errorf("%d strings", in.size())
	}
}

func TestTheStringTableStaysWithinItsMemory(t *testing.T) {
	const max = 64 << 10
	in := newInterner(max)
	for i := range 20_000 {
		name := fmt.Sprintf("hostile-%d", i)
		if got := in.get([]byte(name)); got != name {
			t.Fatalf("got %q", got)
		}
		in.get([]byte("in-use"))
	}
	total := 0
	for i := range in.shards {
		for _, m := range []map[string]string{in.shards[i].young, in.shards[i].old} {
			for s := range m {
				total += len(s) + internOverhead
			}
		}
	}
	if total > max || in.size() < 100 {
		t.Errorf("%d bytes in %d strings, limit %d", total, in.size(), max)
	}
	if long := strings.Repeat("x", 2*max); in.get([]byte(long)) != long {
		t.Error("a string larger than the table must still come back")
	}
}

func TestStringsInUseSurviveAFullTable(t *testing.T) {
	in := newInterner(64 << 10)
	first := in.get([]byte("in-use"))
	for i := range 20_000 {
		in.get(fmt.Appendf(nil, "hostile-%d", i))
		if again := in.get([]byte("in-use")); unsafe.StringData(again) != unsafe.StringData(first) {
			t.Fatalf("after %d names the string in use was made anew", i)
		}
	}
}

func TestTheStringTableIsSafeForConcurrentUse(t *testing.T) {
	in := newInterner(16 << 10)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2000 {
				name := fmt.Sprintf("%d", (i*7+g)%300)
				if got := in.get([]byte(name)); got != name {
					t.Errorf("got %q, want %q", got, name)
				}
			}
		})
	}
	all.Wait()
}
