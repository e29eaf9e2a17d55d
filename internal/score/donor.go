package score

import (
	"bytes"
	"context"
	"slices"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/replay"
)

const (
	donorWarmUp = 20  // batches of a run that are left out
	donorLeast  = 60  // batches of one run that make a donor
	donorMost   = 400 // batches that are kept
)

// donor is a healthy query whose batches are put together anew, in blocks. Its
// batches are read only.
type donor struct {
	name    string
	batches []*event.Batch
	slowMs  float64 // what 99 % of its batches stay below
	trigger event.TriggerKind
}

// donors takes the healthy queries among plays.
func donors(plays []*play) (out []*donor) {
	for _, p := range plays {
		if p.stream != nil && p.donates(plays[0].seed) {
			out = append(out, donorsOf(p.scenario.Name, p.stream.lines)...)
		}
	}
	return out
}

// donorsOf makes a donor of each run in a stream that is long and steady enough.
func donorsOf(name string, lines []byte) []*donor {
	c := newCandidates(name)
	l := replay.NewLines(c.player)
	for line := range bytes.Lines(lines) {
		if l.Play(line) != nil {
			break
		}
	}
	return c.donors()
}

// donorsIn makes donors of recorded events, files or folders. What is too short or
// too unsteady is passed over.
func donorsIn(ctx context.Context, paths []string) ([]*donor, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	c := newCandidates("recorded")
	_, err := replay.Merge(ctx, replay.Inputs{Paths: paths}, func(it *collector.Item) { c.player.Play(it.Event, it.Origin) })
	return c.donors(), err
}

// candidates are runs that may become donors.
type candidates struct {
	name   string
	player *replay.Player
	runs   map[runKey]*donor
	order  []runKey
}

type runKey struct {
	query event.QueryID
	run   event.RunID
}

func newCandidates(name string) *candidates {
	c := &candidates{name: name, runs: map[runKey]*donor{}}
	c.player = replay.NewPlayer(replay.PlayerOptions{TrackEveryMs: -1, JudgeEveryMs: -1, Update: c.take})
	return c
}

func (c *candidates) take(u *event.Update) {
	b := u.Event.Batch
	if u.Outcome != event.OutcomeExecuted || b == nil || b.NoData || u.OutOfOrder || b.StartMs == event.Absent {
		return
	}
	key := runKey{u.Event.Query.ID, b.Run}
	d := c.runs[key]
	if d == nil {
		d = &donor{name: c.name}
		c.runs[key] = d
		c.order = append(c.order, key)
	}
	d.trigger = u.Trigger
	if len(d.batches) < donorMost+donorWarmUp {
		kept := &event.Batch{}
		kept.CopyFrom(b)
		d.batches = append(d.batches, kept)
	}
}

func (c *candidates) donors() (out []*donor) {
	for _, key := range c.order {
		if d := c.runs[key]; d.settle() {
			out = append(out, d)
		}
	}
	return out
}

// settle leaves out the warm-up and reports whether the rest makes a donor.
func (d *donor) settle() bool {
	if len(d.batches) < donorWarmUp+donorLeast || d.trigger != event.TriggerInterval {
		return false
	}
	d.batches = d.batches[donorWarmUp:]
	var took []float64
	for _, b := range d.batches {
		ms, _ := b.DurationMs()
		if ms != ms || len(b.Operators) != len(d.batches[0].Operators) {
			return false
		}
		took = append(took, ms)
	}
	slices.Sort(took)
	d.slowMs = took[len(took)*99/100]
	return true
}

// fits reports whether the donor's batches end within a trigger interval, with room
// for noise.
func (d *donor) fits(everyMs int64) bool { return d.slowMs < 0.5*float64(everyMs) }
