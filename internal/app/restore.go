package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
	"github.com/stategauge/stategauge/history/rollup"
	"github.com/stategauge/stategauge/rules"
)

// openJournal opens the history and brings back everything that the last process
// knew: saved state first, then the log after it.
func (a *App) openJournal(conf *Config) error {
	if a.opts.StoragePath == "" {
		a.log.Info("nothing is kept on disk: without --storage.path a restart begins anew, but for what Kafka can be asked for again")
		return nil
	}
	store, err := history.Open(a.storeOptions(conf))
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	words := record.NewDictionary(0)
	a.journal = newJournal(a, store, words, conf.Intake.QueueEvents)
	r := &restorer{app: a, journal: a.journal, store: store, words: words}
	began := time.Now()
	if err := r.restore(); err != nil {
		_ = store.Close()
		return fmt.Errorf("history: %w", err)
	}
	a.log.Info("history is read", "path", a.opts.StoragePath, "queries", r.queries, "updates", r.updates, "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

func (a *App) storeOptions(conf *Config) history.Options {
	return history.Options{
		Dir: a.opts.StoragePath, FS: a.opts.StorageFS,
		MaxBytes: int64(conf.Storage.MaxBytes), RawFor: conf.Storage.RawFor.Std(), HourlyFor: conf.Storage.HourlyFor.Std(),
		CacheBytes: int64(conf.Storage.CacheBytes), Logger: a.log.With("part", "history"), Metrics: history.NewMetrics(a.registry),
	}
}

// restorer brings a daemon's parts back before anything runs.
type restorer struct {
	app     *App
	journal *journal
	store   *history.Store
	words   *record.Dictionary

	trackers map[int][]byte // of the process that saved last
	shards   int            // that it had
	newest   uint64         // and how far it had come
	counters map[event.QueryID]uint64
	rules    map[event.QueryID]uint64
	others   uint64 // step up to which what the rules hold of no single query goes
	listened listening
	heardMs  int64 // newest time at which anything in the log was received

	anew             map[string]bool // rules whose saved state does not fit them any more
	queries, updates int
	reader           record.Decoder
}

func (r *restorer) restore() error {
	r.counters, r.rules, r.anew = map[event.QueryID]uint64{}, map[event.QueryID]uint64{}, map[string]bool{}
	words, err := r.store.Words()
	if err != nil {
		return err
	}
	entries := make([]record.Entry, len(words))
	for i, w := range words {
		entries[i] = record.Entry(w)
	}
	if err := r.words.Load(entries); err != nil {
		return err
	}
	for _, part := range []struct {
		kind string
		load func(history.State) error
	}{{stateSenders, r.senders}, {stateTracker, r.tracker}, {stateHomes, r.homes}, {stateHours, r.hours}, {stateCounters, r.series}, {stateEngine, r.engine}, {stateRules, r.query}, {stateNotices, r.notices}, {stateTold, r.told}, {stateClock, r.listened.clock}, {statePause, r.listened.pause}} {
		if err := r.store.States(part.kind, part.load); err != nil {
			return fmt.Errorf("saved %s: %w", part.kind, err)
		}
	}
	if err := r.adopt(); err != nil {
		return err
	}
	if err := r.offsets(); err != nil {
		return err
	}
	// What everybody knows is no longer in the log.
	if err := r.store.Replay(0, r.replay); err != nil {
		return err
	}
	r.app.judge.caughtUp(r.journal.next)
	r.resume()
	r.app.holdHomes()
	return nil
}

func (r *restorer) senders(st history.State) error { return r.app.senders.Restore(st.Body) }

// tracker takes note of a tracker's state. Where processes of different numbers of
// shards have saved, the newest set counts.
func (r *restorer) tracker(st history.State) error {
	key, err := r.shardKey(st)
	if err != nil {
		return err
	}
	if r.trackers == nil || st.Seq > r.newest {
		r.newest, r.shards, r.trackers = st.Seq, key.of, map[int][]byte{}
	}
	if key.of == r.shards && st.Seq == r.newest {
		r.trackers[key.index] = bytes.Clone(st.Body)
	}
	return nil
}

// shardKey reads the name of a shard's state. Where it is of another number of shards
// than there are now, the first save replaces it.
func (r *restorer) shardKey(st history.State) (shardKey, error) {
	key, err := parseShardKey(st.Key)
	if err == nil && key.of != len(r.app.shards.all) {
		r.journal.stale = append(r.journal.stale, history.State{Kind: st.Kind, Key: st.Key})
	}
	return key, err
}

func (r *restorer) homes(st history.State) error {
	if _, err := r.shardKey(st); err != nil {
		return err
	}
	var homes []savedHome
	if err := json.Unmarshal(st.Body, &homes); err != nil {
		return err
	}
	for _, h := range homes {
		r.app.shards.all[r.app.shards.of(h.Query)].homes[h.Query] = place{h.Topic, h.Partition}
	}
	return nil
}

func (r *restorer) hours(st history.State) error {
	return r.journal.hours.load(st.Body, r.app.opts.Now().UnixMilli())
}

// adopt gives every tracker its queries out of all that was saved.
func (r *restorer) adopt() error {
	for i, s := range r.app.shards.all {
		mine := func(id event.QueryID) bool { return r.app.shards.of(id) == i }
		for index := range r.shards {
			if err := s.tracker.Adopt(r.trackers[index], mine); err != nil {
				return fmt.Errorf("tracker %d of %d: %w", index, r.shards, err)
			}
		}
	}
	return nil
}

func (r *restorer) series(st history.State) error {
	if err := r.app.exporter.LoadCounters(st.Body); err != nil {
		return err
	}
	r.counters[event.QueryID(st.Key)] = st.Seq
	r.queries++
	return nil
}

func (r *restorer) engine(st history.State) error {
	r.others = st.Seq
	dropped, err := r.app.judge.engine.Load(st.Body)
	r.tell(dropped)
	return err
}

// query brings the rules' state of a query back. Rules that read otherwise now
// begin anew, and the log says which.
func (r *restorer) query(st history.State) error {
	r.rules[event.QueryID(st.Key)] = st.Seq
	dropped, err := r.app.judge.engine.LoadQuery(st.Body)
	r.tell(dropped)
	return err
}

// tell logs each rule that begins anew once, whatever the number of its queries. The
// alerts that it had are resolved when the rules have caught up and nothing stands for
// them.
func (r *restorer) tell(dropped []rules.Dropped) {
	for _, d := range dropped {
		if !r.anew[d.Rule] {
			r.anew[d.Rule] = true
			r.app.log.Warn("a rule begins anew", "rule", d.Rule, "why", d.Why)
		}
	}
}

func (r *restorer) notices(st history.State) error { return r.app.notifier.Restore(st.Body) }

// told comes after the rules' state: the alerts that were told of are in it.
func (r *restorer) told(st history.State) error {
	var keys []string
	if err := json.Unmarshal(st.Body, &keys); err != nil {
		return err
	}
	r.app.delivery.recall(keys, r.app.decorate(r.app.judge.engine.Alerts(nil)))
	return nil
}

func (r *restorer) offsets() error {
	all, err := r.store.Offsets()
	if err != nil {
		return err
	}
	r.app.positions.stored = map[place]int64{}
	for _, o := range all {
		r.app.positions.stored[place{o.Topic, o.Partition}] = o.Next
	}
	return nil
}

// replay gives one update of the log to those who do not know it yet.
func (r *restorer) replay(seq uint64, rec history.Record) error {
	u, how, err := r.reader.DecodeStored(rec.Body, r.words)
	replayed := how == record.Reread
	if err != nil {
		return fmt.Errorf("step %d: %w", seq, err)
	}
	r.updates++
	r.heardMs = max(r.heardMs, u.Origin.ReceivedMs)
	if u.Outcome == event.OutcomeHeartbeat {
		r.beat(seq, u, replayed)
		return nil
	}
	id := rec.Query
	r.journal.hours.touch(hourOf{id, rec.Lineage, rollup.Start(rec.AtMs)}, r.app.opts.Now().UnixMilli())
	r.retrack(seq, id, u)
	if seq > r.counters[id] {
		r.show(id, u, replayed)
	}
	if seq > r.rules[id] && rules.Judgeable(u.Outcome) {
		r.judge(seq, u, replayed)
	}
	return nil
}

// retrack lets the tracker take in once more what it said then.
func (r *restorer) retrack(seq uint64, id event.QueryID, u *event.Update) {
	s := r.app.shards.all[r.app.shards.of(id)]
	if o := &u.Origin; o.Topic != "" {
		s.homes[id] = place{o.Topic, o.Partition}
	}
	if seq > r.newest {
		s.updates = s.tracker.Replay(u, s.updates[:0])
		s.vacate(s.updates)
	}
}

func (r *restorer) show(id event.QueryID, u *event.Update, replayed bool) {
	if replayed {
		r.app.exporter.Show(u)
	} else {
		r.app.exporter.Apply(u)
	}
	r.app.shards.all[r.app.shards.of(id)].changed[id] = true
}

func (r *restorer) judge(seq uint64, u *event.Update, replayed bool) {
	j := r.app.judge
	e := &entry{stored: true, stamp: stamp{shard: r.app.shards.of(u.Event.Query.ID), seq: seq, replayed: replayed}}
	e.copyFrom(u)
	j.take(e)
}
