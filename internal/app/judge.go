package app

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// judge feeds the rules from a queue of their own, so that judging never delays
// an acknowledgement. The queue's limit is soft by what is in flight when it is
// reached: intake is refused before it, state changes made by time never are.
type judge struct {
	app    *App
	engine *rules.Engine
	limit  int
	idle   atomic.Bool // there are no rules

	mu    sync.Mutex
	queue []*entry
	spare []*entry // the other half of the double buffer
	pool  sync.Pool
	wake  chan struct{}
	asks  chan func()
	done  chan struct{}

	verdicts []rules.Verdict
	alerts   []rules.Alert
	// reached is the newest step of each shard of which everything is judged.
	reached []uint64
	// unsaved is the first step since a query's rule state was saved last.
	unsaved map[event.QueryID]uint64
	told    bool // something was delivered since that was saved last
	// moved are the queries whose alerts time has moved since they were saved, which no
	// log tells; the empty one stands for rules of many queries.
	moved    map[event.QueryID]bool
	tickedMs int64         // the newest look at the clock
	news     chan struct{} // time has moved an alert: whoever keeps the journal shall save it
}

// stamp says where an update comes from: its shard, the number of its step where a
// journal is kept, and whether it was read again from a topic, to fill windows.
type stamp struct {
	shard    int
	seq      uint64
	replayed bool
}

// entry is a copy of an update that outlives the step which brought it. One without
// an event only says how far its shard has come.
type entry struct {
	stamp    stamp
	stored   bool // read from the log of before a restart
	update   event.Update
	event    event.Event
	batch    event.Batch
	envelope event.Envelope
}

func newJudge(a *App, pack *rules.Pack, o rules.Options, limit int) *judge {
	j := &judge{
		app: a, engine: rules.New(pack, o), limit: limit,
		wake: make(chan struct{}, 1), asks: make(chan func()), done: make(chan struct{}),
		reached: make([]uint64, a.opts.Shards), unsaved: map[event.QueryID]uint64{}, moved: map[event.QueryID]bool{},
		news: make(chan struct{}, 1),
	}
	j.pool.New = func() any { return new(entry) }
	j.idle.Store(pack.Len() == 0)
	return j
}

// room reports whether n more updates may be queued.
func (j *judge) room(n int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue)+n <= j.limit
}

// length is how many updates wait.
func (j *judge) length() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue)
}

// offer queues copies of the updates that rules can judge, under one lock and with
// one wake-up for all of them. Without rules there is nothing to queue.
func (j *judge) offer(updates []event.Update, at stamp) {
	if j.idle.Load() {
		return
	}
	j.mu.Lock()
	before := len(j.queue)
	for i := range updates {
		if !rules.Judgeable(updates[i].Outcome) {
			continue
		}
		e := j.pool.Get().(*entry)
		e.copyFrom(&updates[i])
		e.stamp = at
		j.own(e)
		j.queue = append(j.queue, e)
	}
	grown := len(j.queue) > before
	j.mu.Unlock()
	if grown {
		j.rouse()
	}
}

// mark queues the word that everything of a shard's steps up to seq is queued.
func (j *judge) mark(shard int, seq uint64) {
	e := j.pool.Get().(*entry)
	e.update.Event, e.stamp = nil, stamp{shard: shard, seq: seq}
	j.mu.Lock()
	j.queue = append(j.queue, e)
	j.mu.Unlock()
	j.rouse()
}

func (j *judge) rouse() { wakeUp(j.wake) }

// wakeUp wakes who waits for a channel of one place, now or when it comes to wait.
func wakeUp(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (e *entry) copyFrom(u *event.Update) {
	e.update, e.event = *u, *u.Event
	e.update.Event = &e.event
	e.event.Extra = slices.Clone(u.Event.Extra)
	if u.Event.Batch != nil {
		e.batch.CopyFrom(u.Event.Batch)
		e.event.Batch = &e.batch
	}
	if u.Event.Envelope != nil {
		e.envelope.CopyFrom(u.Event.Envelope)
		e.event.Envelope = &e.envelope
	}
}

// own leaves of a heartbeat what it says of the queries of its shard: each shard brings
// it, each its share, in step with what it brings of the queries themselves.
func (j *judge) own(e *entry) {
	if e.event.Kind != event.KindHeartbeat || e.event.Envelope == nil {
		return
	}
	e.envelope.Active = slices.DeleteFunc(e.envelope.Active, func(a event.ActiveQuery) bool {
		return j.app.shards.of(a.ID) != e.stamp.shard
	})
}

// run judges until ctx ends, then judges what is still queued.
func (j *judge) run(ctx context.Context) {
	defer close(j.done)
	tick := time.NewTicker(j.app.opts.real(j.app.opts.JudgeEvery))
	defer tick.Stop()
	j.begin()
	for {
		select {
		case <-j.wake:
			j.drain()
		case <-tick.C:
			j.tick()
		case f := <-j.asks:
			f()
		case <-ctx.Done():
			j.drain()
			return
		}
	}
}

// begin starts the rules' clock, so that a first tick can be missed too, and tells the
// alerts of before a restart again. It judges nothing: who starts has heard nobody be
// silent, and what is due comes with the first tick, as it would have without a restart.
func (j *judge) begin() {
	j.engine.Listened(j.app.opts.Now().UnixMilli())
	j.renew()
	j.app.confirm()
}

// ask runs f on the judging goroutine and waits; false if it has ended.
func (j *judge) ask(f func()) bool {
	ran := make(chan struct{})
	select {
	case j.asks <- func() { f(); close(ran) }:
		<-ran
		return true
	case <-j.done:
		return false
	}
}

func (j *judge) drain() {
	j.mu.Lock()
	batch := j.queue
	j.queue = j.spare[:0]
	j.mu.Unlock()
	start := time.Now()
	for i, e := range batch {
		j.take(e)
		j.pool.Put(e)
		batch[i] = nil
	}
	j.spare = batch[:0]
	j.app.metrics.judged.Add(float64(len(batch)))
	j.app.metrics.judgeSeconds.Add(time.Since(start).Seconds())
}

func (j *judge) take(e *entry) {
	if e.update.Event != nil {
		j.app.delivery.follow(e.event.Query.ID, e.stamp.replayed)
		if e.stored {
			j.verdicts = j.engine.Replay(&e.update, j.verdicts[:0])
		} else {
			j.verdicts = j.engine.Apply(&e.update, j.verdicts[:0])
		}
		j.act(j.verdicts)
		if e.update.Moved {
			j.app.letAlertsGo(e.event.Query.ID)
		}
		j.oweAll(&e.event, e.stamp.seq)
	}
	j.reached[e.stamp.shard] = max(j.reached[e.stamp.shard], e.stamp.seq)
}

// caughtUp says that of all steps before next everything is judged, also for the shards
// that the last of them said nothing to.
func (j *judge) caughtUp(next uint64) {
	for i := range j.reached {
		j.reached[i] = max(j.reached[i], next-1)
	}
}

// oweAll notes what an event has changed: its query's rule state, or that of the queries
// that a heartbeat names.
func (j *judge) oweAll(e *event.Event, seq uint64) {
	if e.Kind != event.KindHeartbeat {
		j.owe(e.Query.ID, seq)
		return
	}
	if e.Envelope == nil {
		return
	}
	for i := range e.Envelope.Active {
		if id := e.Envelope.Active[i].ID; j.engine.Knows(id) {
			j.owe(id, seq)
		}
	}
}

// owe notes that a query's rule state has changed since it was saved.
func (j *judge) owe(id event.QueryID, seq uint64) {
	if seq == 0 {
		return // no journal is kept
	}
	if _, owed := j.unsaved[id]; !owed {
		j.unsaved[id] = seq
	}
}

// tick lets time pass for the rules and sends every live alert again.
func (j *judge) tick() {
	j.tickedMs = j.app.opts.Now().UnixMilli()
	j.verdicts = j.engine.Tick(j.tickedMs, j.verdicts[:0])
	j.act(j.verdicts)
	if j.app.journal != nil {
		j.noteMoved()
	}
	j.renew()
}

// noteMoved notes whose alerts time has moved just now.
func (j *judge) noteMoved() {
	for i := range j.verdicts {
		if v := &j.verdicts[i]; v.Alert != nil {
			j.moved[v.Query.ID] = true
		}
	}
	if len(j.moved) > 0 {
		wakeUp(j.news)
	}
}

// renew sends every live alert again: the lease at Alertmanager lives on it.
func (j *judge) renew() {
	j.alerts = j.engine.Alerts(j.alerts[:0])
	j.app.deliverAll(j.alerts)
	j.app.showTrends(j.alerts)
}

// act passes on what the engine said: alerts that changed go out at once, the
// rest is counted.
func (j *judge) act(verdicts []rules.Verdict) {
	j.alerts = j.alerts[:0]
	for i := range verdicts {
		v := &verdicts[i]
		j.app.metrics.verdicts.WithLabelValues(v.Said.String()).Inc()
		if v.Alert == nil {
			continue
		}
		if j.app.opts.OnAlert != nil {
			j.app.opts.OnAlert(v)
		}
		j.app.log.Info("alert changed its state", "state", v.Alert.State.String(), "alert", v.Rule, "query", v.Query.Label(), "was", v.Was.String(), "reason", v.Alert.Reason)
		j.alerts = append(j.alerts, *v.Alert)
	}
	if len(j.alerts) > 0 {
		j.app.deliver(j.alerts)
	}
}

// reload exchanges the rules; it runs on the judging goroutine.
func (j *judge) reload(pack *rules.Pack) {
	j.idle.Store(pack.Len() == 0)
	j.verdicts = j.engine.Reload(pack, j.app.opts.Now().UnixMilli(), j.verdicts[:0])
	j.act(j.verdicts)
}
