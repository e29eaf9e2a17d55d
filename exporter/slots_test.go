package exporter

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
)

const alerts = "stategauge_alerts"

func alertLabels(name, state string) []event.Label {
	return []event.Label{{Name: "query_id", Value: "q"}, {Name: "alertstate", Value: state}, {Name: "alertname", Value: name}, {Name: "severity", Value: "page"}}
}

func TestASlotIsAGaugeThatSomebodyElseSets(t *testing.T) {
	x := New(Options{})
	s := x.Slot(alerts, "Alerts.", alertLabels("stalled", "firing")...)
	if got := text(t, x); got != "" {
		t.Errorf("a slot that was not set shows %s", got)
	}
	x.Set(s, 1)
	want := `stategauge_alerts{alertname="stalled",alertstate="firing",query_id="q",severity="page"} 1`
	if got := text(t, x); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	x.Set(s, math.NaN())
	if got := text(t, x); got != "" {
		t.Errorf("after NaN: %s", got)
	}
	x.Set(s, 2)
	x.Drop(s)
	x.Drop(s)
	x.Set(s, 3)
	if got := text(t, x); got != "" {
		t.Errorf("after dropping: %s", got)
	}
	if x.total.Load() != 0 || x.byName[alerts] != nil {
		t.Error("a dropped slot left something behind")
	}
}

func TestTheSameLabelsAreTheSameSlot(t *testing.T) {
	x := New(Options{})
	a := x.Slot(alerts, "Alerts.", alertLabels("a", "firing")...)
	pairs := alertLabels("a", "firing")
	pairs[0], pairs[2] = pairs[2], pairs[0]
	if b := x.Slot(alerts, "Other help.", append(pairs, event.Label{Name: "empty"}, event.Label{Name: "bad name", Value: "x"}, pairs[0])...); a != b {
		t.Error("two slots of the same labels")
	}
}

func TestADroppedSlotsPlaceIsNotItsSuccessors(t *testing.T) {
	x := New(Options{})
	old := x.Slot(alerts, "Alerts.", alertLabels("old", "firing")...)
	x.Set(old, 1)
	x.Drop(old)
	x.Set(x.Slot(alerts, "Alerts.", alertLabels("new", "firing")...), 5)
	x.Set(old, 7)
	x.Drop(old)
	if got := text(t, x); !strings.HasSuffix(got, " 5") || strings.Contains(got, "old") {
		t.Errorf("got %s", got)
	}
}

func TestSlotsWithUnusableNamesAreRefusedAndCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	x := New(Options{Registerer: reg})
	for _, name := range []string{"", "a b", "spark_streaming_batches_total", "spark_streaming_sst", "stategauge_x_total", "up"} {
		s := x.Slot(name, "Help.")
		x.Set(s, 1)
		x.Drop(s)
	}
	if got := text(t, x); got != "" {
		t.Errorf("got %s", got)
	}
	if got := selfValue(t, reg, "stategauge_series_dropped_total", dropName); got != 6 {
		t.Errorf("counted %g of 6", got)
	}
}

func TestQueriesDoNotTakeTheSlotsPlaces(t *testing.T) {
	x := New(Options{Series: 2})
	x.Apply(newStream("q").executed(nil))
	if got := x.total.Load(); got != 2 {
		t.Fatalf("%d series of queries, want 2", got)
	}
	for i := range 1100 {
		x.Set(x.Slot(alerts, "Alerts.", alertLabels(strconv.Itoa(i), "firing")...), 1)
	}
	if got := strings.Count(text(t, x), alerts); got != 1000 {
		t.Errorf("%d slots, want 1000", got)
	}
}

func TestSlotsOfAQueryLeaveThePageWithIt(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.executed(nil))
	mine := x.Slot(alerts, "Alerts.", alertLabels("a", "firing")...)
	x.Set(mine, 1)
	x.Set(x.Slot(alerts, "Alerts.", event.Label{Name: "query_id", Value: "other"}), 1)
	x.Apply(s.state(event.StateRetired))
	x.Expire(s.nowMs)
	x.Expire(s.nowMs + 3_600_000)
	if got, want := text(t, x), `stategauge_alerts{query_id="other"} 1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	x.Set(mine, 2)
	if !strings.Contains(text(t, x), `query_id="q",severity="page"} 2`) {
		t.Error("the slot does not come back when it is set again")
	}
}

func TestSettingASlotDoesNotAllocate(t *testing.T) {
	x := New(Options{})
	s := x.Slot(alerts, "Alerts.")
	if n := testing.AllocsPerRun(100, func() { x.Set(s, 1) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
