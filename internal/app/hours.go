package app

import (
	"context"
	"fmt"
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
	query   event.QueryID
	lineage string
	startMs int64
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

// due takes the hours out that nothing has come for since a moment.
func (h *hours) due(beforeMs int64) []hourOf {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []hourOf
	for at, ms := range h.since {
		if ms <= beforeMs {
			out = append(out, at)
			delete(h.since, at)
		}
	}
	return out
}

// touchHours notes the hours of what a piece adds to the log.
func (j *journal) touchHours(p *piece, nowMs int64) {
	last := hourOf{startMs: event.Absent}
	for i := range p.records {
		r := &p.records[i]
		if at := (hourOf{r.Query, r.Lineage, rollup.Start(r.AtMs)}); at != last {
			j.hours.touch(at, nowMs)
			last = at
		}
	}
}

// recallHours makes the newest two hours of every query due: the process before may
// not have summed them up.
func (j *journal) recallHours() error {
	known, err := j.store.Queries()
	if err != nil {
		return err
	}
	nowMs := j.app.opts.Now().UnixMilli()
	for _, q := range known {
		at := hourOf{q.ID, q.Lineage, rollup.Start(q.LastMs)}
		j.hours.touch(at, nowMs)
		at.startMs -= rollup.HourMs
		j.hours.touch(at, nowMs)
	}
	return nil
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
			j.app.log.Warn("an hour could not be summed up", "query", at.lineage, "hour", time.UnixMilli(at.startMs).UTC().Format(time.RFC3339), "err", err)
			j.hours.touch(at, j.app.opts.Now().UnixMilli())
			return
		}
	}
}

func (j *journal) sumUpHour(at hourOf) error {
	values := map[string][]float64{}
	measures := *j.app.measures.Load()
	err := eachBatch(j.store, j.words, at.query, at.startMs, at.startMs+rollup.HourMs, func(u *event.Update) {
		for i := range measures {
			m := &measures[i]
			m.Visit(u, func(operator int, v float64) {
				key := signalKey(m.Name, operator)
				values[key] = append(values[key], v)
			})
		}
	})
	if err != nil {
		return err
	}
	for key, vs := range values {
		h, _ := rollup.Of(at.startMs, vs)
		if err := j.store.PutHours(at.lineage, string(at.query), key, []history.Hour{{StartMs: at.startMs, Body: rollup.Append(nil, &h)}}); err != nil {
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
// once, in the order of triggers. The update is valid until fn returns.
func eachBatch(store *history.Store, words *record.Dictionary, id event.QueryID, fromMs, toMs int64, fn func(u *event.Update)) error {
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
		if e := (execution{u.Event.Run, u.Event.Batch.ID}); !seen[e] {
			seen[e] = true
			fn(u)
		}
		return nil
	})
}

// learnMeasures takes over the signals of the rules in force.
func (a *App) learnMeasures(pack *rules.Pack) {
	m := pack.Measures()
	a.measures.Store(&m)
}
