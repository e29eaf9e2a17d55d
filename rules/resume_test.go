package rules

import (
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
