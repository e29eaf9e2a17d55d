package score

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/replay"
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
	peerShare    = 8      // one world in so many is judged by the peers too: they cost more
)

// healthy makes and judges the batches of one run, within some time unless that is 0.
func (x *runner) healthy(ctx context.Context, h HealthyRun, sources []*donor, within time.Duration) (Exposure, error) {
	every := h.Every.Milliseconds()
	out := Exposure{Source: "made", Trigger: h.Every.String(), Asked: h.Batches, By: map[string]int{}, Rules: map[string]int{}}
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
	from := donorsHash(fit)
	var mu sync.Mutex
	limited, stop := ctx, context.CancelFunc(func() {})
	if within > 0 {
		limited, stop = context.WithTimeout(ctx, within)
	}
	defer stop()
	err := each(limited, x.Parallel, worlds, func(i int) error {
		listened := listens(i, every)
		key := []any{from, every, x.FirstSeed, i, each1, i%peerShare == 0, listened}
		part, was, err := keep(x.parts, "healthy", key, func() (worldPart, error) {
			w := newWorld(x.pack, fit, every, x.FirstSeed, uint64(i), listened)
			if i%peerShare == 0 {
				w.peers = newPeers()
			}
			return w.run(limited, each1)
		})
		mu.Lock()
		out.take(&part, every)
		mu.Unlock()
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil // what there was time for
		}
		if err == nil {
			x.progress.step(batchCost*float64(each1*worldQueries), was, "healthy batches at %s: world %d of %d", h.Every, i+1, worlds)
		}
		return err
	})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return out, err
}

// worldPart is what came of a world: alerts sent, by severity and by rule, what the peers
// fired where they judged, and how long it took one processor.
type worldPart struct {
	Batches int64
	By      map[string]int
	Rules   map[string]int
	Peers   map[string]int `json:",omitempty"`
	Seconds float64
	// Listened is set where a listener sent heartbeats; LongestMs is the longest batch there.
	Listened  bool  `json:",omitempty"`
	LongestMs int64 `json:",omitempty"`
}

// world is a cluster of healthy queries and the engine that judges them.
type world struct {
	engine  *rules.Engine
	queries []*healthyQuery
	every   int64
	tickMs  int64  // when the engine is to look at the time next
	peers   *peers // nil: they do not judge here
	// listener sends heartbeats; nil: nobody does.
	listener *listener

	batches  int64
	by       map[string]int // alerts sent, by severity
	rules    map[string]int // and by rule
	verdicts []rules.Verdict
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

// run judges so many batches of each query, and the time between them, and returns what
// came of those that there was time for.
func (w *world) run(ctx context.Context, batches int64) (worldPart, error) {
	began := time.Now()
	if w.listener != nil {
		w.listener.begin(batches)
	}
	for n := range batches {
		if n%1024 == 0 && ctx.Err() != nil {
			return w.part(time.Since(began)), ctx.Err()
		}
		if w.listener != nil {
			w.listener.until(w.halfway(n))
		} else {
			w.batch(n)
		}
	}
	return w.part(time.Since(began)), nil
}

// batch judges batch n of each query, one query after the other, and the time behind it.
func (w *world) batch(n int64) {
	for _, q := range w.queries {
		for _, u := range q.next(n) {
			w.apply(u)
		}
		w.batches++
	}
	w.pass(w.halfway(n))
}

// halfway is the moment half an interval behind the one in which batch n+1 is due.
func (w *world) halfway(n int64) int64 { return healthyStartMs + (n+1)*w.every + w.every/2 }

// apply judges an update.
func (w *world) apply(u *event.Update) {
	w.verdicts = w.engine.Apply(u, w.verdicts[:0])
	w.count()
	if w.peers != nil && u.Event.Batch != nil {
		w.peers.push(u.Event.Batch)
	}
}

// pass lets time pass until then.
func (w *world) pass(untilMs int64) {
	for w.tickMs < untilMs {
		w.tick()
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
		out.Listened, out.LongestMs = true, w.listener.longestMs
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

// take adds what came of a world with a batch every so many milliseconds.
func (e *Exposure) take(w *worldPart, every int64) {
	e.Batches += w.Batches
	e.Seconds += w.Seconds
	days := float64(w.Batches) * float64(every) / dayMs
	e.QueryDays += days
	if w.Listened {
		e.ListenedDays += days
		e.LongestSeconds = max(e.LongestSeconds, float64(w.LongestMs)/1000)
	}
	for s, n := range w.By {
		e.By[s] += n
	}
	for r, n := range w.Rules {
		e.Rules[r] += n
	}
	if w.Peers == nil {
		return
	}
	if e.Peers == nil {
		e.Peers = map[string]int{}
	}
	e.PeerDays += days
	for name, n := range w.Peers {
		e.Peers[name] += n
	}
}
