package kafkasource

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestConfigFaults changes a valid configuration by the lines of each case and
// shows every fault found.
func TestConfigFaults(t *testing.T) {
	datadriven.RunTest(t, "testdata/config.txt", func(t *testing.T, d *datadriven.TestData) string {
		c := DefaultConfig()
		c.Brokers, c.Topics = []string{"kafka:9092"}, []string{topicEvents}
		for _, line := range strings.Split(d.Input, "\n") {
			key, value, _ := strings.Cut(line, "=")
			if !setField(t, &c, strings.TrimSpace(key), strings.TrimSpace(value)) {
				d.Fatalf(t, "unknown field %q", key)
			}
		}
		if err := c.Validate(); err != nil {
			return err.Error()
		}
		return "valid"
	})
}

func setField(t *testing.T, c *Config, key, value string) bool {
	number := func(to *int) { _, _ = fmt.Sscan(value, to) }
	span := func(to *time.Duration) {
		d, err := time.ParseDuration(value)
		if err != nil {
			t.Fatal(err)
		}
		*to = d
	}
	list := func(to *[]string) { *to = strings.Fields(value) }
	set := map[string]func(){
		"":           func() {},
		"brokers":    func() { list(&c.Brokers) },
		"topics":     func() { list(&c.Topics) },
		"group":      func() { c.GroupID = value },
		"start":      func() { c.StartOffset = value },
		"min_bytes":  func() { number(&c.MinBytes) },
		"max_bytes":  func() { number(&c.MaxBytes) },
		"events":     func() { number(&c.BatchEvents) },
		"max_wait":   func() { span(&c.MaxWait) },
		"heartbeat":  func() { span(&c.HeartbeatInterval) },
		"session":    func() { span(&c.SessionTimeout) },
		"rebalance":  func() { span(&c.RebalanceTimeout) },
		"commit":     func() { span(&c.CommitInterval) },
		"watchdog":   func() { span(&c.WatchdogInterval) },
		"mechanism":  func() { c.SASL.Mechanism = value },
		"username":   func() { c.SASL.Username = value },
		"password":   func() { c.SASL.Password = value },
		"long_topic": func() { c.Topics = []string{strings.Repeat("x", 250)} },
	}[key]
	if set == nil {
		return false
	}
	set()
	return true
}

func TestDefaultsNeedOnlyBrokersAndTopics(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("faults of the defaults: %v", err)
	}
}

func TestNewNamesEverythingThatIsNotGiven(t *testing.T) {
	_, err := New(Options{})
	for _, part := range []string{"brokers", "handler must", "decoder pool must", "intake metrics must", "metrics must"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error is %v, expected %q in it", err, part)
		}
	}
}
