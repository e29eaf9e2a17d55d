package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

const (
	worldStepMs = 5000
	worldTickMs = 15_000
)

// world plays queries that live side by side, their senders, and the time that
// passes between what is heard of them. It makes updates as a tracker would.
type world struct {
	e       *Engine
	nowMs   int64
	queries []*actor
	senders map[string]*beater
	apps    map[string]string // application of a query, "shop" where none is given
	deaf    bool              // nothing arrives
	frozen  bool              // and nothing ticks
	said    []Verdict
	// reborn is called after each thing that the engine hears; it may put another in its
	// place.
	reborn func()
	// ticked is called after each tick.
	ticked func()
}

// actor is one query.
type actor struct {
	name, id string
	run      int
	mode     string // busy, idle, hung, silent or off
	every    int64
	took     int64
	dueMs    int64
	next     int64 // batch id
	known    bool  // something was heard of it
	fresh    bool  // nothing was heard of this run
	started  bool
	trigger  event.TriggerKind
	figures  map[string]float64
	flags    map[string]float64 // for the next batch only
}

// beater is one sender of heartbeats.
type beater struct {
	on        bool
	of        []string
	losses    int64
	executors int64
}

func newWorld(p *Pack) *world {
	return &world{e: New(p, Options{}), nowMs: startMs, senders: map[string]*beater{}, apps: map[string]string{}}
}

func (w *world) query(name string) *actor {
	for _, q := range w.queries {
		if q.name == name {
			return q
		}
	}
	q := &actor{
		name: name, id: "id-" + name, mode: "off", every: minuteMs, took: 5000, trigger: event.TriggerInterval,
		figures: map[string]float64{"partitions": 4, "instances": 4, "rows": 1000, "state": 5000, "backlog": 0, "replayed": 0},
		flags:   map[string]float64{},
	}
	w.queries = append(w.queries, q)
	return q
}

// pass lets time go by in steps: queries speak when they are due, senders beat,
// the engine ticks.
func (w *world) pass(ms int64) {
	for until := w.nowMs + ms; w.nowMs < until; {
		w.nowMs += worldStepMs
		for _, q := range w.queries {
			w.act(q)
		}
		if w.nowMs%beatMs == startMs%beatMs {
			w.beat()
		}
		if w.nowMs%worldTickMs == startMs%worldTickMs && !w.frozen {
			w.said = w.e.Tick(w.nowMs, w.said)
			w.heard()
			if w.ticked != nil {
				w.ticked()
			}
		}
	}
}

func (w *world) act(q *actor) {
	if w.nowMs < q.dueMs {
		return
	}
	switch q.mode {
	case "busy":
		w.batch(q)
	case "idle":
		w.tell(q, event.KindIdle, event.OutcomeIdle, event.StateIdle)
	default:
		return
	}
	q.dueMs = w.nowMs + q.every
}

func (w *world) beat() {
	for _, name := range slices.Sorted(mapsKeys(w.senders)) {
		s := w.senders[name]
		if !s.on || w.deaf {
			continue
		}
		env := &event.Envelope{Sender: name, AtMs: w.nowMs, Executors: &event.Executors{
			Count: s.executors, Losses: s.losses, Cores: event.Absent, MemoryBytes: event.Absent, OverheadBytes: event.Absent, GCTimeMs: event.Absent,
		}}
		for _, n := range s.of {
			q := w.query(n)
			if q.mode == "off" || q.mode == "gone" {
				continue
			}
			active := q.mode == "hung" || q.mode == "busy" && q.took >= q.every
			env.Active = append(env.Active, event.ActiveQuery{ID: event.QueryID(q.id), Run: q.runID(), TriggerActive: active})
		}
		u := event.Update{Event: &event.Event{Kind: event.KindHeartbeat, Envelope: env, AtMs: w.nowMs}, Outcome: event.OutcomeHeartbeat, IntervalMs: math.NaN()}
		w.send(u)
	}
}

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (q *actor) runID() event.RunID { return event.RunID(fmt.Sprint(q.id, "/", q.run)) }

// send hands an update to the engine, or holds it up.
func (w *world) send(u event.Update) {
	if w.deaf {
		return
	}
	u.Origin.ReceivedMs = w.nowMs
	w.said = w.e.Apply(&u, w.said)
	w.heard()
}

func (w *world) heard() {
	if w.reborn != nil {
		w.reborn()
	}
}

func (w *world) update(q *actor, kind event.Kind, o event.Outcome, s event.State) event.Update {
	app := w.apps[q.name]
	if app == "" {
		app = "shop"
	}
	u := event.Update{
		Event: &event.Event{
			Kind: kind, Run: q.runID(), AtMs: w.nowMs, Cluster: "east",
			Query: event.QueryRef{ID: event.QueryID(q.id), Name: q.name, Application: app},
		},
		Outcome: o, State: s, Trigger: q.trigger, NewRun: q.fresh, NewQuery: !q.known, SegmentStart: q.fresh, StartedSeen: q.started, IntervalMs: math.NaN(),
	}
	if !w.deaf {
		q.fresh, q.known = false, true
	}
	return u
}

func (w *world) tell(q *actor, kind event.Kind, o event.Outcome, s event.State) {
	w.send(w.update(q, kind, o, s))
}

// start begins a run.
func (w *world) start(q *actor) { w.send(w.started(q)) }

func (w *world) started(q *actor) event.Update {
	q.run++
	q.fresh, q.started = true, true
	q.dueMs = w.nowMs + q.took
	return w.update(q, event.KindStarted, event.OutcomeStarted, event.StateRunning)
}

// end ends the run, by an exception where there is one.
func (w *world) end(q *actor, f *event.Failure) {
	q.mode = "off"
	o, s := event.OutcomeTerminated, event.StateTerminated
	if f != nil {
		o, s = event.OutcomeFailed, event.StateFailed
	}
	u := w.update(q, event.KindTerminated, o, s)
	u.Event.Failure, u.Event.AtMs = f, event.Absent // as Spark writes it: undated
	w.send(u)
}

// batch executes the next batch, which ends now.
func (w *world) batch(q *actor) { w.send(w.batchUpdate(q)) }

func (w *world) batchUpdate(q *actor) event.Update {
	took := q.took
	if x, ok := q.flags["took"]; ok {
		took = int64(x)
	}
	var b event.Batch
	b.Reset()
	b.Run, b.ID, b.StartMs = q.runID(), q.next, w.nowMs-took
	q.next++
	b.Query = event.QueryRef{ID: event.QueryID(q.id), Name: q.name}
	b.Values[event.BatchDuration], b.Values[event.DurationTriggerExecution], b.Values[event.DurationAddBatch] = float64(took), float64(took), float64(took)
	get := func(key string) float64 {
		if x, ok := q.flags[key]; ok {
			return x
		}
		x, ok := q.figures[key]
		if !ok {
			return math.NaN()
		}
		return x
	}
	b.Values[event.NumInputRows] = get("rows")
	b.Sources = append(b.Sources, event.Source{Rows: int64(get("rows")), Backlog: int64(get("backlog")), Read: event.Absent})
	o := b.AddOperator()
	o.Name = "stateStoreSave"
	for key, id := range map[string]event.MetricID{
		"instances": event.NumStateStoreInstances, "partitions": event.NumShufflePartitions, "state": event.NumRowsTotal,
		"fetched": event.RocksDBNumLoadedFromDfs, "replayed": event.RocksDBNumReplayChangelogFiles,
		"repaired": event.RocksDBNumSnapshotsAutoRepaired, "hits": event.LoadedMapCacheHitCount, "misses": event.LoadedMapCacheMissCount,
	} {
		o.Values[id] = get(key)
	}
	o.Values[event.CommitTime] = 100 * get("instances")
	if x := get("commit"); x > 0 {
		o.Values[event.CommitTime] = x * get("instances")
	}
	b.Settle()
	u := w.update(q, event.KindProgress, event.OutcomeExecuted, event.StateRunning)
	u.Event.Batch, u.Event.AtMs = &b, b.StartMs
	u.SharedRuns, u.Rewound = get("shared") > 0, get("rewound") > 0
	if n := get("missed"); n > 0 {
		u.Missed, u.MissedReason = int(n), event.MissedDropped
	}
	if n := get("across"); n > 0 {
		u.Missed, u.MissedReason = int(n), event.MissedAcrossRuns
	}
	clear(q.flags)
	return u
}

// retire tells that the tracker lets a query go.
func (w *world) retire(q *actor, successor string) {
	u := w.update(q, event.KindTick, event.OutcomeStateChange, event.StateRetired)
	u.NewRun, u.NewQuery = false, false
	switch successor {
	case "":
	case q.name + "+":
		u.Successor = event.QueryID("id-" + successor)
	case q.name: // one that begins anew
		u.Successor = event.QueryID(q.id + "+")
	default:
		u.Successor = event.QueryID("id-" + successor)
	}
	w.send(u)
}

// play runs one line of a script.
func (w *world) play(t *testing.T, line string) {
	words := strings.Fields(line)
	switch words[0] {
	case "pass":
		w.pass(span2(t, words[1]))
	case "deaf", "hearing":
		w.deaf = words[0] == "deaf"
	case "frozen":
		w.frozen = true
		w.pass(span2(t, words[1]))
		w.frozen = false
	case "sender":
		w.playSender(t, words[1], words[2:])
	case "forget":
		w.said = w.e.Forget(event.QueryID("id-"+words[1]), w.nowMs, w.said)
	default:
		for _, name := range strings.Split(strings.TrimSuffix(words[0], ":"), ",") {
			w.playQuery(t, w.query(name), words[1], words[2:], line)
		}
	}
}

func span2(t *testing.T, text string) int64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Milliseconds()
}

func (w *world) playSender(t *testing.T, name string, words []string) {
	s := w.senders[name]
	if s == nil {
		s = &beater{executors: 4}
		w.senders[name] = s
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "of":
			s.of = strings.Split(value, ",")
		case "on", "off":
			s.on = key == "on"
		case "losses":
			s.losses = n
		case "executors":
			s.executors = n
		default:
			t.Fatalf("%q is nothing that a sender does", word)
		}
	}
}

func (w *world) playQuery(t *testing.T, q *actor, verb string, words []string, line string) {
	switch verb {
	case "start":
		w.start(q)
		q.mode = "busy"
	case "fail":
		_, rest, _ := strings.Cut(line, "fail ")
		class, message, _ := strings.Cut(rest, ": ")
		w.end(q, &event.Failure{Class: strings.Trim(class, "-"), Message: message})
		return
	case "stop":
		w.end(q, nil)
	case "batch":
		w.set(t, q, words)
		w.batch(q)
		return
	case "retire":
		w.retire(q, strings.Join(words, ""))
		return
	case "outlived": // the tracker finds that the query of before is gone for good
		old := *q
		old.id = strings.TrimSuffix(q.id, "+")
		w.retire(&old, strings.TrimPrefix(q.id, "id-"))
		return
	case "busy", "idle", "hung", "silent", "off", "gone":
		q.mode = verb
		q.dueMs = w.nowMs
	case "kill":
		q.mode = "off"
	case "anew": // the checkpoint is gone: a new id under the same name
		q.id, q.known, q.next, q.run, q.mode = q.id+"+", false, 0, 0, "off"
	default:
		t.Fatalf("%q is nothing that a query does", verb)
	}
	w.set(t, q, words)
}

// set changes figures for good, with a ! for the next batch only.
func (w *world) set(t *testing.T, q *actor, words []string) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		x, err := strconv.ParseFloat(value, 64)
		if d, derr := time.ParseDuration(value); err != nil && derr == nil {
			x, err = float64(d.Milliseconds()), nil
		}
		switch {
		case key == "every":
			q.every = int64(x)
		case key == "took":
			q.took = int64(x)
		case key == "next":
			q.next = int64(x)
		case key == "app":
			w.apps[q.name] = value
		case key == "id":
			q.id = value
		case key == "trigger":
			q.trigger = map[string]event.TriggerKind{"available_now": event.TriggerAvailableNow, "continuous": event.TriggerContinuous, "default": event.TriggerDefault}[value]
		case err != nil:
			t.Fatalf("%q is no figure", word)
		case strings.HasSuffix(key, "!"):
			q.flags[strings.TrimSuffix(key, "!")] = x
		default:
			q.figures[key] = x
		}
	}
}
