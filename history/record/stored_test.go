package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

func TestAStoredRecordSaysHowItCame(t *testing.T) {
	d := NewDictionary(0)
	u := event.Update{Event: &event.Event{Kind: event.KindIdle, Query: event.QueryRef{ID: "q", Name: "orders"}, AtMs: 1772409600000}, Outcome: event.OutcomeIdle}
	var x Decoder
	for _, how := range []How{Live, Reread} {
		got, said, err := x.DecodeStored(AppendStored(nil, how, &u, d), d)
		if err != nil || said != how {
			t.Fatalf("said %d, want %d: %v", said, how, err)
		}
		if diff := cmp.Diff(u.Event.Query, got.Event.Query); diff != "" {
			t.Error(diff)
		}
	}
	if _, _, err := x.DecodeStored(nil, d); err == nil {
		t.Error("nothing was read as a record")
	}
}
