package app

import (
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
)

// beats is what a shard has to know to keep heartbeats in the log: which senders they
// name its queries by. A heartbeat speaks of queries of every shard; each keeps what is
// said of its own.
type beats struct {
	by map[event.QueryID]string // sender that named a query last
	of map[string]int           // how many queries a sender was the last to name

	// What is kept of the heartbeat at hand.
	update   event.Update
	event    event.Event
	envelope event.Envelope
}

func newBeats() beats {
	return beats{by: map[event.QueryID]string{}, of: map[string]int{}}
}

// name notes that a sender has named a query.
func (b *beats) name(id event.QueryID, sender string) {
	was, known := b.by[id]
	if known && was == sender {
		return
	}
	b.forget(id)
	b.by[id] = sender
	b.of[sender]++
}

// forget lets a query go.
func (b *beats) forget(id event.QueryID) {
	was, known := b.by[id]
	if !known {
		return
	}
	delete(b.by, id)
	if b.of[was]--; b.of[was] <= 0 {
		delete(b.of, was)
	}
}

// keep returns what the log keeps of a heartbeat, valid until the next one; nil where it
// says nothing of the shard's queries. Runs are left out: what is said of any but the
// present one counts for nothing. That a sender lives and does not name a query that it
// named before is kept too.
func (s *shard) keep(u *event.Update) *event.Update {
	b, from := &s.beats, u.Event.Envelope
	if from == nil {
		return nil
	}
	active := b.envelope.Active[:0]
	for i := range from.Active {
		if a := &from.Active[i]; s.tracker.Follows(a) {
			active = append(active, event.ActiveQuery{ID: a.ID, TriggerActive: a.TriggerActive})
			b.name(a.ID, from.Sender)
		}
	}
	b.envelope = event.Envelope{
		Sender: from.Sender, Seq: from.Seq, Dropped: from.Dropped, AtMs: from.AtMs,
		App: event.App{SparkVersion: from.App.SparkVersion}, Conf: from.Conf, Executors: from.Executors, Active: active,
	}
	if len(active) == 0 && b.of[from.Sender] == 0 {
		return nil
	}
	b.event = event.Event{Kind: event.KindHeartbeat, AtMs: u.Event.AtMs, Envelope: &b.envelope}
	b.update = event.Update{
		Event: &b.event, Outcome: event.OutcomeHeartbeat, IntervalMs: math.NaN(),
		Origin: event.Origin{Offset: event.Absent, ReceivedMs: u.Origin.ReceivedMs},
	}
	return &b.update
}

// noteHeartbeat adds a heartbeat to a shard's piece, filed under its sender: so those of
// one sender, which differ by a few bytes, lie side by side.
func (j *journal) noteHeartbeat(s *shard, p *piece, how record.How, u *event.Update) {
	kept := s.keep(u)
	if kept == nil {
		return
	}
	p.begins = append(p.begins, len(p.body))
	p.body = record.AppendStored(p.body, how, kept, j.words)
	p.records = append(p.records, history.Record{Query: event.QueryID(kept.Event.Envelope.Sender), AtMs: atMs(kept)})
}

// ofSender reports whether a record is a sender's and no query's.
func ofSender(r *history.Record) bool { return r.Lineage == "" }

// beat gives a heartbeat of the log to those who do not know it yet: to every tracker,
// whichever shard has kept it, and to the rules for the queries whose saved state is
// older.
func (r *restorer) beat(seq uint64, u *event.Update, replayed bool) {
	env := u.Event.Envelope
	for _, s := range r.app.shards.all {
		for i := range env.Active {
			if s.tracker.Follows(&env.Active[i]) {
				s.beats.name(env.Active[i].ID, env.Sender)
			}
		}
		if seq > r.newest {
			s.updates = s.tracker.Replay(u, s.updates[:0])
		}
	}
	kept := env.Active[:0]
	for _, a := range env.Active {
		if seq > r.rules[a.ID] {
			kept = append(kept, a)
		}
	}
	env.Active = kept
	r.judge(seq, u, replayed)
}
