package app

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// Why an alert that fires is not delivered.
const (
	withheldInhibited = "inhibited" // the alert of its cause speaks for it
	withheldMuted     = "muted"     // the configuration says so
	withheldReplayed  = "replayed"  // its query's past is being read again
	withheldOld       = "old"       // it rests on events of long ago: a replay, or a backlog
)

// patience is how long an alert that looks old waits before its clock is doubted.
const patience = 5 * time.Minute

// delivery decides which of the engine's alerts leave the house. Whatever it let
// out it takes back: an alert that fires no more, is muted, or goes by other labels
// now is resolved, so that no Alertmanager rings for what nobody holds any longer.
//
// It belongs to the judging goroutine. What it holds is bounded by the engine's
// alerts.
type delivery struct {
	holdOlderThan time.Duration // 0: deliver whatever its age
	told          map[string]rules.Alert
	held          map[string]heldAlert
	// replaying are the queries whose past is being read again, with the rounds since
	// the last word of it. Their alerts were another's to tell of.
	replaying map[event.QueryID]int
}

// heldAlert is when an alert that looked old was first seen, and how old it was.
type heldAlert struct {
	since  time.Time
	asOfMs int64
}

func newDelivery(holdOlderThan time.Duration) *delivery {
	return &delivery{holdOlderThan: holdOlderThan, told: map[string]rules.Alert{}, held: map[string]heldAlert{}, replaying: map[event.QueryID]int{}}
}

// changed takes alerts that changed their state and returns those to deliver.
func (d *delivery) changed(alerts []rules.Alert, o *overrides, now time.Time) []rules.Alert {
	var out []rules.Alert
	for i := range alerts {
		if al := &alerts[i]; d.passes(al, identity(al.Labels), o, now) {
			out = append(out, *al)
		}
	}
	return out
}

// all takes every live alert and returns those to deliver, and before them the
// resolves of those that are to ring no more.
func (d *delivery) all(alerts []rules.Alert, o *overrides, now time.Time) []rules.Alert {
	var out []rules.Alert
	d.settle()
	live, rings := make(map[string]bool, len(alerts)), make(map[string]bool, len(alerts))
	for i := range alerts {
		al := &alerts[i]
		key := identity(al.Labels)
		live[key] = true
		if d.passes(al, key, o, now) {
			rings[key] = true
			out = append(out, *al)
		}
	}
	for key := range d.held {
		if !live[key] {
			delete(d.held, key)
		}
	}
	var gone []rules.Alert
	for key, al := range d.told {
		if !rings[key] {
			delete(d.told, key)
			gone = append(gone, takenBack(&al, live[key]))
		}
	}
	return append(gone, out...)
}

// follow notes whether a query's newest word was read again or is live.
func (d *delivery) follow(id event.QueryID, replayed bool) {
	switch {
	case replayed:
		d.replaying[id] = 0
	case len(d.replaying) > 0:
		delete(d.replaying, id)
	}
}

// replayRounds is how many looks at the clock after the last replayed word of a
// query that has nothing newer its alerts leave.
const replayRounds = 2

// settle lets queries go whose past has been read and that say nothing new.
func (d *delivery) settle() {
	for id, rounds := range d.replaying {
		if d.replaying[id] = rounds + 1; rounds >= replayRounds {
			delete(d.replaying, id)
		}
	}
}

// replays reports whether an alert is another's to tell of as yet. One that was told
// of here goes on.
func (d *delivery) replays(al *rules.Alert, key string) bool {
	if len(d.replaying) == 0 {
		return false
	}
	_, is := d.replaying[event.QueryID(al.Labels.Get("query_id"))]
	_, told := d.told[key]
	return is && !told
}

// forget lets go of a query that is another process' now, with all its alerts.
func (d *delivery) forget(id event.QueryID) {
	delete(d.replaying, id)
	for key, al := range d.told {
		if al.Labels.Get("query_id") == string(id) {
			delete(d.told, key)
		}
	}
}

// recall takes over what an earlier process told of.
func (d *delivery) recall(keys []string, live []rules.Alert) {
	told := map[string]bool{}
	for _, key := range keys {
		told[key] = true
	}
	for _, al := range live {
		if key := identity(al.Labels); told[key] {
			d.told[key] = al
		}
	}
}

// passes reports whether an alert is to be delivered now, and remembers that it was.
func (d *delivery) passes(al *rules.Alert, key string, o *overrides, now time.Time) bool {
	switch al.State {
	case rules.Firing:
		if d.withheld(al, key, o, now) != "" {
			return false
		}
		delete(d.held, key)
		d.told[key] = *al
		return true
	case rules.Resolved:
		return d.resolves(al, key, o, now)
	}
	return false
}

// resolves reports whether somebody has to hear that an alert is over: who was told
// that it fires. One that an earlier process may have told of is resolved too.
func (d *delivery) resolves(al *rules.Alert, key string, o *overrides, now time.Time) bool {
	_, told := d.told[key]
	_, held := d.held[key]
	replays := d.replays(al, key)
	delete(d.told, key)
	delete(d.held, key)
	if replays {
		return false // whoever read these events first has said so
	}
	return told || !held && al.InhibitedBy == "" && !o.muted(queryOfAlert(al), now) && !d.old(al, now)
}

// withheld says why a firing alert is not delivered, "" where it is.
func (d *delivery) withheld(al *rules.Alert, key string, o *overrides, now time.Time) string {
	switch {
	case al.InhibitedBy != "":
		return withheldInhibited
	case o.muted(queryOfAlert(al), now):
		return withheldMuted
	case d.replays(al, key):
		return withheldReplayed
	case d.holds(al, key, now):
		return withheldOld
	}
	return ""
}

// seems is withheld for those who only look.
func (d *delivery) seems(al *rules.Alert, o *overrides, now time.Time) string {
	key := identity(al.Labels)
	_, held := d.held[key]
	switch {
	case al.State != rules.Firing:
		return ""
	case al.InhibitedBy != "":
		return withheldInhibited
	case o.muted(queryOfAlert(al), now):
		return withheldMuted
	case d.replays(al, key):
		return withheldReplayed
	case held:
		return withheldOld
	}
	return ""
}

// old reports whether an alert rests on events of long ago.
func (d *delivery) old(al *rules.Alert, now time.Time) bool {
	return d.holdOlderThan > 0 && al.AsOfMs > 0 && now.UnixMilli()-al.AsOfMs > d.holdOlderThan.Milliseconds()
}

// holds reports whether an alert has to wait until its query's events have caught
// up with the present. Events that are read again rush through time; those of a
// driver whose clock is behind go on at the pace of ours, and their alert, which
// would never catch up, is delivered.
func (d *delivery) holds(al *rules.Alert, key string, now time.Time) bool {
	if _, told := d.told[key]; told || !d.old(al, now) {
		return false
	}
	h, known := d.held[key]
	waited := now.Sub(h.since)
	switch {
	case known && waited < patience:
		return true
	case known && al.AsOfMs > h.asOfMs && al.AsOfMs-h.asOfMs <= 2*waited.Milliseconds():
		return false
	}
	d.held[key] = heldAlert{now, al.AsOfMs}
	return true
}

// takenBack is the resolve of an alert that was delivered and is to ring no more.
// live says that the engine still holds it.
func takenBack(al *rules.Alert, live bool) rules.Alert {
	out := *al
	out.State, out.Reason = rules.Resolved, "its labels changed"
	if live {
		out.Reason = "it was muted, or the alert of its cause speaks for it now"
	}
	out.ResolvedAtMs = max(out.FiringAtMs, out.AsOfMs)
	out.Annotations = append(slices.Clone(out.Annotations), rules.Label{Name: "resolved_because", Value: out.Reason})
	slices.SortFunc(out.Annotations, byName)
	return out
}

func byName(a, b rules.Label) int { return strings.Compare(a.Name, b.Name) }

// identity tells alerts apart: their labels, which are sorted.
func identity(l rules.Labels) string {
	var b []byte
	for _, x := range l {
		b = append(append(b, x.Name...), '=')
		b = strconv.AppendQuote(b, x.Value)
	}
	return string(b)
}

func queryOfAlert(al *rules.Alert) event.QueryRef {
	return event.QueryRef{
		ID: event.QueryID(al.Labels.Get("query_id")), Name: al.Labels.Get("query_name"),
		Application: al.Labels.Get("application"),
	}
}
