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
	never          = math.MaxInt64
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
// theirs does, as stategauge's listeners do in a driver. All is told in the order of time:
// what silence is judged by must not be heard before it was said, or after.
type listener struct {
	world *world
	r     *rand.Rand
	turns []turn
	limit int64 // batches of each query
	dueMs int64 // when the next heartbeat is due; never before the first run
	// longestMs is how long the longest batch took.
	longestMs int64
	envelope  event.Envelope
	event     event.Event
	update    event.Update
}

// turn is where a query stands on the world's clock.
type turn struct {
	query  *healthyQuery
	made   int64           // batches so far, with the one that is to come
	left   []*event.Update // what it says next, up to a batch
	atMs   int64           // when the first of them arrives; never behind the last batch
	run    event.RunID     // that was started and has not ended; empty: none
	busyMs int64           // when the trigger of the batch to come begins
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
		l.turns = append(l.turns, turn{query: q, atMs: never})
	}
	return l
}

// begin gives each query so many batches to make.
func (l *listener) begin(batches int64) {
	l.limit = batches
	for i := range l.turns {
		l.turns[i].next(l.limit, healthyStartMs)
	}
}

// next makes the query's next batch, none of which may arrive before a moment.
func (t *turn) next(limit, fromMs int64) {
	t.atMs, t.busyMs = never, never
	if t.made == limit {
		return
	}
	t.left = t.query.next(t.made)
	t.made++
	t.busyMs = max(fromMs, t.query.batch.StartMs)
	t.atMs = max(fromMs, t.left[0].Origin.ReceivedMs)
}

// until plays what happens before a moment.
func (l *listener) until(ms int64) {
	for l.nextMs() < ms {
		l.step()
	}
}

// nextMs is when something happens next.
func (l *listener) nextMs() int64 {
	_, atMs := l.first()
	return min(atMs, l.dueMs, l.world.tickMs)
}

// step plays what happens next. At the same moment a query speaks before it is named, and
// the engine looks at the time last.
func (l *listener) step() {
	i, atMs := l.first()
	switch tickMs := l.world.tickMs; {
	case atMs <= min(l.dueMs, tickMs):
		l.say(&l.turns[i])
	case l.dueMs <= tickMs:
		l.beat()
	default:
		l.world.tick()
	}
}

// first is the query that speaks next, and when.
func (l *listener) first() (i int, atMs int64) {
	atMs = never
	for k := range l.turns {
		if t := &l.turns[k]; t.atMs < atMs {
			i, atMs = k, t.atMs
		}
	}
	return i, atMs
}

// say tells the engine what a query says next.
func (l *listener) say(t *turn) {
	u, atMs := t.left[0], t.atMs
	t.left = t.left[1:]
	u.Origin.ReceivedMs = atMs
	l.world.apply(u)
	switch u.Outcome {
	case event.OutcomeStarted:
		t.run = u.Event.Run
		if l.dueMs == never {
			l.dueMs = atMs + l.distance()
		}
	case event.OutcomeTerminated:
		t.run = ""
	}
	if len(t.left) > 0 {
		t.atMs = max(atMs, t.left[0].Origin.ReceivedMs)
		return
	}
	l.world.batches++
	l.longestMs = max(l.longestMs, atMs-t.busyMs)
	t.next(l.limit, atMs)
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
	for i := range l.turns {
		if t := &l.turns[i]; t.run != "" {
			e.Active = append(e.Active, event.ActiveQuery{ID: t.query.ref.ID, Run: t.run, TriggerActive: t.busyMs <= l.dueMs})
		}
	}
	l.event.AtMs, l.update.Origin.ReceivedMs = l.dueMs, l.dueMs
	l.world.apply(&l.update)
	l.dueMs += l.distance()
}
