package track_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// delivery is an event of a simulated query and when it arrives.
type delivery struct {
	event *event.Event
	atMs  int64
}

// simulated plays a scenario and returns what arrives: with repeats, some events
// late and some out of order, as happens between a listener and a collector.
func simulated(t *testing.T, name string, batches int64) []delivery {
	t.Helper()
	data, err := fs.ReadFile(configs.Scenarios(), name+".yml")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Load(name+".yml", data)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulator.New(sc, simulator.Options{Seed: 7, Batches: batches})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := decode.NewPool(decode.DefaultLimits()).Get()
	var out []delivery
	for {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			return disturbed(out)
		}
		if err != nil {
			t.Fatal(err)
		}
		d.Body(m.Data, func(_ int, e *event.Event, rej *collector.Reject) bool {
			if rej != nil {
				t.Fatalf("refused: %+v", rej)
			}
			out = append(out, delivery{copyOf(e), m.AtMs})
			return true
		})
	}
}

func copyOf(e *event.Event) *event.Event {
	out := *e
	if e.Batch != nil {
		out.Batch = &event.Batch{}
		out.Batch.CopyFrom(e.Batch)
	}
	if e.Envelope != nil {
		out.Envelope = &event.Envelope{}
		out.Envelope.CopyFrom(e.Envelope)
	}
	return &out
}

// disturbed repeats, delays and swaps a few deliveries.
func disturbed(in []delivery) []delivery {
	rng := rand.New(rand.NewPCG(3, uint64(len(in))))
	out := slices.Clone(in)
	for _, d := range in {
		switch rng.IntN(12) {
		case 0:
			d.atMs += rng.Int64N(600_000)
			out = append(out, d)
		case 1:
			out = append(out, d)
		}
	}
	for i := range out {
		if rng.IntN(15) == 0 {
			out[i].atMs += rng.Int64N(90_000)
		}
	}
	slices.SortStableFunc(out, func(a, b delivery) int { return int(a.atMs - b.atMs) })
	return out
}

// lane is a tracker with what a restart has to bring back.
type lane struct {
	c     track.Config
	tr    *track.Tracker
	every int
}

func newLane(every int) *lane {
	c := track.DefaultConfig()
	c.Senders = track.NewSenders()
	return &lane{c: c, tr: track.New(c, nil), every: every}
}

func (l *lane) restart(t *testing.T) {
	t.Helper()
	c := l.c
	c.Senders = track.NewSenders()
	tr := track.New(c, nil)
	if err := errors.Join(tr.Restore(l.tr.Snapshot(nil)), c.Senders.Restore(l.c.Senders.Snapshot(nil))); err != nil {
		t.Fatal(err)
	}
	l.c, l.tr = c, tr
}

func TestRestoredTrackersJudgeSimulatedStreamsAsBefore(t *testing.T) {
	seen := map[string]bool{}
	wanted := []string{"duplicate", "late", "executed", "missed", "shared runs", "out of order", "new run"}
	plays := map[string]int64{"checkpoint-shared": 190, "restart-loop": 170, "available-now": 20, "idle-spells": 60, "redeploys": 60}
	if !raced {
		maps.Copy(plays, map[string]int64{"rewound": 190, "checkpoint-reset": 170, "missed-events-with-envelope": 170})
		wanted = append(wanted, "rewound")
	}
	for name, batches := range plays {
		t.Run(name, func(t *testing.T) {
			lanes := []*lane{newLane(0), newLane(1), newLane(7), newLane(50)}
			nextTick, steps := int64(0), 0
			for _, d := range simulated(t, name, batches) {
				for ; nextTick != 0 && nextTick <= d.atMs; nextTick += 5000 {
					step(t, lanes, &steps, seen, func(l *lane) []event.Update { return l.tr.Tick(nextTick, nil) })
				}
				if nextTick == 0 {
					nextTick = d.atMs
				}
				step(t, lanes, &steps, seen, func(l *lane) []event.Update { return l.tr.Apply(copyOf(d.event), d.atMs, nil) })
			}
		})
	}
	for _, want := range wanted {
		if !seen[want] {
			t.Errorf("no update says %q: the streams do not show it", want)
		}
	}
}

func step(t *testing.T, lanes []*lane, steps *int, seen map[string]bool, do func(*lane) []event.Update) {
	t.Helper()
	*steps++
	want := do(lanes[0])
	note(seen, want)
	for _, l := range lanes[1:] {
		if got := do(l); !slices.EqualFunc(want, got, track.Alike) {
			t.Fatalf("step %d, restored after each %d: (-never +restored)\n%s", *steps, l.every, cmp.Diff(want, got, cmpopts.EquateNaNs()))
		}
		if *steps%l.every == 0 {
			l.restart(t)
		}
	}
}

func note(seen map[string]bool, us []event.Update) {
	for _, u := range us {
		seen[u.Outcome.String()] = true
		for what, is := range map[string]bool{"missed": u.Missed > 0, "rewound": u.Rewound, "shared runs": u.SharedRuns, "out of order": u.OutOfOrder, "new run": u.NewRun} {
			seen[what] = seen[what] || is
		}
	}
}
