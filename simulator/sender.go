package simulator

import (
	"fmt"
	"slices"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
)

// sender is the listener of one application: it wraps events in envelopes and
// sends heartbeats while any of its queries runs.
type sender struct {
	app     int
	out     *spark.Sender
	queries []running // sorted by when they came
	execs   spark.Executors
	conf    []spark.KV
	shares  []share // by query
}

// share is what one query has of its application's executors.
type share struct{ execs, lost, gcMs int64 }

// running is a query of an application whose run has not ended.
type running struct {
	query   int
	id, run string
}

// sender returns the listener of a message's application, which exists from its
// first started event on.
func (s *Simulation) sender(q *query, m *message) *sender {
	for _, x := range s.senders {
		if x.app == m.app {
			return x
		}
	}
	v := m.version
	if v.IsZero() {
		v = q.version
	}
	rng := seed.New(s.o.Seed, seed.ForIDs, uint64(m.app), 7)
	id := spark.UUID(rng.Uint64(), rng.Uint64())
	app := spark.App{
		ID: fmt.Sprintf("spark-%016x", rng.Uint64()), Name: s.sc.Query.Application, Version: v, Cluster: s.sc.Cluster.Name,
	}
	x := &sender{app: m.app, out: spark.NewSender(id, app, m.atMs)}
	s.senders = append(s.senders, x)
	return x
}

// count takes what a message says of its query's executors into what the listener
// knows of all.
func (x *sender) count(query int, m *message, c *scenario.Cluster) {
	for len(x.shares) <= query {
		x.shares = append(x.shares, share{})
	}
	mine := &x.shares[query]
	mine.lost, mine.gcMs = m.lostExecs, m.gcMs
	if m.execs > 0 { // between two runs the executors of the last one idle
		mine.execs = int64(m.execs)
	}
	x.execs = spark.Executors{MemoryBytes: int64(c.Memory), OverheadBytes: int64(c.Overhead)}
	for _, s := range x.shares {
		x.execs.Count += s.execs
		x.execs.Cores += s.execs * int64(c.Cores)
		x.execs.Losses += s.lost
		x.execs.GCTimeMs += s.gcMs
	}
}

// follow keeps the list of what runs in step with what is said.
func (x *sender) follow(query int, m *message) {
	at := slices.IndexFunc(x.queries, func(r running) bool { return r.query == query && r.run == m.run })
	switch gone := m.endsApp || m.kind == event.KindTerminated; {
	case m.kind == event.KindStarted && at < 0:
		if len(x.queries) == 0 {
			x.out.SkipHeartbeats(m.atMs) // nothing ran until now
		}
		x.queries = append(x.queries, running{query, m.id, m.run})
	case gone && at >= 0:
		x.queries = slices.Delete(x.queries, at, at+1)
	}
}

// due reports whether a heartbeat falls due before a moment.
func (x *sender) due(beforeMs int64) bool {
	return len(x.queries) > 0 && x.out.NextHeartbeat() < beforeMs
}

// beat writes the heartbeat that is due. nextOf tells what each query says next.
func (x *sender) beat(dst []byte, nextOf func(query int) *message) []byte {
	due := x.out.NextHeartbeat()
	active := make([]spark.Active, 0, len(x.queries))
	for _, r := range x.queries {
		next := nextOf(r.query)
		busy := next != nil && due >= next.busyFromMs && next.kind == event.KindProgress
		active = append(active, spark.Active{ID: r.id, RunID: r.run, TriggerActive: busy})
	}
	return x.out.AppendHeartbeat(dst, active, &x.execs)
}
