package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// contractSide is a cluster under the contract and what a test can do to it.
type contractSide struct {
	cluster  cluster
	send     func(values ...string)
	sendAt   func(atMs ...int64) // one message for each time
	truncate func(first int64)
}

// contractSides are the clusters that must keep the contract. Another client
// library would be added here.
func contractSides(t *testing.T) map[string]contractSide {
	fake := newFakeCluster(1)
	fake.maxWait = 50 * time.Millisecond
	b := newBroker(t, withTopic(1))
	cfg := quick(b.ListenAddrs()...)
	cfg.MaxWait = 50 * time.Millisecond
	m, _ := instruments()
	log := &limitedLog{log: slog.New(slog.DiscardHandler), now: time.Now, suppressed: m.LogSuppressed}
	real := newClient(&cfg, log)
	t.Cleanup(real.cut)
	return map[string]contractSide{
		"fake": {
			fake, func(v ...string) { fake.send(0, v...) }, func(at ...int64) { fake.sendAt(0, at...) },
			func(first int64) { fake.truncate(0, first) },
		},
		"kafka-go": {
			real, func(v ...string) { b.send(0, v...) }, func(at ...int64) { b.sendAt(0, at...) },
			func(first int64) {
				if err := b.DeleteRecords(topicEvents, 0, first); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
}

func TestClusterContract(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s contractSide)
	}{
		{"look tells logs and missing topics", contractLook},
		{"fetch returns messages in order and its position", contractFetch},
		{"fetch without messages returns in time", contractIdleFetch},
		{"fetch ends with its context", contractFetchEnds},
		{"an offset that is gone is out of range", contractOutOfRange},
		{"a search by time finds the first message that is young enough", contractFirstSince},
		{"commits are seen by the next generation", contractCommit},
		{"a generation ends with its group", contractGenerationEnds},
		{"cut ends everything", contractCut},
	} {
		for side, s := range contractSides(t) {
			t.Run(c.name+"/"+side, func(t *testing.T) { c.run(t, s) })
		}
	}
}

var firstPartition = partition{topicEvents, 0}

// opened opens the first partition.
func (s contractSide) opened(t *testing.T, offset int64) fetcher {
	t.Helper()
	looks, err := s.cluster.look(t.Context(), []string{topicEvents})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.cluster.open(t.Context(), firstPartition, looks[topicEvents].places[0].leader, offset)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

func contractLook(t *testing.T, s contractSide) {
	s.send("a", "b", "c", "d")
	s.truncate(1)
	looks, err := s.cluster.look(t.Context(), []string{topicEvents, "not-there"})
	if err != nil {
		t.Fatal(err)
	}
	at := looks[topicEvents].places[0]
	if at.err != nil || at.first != 1 || at.last != 4 || at.leader == "" {
		t.Errorf("place is %+v", at)
	}
	if err := looks["not-there"].err; !errors.Is(err, errUnknownTopic) {
		t.Errorf("missing topic has error %v", err)
	}
}

func contractFetch(t *testing.T, s contractSide) {
	s.send("a", "b", "c")
	f := s.opened(t, 1)
	var got []message
	for len(got) < 2 {
		var err error
		if got, err = f.fetch(t.Context(), got); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprintf("%d%s %d%s", got[0].offset, got[0].value, got[1].offset, got[1].value) != "1b 2c" || len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if f.position() != 3 || f.highWater() != 3 {
		t.Errorf("position %d, high water %d, expected 3", f.position(), f.highWater())
	}
	s.send("d")
	for len(got) < 3 {
		var err error
		if got, err = f.fetch(t.Context(), got); err != nil {
			t.Fatal(err)
		}
	}
	if f.position() != 4 || f.highWater() != 4 {
		t.Errorf("position %d, high water %d, expected 4", f.position(), f.highWater())
	}
}

func contractIdleFetch(t *testing.T, s contractSide) {
	f := s.opened(t, 0)
	for range 3 {
		got, err := f.fetch(t.Context(), nil)
		if err != nil || len(got) > 0 {
			t.Fatalf("got %v, %v from an empty log", got, err)
		}
	}
	if f.position() != 0 {
		t.Errorf("position is %d", f.position())
	}
}

func contractFetchEnds(t *testing.T, s contractSide) {
	f := s.opened(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.fetch(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func contractOutOfRange(t *testing.T, s contractSide) {
	s.send("a", "b", "c", "d")
	s.truncate(2)
	for _, offset := range []int64{0, 1, 5, 1 << 40} {
		f := s.opened(t, offset)
		if _, err := f.fetch(t.Context(), nil); !errors.Is(err, errOutOfRange) {
			t.Errorf("offset %d: error is %v", offset, err)
		}
	}
}

func contractFirstSince(t *testing.T, s contractSide) {
	search := func(atMs int64) int64 {
		t.Helper()
		missing := partition{topicEvents, 7}
		got := s.cluster.firstSince(t.Context(), []partition{firstPartition, missing}, atMs)
		if len(got) != 2 || got[firstPartition].err != nil || !errors.Is(got[missing].err, errUnknownTopic) {
			t.Fatalf("answers are %+v", got)
		}
		return got[firstPartition].offset
	}
	if at := search(0); at != event.Absent {
		t.Errorf("found offset %d in an empty log", at)
	}
	s.sendAt(1000, 2000, 5000, 3000, 9000) // not in order, as times by the sender are
	for atMs, expected := range map[int64]int64{0: 0, 1000: 0, 1001: 1, 2001: 2, 4000: 2, 5001: 4, 9000: 4, 9001: event.Absent} {
		if at := search(atMs); at != expected {
			t.Errorf("found offset %d for time %d, expected %d", at, atMs, expected)
		}
	}
	s.truncate(2)
	if at := search(0); at != 2 {
		t.Errorf("found offset %d in a log that begins at 2", at)
	}
}

// joined returns a group and its first generation.
func (s contractSide) joined(t *testing.T) (group, generation) {
	t.Helper()
	g, err := s.cluster.join([]string{topicEvents}, func() claim { return claim{} })
	if err != nil {
		t.Fatal(err)
	}
	gen, err := g.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g, gen
}

func contractCommit(t *testing.T, s contractSide) {
	s.send("a", "b", "c")
	for _, expected := range []int64{event.Absent, 2} {
		g, gen := s.joined(t)
		started := make(chan error, 1)
		gen.start(func(ctx context.Context) {
			started <- gen.commit(map[partition]int64{firstPartition: 2})
			<-ctx.Done()
		})
		if err := <-started; err != nil {
			t.Error(err)
		}
		got := gen.assigned()
		if len(got) != 1 || got[0] != (collector.Assignment{Topic: topicEvents, Committed: expected}) {
			t.Errorf("assigned %+v, expected a committed offset of %d", got, expected)
		}
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}
}

func contractGenerationEnds(t *testing.T, s contractSide) {
	g, gen := s.joined(t)
	order := make(chan string, 2)
	gen.start(func(ctx context.Context) {
		<-ctx.Done()
		order <- "generation"
	})
	if err := g.close(); err != nil {
		t.Error(err)
	}
	order <- "group"
	if first := <-order; first != "generation" {
		t.Error("the group closed before its generation was over")
	}
}

func contractCut(t *testing.T, s contractSide) {
	f := s.opened(t, 0)
	s.cluster.cut()
	s.cluster.cut()
	if _, err := f.fetch(t.Context(), nil); err == nil {
		t.Error("fetch goes on")
	}
	if _, err := s.cluster.look(t.Context(), []string{topicEvents}); err == nil {
		t.Error("look goes on")
	}
	if _, err := s.cluster.open(t.Context(), firstPartition, "127.0.0.1:1", 0); err == nil {
		t.Error("open goes on")
	}
}
