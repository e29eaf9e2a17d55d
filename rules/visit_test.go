package rules

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

func TestAlertsSayWhichEventTimeTheyRestOn(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule))
	late := s.update(figures{rows: 2, duration: 5000})
	late.Origin.ReceivedMs = startMs + 5*hourMs
	vs := s.e.Apply(&late, nil)
	if len(vs) == 0 || vs[0].Alert == nil {
		t.Fatalf("nothing was found: %v", lines(vs))
	}
	end := late.Event.Batch.EndMs()
	if got := vs[0].Alert.AsOfMs; got != end {
		t.Errorf("rests on %d, the batch ended at %d", got, end)
	}
	// Time that passes is no news of the batches: the alert stays as old as it was.
	s.e.Tick(startMs+6*hourMs, nil)
	if got := s.e.Alerts(nil)[0].AsOfMs; got > startMs+minuteMs {
		t.Errorf("after a tick it rests on %d", got)
	}
}

func TestAClockAheadOfOursIsNow(t *testing.T) {
	e := New(nil, Options{})
	e.advance(1000)
	for _, u := range []event.Update{
		{Event: &event.Event{AtMs: 9000}},
		{Event: &event.Event{AtMs: event.Absent}},
		{Event: &event.Event{AtMs: event.Absent, Batch: &event.Batch{StartMs: event.Absent}}},
	} {
		if got := e.asOf(&u); got != 1000 {
			t.Errorf("got %d, want the engine's own time", got)
		}
	}
	u := event.Update{Event: &event.Event{AtMs: 400}}
	if got := e.asOf(&u); got != 400 {
		t.Errorf("got %d, want when it happened", got)
	}
}

func TestVisitTellsWhatStatusTells(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule+opRule))
	s.play(figures{rows: 2, updated: 1, operators: 2})
	visited := map[string]int{}
	s.e.Visit(func(rule, _ string, j *Judged) {
		visited[rule+" "+string(j.Query.ID)+" "+j.Said.String()+" "+j.State.String()]++
	})
	told := map[string]int{}
	for _, g := range s.e.Status(true).Groups {
		for _, r := range g.Rules {
			for _, j := range r.Judgements {
				told[r.Alert+" "+string(j.Query.ID)+" "+j.Said.String()+" "+j.State.String()]++
			}
		}
	}
	if len(told) == 0 || len(visited) != len(told) {
		t.Fatalf("visited %v, told %v", visited, told)
	}
	for k, n := range told {
		if visited[k] != n {
			t.Errorf("%s: visited %d times, told %d times", k, visited[k], n)
		}
	}
}
