package proof

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// load returns a scenario that comes with the project.
func load(t testing.TB, name string) *scenario.Scenario {
	t.Helper()
	data, err := fs.ReadFile(configs.Scenarios(), name+".yml")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Load(name+".yml", data)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// said is one event as a listener at the other end reads it.
type said struct {
	*event.Event
	query  int
	sentMs int64
	// turn is which batch of the query the event belongs to, counted on where ids
	// go back; of an event that is no batch, the one before it. -1 before the first.
	turn int64
}

// play plays a scenario to its end and returns what it said. Events are copies.
func play(t testing.TB, sc *scenario.Scenario, o simulator.Options) (all []said) {
	t.Helper()
	s, err := simulator.New(sc, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	pool := decode.NewPool(decode.DefaultLimits())
	d := pool.Get()
	turns := map[int]*turns{}
	for {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		e := read(t, d, m.Data)
		if turns[m.Query] == nil {
			turns[m.Query] = newTurns()
		}
		all = append(all, said{Event: e, query: m.Query, sentMs: m.AtMs, turn: turns[m.Query].of(e)})
	}
}

// turns counts the batches of a query whatever becomes of their ids.
type turns struct{ last, turn int64 }

func newTurns() *turns { return &turns{last: -1, turn: -1} }

func (c *turns) of(e *event.Event) int64 {
	if e.Kind != event.KindProgress || !e.Batch.Executed {
		return c.turn
	}
	step := e.Batch.ID - c.last // more than 1 over events that never came
	switch {
	case step == 0: // the other run of a shared checkpoint
	case step < 0:
		c.turn++
	default:
		c.turn += step
	}
	c.last = e.Batch.ID
	return c.turn
}

// read decodes one message, which must be one event.
func read(t testing.TB, d *decode.Decoder, data []byte) (out *event.Event) {
	t.Helper()
	d.Body(data, func(_ int, e *event.Event, rej *collector.Reject) bool {
		if rej != nil {
			t.Fatalf("refused: %+v: %.300s", rej, data)
		}
		out = e
		return true
	})
	if out == nil {
		t.Fatalf("no event: %.300s", data)
	}
	return out
}
