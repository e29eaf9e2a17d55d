package rules

import (
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// TestSilenceCountsFromWhatIsReplayed saves one query early and everything else late, as a
// daemon of many queries does: what the query said in between is replayed at its own time,
// and its silence is found when it would have been.
func TestSilenceCountsFromWhatIsReplayed(t *testing.T) {
	p := eventPack(t, "      - {alert: Silent, silent: {with: record, factor: 3, at_least: 35m}}\n")
	lived := New(p, Options{})
	quiet, other := newStream(lived), newStream(lived)
	other.id, other.name = "q-2", "clicks"
	hear := func(s *stream) event.Update {
		u := s.update(figures{})
		u.Origin.ReceivedMs = s.nowMs
		s.newRun = false
		batch := &event.Batch{}
		batch.CopyFrom(u.Event.Batch)
		u.Event.Batch = batch
		lived.Apply(&u, nil)
		lived.Tick(s.nowMs, nil)
		return u
	}
	var saved []byte
	var after []event.Update
	for n := range 35 {
		hear(other)
		if n < 24 {
			u := hear(quiet)
			if n >= 20 {
				after = append(after, u)
			}
		}
		if n == 19 {
			saved = lived.SaveQuery("q-1", nil)
		}
	}
	again := New(p, Options{})
	if _, err := again.Load(lived.Save(nil)); err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{saved, lived.SaveQuery("q-2", nil)} {
		if _, err := again.LoadQuery(data); err != nil {
			t.Fatal(err)
		}
	}
	for i := range after {
		again.Replay(&after[i], nil)
	}
	if got, want := again.around, lived.around; got.all != want.all || *got.drivers[driver{"east", "shop"}] != *want.drivers[driver{"east", "shop"}] {
		t.Errorf("others were heard at %v, want %v", got.all, want.all)
	}
	want, got := firstFound(lived, other.nowMs), firstFound(again, other.nowMs)
	if got != want || want < 59*minuteMs || want > 60*minuteMs {
		t.Errorf("found after %d s, want %d", got/1000, want/1000)
	}
}

// firstFound is how long after the start the first alert fires, in milliseconds.
func firstFound(e *Engine, fromMs int64) int64 {
	for at := fromMs; at < startMs+3*hourMs; at += 15_000 {
		for _, v := range e.Tick(at, nil) {
			if v.Alert != nil && v.Alert.State == Firing {
				return at - startMs
			}
		}
	}
	return -1
}

// TestAResetThatIsReplayedIsCountedOnce replays the end of a query to an engine that has
// loaded what its successor knew after it. The old query itself is saved no more.
func TestAResetThatIsReplayedIsCountedOnce(t *testing.T) {
	p := eventPack(t, "      - {alert: Reset, changed: {what: checkpoint_reset}}\n")
	lived := New(p, Options{})
	old, young := newStream(lived), newStream(lived)
	young.id, young.next, young.nowMs, young.started = "q-2", 0, startMs+hourMs, true
	var after []event.Update
	hear := func(u event.Update) {
		if u.Event.Batch != nil {
			batch := &event.Batch{}
			batch.CopyFrom(u.Event.Batch)
			u.Event.Batch = batch
		}
		lived.Apply(&u, nil)
		after = append(after, u)
	}
	for range 5 {
		hear(old.update(figures{}))
		hear(young.update(figures{}))
	}
	end := event.Event{Kind: event.KindTick, Query: event.QueryRef{ID: "q-1", Name: old.name, Application: "shop"}, AtMs: young.nowMs}
	hear(event.Update{Event: &end, Outcome: event.OutcomeStateChange, State: event.StateRetired, Successor: "q-2", IntervalMs: math.NaN()})
	again := New(p, Options{})
	if _, err := again.LoadQuery(lived.SaveQuery("q-2", nil)); err != nil {
		t.Fatal(err)
	}
	last := young.update(figures{})
	lived.Apply(&last, nil)
	for i := range after {
		if after[i].Event.Query.ID == "q-1" {
			again.Replay(&after[i], nil)
		}
	}
	again.Apply(&last, nil)
	for name, e := range map[string]*Engine{"lived": lived, "replayed": again} {
		j := e.Status(true).Groups[0].Rules[0].Judgements
		if len(j) != 1 || j[0].Said != SaidFound || j[0].Value != 1 {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

// TestWhatTimeBringsAboutIsHeardWhenItDoes gives up batches that never came by a tick of the
// tracker, with nothing else heard meanwhile.
func TestWhatTimeBringsAboutIsHeardWhenItDoes(t *testing.T) {
	e := New(eventPack(t, "      - {alert: Missed, changed: {what: missed}}\n"), Options{})
	s := newStream(e)
	for range 3 {
		u := s.update(figures{})
		u.Origin.ReceivedMs = s.nowMs
		e.Apply(&u, nil)
	}
	at := s.nowMs + 7000
	tick := event.Event{Kind: event.KindTick, Query: event.QueryRef{ID: "q-1", Name: s.name, Application: "shop"}, Run: s.run, AtMs: at}
	u := event.Update{Event: &tick, Outcome: event.OutcomeStateChange, State: s.state, Missed: 3, IntervalMs: math.NaN()}
	for _, v := range e.Apply(&u, nil) {
		if v.Alert != nil && v.Alert.State == Firing && v.Alert.FiringAtMs == at {
			return
		}
	}
	t.Errorf("no alert fires at %d: %+v", at, e.Alerts(nil))
}
