package decode

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// result is what one element of a body became.
type result struct {
	Event  *event.Event
	Reason collector.Reason
	Error  string
}

// decodeAll decodes body with a decoder of pool. The events are copies.
func decodeAll(pool *Pool, body []byte) (out []result) {
	d := pool.Get()
	defer pool.Put(d)
	d.Body(body, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		var r result
		switch {
		case ev != nil:
			r.Event = clone(ev)
			pool.Release(ev)
		case rej != nil:
			r.Reason, r.Error = rej.Reason, rej.Err.Error()
		}
		out = append(out, r)
		return true
	})
	return out
}

func clone(ev *event.Event) *event.Event {
	c := *ev
	if ev.Batch != nil {
		c.Batch = &event.Batch{}
		c.Batch.CopyFrom(ev.Batch)
	}
	if ev.Envelope != nil {
		env := *ev.Envelope
		env.Active = append([]event.ActiveQuery(nil), env.Active...)
		c.Envelope = &env
	}
	return &c
}

// same compares events: NaN equals NaN, and a list that was never made equals an
// empty one.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || (a != a && b != b) }),
}

// equal compares results the quick way: NaN as its bits, lists by what is in them.
// It may call equal results different, never the other way round.
func equal(a, b []result) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i].Event, b[i].Event
		if a[i].Reason != b[i].Reason || a[i].Error != b[i].Error || (x == nil) != (y == nil) {
			return false
		}
		if x == nil {
			continue
		}
		if (x.Batch == nil) != (y.Batch == nil) || x.Batch != nil && fmt.Sprint(*x.Batch) != fmt.Sprint(*y.Batch) {
			return false
		}
		bx, by := x.Batch, y.Batch
		x.Batch, y.Batch = nil, nil
		same := reflect.DeepEqual(x, y)
		x.Batch, y.Batch = bx, by
		if !same {
			return false
		}
	}
	return true
}

// requireSame decodes body by the parser alone and by a pool that knows shapes.
func requireSame(t *testing.T, plain, shaped *Pool, body []byte) {
	t.Helper()
	want, got := decodeAll(plain, body), decodeAll(shaped, body)
	if equal(want, got) {
		return
	}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Fatalf("shape cache differs from the parser (-parser +cache) on\n%s\n%s", body, diff)
	}
}

func TestTheShapeCacheGivesTheSameEventAsTheParser(t *testing.T) {
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	for _, s := range []*synth{
		newSynth(),
		{run: "a0000000-0000-4000-8000-000000000001", operators: 1, partitions: 3, snapshots: true},
		{run: "a0000000-0000-4000-8000-000000000002", operators: 2, partitions: 300, text: true},
		{run: "a0000000-0000-4000-8000-000000000003", operators: 0, partitions: 1},
	} {
		for batch := range 40 {
			requireSame(t, plain, shaped, []byte(s.progress(batch)))
		}
	}
	if st := shaped.Stats(); st.ShapeHits != 4*39 || st.ShapeMisses != 4 || st.ShapeFallbacks != 0 {
		t.Errorf("every event after the first of a run should hit: %+v", st)
	}
}
