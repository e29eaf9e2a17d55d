package simulator

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

func TestEveryShippedScenarioPlaysAndIsUnderstood(t *testing.T) {
	for i, sc := range shipped(t) {
		if raced && i%8 != 0 {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			// PAR
			s := start(t, sc, Options{Seed: 7, Batches: 12, Parallel: 2})
			ms := play(t, s, all)
			if len(ms) < 3 {
				t.Fatalf("only %d messages", len(ms))
			}
			checkOrder(t, ms)
			decoded(t, ms, func(m *played, e *event.Event) {
				if e.Kind != m.Kind {
					t.Errorf("a message of kind %s is read as %s: %.200s", m.Kind, e.Kind, m.text)
				}
			})
		})
	}
}

// checkOrder fails unless messages come in the order of their times.
func checkOrder(t *testing.T, ms []played) {
	t.Helper()
	for i := 1; i < len(ms); i++ {
		if ms[i].AtMs < ms[i-1].AtMs {
			t.Fatalf("message %d is sent %d ms before the one that it follows", i, ms[i-1].AtMs-ms[i].AtMs)
		}
	}
}
