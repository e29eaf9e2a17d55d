package rules

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// saveAll is everything that an engine saves: what belongs to no query, and each query.
func saveAll(e *Engine) (rest []byte, queries [][]byte) {
	for _, id := range e.Queries(nil) {
		queries = append(queries, e.SaveQuery(id, nil))
	}
	return e.Save(nil), queries
}

// reborn is a fresh engine that has loaded what e saved. Nothing may be dropped, and
// what it saves in its turn must be the same to the byte.
func reborn(t testing.TB, e *Engine) *Engine {
	t.Helper()
	rest, queries := saveAll(e)
	o := e.opts
	o.Metrics = nil
	n := New(e.pack, o)
	if dropped, err := n.Load(rest); err != nil || len(dropped) > 0 {
		t.Fatalf("load: dropped %v, %v", dropped, err)
	}
	for _, data := range queries {
		if dropped, err := n.LoadQuery(data); err != nil || len(dropped) > 0 {
			t.Fatalf("load a query: dropped %v, %v", dropped, err)
		}
	}
	again, others := saveAll(n)
	if !bytes.Equal(again, rest) {
		t.Fatal("what belongs to no query is saved otherwise after it was loaded")
	}
	for i := range queries {
		if i >= len(others) || !bytes.Equal(others[i], queries[i]) {
			at := 0
			for at < min(len(others[i]), len(queries[i])) && others[i][at] == queries[i][at] {
				at++
			}
			t.Fatalf("query %d is saved otherwise after it was loaded, from byte %d of %d and %d on", i, at, len(queries[i]), len(others[i]))
		}
	}
	return n
}

// TestRestartsChangeNothingOfWhatEventsSay plays all worlds with an engine that is saved
// and loaded after each third thing that it hears: every line that is expected of one that never was
// must come, and no other.
func TestRestartsChangeNothingOfWhatEventsSay(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine; takes long")
	}
	n := 0
	playEvents(t, func(w *world) {
		w.reborn = func() {
			if n++; n%3 == 0 {
				w.e = reborn(t, w.e)
			}
		}
	})
	if n < 3000 {
		t.Errorf("only %d restarts", n)
	}
}

// fault is what goes wrong in a query from a batch on. i is the batch, counted from 0.
type fault struct {
	everyMs int64
	alter   func(s *fullStream, u *event.Update, i int)
}

const faultAt = 260

func after(i int) float64 { return math.Max(0, float64(i-faultAt)) }

// everyOperator multiplies figures of all operators.
func everyOperator(u *event.Update, factor float64, ids ...event.MetricID) {
	for k := range u.Event.Batch.Operators {
		for _, id := range ids {
			u.Event.Batch.Operators[k].Values[id] *= factor
		}
	}
}

// slower makes a batch take longer by a factor.
func slower(u *event.Update, factor float64) {
	for _, id := range []event.MetricID{event.BatchDuration, event.DurationTriggerExecution, event.DurationAddBatch} {
		u.Event.Batch.Values[id] *= factor
	}
}

// savedFaults are what the saved engine is tried on: all detectors of figures find something
// in one or the other.
var savedFaults = map[string]fault{
	"healthy":          {},
	"fast and healthy": {everyMs: 5000},
	"upload ramp": {alter: func(_ *fullStream, u *event.Update, i int) {
		everyOperator(u, 1+after(i)/60, event.RocksDBCommitFileSyncLatency)
	}},
	"slow step": {alter: func(_ *fullStream, u *event.Update, i int) {
		slower(u, 1+0.7*math.Min(after(i), 1))
	}},
	"slow for a while": {alter: func(_ *fullStream, u *event.Update, i int) {
		if i > faultAt && i < faultAt+90 {
			slower(u, 2.2)
		}
	}},
	"slower and slower": {alter: func(_ *fullStream, u *event.Update, i int) { slower(u, 1+after(i)/150) }},
	"spikes": {alter: func(_ *fullStream, u *event.Update, i int) {
		if i%10 == 0 {
			slower(u, 6)
			everyOperator(u, 100_000, event.RocksDBCommitCompactLatency)
		}
	}},
	"uploads scale with state": {alter: func(_ *fullStream, u *event.Update, i int) {
		u.Event.Envelope = &event.Envelope{Conf: map[string]string{stateStoreConf + changelogConf: "false"}}
		saw := 1 + float64(i%60)/20
		everyOperator(u, saw, event.RocksDBSstFileSize, event.RocksDBCommitFileSyncLatency)
	}},
	"memory and misses": {alter: func(_ *fullStream, u *event.Update, i int) {
		everyOperator(u, 1+after(i)/80, event.MemoryUsedBytes)
		everyOperator(u, 1+2*math.Min(after(i), 1), event.RocksDBReadBlockCacheMissCount, event.RocksDBGetLatency)
	}},
	"behind": {alter: func(_ *fullStream, u *event.Update, i int) {
		b := u.Event.Batch
		b.Values[event.SourceMaxOffsetsBehindLatest] *= 1 + after(i)
		b.Values[event.NumInputRows] *= 1 + after(i)/100
		ageRows(b, 60_000*(1+after(i)))
	}},
	"nothing is removed": {alter: func(_ *fullStream, u *event.Update, i int) {
		everyOperator(u, 0, event.NumRowsRemoved)
		for k := range u.Event.Batch.Operators {
			u.Event.Batch.Operators[k].Values[event.NumRowsTotal] = 1e6 + 40_000*float64(i)
		}
		u.Event.Batch.Values[event.EventTimeWatermark] = startMs - hourMs
	}},
	"restarts": {alter: func(s *fullStream, u *event.Update, i int) {
		if i%170 == 169 {
			s.restart(fmt.Sprint("run-", i))
		}
		if i > 500 {
			slower(u, 1.6)
		}
	}},
	"pauses": {alter: func(s *fullStream, u *event.Update, i int) {
		if i%210 == 209 {
			s.nowMs += 7 * hourMs
		}
	}},
	"operators come and go": {alter: func(_ *fullStream, u *event.Update, i int) {
		b := u.Event.Batch
		switch {
		case i%200 > 150:
			b.Operators = b.Operators[:2]
		case i > 600:
			b.Operators[2].Name = "dedupe"
		}
		everyOperator(u, 1+after(i)/60, event.RocksDBCommitFileSyncLatency)
	}},
	"figures come and go": {alter: func(_ *fullStream, u *event.Update, i int) {
		if i%3 != 0 {
			u.Event.Batch.Values[event.NumInputRows] = math.NaN()
			everyOperator(u, math.NaN(), event.RocksDBCommitFileSyncLatency)
		}
		slower(u, 1+after(i)/100)
	}},
	"stalls and stands": {alter: func(_ *fullStream, u *event.Update, i int) {
		everyOperator(u, 1+1e6*math.Min(after(i), 1), event.RocksDBWriterStallLatency)
		b := u.Event.Batch
		b.Values[event.EventTimeWatermark] = startMs - hourMs
		for k := range b.Operators {
			b.Operators[k].Values[event.NumRowsDroppedByWatermark] = 3000 * math.Min(after(i), 1)
		}
	}},
}

// shadowed plays one stream to two engines: to one that is never saved, and to one that
// is saved and loaded into a fresh one after each so many batches.
type shadowed struct {
	s    *fullStream
	twin *Engine
	out  []Verdict
}

func (x *shadowed) step(t *testing.T, name string, f fault, i int) {
	t.Helper()
	u := x.s.update()
	x.s.newRun = false // a fault may begin one with the next batch
	if f.alter != nil {
		f.alter(x.s, &u, i)
	}
	u.Event.Batch.Settle()
	u.Origin.ReceivedMs = x.s.nowMs
	x.same(t, name, i, func(e *Engine, out []Verdict) []Verdict { return e.Apply(&u, out) })
	if i%2 == 0 {
		x.same(t, name, i, func(e *Engine, out []Verdict) []Verdict { return e.Tick(x.s.nowMs+15_000, out) })
	}
}

func (x *shadowed) same(t *testing.T, name string, i int, do func(*Engine, []Verdict) []Verdict) {
	t.Helper()
	x.s.verdicts, x.out = do(x.s.e, x.s.verdicts[:0]), do(x.twin, x.out[:0])
	if got, want := whole(x.out), whole(x.s.verdicts); !slices.Equal(got, want) {
		t.Fatalf("%s, batch %d: an engine that was saved and loaded says\n%s\nand one that never was\n%s", name, i, got, want)
	}
}

// whole shows all of each verdict.
func whole(vs []Verdict) []string {
	out := make([]string, 0, len(vs))
	for _, v := range vs {
		if v.Alert == nil {
			out = append(out, fmt.Sprintf("%+v", v))
			continue
		}
		a := *v.Alert
		v.Alert = nil
		out = append(out, fmt.Sprintf("%+v %+v", v, a))
	}
	return out
}

// covered counts, by detector, in how many saved forms its series had something to save.
type covered struct{ state, alerts map[string]int }

func (c *covered) count(e *Engine) {
	for _, q := range e.queries {
		for ri, list := range q.rules {
			for _, s := range list {
				name := e.pack.rules[ri].detector.name()
				if s.tracker != nil && s.tracker.points() > 0 {
					c.state[name]++
				}
				if s.alert != nil {
					c.alerts[name]++
				}
			}
		}
	}
}

// TestASavedEngineSaysWhatOneThatNeverWasSays restarts the engine amid each fault after
// each thirteenth batch, in two of them after each, and compares every verdict to the end,
// annotations and all.
func TestASavedEngineSaysWhatOneThatNeverWasSays(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine; takes long")
	}
	p := wholePack(t)
	c := covered{state: map[string]int{}, alerts: map[string]int{}}
	for name, f := range savedFaults {
		each := 13
		if name == "upload ramp" || name == "spikes" {
			each = 1
		}
		s := newFullStream(New(p, Options{}), 1)
		if f.everyMs > 0 {
			s.everyMs = f.everyMs
		}
		x := &shadowed{s: s, twin: New(p, Options{})}
		for i := range 720 {
			x.step(t, name, f, i)
			if i%each == 0 {
				x.twin = reborn(t, x.twin)
				c.count(x.twin)
			}
		}
	}
	for _, name := range []string{"rising", "above", "shifted", "spiking", "reaches", "follows", "stands"} {
		if c.state[name] == 0 || c.alerts[name] == 0 {
			t.Errorf("%s: had state in %d saved forms and alerts in %d, want some of both", name, c.state[name], c.alerts[name])
		}
	}
	t.Logf("state %v, alerts %v", c.state, c.alerts)
}
