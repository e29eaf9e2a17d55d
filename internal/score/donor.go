package score

import (
	"bytes"
	"context"
	"fmt"
	"math"
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
	// stands says of each batch how many have passed since each operator gave rows back,
	// and places where the donor stood so.
	stands []string
	places map[string][]int
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
	if !d.steady(took) {
		return false
	}
	slices.Sort(took)
	d.slowMs = took[len(took)*99/100]
	d.standing()
	return true
}

// steady reports whether the donor's batches are of one kind from its beginning to its
// end: put together in another order they would not be healthy otherwise. A query that
// catches up is well, and hours of that again and again are not.
func (d *donor) steady(took []float64) bool {
	var age []float64
	for _, b := range d.batches {
		if b.EventTimeMaxMs != event.Absent {
			age = append(age, float64(b.EndMs()-b.EventTimeMaxMs)+steadyAgeMs)
		}
	}
	return alike(took) && (len(age) < donorLeast || alike(age)) && !d.fills()
}

// fills reports whether the state of an operator only fills up: nothing was there for long
// enough to leave it.
func (d *donor) fills() bool {
	first, last := d.batches[0], d.batches[len(d.batches)-1]
	for i := range first.Operators {
		removes := func(b *event.Batch) bool { return b.Operators[i].Values[event.NumRowsRemoved] > 0 }
		before, after := first.Operators[i].Values[event.NumRowsTotal], last.Operators[i].Values[event.NumRowsTotal]
		if after > steadyFactor*before && !slices.ContainsFunc(d.batches, removes) {
			return true
		}
	}
	return false
}

const (
	steadyFactor = 3     // between quarters of a donor, of what healthy batches do by themselves
	steadyAgeMs  = 600e3 // data that is younger is not old
)

// alike compares the medians of the quarters of a series.
func alike(v []float64) bool {
	least, most := math.Inf(1), 0.0
	for i := range 4 {
		quarter := slices.Clone(v[i*len(v)/4 : (i+1)*len(v)/4])
		slices.Sort(quarter)
		mid := quarter[len(quarter)/2]
		least, most = min(least, mid), max(most, mid)
	}
	return most <= steadyFactor*least
}

// standing notes how each batch stands: how long ago each operator gave rows back. What
// comes before the first time is left out.
func (d *donor) standing() {
	since := make([]int, len(d.batches[0].Operators))
	d.places = map[string][]int{}
	for i, b := range d.batches {
		for k := range b.Operators {
			since[k]++
			if b.Operators[k].Values[event.NumRowsRemoved] > 0 {
				since[k] = 0
			}
		}
		key := fmt.Sprint(since)
		d.stands = append(d.stands, key)
		d.places[key] = append(d.places[key], i)
	}
}

// alike returns the places that batch i may be taken from as well; behind the last one,
// those after such as stand as the last does.
func (d *donor) alike(i int) []int {
	if i < len(d.batches) {
		return d.places[d.stands[i]]
	}
	var after []int
	for _, at := range d.places[d.stands[i-1]] {
		if at+1 < len(d.batches) {
			after = append(after, at+1)
		}
	}
	if len(after) == 0 {
		after = []int{0}
	}
	return after
}

// fits reports whether the donor's batches end within a trigger interval, with room
// for noise.
func (d *donor) fits(everyMs int64) bool { return d.slowMs < 0.5*float64(everyMs) }
