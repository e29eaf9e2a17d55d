package score

import (
	"context"
	"errors"
	"sync"
	"time"
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
