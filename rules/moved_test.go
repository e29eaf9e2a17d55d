package rules

import (
	"testing"

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
