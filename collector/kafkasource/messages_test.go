package kafkasource

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/collector"
)

// TestMessages shows what becomes of message values. "message" takes a value as it
// is, "bytes" one in hexadecimal; "header" gives the message that follows a header.
func TestMessages(t *testing.T) {
	r, w := stepRig(t)
	r.src.opt.Enrich = collector.NewEnrich(map[string][]string{
		"team": {"header:team"}, "application": {"app.name", "header:app"},
	})
	var seen strings.Builder
	r.in.setGate(func(_ context.Context, step *collector.Step) error {
		for i := range step.Items {
			ev := step.Items[i].Event
			fmt.Fprintf(&seen, "%s query=%s", ev.Kind, ev.Query.Label())
			if ev.Batch != nil {
				fmt.Fprintf(&seen, " batch=%d", ev.Batch.ID)
			}
			if ev.Query.Application != "" {
				fmt.Fprintf(&seen, " application=%s", ev.Query.Application)
			}
			for _, l := range ev.Extra {
				fmt.Fprintf(&seen, " %s=%s", l.Name, l.Value)
			}
			fmt.Fprintf(&seen, " index=%d offset=%d\n", step.Items[i].Index, step.Items[i].Origin.Offset)
		}
		return nil
	})
	var headers []header
	offset := int64(0)
	datadriven.RunTest(t, "testdata/messages.txt", func(t *testing.T, d *datadriven.TestData) string {
		value := []byte(d.Input)
		switch d.Cmd {
		case "header":
			key, text, _ := strings.Cut(d.Input, "=")
			headers = append(headers, header{key, []byte(text)})
			return ""
		case "bytes":
			var err error
			if value, err = hex.DecodeString(d.Input); err != nil {
				d.Fatalf(t, "%v", err)
			}
		}
		before := r.rejects()
		seen.Reset()
		w.step.handle(t.Context(), t.Context(), []message{{offset: offset, value: value, headers: headers}}, offset+1)
		offset, headers = offset+1, nil
		for reason, n := range r.rejects() {
			if n > before[reason] {
				fmt.Fprintf(&seen, "rejected %d: %s\n", n-before[reason], reason)
			}
		}
		fmt.Fprintf(&seen, "reached %d\n", w.reached.Load())
		return seen.String()
	})
}

func (r *rig) rejects() map[collector.Reason]int {
	out := map[collector.Reason]int{}
	for _, reason := range collector.Reasons() {
		out[reason] = r.rejected(reason)
	}
	return out
}

// TestTopicValuesSeenInTheField reads a posted topic, where it is at hand.
func TestTopicValuesSeenInTheField(t *testing.T) {
	dir := os.Getenv("STATEGAUGE_SHARED")
	if dir == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	text, err := os.ReadFile(filepath.Join(dir, "samples", "045-kafka-topic-values.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBroker(t, withTopic(1))
	values := strings.Split(strings.TrimSpace(string(text)), "\n")
	b.send(0, values...)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(len(values))
	for i, g := range r.in.all() {
		if g.batch != int64(i) || g.offset != int64(i) {
			t.Errorf("message %d became batch %d at offset %d", i, g.batch, g.offset)
		}
	}
}
