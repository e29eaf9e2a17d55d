package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
)

// The kinds of saved state.
const (
	stateTracker  = "tracker"  // of a shard; the key is its index and the number of shards
	stateSenders  = "senders"  // the running numbers of those who send
	stateCounters = "counters" // of a query's series
	stateRules    = "rules"    // windows, baselines and alerts of a query
	stateEngine   = "engine"   // what the rules hold of no single query
	stateNotices  = "notices"  // what Alertmanagers were told, and since when
	stateTold     = "told"     // which alerts were let out of the house
)

// savesPerRound is how many rounds it takes to save the rules' state of all queries:
// it is large, and what a restart judges again for its sake is little.
const savesPerRound = 10

// remember notes whose counters have changed since they were saved.
func (s *shard) remember(updates []event.Update) {
	for i := range updates {
		if id := updates[i].Event.Query.ID; id != "" && logged(&updates[i]) {
			s.changed[id] = true
		}
	}
}

// trackerState is what a shard's tracker knows, and what all of them share. It runs on
// the shard's goroutine; the commit of its step stamps it.
func (j *journal) trackerState(s *shard) []history.State {
	key := trackerKey{s.index, len(j.app.shards.all)}
	out := []history.State{{Kind: stateTracker, Key: key.String(), Body: s.tracker.Snapshot(nil)}}
	if s.index == 0 {
		out = append(out, history.State{Kind: stateSenders, Key: "-", Body: j.app.senders.Snapshot(nil)})
	}
	return out
}

type trackerKey struct{ index, of int }

func (k trackerKey) String() string { return strconv.Itoa(k.index) + "/" + strconv.Itoa(k.of) }

func parseTrackerKey(text string) (k trackerKey, err error) {
	index, of, _ := strings.Cut(text, "/")
	if k.index, err = strconv.Atoi(index); err == nil {
		k.of, err = strconv.Atoi(of)
	}
	if err != nil || k.index < 0 || k.index >= k.of {
		return k, fmt.Errorf("state of tracker %q: no such name", text)
	}
	return k, nil
}

// counters are the series of a shard's queries that have changed, as of the step that
// is being shown, and the names of those that are no more. It runs on the shard's
// goroutine.
func (j *journal) counters(s *shard, seq uint64) (saved, gone []history.State) {
	for id := range s.changed {
		body := j.app.exporter.SaveCounters(id, nil)
		st := history.State{Kind: stateCounters, Key: string(id), Seq: seq, Body: body}
		if len(body) == 0 {
			gone = append(gone, st)
			continue
		}
		saved = append(saved, st)
	}
	clear(s.changed)
	return saved, gone
}

// clock lets time pass for the trackers and saves state now and then.
func (j *journal) clock(ctx context.Context) error {
	o := &j.app.opts
	tick, save := time.NewTicker(o.real(o.TrackEvery)), time.NewTicker(o.real(o.SaveEvery))
	defer tick.Stop()
	defer save.Stop()
	for {
		select {
		case <-tick.C:
			j.noteNotices()
			j.sendSafely(j.app.newSplit(stepTick))
		case <-save.C:
			j.save()
		case <-ctx.Done():
			return nil
		}
	}
}

// newSplit is a step that no source brought. It is not pooled: nobody waits for it.
func (a *App) newSplit(kind stepKind) *split {
	return &split{kind: kind, pieces: make([]piece, len(a.shards.all))}
}

// save puts state on disk that a restart begins with, and lets the log before it go.
func (j *journal) save() {
	all := j.wholeSaves.Swap(false)
	s := j.app.newSplit(stepSave)
	j.sendSafely(s)
	saved := s.seq
	j.app.judge.ask(func() {
		j.later(j.app.judge.save(all))
		saved = min(saved, j.app.judge.savedTo())
	})
	j.sendSafely(j.app.newSplit(stepTick)) // carries them to the disk
	if _, bad := j.degraded(); bad {
		return
	}
	if err := j.store.Trim(saved); err != nil {
		j.app.log.Warn("the log could not be shortened", "err", err)
	}
}

// noteNotices saves what was told to Alertmanagers, where that has changed: a page
// that went out a moment before a crash is no news after it.
func (j *journal) noteNotices() {
	j.app.judge.ask(func() {
		if states := j.app.judge.notices(); states != nil {
			j.later(states, nil)
		}
	})
}

// notices is what was told, nil where it is saved already. It runs on the judging
// goroutine.
func (j *judge) notices() []history.State {
	if !j.told {
		return nil
	}
	j.told = false
	seq := slices.Max(j.reached)
	keys, err := json.Marshal(slices.Sorted(maps.Keys(j.app.delivery.told)))
	if err != nil {
		panic(fmt.Errorf("names of alerts: %w", err)) // strings
	}
	return []history.State{
		{Kind: stateNotices, Key: "-", Seq: seq, Body: j.app.notifier.Snapshot(nil)},
		{Kind: stateTold, Key: "-", Seq: seq, Body: keys},
	}
}

// save returns the rules' state of the queries whose last one is oldest; of all
// that were judged since where all is set.
func (j *judge) save(all bool) (saved, gone []history.State) {
	if j.idle.Load() {
		clear(j.unsaved)
		return nil, nil
	}
	ids := make([]event.QueryID, 0, len(j.unsaved))
	for id := range j.unsaved {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b event.QueryID) int {
		if x, y := j.unsaved[a], j.unsaved[b]; x != y {
			return compareSeq(x, y)
		}
		return strings.Compare(string(a), string(b))
	})
	if n := max(16, len(ids)/savesPerRound+1); !all && len(ids) > n {
		ids = ids[:n]
	}
	for _, id := range ids {
		st := history.State{Kind: stateRules, Key: string(id), Seq: j.reached[j.app.shards.of(id)], Body: j.engine.SaveQuery(id, nil)}
		delete(j.unsaved, id)
		if len(st.Body) == 0 {
			gone = append(gone, st)
			continue
		}
		saved = append(saved, st)
	}
	return append(saved, history.State{Kind: stateEngine, Key: "-", Seq: slices.Max(j.reached), Body: j.engine.Save(nil)}), gone
}

func compareSeq(a, b uint64) int {
	if a < b {
		return -1
	}
	return 1
}

// savedTo is the newest step up to which the rules' saved state holds everything.
func (j *judge) savedTo() uint64 {
	out := slices.Min(j.reached)
	for _, first := range j.unsaved {
		out = min(out, first-1)
	}
	return out
}

// finish saves everything once nothing moves any more, and closes the store.
func (j *journal) finish() error {
	j.sumUp(math.MaxInt64)
	for _, s := range j.app.shards.all {
		states := j.trackerState(s)
		for i := range states {
			states[i].Seq = j.next
		}
		j.later(states, nil)
		j.later(j.counters(s, j.next))
	}
	for i := range j.app.judge.reached {
		j.app.judge.reached[i] = j.next
	}
	j.later(j.app.judge.save(true))
	j.later(j.app.judge.notices(), nil)
	step := &history.Step{Seq: j.next}
	step.States, step.Dropped = j.takePending()
	step.Dropped = append(step.Dropped, j.stale...)
	err := j.store.Commit([]*history.Step{step})
	if err == nil {
		err = j.store.Trim(j.next)
	}
	return errors.Join(err, j.store.Close())
}
