package kafka

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// TestTheSourcesOwnTestsHoldOnARealBroker lets those tests of the Kafka source run
// that a broker in memory cannot vouch for.
func TestTheSourcesOwnTestsHoldOnARealBroker(t *testing.T) {
	b := realBroker(t)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "OnARealBroker", "-v", "../../../collector/kafkasource")
	cmd.Env = append(os.Environ(), "STATEGAUGE_TEST_KAFKA="+b.addr)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, tail(out))
	}
	if n := bytes.Count(out, []byte("--- PASS: ")); n < 3 {
		t.Errorf("%d tests ran:\n%s", n, tail(out))
	}
}
