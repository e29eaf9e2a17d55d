package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// teller drives a delivery and writes down what leaves it.
type teller struct {
	*delivery
	now       time.Time
	overrides overrides
}

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newTeller() *teller { return &teller{delivery: newDelivery(time.Hour), now: noon} }

// found is a firing alert that rests on events of so long ago.
func (x *teller) found(name string, age time.Duration) rules.Alert {
	at := x.now.Add(-age).UnixMilli()
	return rules.Alert{
		Labels: rules.Labels{{Name: "alertname", Value: name}, {Name: "query_name", Value: "orders"}},
		State:  rules.Firing, PendingAtMs: at, FiringAtMs: at, ResolvedAtMs: event.Absent, AsOfMs: at,
	}
}

func over(al rules.Alert) rules.Alert {
	al.State, al.ResolvedAtMs, al.Reason = rules.Resolved, al.AsOfMs, "it went back"
	return al
}

func inhibited(al rules.Alert) rules.Alert {
	al.InhibitedBy = "Cause"
	return al
}

func said(alerts []rules.Alert) string {
	var out []string
	for _, al := range alerts {
		out = append(out, al.Labels.Get("alertname")+" "+al.State.String())
	}
	return strings.Join(out, ", ")
}

func (x *teller) change(al ...rules.Alert) string { return said(x.changed(al, &x.overrides, x.now)) }
func (x *teller) tick(al ...rules.Alert) string   { return said(x.all(al, &x.overrides, x.now)) }

func (x *teller) want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("at %s %q leaves, want %q", x.now.Format("15:04"), got, want)
	}
}

func TestAnAlertOfThePresentIsDeliveredAtOnceAndAgain(t *testing.T) {
	x := newTeller()
	al := x.found("A", time.Minute)
	x.want(t, x.change(al), "A firing")
	x.want(t, x.tick(al), "A firing")
	x.want(t, x.change(over(al)), "A resolved")
	x.want(t, x.tick(), "")
}

func TestPendingAlertsAreNotDelivered(t *testing.T) {
	x := newTeller()
	al := x.found("A", 0)
	al.State = rules.Pending
	x.want(t, x.change(al), "")
	x.want(t, x.tick(al), "")
	al.State = rules.Inactive
	x.want(t, x.change(al), "")
}

func TestFindingsOfAReplayAreNotPaged(t *testing.T) {
	x := newTeller()
	// A day is read again within seconds: it fires and is over, long ago.
	old := x.found("A", 26*time.Hour)
	x.want(t, x.change(old), "")
	x.want(t, x.tick(old), "")
	if why := x.seems(&old, &x.overrides, x.now); why != withheldOld {
		t.Errorf("it is withheld since %q", why)
	}
	x.want(t, x.change(over(old)), "")
	// Another lasts until the present, where it is one like any other.
	lasts := x.found("B", 20*time.Hour)
	x.want(t, x.change(lasts), "")
	lasts.AsOfMs = x.now.Add(-2 * time.Hour).UnixMilli()
	x.want(t, x.tick(lasts), "")
	lasts.AsOfMs = x.now.Add(-time.Minute).UnixMilli()
	x.want(t, x.tick(lasts), "B firing")
	x.want(t, x.change(over(lasts)), "B resolved")
}

// TestWhileAPastIsReadAgainOnlyToldAlertsRing takes a query over from another process:
// what is found in its past was that process' to tell of, until it is done.
func TestWhileAPastIsReadAgainOnlyToldAlertsRing(t *testing.T) {
	x := newTeller()
	told, found := x.found("Told", time.Minute), x.found("Found", time.Minute)
	for _, al := range []*rules.Alert{&told, &found} {
		al.Labels = append(al.Labels, rules.Label{Name: "query_id", Value: "q"})
	}
	x.want(t, x.change(told), "Told firing")
	x.follow("q", true)
	x.want(t, x.change(found), "")
	x.want(t, x.tick(told, found), "Told firing")
	if why := x.seems(&found, &x.overrides, x.now); why != withheldReplayed {
		t.Errorf("it is withheld since %q", why)
	}
	if why := x.seems(&told, &x.overrides, x.now); why != "" {
		t.Errorf("what was told is withheld since %q", why)
	}
	x.want(t, x.change(over(x.found("Found", time.Minute))), "Found resolved") // of another query
	x.want(t, x.change(over(found)), "")
	x.want(t, x.tick(told, found), "Told firing")
	x.want(t, x.tick(told, found), "Told firing, Found firing") // nothing came any more
	x.follow("q", true)
	x.follow("q", false) // the present begins
	late := found
	late.Labels = append(rules.Labels{{Name: "n", Value: "2"}}, found.Labels...)
	x.want(t, x.change(late), "Found firing")
	x.forget("q")
	x.want(t, x.tick(), "")
}

func TestAnAlertOfAReplayThatWasDoneBeforeWeKnewItResolvesNothing(t *testing.T) {
	x := newTeller()
	x.want(t, x.change(over(x.found("A", 26*time.Hour))), "")
	// One of an earlier process that ends now does: somebody may have been told.
	x.want(t, x.change(over(x.found("B", time.Minute))), "B resolved")
}

func TestSilenceAfterAnAlertKeepsItRinging(t *testing.T) {
	x := newTeller()
	al := x.found("A", time.Minute)
	x.want(t, x.change(al), "A firing")
	for range 8 {
		x.now = x.now.Add(6 * time.Hour)
		x.want(t, x.tick(al), "A firing") // nothing was heard: it rests on older and older events
	}
}

func TestADriverWhoseClockIsBehindStillPages(t *testing.T) {
	x := newTeller()
	al := x.found("A", 5*time.Hour)
	x.want(t, x.change(al), "")
	var got []string
	for range 24 { // its events go on at the pace of our clock
		x.now = x.now.Add(15 * time.Second)
		al.AsOfMs += 15_000
		got = append(got, x.tick(al))
	}
	if n := strings.Count(fmt.Sprint(got), "A firing"); n < 3 || got[0] != "" {
		t.Errorf("delivered %d times: %q", n, got)
	}
}

func TestAQueryThatIsSilentSinceLongAgoDoesNotLookAlive(t *testing.T) {
	x := newTeller()
	al := x.found("A", 5*time.Hour)
	for range 100 {
		x.now = x.now.Add(15 * time.Second)
		x.want(t, x.tick(al), "")
	}
}

func TestAReplayThatGoesOnForLongStaysUntold(t *testing.T) {
	x := newTeller()
	al := x.found("A", 100*time.Hour)
	for range 100 { // an hour of events in each quarter of a minute
		x.now = x.now.Add(15 * time.Second)
		al.AsOfMs += time.Hour.Milliseconds()
		got := x.tick(al)
		if behind := x.now.Sub(time.UnixMilli(al.AsOfMs)); behind > time.Hour && got != "" {
			t.Fatalf("%s behind, and %q leaves", behind, got)
		} else if behind < time.Hour && got != "A firing" {
			t.Fatalf("caught up, and %q leaves", got)
		}
	}
}

func TestHoldingCanBeSwitchedOff(t *testing.T) {
	x := newTeller()
	x.holdOlderThan = 0
	x.want(t, x.change(x.found("A", 5000*time.Hour)), "A firing")
}

func TestAConsequenceIsNotDelivered(t *testing.T) {
	x := newTeller()
	al := inhibited(x.found("A", 0))
	x.want(t, x.change(al), "")
	x.want(t, x.tick(al), "")
	x.want(t, x.change(over(al)), "")
	if why := x.seems(&al, &x.overrides, x.now); why != withheldInhibited {
		t.Errorf("it is withheld since %q", why)
	}
	// Its cause went away and it stands for itself.
	x.want(t, x.change(x.found("A", 0)), "A firing")
}

func TestMutingTakesBackWhatRings(t *testing.T) {
	x := newTeller()
	al := x.found("A", 0)
	x.want(t, x.change(al), "A firing")
	x.overrides = overrides{[]QueryOverride{{Match: "ord*", Mute: Time(x.now.Add(time.Hour))}}}
	x.want(t, x.tick(al), "A resolved")
	x.want(t, x.tick(al), "")
	if why := x.seems(&al, &x.overrides, x.now); why != withheldMuted {
		t.Errorf("it is withheld since %q", why)
	}
	x.now = x.now.Add(2 * time.Hour)
	al.AsOfMs = x.now.UnixMilli()
	x.want(t, x.tick(al), "A firing")
	// What ends while it is muted was resolved before.
	x.overrides.list[0].Mute = Time(x.now.Add(time.Hour))
	x.want(t, x.tick(al), "A resolved")
	x.want(t, x.change(over(al)), "")
}

func TestWhatEndsInTheMomentOfMutingIsResolved(t *testing.T) {
	x := newTeller()
	al := x.found("A", 0)
	x.want(t, x.change(al), "A firing")
	x.overrides = overrides{[]QueryOverride{{Match: "*", Mute: Time(x.now.Add(time.Hour))}}}
	x.want(t, x.change(over(al)), "A resolved")
}

func TestChangedLabelsOfTheConfigurationResolveTheOldSetFirst(t *testing.T) {
	x := newTeller()
	al := x.found("A", 0)
	x.want(t, x.change(al), "A firing")
	moved := al
	moved.Labels = withLabels(al.Labels, map[string]string{"owner": "b"})
	out := x.all([]rules.Alert{moved}, &x.overrides, x.now)
	if said(out) != "A resolved, A firing" || out[0].Labels.Get("owner") != "" || out[1].Labels.Get("owner") != "b" {
		t.Fatalf("got %v", out)
	}
	if out[0].Annotations.Get("resolved_because") != "its labels changed" {
		t.Errorf("it is over because of %q", out[0].Annotations.Get("resolved_because"))
	}
	x.want(t, x.tick(moved), "A firing")
}

func TestAMemoryOfWhatWasToldIsGivenBack(t *testing.T) {
	x := newTeller()
	for i := range 100 {
		name := fmt.Sprint("A", i)
		x.change(x.found(name, 0), x.found(name+"old", 9*time.Hour))
	}
	x.tick()
	if len(x.told)+len(x.held) != 0 {
		t.Errorf("%d told and %d held alerts are left", len(x.told), len(x.held))
	}
}

func TestIdentityKeepsLabelsApart(t *testing.T) {
	a := identity(rules.Labels{{Name: "a", Value: `1"b="2`}})
	b := identity(rules.Labels{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}})
	if a == b {
		t.Error("two sets look alike")
	}
}
