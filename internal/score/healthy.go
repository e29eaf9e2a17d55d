package score

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// HealthyRun is a number of healthy batches at one trigger.
type HealthyRun struct {
	Every   time.Duration
	Batches int64
}

const (
	worldQueries = 6      // of one cluster, so that rules over many queries judge too
	worldBatches = 20_000 // of each query at most
	blockMean    = 15     // batches of a donor that stay together, on average
	restartDays  = 5      // mean time between two clean restarts of a query
	peerShare    = 8      // one world in so many is judged by the peers too: they cost more
)

// healthy makes and judges the batches of one run.
func (o *Options) healthy(ctx context.Context, pack *rules.Pack, h HealthyRun, sources []*donor) (Exposure, error) {
	every := h.Every.Milliseconds()
	out := Exposure{Source: "made", Trigger: h.Every.String(), By: map[string]int{}, Rules: map[string]int{}}
	var fit []*donor
	for _, d := range sources {
		if d.fits(every) {
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		return out, errors.New("no scenario is healthy, steady and quick enough to make healthy batches of")
	}
	each1 := min(worldBatches, max(1, h.Batches/worldQueries))
	worlds := int((h.Batches + worldQueries*each1 - 1) / (worldQueries * each1))
	began := time.Now()
	var mu sync.Mutex
	err := each(ctx, o.Parallel, worlds, func(i int) error {
		w := newWorld(pack, fit, every, o.FirstSeed, uint64(i))
		if i%peerShare == 0 {
			w.peers = newPeers()
		}
		w.run(ctx, each1)
		mu.Lock()
		defer mu.Unlock()
		out.take(w)
		o.Say("healthy batches at %s: world %d of %d", h.Every, i+1, worlds)
		return ctx.Err()
	})
	out.Seconds = time.Since(began).Seconds()
	return out, err
}

// world is a cluster of healthy queries and the engine that judges them.
type world struct {
	engine  *rules.Engine
	queries []*healthyQuery
	every   int64
	peers   *peers // nil: they do not judge here

	batches  int64
	by       map[string]int // alerts sent, by severity
	rules    map[string]int // and by rule
	verdicts []rules.Verdict
}

func newWorld(pack *rules.Pack, from []*donor, every int64, family, n uint64) *world {
	w := &world{engine: rules.New(pack, rules.Options{}), every: every, by: map[string]int{}, rules: map[string]int{}}
	r := rand.New(rand.NewPCG(family, n<<8|uint64(every%251)))
	for i := range worldQueries {
		w.queries = append(w.queries, newHealthyQuery(from[r.IntN(len(from))], every, i, r.Uint64()))
	}
	return w
}

// run judges so many batches of each query, and the time between them.
func (w *world) run(ctx context.Context, batches int64) {
	for n := range batches {
		if n%1024 == 0 && ctx.Err() != nil {
			return
		}
		for _, q := range w.queries {
			for _, u := range q.next(n) {
				w.verdicts = w.engine.Apply(u, w.verdicts[:0])
				w.count()
				if w.peers != nil && u.Event.Batch != nil {
					w.peers.push(u.Event.Batch)
				}
			}
			w.batches++
		}
		// A tick each 15 seconds would be most of the work at long intervals.
		for k := range int64(4) {
			w.verdicts = w.engine.Tick(healthyStartMs+n*w.every+(2*k+1)*w.every/8+w.every/2, w.verdicts[:0])
			w.count()
		}
	}
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

// healthyQuery makes the batches of one query: blocks of a donor, on a grid of its
// own, under noise and load of its own.
type healthyQuery struct {
	from   *donor
	noise  *noise
	every  int64
	offset int64 // from the grid
	at     int   // place in the donor
	left   int   // batches that are left of the block
	run    int
	fresh  bool // the next batch is the first of its run

	ref     event.QueryRef
	batch   event.Batch
	event   event.Event
	update  event.Update
	started event.Update
	ended   event.Update
	out     []*event.Update
}

func newHealthyQuery(from *donor, every int64, i int, seed uint64) *healthyQuery {
	r := rand.New(rand.NewPCG(seed, 1))
	q := &healthyQuery{
		from: from, noise: newNoise(r), every: every, offset: r.Int64N(max(1, every/4)), fresh: true,
		ref: event.QueryRef{ID: event.QueryID(fmt.Sprintf("healthy-%d", i)), Name: fmt.Sprintf("healthy_%d", i), Application: "made"},
	}
	return q
}

// next returns the updates of batch n: the batch, and before it the end of a run and
// the start of another where the query is restarted. They are valid until the next
// call.
func (q *healthyQuery) next(n int64) []*event.Update {
	q.out = q.out[:0]
	start := healthyStartMs + n*q.every + q.offset
	if !q.fresh && q.noise.r.Float64() < float64(q.every)/(restartDays*dayMs) {
		q.say(&q.ended, event.KindTerminated, event.OutcomeTerminated, event.StateTerminated, start-2000)
		q.run++
		q.fresh = true
	}
	if q.fresh {
		q.say(&q.started, event.KindStarted, event.OutcomeStarted, event.StateRunning, start-1000)
	}
	q.make(n, start)
	q.fresh = false
	return q.out
}

func (q *healthyQuery) runID() event.RunID { return event.RunID(fmt.Sprintf("run-%d", q.run)) }

func (q *healthyQuery) say(u *event.Update, k event.Kind, o event.Outcome, s event.State, atMs int64) {
	*u = event.Update{
		Event:   &event.Event{Kind: k, Query: q.ref, Run: q.runID(), AtMs: atMs},
		Outcome: o, State: s, Was: event.StateRunning, NewRun: o == event.OutcomeStarted, NewQuery: o == event.OutcomeStarted && q.run == 0,
		StartedSeen: true, Trigger: event.TriggerInterval, IntervalMs: float64(q.every), Origin: event.Origin{ReceivedMs: atMs},
	}
	q.out = append(q.out, u)
}

// make puts batch n together.
func (q *healthyQuery) make(n, start int64) {
	if q.left == 0 {
		q.at = q.noise.r.IntN(len(q.from.batches))
		q.left = 1 + int(q.noise.r.ExpFloat64()*blockMean)
	}
	src := q.from.batches[q.at]
	q.at, q.left = (q.at+1)%len(q.from.batches), q.left-1
	b := &q.batch
	b.CopyFrom(src)
	b.Query, b.Run, b.ID, b.StartMs = q.ref, q.runID(), n, start
	shift(&b.EventTimeMaxMs, start-src.StartMs)
	shift(&b.WatermarkMs, start-src.StartMs)
	times, load := q.noise.next(start)
	if q.fresh {
		times *= 2 // caches are cold
	}
	q.scale(b, times, load)
	for i := range b.Operators {
		o := &b.Operators[i]
		if o.SnapshotMin >= 0 {
			o.SnapshotMin += n - src.ID
		}
	}
	q.event = event.Event{Kind: event.KindProgress, Batch: b, Query: q.ref, Run: b.Run, AtMs: start}
	q.update = event.Update{
		Event: &q.event, Outcome: event.OutcomeExecuted, State: event.StateRunning, Was: event.StateRunning,
		SegmentStart: q.fresh && q.run > 0, StartedSeen: true, Trigger: event.TriggerInterval, IntervalMs: float64(q.every),
		IntervalFrom: event.IntervalInferred, Origin: event.Origin{ReceivedMs: b.EndMs()},
	}
	q.out = append(q.out, &q.update)
}

func shift(ms *int64, by int64) {
	if *ms != event.Absent {
		*ms += by
	}
}

// secondsOf and amountsOf are the figures of work, by scope: those that are times,
// and those that are rows, bytes and counts.
var secondsOf, amountsOf = func() (s, a [2][]event.MetricID) {
	for _, m := range event.Catalog() {
		if m.Kind != event.KindWork || m.Scope > event.ScopeOperator {
			continue
		}
		if m.Unit == event.UnitSeconds {
			s[m.Scope] = append(s[m.Scope], m.ID)
		} else {
			a[m.Scope] = append(a[m.Scope], m.ID)
		}
	}
	return s, a
}()

// scale applies noise and load. A healthy batch ends before the next is due.
func (q *healthyQuery) scale(b *event.Batch, times, load float64) {
	if ms, _ := b.DurationMs(); ms*times > 0.9*float64(q.every) {
		times = 0.9 * float64(q.every) / ms
	}
	multiply(&b.Values, secondsOf[event.ScopeQuery], times)
	multiply(&b.Values, amountsOf[event.ScopeQuery], load)
	for i := range b.Operators {
		own := times * (1 + 0.05*q.noise.r.NormFloat64())
		multiply(&b.Operators[i].Values, secondsOf[event.ScopeOperator], max(0.1*times, own))
		multiply(&b.Operators[i].Values, amountsOf[event.ScopeOperator], load)
	}
}

func multiply(v *event.Vector, ids []event.MetricID, by float64) {
	for _, id := range ids {
		v[id] *= by // absent stays absent
	}
}

// take adds what a world counted.
func (e *Exposure) take(w *world) {
	e.Batches += w.batches
	days := float64(w.batches) * float64(w.every) / dayMs
	e.QueryDays += days
	for s, n := range w.by {
		e.By[s] += n
	}
	for r, n := range w.rules {
		e.Rules[r] += n
	}
	if w.peers == nil {
		return
	}
	if e.Peers == nil {
		e.Peers = map[string]int{}
	}
	e.PeerDays += days
	for i, name := range peerNames {
		e.Peers[name] += len(w.peers.fired[i])
	}
}
