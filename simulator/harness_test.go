package simulator

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// parse makes a scenario from its text.
func parse(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	sc, err := scenario.Load("test.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// shipped lists the scenarios that come with the project.
func shipped(t testing.TB) []*scenario.Scenario {
	t.Helper()
	files, err := filepath.Glob("../configs/scenarios/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	var out []*scenario.Scenario
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Load(filepath.Base(f), data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, sc)
	}
	return out
}

// racing are the tests that play under the race detector too: those in which
// executors work at once, or which read a clock.
var racing = map[string]bool{
	"TestSameScenarioAndSeedGiveTheSameBytes":      true,
	"TestEveryShippedScenarioPlaysAndIsUnderstood": true,
	"TestQueriesOfAScenarioAreTheirOwn":            true,
	"TestLiveModeWorksOnARealDiskAndLeavesItClean": true,
}

// start makes a simulation that is closed with the test.
func start(t testing.TB, sc *scenario.Scenario, o Options) *Simulation {
	t.Helper()
	if root, _, _ := strings.Cut(t.Name(), "/"); raced && !racing[root] {
		t.Skip("nothing in it runs at once; make plays plays it without the race detector")
	}
	s, err := New(sc, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// played is one message, detached.
type played struct {
	Message
	text string
}

// play collects messages until the end, or n of them.
func play(t testing.TB, s *Simulation, n int) []played {
	t.Helper()
	var out []played
	for len(out) < n {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("after %d messages: %v", len(out), err)
		}
		out = append(out, played{*m, string(m.Data)})
	}
	return out
}

const all = 1 << 30

// lines joins messages as a file of them has them.
func lines(ms []played) []byte {
	var b bytes.Buffer
	for _, m := range ms {
		b.WriteString(m.text)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// decoded gives the events to visit; whatever the decoder refuses fails the test.
func decoded(t testing.TB, ms []played, visit func(m *played, e *event.Event)) {
	t.Helper()
	pool := decode.NewPool(decode.Limits{})
	for i := range ms {
		m, n := &ms[i], 0
		d := pool.Get()
		d.Body([]byte(m.text), func(_ int, e *event.Event, rej *collector.Reject) bool {
			n++
			if rej != nil {
				t.Fatalf("message %d is refused: %v\n%s", i, rej, m.text)
			}
			visit(m, e)
			return true
		})
		pool.Put(d)
		if n != 1 {
			t.Fatalf("message %d holds %d events: %s", i, n, m.text)
		}
	}
}

// batches gives the executed batches to visit.
func batches(t testing.TB, ms []played, visit func(m *played, b *event.Batch)) {
	t.Helper()
	decoded(t, ms, func(m *played, e *event.Event) {
		if e.Kind == event.KindProgress && e.Batch.Executed {
			visit(m, e.Batch)
		}
	})
}
