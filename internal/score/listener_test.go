package score

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator/spark"
)

// spanOfRun is a time that begins and ends, Unix milliseconds; the end is no part of it.
type spanOfRun struct {
	run        event.RunID
	fromMs, to int64
}

// told is what a query of a world does: its batches, and its runs.
type told struct{ batches, runs []spanOfRun }

// queriesTold makes the queries of a world without a listener.
func queriesTold(w *world, batches int64) map[event.QueryID]*told {
	out := map[event.QueryID]*told{}
	for _, q := range w.queries {
		x := &told{}
		out[q.ref.ID] = x
		for range batches {
			for _, u := range q.next() {
				switch e := u.Event; u.Outcome {
				case event.OutcomeStarted:
					x.runs = append(x.runs, spanOfRun{e.Run, e.AtMs, never})
				case event.OutcomeTerminated:
					x.runs[len(x.runs)-1].to = e.AtMs
				default:
					x.batches = append(x.batches, spanOfRun{e.Run, e.Batch.StartMs, e.Batch.EndMs()})
				}
			}
		}
	}
	return out
}

// at is the span that a moment lies in; nil: none.
func at(list []spanOfRun, ms int64) *spanOfRun {
	for i := range list {
		if list[i].fromMs <= ms && ms < list[i].to {
			return &list[i]
		}
	}
	return nil
}

// halfway is the moment half an interval behind the one in which batch n+1 is due, where
// nothing pauses.
func halfway(w *world, n int64) int64 { return healthyStartMs + (n+1)*w.every + w.every/2 }

// slowDonor is a healthy query with batches of so many milliseconds.
func slowDonor(t testing.TB, tookMs float64) []*donor {
	t.Helper()
	d, ok := donorOf(280, flat(1000), flat(10), func(i int) float64 { return tookMs * (1 + 0.01*float64(i%7)) })
	if !ok {
		t.Fatal("no donor")
	}
	return []*donor{d}
}

func TestHeartbeatsComeAtTheirRhythmAndNameTheRunAndTheTriggerThatIsActive(t *testing.T) {
	for _, c := range []struct {
		every, batches int64
		tookMs         float64
	}{{10_000, 300, 2000}, {60_000, 300, 20_000}, {900_000, 1200, 300_000}} {
		t.Run(time.Duration(c.every*1e6).String(), func(t *testing.T) {
			donors, pack := slowDonor(t, c.tookMs), packOf(t, "groups: []")
			want := queriesTold(newWorld(pack, donors, c.every, 1, 3, false), c.batches)
			w := newWorld(pack, donors, c.every, 1, 3, true)
			l := w.listener
			w.begin()
			firstMs, lastMs := w.nextMs(), int64(0)
			active, idle, runs := 0, 0, map[event.RunID]bool{}
			for end := halfway(w, c.batches-2); w.nextMs() < end; {
				seq := l.envelope.Seq
				w.step()
				if l.envelope.Seq == seq {
					continue
				}
				e := &l.envelope
				if gap := e.AtMs - max(lastMs, firstMs); gap < spark.HeartbeatMs-beatJitterMs || gap > spark.HeartbeatMs+beatJitterMs {
					t.Fatalf("heartbeat %d comes %d ms behind the one before, or the first start", e.Seq, gap)
				}
				lastMs = e.AtMs
				if e.Seq != seq+1 || l.event.AtMs != e.AtMs || l.update.Origin.ReceivedMs != e.AtMs {
					t.Fatalf("heartbeat %d after %d, at %d, received at %d", e.Seq, seq, e.AtMs, l.update.Origin.ReceivedMs)
				}
				named := map[event.QueryID]event.ActiveQuery{}
				for _, a := range e.Active {
					named[a.ID] = a
				}
				for id, x := range want {
					a, is := named[id]
					run := at(x.runs, e.AtMs)
					if is != (run != nil) || is && a.Run != run.run {
						t.Fatalf("heartbeat at %d names %s with run %q, want %+v", e.AtMs, id, a.Run, run)
					}
					if busy := at(x.batches, e.AtMs) != nil; a.TriggerActive != busy {
						t.Fatalf("heartbeat at %d says that a trigger of %s is active: %t", e.AtMs, id, a.TriggerActive)
					}
					active, idle = active+one(a.TriggerActive), idle+one(!a.TriggerActive)
					runs[a.Run] = true
				}
			}
			if active == 0 || idle == 0 || c.every == 900_000 && len(runs) < 2 {
				t.Errorf("%d times active, %d times idle, %d runs: this tells nothing", active, idle, len(runs))
			}
		})
	}
}

// Whatever the engine hears in such a world, it hears when it happens.
func TestAListenersWorldTellsTheSameBatchesInTheOrderOfTime(t *testing.T) {
	const every, batches = 60_000, 400
	pack := packOf(t, "groups: []")
	want := queriesTold(newWorld(pack, slowDonor(t, 20_000), every, 1, 3, false), batches)
	w := newWorld(pack, slowDonor(t, 20_000), every, 1, 3, true)
	w.begin()
	lastMs, heard := int64(0), map[event.QueryID]int{}
	for w.nextMs() < halfway(w, batches-2) {
		i, atMs := w.first()
		if now := w.nextMs(); now < lastMs {
			t.Fatalf("time goes back from %d to %d", lastMs, now)
		} else if lastMs = now; now == atMs && w.turns[i].left[0].Outcome == event.OutcomeExecuted {
			b := w.turns[i].left[0].Event.Batch
			x := want[b.Query.ID].batches[heard[b.Query.ID]]
			if b.StartMs != x.fromMs || b.EndMs() != x.to || atMs != x.to || b.Run != x.run {
				t.Fatalf("batch %d of %s: %d to %d, heard at %d, want %+v", b.ID, b.Query.ID, b.StartMs, b.EndMs(), atMs, x)
			}
			heard[b.Query.ID]++
		}
		w.step()
	}
	all := 0
	for _, n := range heard {
		all += n
	}
	if w.batches != int64(all) || len(heard) != worldQueries || all < batches*worldQueries*98/100 {
		t.Errorf("%d batches, heard %v", w.batches, heard)
	}
}

func TestHalfOfTheWorldsHaveAListenerAndFewerAtLongTriggers(t *testing.T) {
	count := func(every int64) (n int) {
		for i := range 40 {
			if n += one(listens(i, every)); listens(i, every) && i%peerShare == 0 {
				t.Errorf("world %d has a listener, and peers judge it", i)
			}
		}
		return n
	}
	if a, b, c := count(10_000), count(60_000), count(900_000); a != 20 || b != 20 || c != 10 {
		t.Errorf("%d, %d and %d of 40", a, b, c)
	}
}

func TestAHealthyWorldWithAListenerPagesNobody(t *testing.T) {
	pack := wholePack(t)
	for _, c := range []struct {
		every  int64
		tookMs float64
	}{{10_000, 2000}, {60_000, 20_000}, {900_000, 300_000}} {
		w := newWorld(pack, slowDonor(t, c.tookMs), c.every, 1, 3, true)
		part, err := w.run(t.Context(), 1000)
		if err != nil || !part.Listened || part.Batches != 1000*worldQueries {
			t.Fatalf("%+v, error %v", part, err)
		}
		if beats := w.listener.envelope.Seq + 1; beats < 1000*c.every/spark.HeartbeatMs*9/10 {
			t.Errorf("each %d ms: only %d heartbeats", c.every, beats)
		}
		if took := float64(part.LongestMs); took < c.tookMs || took > float64(c.every)+longestPauseMs {
			t.Errorf("each %d ms: the longest batch takes %d ms", c.every, part.LongestMs)
		}
		if part.By["page"] != 0 || part.Rules["QueryHung"] != 0 {
			t.Errorf("each %d ms: %v", c.every, part.Rules)
		}
	}
}

// hang plays a world up to a batch, which then never ends, and returns what QueryHung says
// within so many intervals of it.
func hang(t *testing.T, w *world, intervals int64) (said []rules.Verdict, hungMs int64) {
	t.Helper()
	w.begin()
	w.until(halfway(w, 200))
	victim := &w.turns[2]
	for victim.busyMs > w.nextMs() {
		w.step()
	}
	victim.atMs = never
	hungMs = w.nextMs()
	for w.nextMs() < hungMs+intervals*w.every {
		w.step()
		for _, v := range w.verdicts {
			if v.Rule == "QueryHung" && v.Alert != nil && v.Alert.State == rules.Firing {
				kept := v
				alert := *v.Alert
				kept.Alert = &alert
				said = append(said, kept)
			}
		}
	}
	return said, hungMs
}

func TestABatchThatHangsInAWorldWithAListenerIsFound(t *testing.T) {
	pack := wholePack(t)
	for _, c := range []struct {
		every     int64
		tookMs    float64
		intervals int64
	}{{10_000, 2000, 30}, {60_000, 5000, 8}, {900_000, 60_000, 4}} {
		t.Run(fmt.Sprint(c.every), func(t *testing.T) {
			w := newWorld(pack, slowDonor(t, c.tookMs), c.every, 1, 3, true)
			said, hungMs := hang(t, w, c.intervals)
			if len(said) == 0 {
				t.Fatal("nothing was found")
			}
			for _, v := range said {
				if id := w.queries[2].ref.ID; v.Query.ID != id || !strings.Contains(v.Alert.Annotations.Get("summary"), "hung batch") {
					t.Errorf("%s %s, want a hung batch of %s", v.Query.ID, v.Alert.Annotations.Get("summary"), id)
				}
			}
			if late := said[0].Alert.FiringAtMs - hungMs; late < 60_000 {
				t.Errorf("found after %d ms", late)
			}
			if w.rules["QueryHung"] == 0 || w.by["page"] == 0 {
				t.Errorf("it was not counted: %v", w.rules)
			}
		})
	}
}

func TestTheReportSaysForHowLongHeartbeatsWereJudged(t *testing.T) {
	o := Options{FirstSeed: 5}.withDefaults()
	e, err := runnerForTest(t, o, packOf(t, trigger1)).healthy(t.Context(), HealthyRun{time.Minute, 2 * worldQueries * worldBatches / 100}, []*donor{donorForTest(t)}, 0)
	if err != nil || e.ListenedDays != 0 {
		t.Errorf("%v query-days of the first world, error %v", e.ListenedDays, err)
	}
	e.take(&worldPart{Batches: 14_400, Listened: true, LongestMs: 12_000}, 60_000)
	e.take(&worldPart{Batches: 14_400, Listened: true, LongestMs: 31_000}, 60_000)
	e.take(&worldPart{Batches: 14_400}, 60_000)
	r := &Report{Healthy: []Exposure{e}}
	if text := r.listened(); !strings.HasPrefix(text, "Half of the clusters made have a listener that sends heartbeats, one in 4 at triggers above 5 minutes, where heartbeats are most of the work: 20 query-days at 1m (the longest batch: 31 s). ") {
		t.Error(text)
	}
	if text := (&Report{Healthy: []Exposure{{Source: "made", QueryDays: 1}}}).listened(); text != "" {
		t.Errorf("without a listener: %s", text)
	}
}

func TestAQueryIsNotNamedBetweenTwoRuns(t *testing.T) {
	w := newWorld(packOf(t, "groups: []"), slowDonor(t, 300_000), 900_000, 1, 3, true)
	l := w.listener
	w.begin()
	for w.nextMs() < halfway(w, 1998) {
		i, atMs := w.first()
		x := &w.turns[i]
		ends := atMs == w.nextMs() && x.left[0].Outcome == event.OutcomeTerminated
		w.step()
		if !ends {
			continue
		}
		l.dueMs = atMs
		w.step()
		for _, a := range l.envelope.Active {
			if a.ID == x.query.ref.ID {
				t.Fatalf("%+v is named, and its run has ended", a)
			}
		}
		return
	}
	t.Error("no query was restarted")
}
