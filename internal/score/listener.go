package score

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

const (
	// One world in so many has a listener; fewer where triggers are long, as there so many
	// heartbeats lie between two batches that a world with them takes twice as long.
	listenShare, listenShareLong = 2, 4
	listenLongMs                 = 5 * 60 * 1000

	beatJitterMs   = 1000 // a heartbeat comes at most so much sooner or later than it should
	listenerStream = 7    // its own randomness, apart from that of queries
)

// listens reports whether world i has a listener. Those that peers judge have none: peers
// know no heartbeats.
func listens(i int, every int64) bool {
	if every > listenLongMs {
		return i%listenShareLong == 1
	}
	return i%listenShare == 1
}

// listener says every half minute which queries of a world run, and whether a trigger of
// theirs does, as stategauge's listeners do in a driver. A nil one says nothing.
type listener struct {
	world    *world
	r        *rand.Rand
	dueMs    int64 // when the next heartbeat is due; never before the first run
	envelope event.Envelope
	event    event.Event
	update   event.Update
}

func newListener(w *world, family, n uint64) *listener {
	l := &listener{world: w, r: rand.New(rand.NewPCG(family, n<<8|listenerStream)), dueMs: never}
	// Queries of many versions of Spark run here, and each says its own with its start: the
	// listener says none.
	l.envelope = event.Envelope{Sender: fmt.Sprintf("made-%d", n), Seq: -1}
	l.event = event.Event{Kind: event.KindHeartbeat, Envelope: &l.envelope}
	l.update = event.Update{Event: &l.event, Outcome: event.OutcomeHeartbeat, IntervalMs: math.NaN()}
	for _, q := range w.queries {
		q.sender = l.envelope.Sender
	}
	return l
}

// due is when the next heartbeat comes.
func (l *listener) due() int64 {
	if l == nil {
		return never
	}
	return l.dueMs
}

// start begins with the first run.
func (l *listener) start(atMs int64) {
	if l != nil && l.dueMs == never {
		l.dueMs = atMs + l.distance()
	}
}

// distance is that of two heartbeats, milliseconds.
func (l *listener) distance() int64 {
	return spark.HeartbeatMs + l.r.Int64N(2*beatJitterMs+1) - beatJitterMs
}

// beat sends the heartbeat that is due.
func (l *listener) beat() {
	e := &l.envelope
	e.Seq++
	e.AtMs = l.dueMs
	e.Active = e.Active[:0]
	for i := range l.world.turns {
		if t := &l.world.turns[i]; t.run != "" {
			e.Active = append(e.Active, event.ActiveQuery{ID: t.query.ref.ID, Run: t.run, TriggerActive: t.busyMs <= l.dueMs})
		}
	}
	l.event.AtMs, l.update.Origin.ReceivedMs = l.dueMs, l.dueMs
	l.world.apply(&l.update)
	l.dueMs += l.distance()
}
