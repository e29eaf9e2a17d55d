package rules

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stategauge/stategauge/event"
)

func TestAQueryThatMovedIsLetGoWithoutAResolve(t *testing.T) {
	for name, move := range map[string]func(s *stream) []Verdict{
		"by its update": func(s *stream) []Verdict {
			return s.e.Apply(&event.Update{
				Event:   &event.Event{Kind: event.KindTick, Query: event.QueryRef{ID: event.QueryID(s.id)}, AtMs: s.nowMs},
				Outcome: event.OutcomeStateChange, State: event.StateRetired, Moved: true,
			}, nil)
		},
		"on request": func(s *stream) []Verdict {
			s.e.LetMove(event.QueryID(s.id))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoRules(t, "ticket", "ticket")
			if got := s.said("Fc FF"); got == "" {
				t.Fatal("nothing fires")
			}
			if said := move(s); len(said) != 0 {
				t.Errorf("it is said of: %+v", said)
			}
			if alerts := s.e.Alerts(nil); len(alerts) != 0 || s.e.alerts != 0 || len(s.e.queries) != 0 || s.e.held != 0 {
				t.Errorf("%d alerts, %d counted, %d queries, %d held", len(alerts), s.e.alerts, len(s.e.queries), s.e.held)
			}
			s.e.LetMove("nobody")
			for i := range int64(100) {
				if said := s.e.Tick(s.nowMs+i*minuteMs, nil); len(said) != 0 {
					t.Errorf("later it is said of: %+v", said)
				}
			}
			if got := s.said("Fc FF"); got != "Cause firing ticket; Consequence firing ticket inhibited by Cause" {
				t.Errorf("it came back, and what is said is %q", got)
			}
		})
	}
}

func TestNothingHoldsOnToWhatAQueryKeptOnceItIsGone(t *testing.T) {
	e := New(wholePack(t), Options{})
	var states []weak.Pointer[queryState]
	for i := range 8 {
		s := newFullStream(e, i)
		s.play(40)
		states = append(states, weak.Make(e.queries[event.QueryID(s.id)]))
	}
	nowMs := e.nowMs
	e.Tick(nowMs+1, nil)
	for i := range 7 {
		id := event.QueryID(fmt.Sprint("q", i))
		if i%2 == 0 {
			e.Forget(id, nowMs+2, nil)
		} else {
			e.LetMove(id)
		}
	}
	e.Tick(nowMs+3, nil)
	runtime.GC()
	runtime.GC()
	for i, p := range states {
		if gone := p.Value() == nil; gone != (i < 7) {
			t.Errorf("query %d: its state is gone: %v", i, gone)
		}
	}
	runtime.KeepAlive(e)
}
