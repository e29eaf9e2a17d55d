package output

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/simulator"
)

// TestAllSinksDeliverTheSameEventsInOrder is the contract of a sink.
func TestAllSinksDeliverTheSameEventsInOrder(t *testing.T) {
	sent := messages(1234, 7)
	for name, open := range map[string]func(t *testing.T) (target string, o Options, arrived func() []string){
		"standard output": func(*testing.T) (string, Options, func() []string) {
			var out bytes.Buffer
			return "-", Options{Stdout: &out}, func() []string { return split(out.String()) }
		},
		"standard output at once": func(*testing.T) (string, Options, func() []string) {
			var out bytes.Buffer
			return "-", Options{Stdout: &out, AtOnce: true}, func() []string { return split(out.String()) }
		},
		"a file": func(t *testing.T) (string, Options, func() []string) {
			f := filepath.Join(t.TempDir(), "events.ndjson")
			return f, Options{}, func() []string {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				return split(string(data))
			}
		},
		"http": func(t *testing.T) (string, Options, func() []string) {
			c := &collectorServer{}
			s := httptest.NewServer(c)
			t.Cleanup(s.Close)
			return s.URL, Options{BatchEvents: 100}, func() []string {
				if c.posts < 13 || c.paths[intake] != c.posts {
					t.Errorf("%d posts, to %v", c.posts, c.paths)
				}
				return c.lines
			}
		},
		"http in batches of bytes to a path": func(t *testing.T) (string, Options, func() []string) {
			c := &collectorServer{}
			s := httptest.NewServer(c)
			t.Cleanup(s.Close)
			return s.URL + "/other", Options{BatchBytes: 5_000}, func() []string {
				if c.posts < 30 || c.paths["/other"] != c.posts {
					t.Errorf("%d posts, to %v", c.posts, c.paths)
				}
				return c.lines
			}
		},
		"kafka": func(t *testing.T) (string, Options, func() []string) {
			b := newBroker(t, kfake.SeedTopics(1, "events"))
			return "kafka://" + b + "/events", Options{BatchEvents: 100}, func() []string {
				var out []string
				for _, r := range consume(t, b, len(sent)) {
					out = append(out, string(r.Value))
				}
				return out
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			target, o, arrived := open(t)
			s, err := Open(target, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := send(t, s, sent); err != nil {
				t.Fatal(err)
			}
			check(t, arrived(), sent)
		})
	}
}

func newBroker(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0]
}

// consume reads n records of the topic.
func consume(t *testing.T, broker string, n int) (out []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics("events"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for len(out) < n && ctx.Err() == nil {
		out = append(out, client.PollFetches(ctx).Records()...)
	}
	return out
}

func TestAQuerysEventsStayInOrderOnOnePartition(t *testing.T) {
	broker := newBroker(t, kfake.SeedTopics(4, "events"))
	s, err := Open("kafka://"+broker+"/events", Options{BatchEvents: 64})
	if err != nil {
		t.Fatal(err)
	}
	sent := messages(500, 9)
	if err := send(t, s, sent); err != nil {
		t.Fatal(err)
	}
	partitions := map[string]int32{}
	order := map[string][]string{}
	for _, r := range consume(t, broker, len(sent)) {
		key := string(r.Key)
		if p, ok := partitions[key]; ok && p != r.Partition {
			t.Errorf("query %s is on partitions %d and %d", key, p, r.Partition)
		}
		partitions[key] = r.Partition
		order[key] = append(order[key], string(r.Value))
	}
	for key := range order {
		var own []*simulator.Message
		for _, m := range sent {
			if m.QueryID == key {
				own = append(own, m)
			}
		}
		check(t, order[key], own)
	}
	if len(order) != 9 {
		t.Errorf("%d keys", len(order))
	}
}

func TestATopicThatIsNotThereYetIsMade(t *testing.T) {
	broker := newBroker(t, kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(1))
	s, err := Open("kafka://"+broker+"/events", Options{Patience: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	sent := messages(10, 1)
	if err := send(t, s, sent); err != nil {
		t.Fatal(err)
	}
	if n := len(consume(t, broker, len(sent))); n != len(sent) {
		t.Errorf("%d events arrived", n)
	}
}

func TestABrokerThatIsNotThereIsGivenUp(t *testing.T) {
	l := httptest.NewServer(nil)
	addr := l.Listener.Addr().String()
	l.Close()
	s, err := Open("kafka://"+addr+"/events", Options{Patience: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	err = send(t, s, messages(3, 1))
	if err == nil || !strings.Contains(err.Error(), "produce to events: gave up after 1ns") {
		t.Errorf("error %v", err)
	}
}

func TestTargetsThatCannotBe(t *testing.T) {
	for target, want := range map[string]string{
		"":                      "output is empty",
		"ftp://host/x":          `output "ftp://host/x": unknown scheme "ftp", must be http, https or kafka`,
		"http://":               `output "http://" is no URL of a collector`,
		"http://a b/":           `output "http://a b/" is no URL of a collector`,
		"kafka://host:9092":     `output "kafka://host:9092" must be kafka://broker:port/topic`,
		"kafka:///topic":        `output "kafka:///topic" must be kafka://broker:port/topic`,
		"kafka://host/a/b":      `output "kafka://host/a/b" must be kafka://broker:port/topic`,
		"kafka://ho st/a":       `output: parse "kafka://ho st/a": invalid character " " in host name`,
		"/nowhere/at/all.jsonl": "output: open /nowhere/at/all.jsonl: no such file or directory",
	} {
		_, err := Open(target, Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", target, err, want)
		}
	}
}

// brokenWriter fails from some byte on.
type brokenWriter struct {
	left int
	err  error
}

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, b.err
	}
	return len(p), nil
}

func TestAWriterThatFails(t *testing.T) {
	full := errors.New("disk full")
	for _, atOnce := range []bool{false, true} {
		s, err := Open("-", Options{Stdout: &brokenWriter{left: 1000, err: full}, AtOnce: atOnce})
		if err != nil {
			t.Fatal(err)
		}
		err = send(t, s, messages(10_000, 1))
		if !errors.Is(err, full) || IsReaderGone(err) {
			t.Errorf("error %v", err)
		}
	}
}

func TestAReaderThatIsGoneIsTold(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	s, err := Open("-", Options{Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t, s, messages(10_000, 1)); !IsReaderGone(err) {
		t.Errorf("error %v", err)
	}
	w.Close()
	if !IsReaderGone(io.ErrClosedPipe) || IsReaderGone(nil) {
		t.Error("what a closed pipe in the process says is not known")
	}
}
