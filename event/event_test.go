package event

import (
	"strings"
	"testing"
)

func TestAQueryWithoutANameIsCalledByItsID(t *testing.T) {
	if got := (QueryRef{ID: "q-1", Name: "orders"}).Label(); got != "orders" {
		t.Errorf("got %q", got)
	}
	if got := (QueryRef{ID: "q-1"}).Label(); got != "q-1" {
		t.Errorf("got %q", got)
	}
}

// Names stand in labels, JSON and saved state: a value added without a name
// would read "unknown" there.
func TestEveryEnumeratedValueHasItsOwnName(t *testing.T) {
	for what, c := range map[string]struct {
		name func(int) string
		last int
	}{
		"kind":            {func(i int) string { return Kind(i).String() }, int(KindTick)},
		"trigger":         {func(i int) string { return TriggerKind(i).String() }, int(TriggerContinuous)},
		"outcome":         {func(i int) string { return Outcome(i).String() }, int(OutcomeRefused)},
		"state":           {func(i int) string { return State(i).String() }, int(StateRetired)},
		"missed reason":   {func(i int) string { return MissedReason(i).String() }, int(MissedSender)},
		"interval origin": {func(i int) string { return IntervalOrigin(i).String() }, int(IntervalListener)},
		"scope":           {func(i int) string { return Scope(i).String() }, int(ScopeSource)},
		"provider":        {func(i int) string { return Provider(i).String() }, int(ProviderUnknown)},
		"unit":            {func(i int) string { return Unit(i).String() }, int(UnitFiles)},
		"metric kind":     {func(i int) string { return MetricKind(i).String() }, int(KindPerInstance)},
	} {
		t.Run(what, func(t *testing.T) {
			seen := map[string]int{}
			for i := 0; i <= c.last; i++ {
				n := c.name(i)
				if prev, ok := seen[n]; ok {
					t.Errorf("%d and %d are both called %q", prev, i, n)
				}
				if n != strings.ToLower(n) || n == "" {
					t.Errorf("%d is called %q", i, n)
				}
				seen[n] = i
			}
			if got := c.name(c.last + 1); got != "unknown" {
				t.Errorf("a value beyond the last is called %q", got)
			}
		})
	}
}

func TestOutcomesAndStatesListAllButUnknown(t *testing.T) {
	if got := Outcomes(); len(got) != int(OutcomeRefused) || got[0] != OutcomeExecuted || got[len(got)-1] != OutcomeRefused {
		t.Errorf("outcomes: %v", got)
	}
	if got := States(); len(got) != int(StateRetired) || got[0] != StateRunning || got[len(got)-1] != StateRetired {
		t.Errorf("states: %v", got)
	}
}

func TestNoFieldMissingMeansNoNames(t *testing.T) {
	if got := Missing(0).MissingNames(); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestACopyOfAnEnvelopeOutlivesIt(t *testing.T) {
	src := Envelope{Sender: "s", Seq: 4, App: App{Name: "shop"}, Active: []ActiveQuery{{ID: "a", TriggerActive: true}, {ID: "b"}}}
	kept := Envelope{Active: make([]ActiveQuery, 0, 4)}
	kept.CopyFrom(&src)
	src.Active = append(src.Active[:0], ActiveQuery{ID: "another"})
	src.Sender = "another"
	if kept.Sender != "s" || kept.App.Name != "shop" || len(kept.Active) != 2 || kept.Active[0].ID != "a" || !kept.Active[0].TriggerActive {
		t.Errorf("got %+v", kept)
	}
}
