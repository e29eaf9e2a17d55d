package app

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

// TestWhatWaitsToBeJudgedOutlivesItsStep takes an update that the decoder's memory
// is used again for: a judgement comes later.
func TestWhatWaitsToBeJudgedOutlivesItsStep(t *testing.T) {
	src := event.Event{
		Kind: event.KindHeartbeat, Query: event.QueryRef{ID: "q"}, Extra: []event.Label{{Name: "team", Value: "a"}},
		Envelope: &event.Envelope{Sender: "s", Seq: 7, Active: []event.ActiveQuery{{ID: "q", TriggerActive: true}}},
		Batch:    &event.Batch{ID: 3},
	}
	var e entry
	e.copyFrom(&event.Update{Event: &src, Outcome: event.OutcomeHeartbeat})
	src.Envelope.Active[0] = event.ActiveQuery{ID: "another"}
	*src.Envelope = event.Envelope{Active: src.Envelope.Active[:0]}
	src.Extra[0] = event.Label{}
	src.Batch.ID = 9
	got := e.update.Event
	if got.Envelope.Sender != "s" || len(got.Envelope.Active) != 1 || got.Envelope.Active[0].ID != "q" || !got.Envelope.Active[0].TriggerActive {
		t.Errorf("envelope %+v", got.Envelope)
	}
	if got.Extra[0].Value != "a" || got.Batch.ID != 3 {
		t.Errorf("labels %v, batch %d", got.Extra, got.Batch.ID)
	}
}
