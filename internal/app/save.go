package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	stateHomes    = "homes"    // the partitions of a shard's queries; the key is as a tracker's
	stateSenders  = "senders"  // the running numbers of those who send
	stateCounters = "counters" // of a query's series
	stateRules    = "rules"    // windows, baselines and alerts of a query
	stateEngine   = "engine"   // what the rules hold of no single query
	stateNotices  = "notices"  // what Alertmanagers were told, and since when
	stateTold     = "told"     // which alerts were let out of the house
	stateHours    = "hours"    // which hours no summary holds yet
	stateClock    = "clock"    // when the daemon was at work last
	statePause    = "pause"    // a time in which it was not; the key is when it began
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

// shardStates are what a shard's tracker knows, where its queries come from, and what
// all shards have in common. It runs on the shard's goroutine; the commit of its step
// stamps them.
func (j *journal) shardStates(s *shard) []history.State {
	key := shardKey{s.index, len(j.app.shards.all)}.String()
	out := []history.State{
		{Kind: stateTracker, Key: key, Body: s.tracker.Snapshot(nil)},
		{Kind: stateHomes, Key: key, Body: saveJSON(homesOf(s))},
	}
	if s.index == 0 {
		out = append(out, history.State{Kind: stateSenders, Key: "-", Body: j.app.senders.Snapshot(nil)})
	}
	return out
}

// saveJSON is for small states of strings and numbers, which cannot fail.
func saveJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("saved state: %w", err))
	}
	return b
}

// savedHome is the partition that a query's events came from last.
type savedHome struct {
	Query     event.QueryID `json:"query"`
	Topic     string        `json:"topic"`
	Partition int32         `json:"partition"`
}

func homesOf(s *shard) []savedHome {
	out := make([]savedHome, 0, len(s.homes))
	for id, at := range s.homes {
		out = append(out, savedHome{id, at.topic, at.partition})
	}
	return out
}

// shardKey names the state of one of so many shards.
type shardKey struct{ index, of int }

func (k shardKey) String() string { return strconv.Itoa(k.index) + "/" + strconv.Itoa(k.of) }

func parseShardKey(text string) (k shardKey, err error) {
	index, of, _ := strings.Cut(text, "/")
	if k.index, err = strconv.Atoi(index); err == nil {
		k.of, err = strconv.Atoi(of)
	}
	if err != nil || k.index < 0 || k.index >= k.of {
		return k, fmt.Errorf("state of shard %q: no such name", text)
	}
	return k, nil
}

// counters are the series of a shard's queries that have changed, as of the step that
// is being shown. It runs on the shard's goroutine.
func (j *journal) counters(s *shard, seq uint64) []carried {
	out := make([]carried, 0, len(s.changed))
	for id := range s.changed {
		out = append(out, carry(stateCounters, string(id), seq, j.app.exporter.SaveCounters(id, nil)))
	}
	clear(s.changed)
	return out
}

// carry makes a state to be saved; one without a body is of something that is no more.
func carry(kind, key string, seq uint64, body []byte) carried {
	return carried{history.State{Kind: kind, Key: key, Seq: seq, Body: body}, len(body) == 0}
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
		case <-j.app.judge.news:
			j.saveMoved()
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
	if _, bad := j.degraded(); bad {
		return // the ticks try the disk; all that changes is saved when it is back
	}
	all := j.wholeSaves.Swap(false)
	s := j.app.newSplit(stepSave)
	j.sendSafely(s)
	saved := s.seq
	j.app.judge.ask(func() {
		j.later(j.app.judge.save(all)...)
		saved = min(saved, j.app.judge.savedTo())
	})
	j.later(j.hours.save(saved))
	j.sendSafely(j.app.newSplit(stepTick)) // carries them to the disk
	if _, bad := j.degraded(); bad {
		return
	}
	if err := j.store.Trim(saved); err != nil {
		j.app.log.Warn("the log could not be shortened", "err", err)
	}
}

// saveMoved puts alerts that time has moved on disk at once, and with them the time that
// did: no event of the log would move them again.
func (j *journal) saveMoved() {
	s := j.app.newSplit(stepMoved)
	s.judgedMs = j.noteNotices()
	j.sendSafely(s)
}

// noteNotices saves what was told to Alertmanagers, where that has changed: a page
// that went out a moment before a crash is no news after it. An alert that time has
// raised or ended is saved with it. It returns when the rules looked at the clock last.
func (j *journal) noteNotices() (judgedMs int64) {
	j.app.judge.ask(func() {
		j.later(j.app.judge.moves()...)
		j.later(j.app.judge.notices()...)
		judgedMs = j.app.judge.tickedMs
	})
	return judgedMs
}

// moves is the rules' state of the queries whose alerts time has moved. It runs on the
// judging goroutine.
func (j *judge) moves() []carried {
	var out []carried
	for id := range j.moved {
		if id == "" {
			out = append(out, carry(stateEngine, "-", slices.Max(j.reached), j.engine.Save(nil)))
			continue
		}
		out = append(out, j.saveQuery(id))
	}
	clear(j.moved)
	return out
}

// saveQuery is the rules' state of a query as of now.
func (j *judge) saveQuery(id event.QueryID) carried {
	delete(j.unsaved, id)
	return carry(stateRules, string(id), j.reached[j.app.shards.of(id)], j.engine.SaveQuery(id, nil))
}

// notices is what was told, nil where it is saved already. It runs on the judging
// goroutine.
func (j *judge) notices() []carried {
	if !j.told {
		return nil
	}
	j.told = false
	seq := slices.Max(j.reached)
	return []carried{
		carry(stateNotices, "-", seq, j.app.notifier.Snapshot(nil)),
		carry(stateTold, "-", seq, saveJSON(slices.Collect(maps.Keys(j.app.delivery.told)))),
	}
}

// save returns the rules' state of the queries whose last one is oldest; of all
// that were judged since where all is set.
func (j *judge) save(all bool) []carried {
	if j.idle.Load() {
		clear(j.unsaved)
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(j.unsaved), func(a, b event.QueryID) int {
		return cmp.Or(cmp.Compare(j.unsaved[a], j.unsaved[b]), cmp.Compare(a, b))
	})
	if n := max(16, len(ids)/savesPerRound+1); !all && len(ids) > n {
		ids = ids[:n]
	}
	out := make([]carried, 0, len(ids)+1)
	for _, id := range ids {
		out = append(out, j.saveQuery(id))
	}
	return append(out, carry(stateEngine, "-", slices.Max(j.reached), j.engine.Save(nil)))
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
	for _, s := range j.app.shards.all {
		for _, st := range j.shardStates(s) {
			j.later(carry(st.Kind, st.Key, j.next, st.Body))
		}
		j.later(j.counters(s, j.next)...)
	}
	j.app.judge.caughtUp(j.next + 1)
	j.later(j.app.judge.save(true)...)
	j.later(j.app.judge.moves()...)
	j.later(j.app.judge.notices()...)
	j.later(j.hours.save(j.next))
	step := &history.Step{Seq: j.next}
	load(step, j.takePending())
	step.Dropped = append(step.Dropped, j.stale...)
	err := j.store.Commit([]*history.Step{step})
	if err == nil {
		err = j.store.Trim(j.next)
	}
	return errors.Join(err, j.store.Close())
}
