package score

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
)

// world is a cluster of healthy queries and the engine that judges them. All is told in the
// order of time: what silence is judged by must not be heard before it was said, or after.
type world struct {
	engine  *rules.Engine
	queries []*healthyQuery
	turns   []turn // of the queries
	every   int64
	tickMs  int64  // when the engine is to look at the time next
	peers   *peers // nil: they do not judge here
	// listener sends heartbeats; nil: nobody does.
	listener *listener
	// longestMs is how long the longest batch took.
	longestMs int64

	batches  int64
	by       map[string]int // alerts sent, by severity
	rules    map[string]int // and by rule
	verdicts []rules.Verdict
}

const never = math.MaxInt64

// turn is where a query stands on the world's clock.
type turn struct {
	query  *healthyQuery
	left   []*event.Update // what it says next, up to a batch
	atMs   int64           // when the first of them arrives; never behind the last batch
	run    event.RunID     // that was started and has not ended; empty: none
	busyMs int64           // when the trigger of the batch to come begins
}

// newWorld makes a world of a family by its number. What its queries do is the same with a
// listener and without one.
func newWorld(pack *rules.Pack, from []*donor, every int64, family, n uint64, listened bool) *world {
	w := &world{every: every, tickMs: healthyStartMs + every/2 + every/8, by: map[string]int{}, rules: map[string]int{}}
	// Ticks so far apart are none that were missed: silence goes on between them.
	w.engine = rules.New(pack, rules.Options{TickMs: w.tickEvery()})
	r := rand.New(rand.NewPCG(family, n<<8|uint64(every%251)))
	for i := range worldQueries {
		w.queries = append(w.queries, newHealthyQuery(from[r.IntN(len(from))], every, i, r.Uint64()))
	}
	if listened {
		w.listener = newListener(w, family, n)
	}
	return w
}

// run judges so many batches of each query, a few more of one than of another, and the time
// between them, and returns what came of those that there was time for.
func (w *world) run(ctx context.Context, batches int64) (worldPart, error) {
	began := time.Now()
	w.begin()
	for n := 0; w.batches < batches*worldQueries; n++ {
		if n%8192 == 0 && ctx.Err() != nil {
			return w.part(time.Since(began)), ctx.Err()
		}
		w.step()
	}
	return w.part(time.Since(began)), nil
}

// begin makes the first batch of each query.
func (w *world) begin() {
	for _, q := range w.queries {
		t := turn{query: q}
		t.next(healthyStartMs)
		w.turns = append(w.turns, t)
	}
}

// next makes the query's next batch, none of which may arrive before a moment.
func (t *turn) next(fromMs int64) {
	t.left = t.query.next()
	t.busyMs = max(fromMs, t.query.batch.StartMs)
	t.atMs = max(fromMs, t.left[0].Origin.ReceivedMs)
}

// until plays what happens before a moment.
func (w *world) until(ms int64) {
	for w.nextMs() < ms {
		w.step()
	}
}

// nextMs is when something happens next.
func (w *world) nextMs() int64 {
	_, atMs := w.first()
	return min(atMs, w.listener.due(), w.tickMs)
}

// step plays what happens next. At the same moment a query speaks before it is named, and
// the engine looks at the time last.
func (w *world) step() {
	i, atMs := w.first()
	switch dueMs := w.listener.due(); {
	case atMs <= min(dueMs, w.tickMs):
		w.say(&w.turns[i])
	case dueMs <= w.tickMs:
		w.listener.beat()
	default:
		w.tick()
	}
}

// first is the query that speaks next, and when.
func (w *world) first() (i int, atMs int64) {
	atMs = never
	for k := range w.turns {
		if t := &w.turns[k]; t.atMs < atMs {
			i, atMs = k, t.atMs
		}
	}
	return i, atMs
}

// say tells the engine what a query says next.
func (w *world) say(t *turn) {
	u, atMs := t.left[0], t.atMs
	t.left = t.left[1:]
	u.Origin.ReceivedMs = atMs
	w.apply(u)
	switch u.Outcome {
	case event.OutcomeStarted:
		t.run = u.Event.Run
		w.listener.start(atMs)
	case event.OutcomeTerminated:
		t.run = ""
	}
	if len(t.left) > 0 {
		t.atMs = max(atMs, t.left[0].Origin.ReceivedMs)
		return
	}
	w.batches++
	w.longestMs = max(w.longestMs, atMs-t.busyMs)
	t.next(atMs)
}

// apply judges an update.
func (w *world) apply(u *event.Update) {
	w.verdicts = w.engine.Apply(u, w.verdicts[:0])
	w.count()
	if w.peers != nil && u.Event.Batch != nil {
		w.peers.push(u.Event.Batch)
	}
}

// tick lets the engine look at the time.
func (w *world) tick() {
	w.verdicts = w.engine.Tick(w.tickMs, w.verdicts[:0])
	w.count()
	w.tickMs += w.tickEvery()
}

// tickEvery is the distance of ticks, milliseconds: the daemon's. At long intervals those
// would be most of the work: four between two batches are enough.
func (w *world) tickEvery() int64 { return max(replay.JudgeEveryMs, w.every/4) }

func (w *world) part(took time.Duration) worldPart {
	out := worldPart{Batches: w.batches, By: w.by, Rules: w.rules, Seconds: took.Seconds()}
	if w.listener != nil {
		out.Listened, out.LongestMs = true, w.longestMs
	}
	if w.peers != nil {
		out.Peers = map[string]int{}
		for i, name := range peerNames {
			out.Peers[name] = len(w.peers.fired[i])
		}
	}
	return out
}

// count counts alerts as they go out.
func (w *world) count() {
	for i := range w.verdicts {
		v := &w.verdicts[i]
		if v.Alert == nil || v.Alert.State != rules.Firing || v.Alert.InhibitedBy != "" || v.Alert.Labels.Get("symptom") == "watchdog" {
			continue
		}
		w.by[v.Alert.Labels.Get("severity")]++
		w.rules[v.Rule]++
	}
}

const healthyStartMs = 1_772_409_600_000 // 2026-03-02
