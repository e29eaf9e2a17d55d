package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
)

// journal puts what the trackers say on disk before anybody hears of it.
//
// There is one order. A step is handed to all shards at once; every shard works in
// that order, steps are numbered and committed in it, and published in it. So the log
// on disk is a prefix of what happened, and a saved state that is stamped with a
// number holds exactly the steps up to it.
type journal struct {
	app   *App
	store *history.Store
	words *record.Dictionary

	order sync.Mutex // held while a step goes out to the shards
	next  uint64     // number of the next step; the committer's own
	steps chan *split
	done  chan struct{}

	reopened time.Time // when the store was last opened anew
	group    []*split
	commits  []*history.Step
	carry    sync.Mutex // guards what the next commit carries
	pending  map[stateName]carried

	hours     hours
	listening listening // the first shard's

	// stale are the names of shards' states of another number of shards. The first
	// save replaces them.
	stale []history.State

	degradedMs atomic.Int64 // since when steps are not put on disk, 0 where they are
	wholeSaves atomic.Bool  // what was not logged has to be saved
}

// stateName is under what a state is saved.
type stateName struct{ kind, key string }

// carried is a saved state on its way to the disk, or, where gone is set, the word
// that there is none any more.
type carried struct {
	history.State
	gone bool
}

// The most that one synced write carries: more would make the first of its steps
// wait for the last.
const (
	groupSteps = 256
	groupBytes = 4 << 20
)

func newJournal(a *App, store *history.Store, words *record.Dictionary, steps int) *journal {
	return &journal{
		app: a, store: store, words: words, next: store.NextSeq(),
		steps: make(chan *split, steps), done: make(chan struct{}), pending: map[stateName]carried{}, hours: hours{since: map[hourOf]int64{}},
	}
}

// startJournal lets the journal run where one is kept.
func (a *App) startJournal() {
	if a.journal == nil {
		return
	}
	go a.journal.run()
	a.clock = runPart(a.journal.clock, a.fail)
	a.historian = runPart(a.journal.keepHouse, a.fail)
}

// drainJournal ends the order of steps: all that were sent are committed, and on
// their way to be shown. Nothing may be sent afterwards.
func (a *App) drainJournal() {
	if a.journal == nil || a.clock == nil {
		return
	}
	close(a.journal.steps)
	<-a.journal.done
}

// stopJournal saves everything and closes the store, after all others have stopped. While
// some still work nothing is saved: half a state is worse than that of the last save, from
// which the next start goes on by the log.
func (a *App) stopJournal(context.Context) error {
	if a.journal == nil {
		return nil
	}
	if a.stillWorks {
		return errors.New("state is not saved, since parts of it may still change; the next start reads the log instead")
	}
	return a.journal.finish()
}

// send hands the pieces of a step to the shards.
func (j *journal) send(s *split) {
	j.order.Lock()
	defer j.order.Unlock()
	s.shown.Add(1)
	for i := range s.pieces {
		p := &s.pieces[i]
		if !s.needs(p) {
			continue
		}
		s.tracked.Add(1)
		j.app.shards.all[i].jobs <- job{split: s, piece: p}
	}
	j.steps <- s
}

// run commits and publishes until steps is closed.
func (j *journal) run() {
	defer close(j.done)
	for s := range j.steps {
		j.group = j.gather(append(j.group[:0], s))
		err := j.commit(j.group)
		j.judgeDisk(err)
		for _, s := range j.group {
			j.publish(s)
		}
	}
}

// gather adds the steps that wait already to a group, so that they share one
// synced write. Every step before one that is waited for is tracked by then or
// about to be.
func (j *journal) gather(group []*split) []*split {
	size := 0
	for {
		s := group[len(group)-1]
		s.tracked.Wait()
		if size += s.bytes(); size > groupBytes || len(group) == groupSteps {
			return group
		}
		select {
		case next, open := <-j.steps:
			if !open {
				return group
			}
			group = append(group, next)
		default:
			return group
		}
	}
}

// commit writes a group in one synced batch. Steps that cannot be written get the
// number of the last one that was: what they brought is known to all, and not to
// the log.
func (j *journal) commit(group []*split) error {
	j.commits = j.commits[:0]
	for i, s := range group {
		s.seq = j.next + uint64(i)
		j.commits = append(j.commits, s.historyStep())
	}
	first, states := j.commits[0], j.takePending()
	load(first, states)
	saves := slices.IndexFunc(group, func(s *split) bool { return s.kind == stepSave })
	if saves >= 0 {
		j.commits[saves].Dropped = append(j.commits[saves].Dropped, j.stale...)
	}
	words := j.words.Pending()
	for _, w := range words {
		first.Words = append(first.Words, history.Word(w))
	}
	err := j.write()
	if err == nil {
		j.words.Stored(words)
		j.next += uint64(len(group))
		if saves >= 0 {
			j.stale = nil
		}
		return nil
	}
	j.putBack(states)
	for _, s := range group {
		s.seq = j.next - 1
	}
	return err
}

// write commits. After a failed disk it opens the store anew now and then, for the
// commits to come.
func (j *journal) write() error {
	err := j.store.Commit(j.commits)
	if !errors.Is(err, history.ErrFailed) {
		return err
	}
	if now := j.app.opts.Now(); now.Sub(j.reopened) >= reopenEvery {
		j.reopened = now
		if again := j.store.Reopen(); again == nil {
			j.next = j.store.NextSeq()
		}
	}
	return err
}

// reopenEvery is how often a store whose disk failed is tried again.
const reopenEvery = 5 * time.Second

// judgeDisk notes whether steps reach the disk. Intake goes on without one: what
// comes meanwhile is judged and exported, and lost only if the daemon ends before
// the disk is back.
func (j *journal) judgeDisk(err error) {
	since := j.degradedMs.Load()
	switch {
	case err != nil && since == 0:
		j.degradedMs.Store(j.app.opts.Now().UnixMilli())
		j.app.log.Error("history cannot be written; events are taken on in memory only", "err", err)
	case err == nil && since != 0:
		j.degradedMs.Store(0)
		j.wholeSaves.Store(true)
		j.app.log.Info("history can be written again", "since", time.UnixMilli(since).UTC().Format(time.RFC3339))
	}
}

// publish lets every shard show its piece. Who waits for the step is told by the
// last of them.
func (j *journal) publish(s *split) {
	for i := range s.pieces {
		p := &s.pieces[i]
		if !s.needs(p) {
			continue
		}
		s.shown.Add(1)
		j.app.shards.all[i].jobs <- job{split: s, piece: p, show: true}
	}
	s.shown.Done()
}

// release lets the queries of lost partitions go, as a step of its own, and returns
// when all have heard of it.
func (j *journal) release(lost map[place]bool) {
	s := j.app.newSplit(stepRelease)
	s.lost = lost
	j.sendSafely(s)
}

// sendSafely sends a step that no request holds the gate open for, and waits for it.
func (j *journal) sendSafely(s *split) {
	in := j.app.intake
	in.gate.RLock()
	defer in.gate.RUnlock()
	if in.closed {
		return
	}
	j.send(s)
	s.shown.Wait()
}

// later gives states to the next commit, in place of what it would have carried under
// the same name.
func (j *journal) later(states ...carried) {
	j.carry.Lock()
	defer j.carry.Unlock()
	for _, c := range states {
		j.pending[stateName{c.Kind, c.Key}] = c
	}
}

// putBack gives states that could not be written to the next commit, where nothing
// newer has taken their place.
func (j *journal) putBack(states map[stateName]carried) {
	j.carry.Lock()
	defer j.carry.Unlock()
	for name, c := range states {
		if _, newer := j.pending[name]; !newer {
			j.pending[name] = c
		}
	}
}

func (j *journal) takePending() map[stateName]carried {
	j.carry.Lock()
	defer j.carry.Unlock()
	out := j.pending
	j.pending = map[stateName]carried{}
	return out
}

// load lets a step carry states.
func load(st *history.Step, states map[stateName]carried) {
	for _, c := range states {
		if c.gone {
			st.Dropped = append(st.Dropped, c.State)
			continue
		}
		st.States = append(st.States, c.State)
	}
}

// degraded says since when history is not written.
func (j *journal) degraded() (sinceMs int64, is bool) {
	ms := j.degradedMs.Load()
	return ms, ms != 0
}

// needs reports whether a shard has anything to do for a step.
func (s *split) needs(p *piece) bool { return s.kind != stepEvents || len(p.parts) > 0 }

// bytes is about what a step adds to a write.
func (s *split) bytes() int {
	n := 0
	for i := range s.pieces {
		n += len(s.pieces[i].body)
	}
	return n
}

// historyStep is a step as the store takes it.
func (s *split) historyStep() *history.Step {
	st := &history.Step{Seq: s.seq}
	for i := range s.pieces {
		p := &s.pieces[i]
		st.Records = append(st.Records, p.records...)
		for _, state := range p.states {
			state.Seq = s.seq
			st.States = append(st.States, state)
		}
	}
	if s.mark.Topic != "" {
		st.Offsets = append(st.Offsets, s.mark)
	}
	return st
}

// markOf is how far a step's Kafka partition has been handed over with it.
func markOf(step *collector.Step) history.Offset {
	if step.Reached == event.Absent {
		return history.Offset{}
	}
	return history.Offset{Topic: step.Topic, Partition: step.Partition, Next: step.Reached}
}

// note adds what the log keeps of updates to a shard's piece.
func (j *journal) note(s *shard, p *piece, from int, replayed bool) {
	how := record.Live
	if replayed {
		how = record.Reread
	}
	for i := from; i < len(p.updates); i++ {
		u := &p.updates[i]
		if u.Outcome == event.OutcomeHeartbeat {
			j.noteHeartbeat(s, p, how, u)
			continue
		}
		if !logged(u) {
			continue
		}
		at := len(p.body)
		p.body = record.AppendStored(p.body, how, u, j.words)
		q := u.Event.Query
		p.records = append(p.records, history.Record{Query: q.ID, Lineage: lineageOf(q), AtMs: atMs(u)})
		p.begins = append(p.begins, at)
	}
}

// seal lets the records of a piece point into its memory, which does not move any
// more.
func (p *piece) seal() {
	for i := range p.records {
		end := len(p.body)
		if i+1 < len(p.begins) {
			end = p.begins[i+1]
		}
		p.records[i].Body = p.body[p.begins[i]:end]
	}
}

// logged reports whether a restart has to know of an update of a query. What was
// refused or names no query changed nothing.
func logged(u *event.Update) bool {
	return u.Outcome != event.OutcomeUnjudgeable && u.Outcome != event.OutcomeRefused
}

// lineageOf is what keeps a query together across checkpoints: its name.
func lineageOf(q event.QueryRef) string {
	if q.Name != "" {
		return q.Name
	}
	return string(q.ID)
}

// atMs is the time that an update is filed under: its batch's trigger or its own,
// and ours where it has none.
func atMs(u *event.Update) int64 {
	switch e := u.Event; {
	case e.Batch != nil && e.Batch.StartMs > 0:
		return e.Batch.StartMs
	case e.AtMs > 0:
		return e.AtMs
	}
	return max(u.Origin.ReceivedMs, 0)
}
