package app

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
	"github.com/stategauge/stategauge/history/rollup"
	"github.com/stategauge/stategauge/rules"
)

const (
	// hourRests is how long nothing must have come for an hour of a query before it is
	// summed up. What comes later sums it up again.
	hourRests = 15 * time.Minute
	// houseEvery is how often hours are summed up and old ones let go.
	houseEvery = 5 * time.Minute
)

// hourOf is one hour of one query's batches, by the time of their triggers.
type hourOf struct {
	Query   event.QueryID `json:"query"`
	Lineage string        `json:"lineage"`
	StartMs int64         `json:"start_ms"`
}

// hours remembers which hours have batches that no summary holds yet.
type hours struct {
	mu    sync.Mutex
	since map[hourOf]int64 // when the newest of them came, our clock
}

func (h *hours) touch(at hourOf, nowMs int64) {
	h.mu.Lock()
	h.since[at] = nowMs
	h.mu.Unlock()
}

// due lists the hours that nothing has come for since a moment.
func (h *hours) due(beforeMs int64) []hourOf {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []hourOf
	for at, ms := range h.since {
		if ms <= beforeMs {
			out = append(out, at)
		}
	}
	return out
}

// done strikes an hour off, unless something came for it after a moment.
func (h *hours) done(at hourOf, beforeMs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since[at] <= beforeMs {
		delete(h.since, at)
	}
}

// save is the list as it outlives the process. The log after it has the rest.
func (h *hours) save(seq uint64) carried {
	h.mu.Lock()
	defer h.mu.Unlock()
	return carry(stateHours, "-", seq, saveJSON(slices.Collect(maps.Keys(h.since))))
}

// load takes over a saved list; its hours come to rest from now on.
func (h *hours) load(b []byte, nowMs int64) error {
	var list []hourOf
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for _, at := range list {
		h.touch(at, nowMs)
	}
	return nil
}

// touchHours notes the hours of what a piece adds to the log.
func (j *journal) touchHours(p *piece, nowMs int64) {
	last := hourOf{StartMs: event.Absent}
	for i := range p.records {
		r := &p.records[i]
		if ofSender(r) {
			continue
		}
		if at := (hourOf{r.Query, r.Lineage, rollup.Start(r.AtMs)}); at != last {
			j.hours.touch(at, nowMs)
			last = at
		}
	}
}

// keepHouse sums hours up and lets go of what is too old or too much, until ctx
// ends.
func (j *journal) keepHouse(ctx context.Context) error {
	tick := time.NewTicker(j.app.opts.real(houseEvery))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.tidy(j.app.opts.Now())
		case <-ctx.Done():
			return nil
		}
	}
}

// tidy is one round of housekeeping. What fails is tried again in the next one.
func (j *journal) tidy(now time.Time) {
	j.sumUp(now.Add(-hourRests).UnixMilli())
	if err := j.store.Retain(now.UnixMilli()); err != nil {
		j.app.log.Warn("old history could not be let go", "err", err)
	}
}

// sumUp writes the summaries of the hours that have come to rest.
func (j *journal) sumUp(beforeMs int64) {
	for _, at := range j.hours.due(beforeMs) {
		if err := j.sumUpHour(at); err != nil {
			j.app.log.Warn("an hour could not be summed up", "query", at.Lineage, "hour", time.UnixMilli(at.StartMs).UTC().Format(time.RFC3339), "err", err)
			return
		}
		j.hours.done(at, beforeMs)
	}
}

func (j *journal) sumUpHour(at hourOf) error {
	values := map[string][]float64{}
	measures := *j.app.measures.Load()
	err := eachBatch(j.store, j.words, at.Query, at.StartMs, at.StartMs+rollup.HourMs, func(u *event.Update) error {
		for i := range measures {
			m := &measures[i]
			m.Visit(u, func(operator int, v float64) {
				key := signalKey(m.Name, operator)
				values[key] = append(values[key], v)
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key, vs := range values {
		h, _ := rollup.Of(at.StartMs, vs)
		if err := j.store.PutHours(at.Lineage, string(at.Query), key, []history.Hour{{StartMs: at.StartMs, Body: rollup.Append(nil, &h)}}); err != nil {
			return err
		}
	}
	return nil
}

// signalKey names a signal of one operator, or of the query where operator is -1.
func signalKey(signal string, operator int) string {
	if operator < 0 {
		return signal
	}
	return signal + "#" + strconv.Itoa(operator)
}

// eachBatch calls fn with every batch of a query that ran in [fromMs, toMs), each
// once, in the order of triggers, until it returns an error. The update is valid until
// fn returns.
func eachBatch(store *history.Store, words *record.Dictionary, id event.QueryID, fromMs, toMs int64, fn func(u *event.Update) error) error {
	type execution struct {
		run   event.RunID
		batch int64
	}
	var reader record.Decoder
	seen := map[execution]bool{}
	return store.Read(id, fromMs, toMs, func(r history.Record) error {
		u, _, err := reader.DecodeStored(r.Body, words)
		if err != nil {
			return fmt.Errorf("query %s: %w", id, err)
		}
		if u.Outcome != event.OutcomeExecuted || u.Event.Batch == nil {
			return nil
		}
		e := execution{u.Event.Run, u.Event.Batch.ID}
		if seen[e] {
			return nil
		}
		seen[e] = true
		return fn(u)
	})
}

// learnMeasures takes over the signals of the rules in force.
func (a *App) learnMeasures(pack *rules.Pack) {
	m := pack.Measures()
	a.measures.Store(&m)
}
