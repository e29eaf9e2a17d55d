package kafka

import (
	"testing"
	"time"
)

// TestADaemonThatStopsInterruptsTheOthersOnce stops the group's leader again and
// again: it must leave the group, not join it once more on its way out.
func TestADaemonThatStopsInterruptsTheOthersOnce(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "leaving", 4)
	old := runDaemon(t, b.addr, f.topic, "leaving")
	f.send(5)
	old.hasAll(f, "leaving")
	for range 3 {
		next := runDaemon(t, b.addr, f.topic, "leaving")
		awaitSpread(t, []*daemon{old, next}, f)
		before := next.count("stategauge_kafka_rebalances_total")
		begin := time.Now()
		old.stop()
		awaitSpread(t, []*daemon{next}, f)
		t.Logf("all was taken over after %v", time.Since(begin).Round(time.Millisecond))
		if n := next.count("stategauge_kafka_rebalances_total") - before; n != 1 {
			t.Errorf("%g generations after one daemon stopped, want 1", n)
		}
		old = next
	}
}
