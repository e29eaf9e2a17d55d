package simulator

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/spark"
)

// Simulation plays a scenario, event by event. It is used by one goroutine.
type Simulation struct {
	sc      *scenario.Scenario
	o       Options
	queries []*query
	senders []*sender
	wrapped bool // events go out in envelopes
	message Message
	held    []byte // data of the message handed out, to be reused
	from    *query
	text    []byte
	err     error
}

// New readies a scenario, which must be complete: see scenario.Load and
// Scenario.Complete. Nothing is played before the first Next.
func New(sc *scenario.Scenario, o Options) (*Simulation, error) {
	if o.Version.IsZero() {
		v, err := spark.ParseVersion(sc.SparkVersion)
		if err != nil {
			return nil, err
		}
		o.Version = v
	}
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.Dir == "" {
		o.Dir = "checkpoint"
	}
	s := &Simulation{sc: sc, o: o, wrapped: o.Envelope || sc.Envelope}
	for i := range max(sc.Queries, 1) {
		dir := o.Dir
		if sc.Queries > 1 {
			dir = o.FS.PathJoin(dir, fmt.Sprintf("query-%d", i+1))
		}
		q, err := newQuery(sc, &s.o, dir, i, s.wrapped)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("query %d of scenario %s: %w", i+1, sc.Name, err), s.Close())
		}
		s.queries = append(s.queries, q)
	}
	return s, nil
}

// Next plays on to the next event and returns it; it and its data are valid until
// the next call. At the end of the scenario it returns io.EOF. After an error the
// simulation is over, and every call returns the same one.
func (s *Simulation) Next() (*Message, error) {
	if s.err != nil {
		return nil, s.err
	}
	m, err := s.next()
	if err != nil {
		s.err = err
		return nil, err
	}
	return m, nil
}

func (s *Simulation) next() (*Message, error) {
	s.release()
	for {
		q, err := s.first()
		if err != nil {
			return nil, err
		}
		if q == nil {
			return nil, io.EOF
		}
		if m := s.heartbeat(q.out.peek()); m != nil {
			return m, nil
		}
		m := q.out.pop()
		s.held, s.from = m.data, q
		if out := s.send(q, &m); out != nil {
			return out, nil
		}
		s.release()
	}
}

// release gives the memory of the message before back to its query.
func (s *Simulation) release() {
	if s.from != nil {
		s.from.out.release(s.held)
		s.from, s.held = nil, nil
	}
}

// first plays every query to its next word and returns the one that speaks first;
// of several at the same moment the one with the lowest number.
func (s *Simulation) first() (*query, error) {
	var best *query
	for _, q := range s.queries {
		if err := q.step(); err != nil {
			return nil, err
		}
		if q.out.len() > 0 && (best == nil || q.out.peek().atMs < best.out.peek().atMs) {
			best = q
		}
	}
	return best, nil
}

// heartbeat returns the first heartbeat that is due before m, of any listener.
func (s *Simulation) heartbeat(m *message) *Message {
	var first *sender
	for _, x := range s.senders {
		if m.quietFromMs >= 0 && x.app == m.app && x.out.NextHeartbeat() > m.quietFromMs {
			x.out.SkipHeartbeats(m.atMs)
		}
		if x.due(m.atMs) && (first == nil || x.out.NextHeartbeat() < first.out.NextHeartbeat()) {
			first = x
		}
	}
	if first == nil {
		return nil
	}
	at := first.out.NextHeartbeat()
	s.text = first.beat(s.text[:0], s.nextOf)
	s.message = Message{
		AtMs: at, Query: first.queries[0].query, QueryID: first.queries[0].id, Kind: event.KindHeartbeat, Batch: event.Absent, Data: s.text,
	}
	return &s.message
}

// nextOf is what a query says next, nil if nothing more.
func (s *Simulation) nextOf(query int) *message {
	if q := s.queries[query]; q.out.len() > 0 {
		return q.out.peek()
	}
	return nil
}

// send makes the outgoing message of m; nil where it never arrives.
func (s *Simulation) send(q *query, m *message) *Message {
	data := m.data
	if s.wrapped {
		if data = s.wrap(q, m); data == nil {
			return nil
		}
	}
	if m.lost != arrives {
		return nil
	}
	s.message = Message{AtMs: m.atMs, Query: q.index, QueryID: m.id, Kind: m.kind, Batch: m.batch, Data: data}
	return &s.message
}

// wrap puts m into its sender's envelope, or counts why there is none.
func (s *Simulation) wrap(q *query, m *message) []byte {
	x := s.sender(q, m)
	x.follow(q.index, m)
	x.count(q.index, m, &s.sc.Cluster)
	var data []byte
	switch m.lost {
	case sendFailed:
		x.out.Drop(1)
	case arrives:
		e := spark.Envelope{Kind: m.kind, AtMs: m.atMs, QueryID: m.id, Conf: m.conf, Executors: x.execs, Event: m.data}
		if e.Conf == nil {
			e.Conf = x.conf
		}
		x.conf = e.Conf
		s.text = x.out.Append(s.text[:0], &e)
		data = s.text
	}
	if len(x.queries) == 0 && (m.endsApp || m.kind == event.KindTerminated && q.app != m.app) {
		s.senders = slices.DeleteFunc(s.senders, func(y *sender) bool { return y == x })
	}
	return data
}

// Scenario is what is played.
func (s *Simulation) Scenario() *scenario.Scenario { return s.sc }

// Truth is what rules should find in the events: the scenario's expectations,
// none where it is healthy.
func (s *Simulation) Truth() scenario.Expectations { return s.sc.Expect }

// Accounts is what each query has done so far.
func (s *Simulation) Accounts() []Account {
	out := make([]Account, len(s.queries))
	for i, q := range s.queries {
		out[i] = q.account.copy()
	}
	return out
}

// Close ends the simulation and releases all stores. The checkpoint can be
// continued.
func (s *Simulation) Close() error {
	var errs []error
	for _, q := range s.queries {
		errs = append(errs, q.close())
	}
	if s.err == nil {
		s.err = errClosed
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("simulation is closed")
