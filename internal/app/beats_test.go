package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
)

// driverRig is a driver whose listener sends everything in envelopes, and heartbeats.
type driverRig struct {
	sender  string
	seq     int
	queries []*stream
	until   []int64 // from this batch on a query says nothing: it hangs, or is gone
	gone    []bool
}

func (d *driverRig) wrap(at time.Time, kind string, body []byte) heard {
	d.seq++
	return heard{at.UnixMilli(), fmt.Appendf(nil, `{"v":1,"sender":%q,"seq":%d,"dropped":0,"at":%q,"app":{"id":"app-1","name":"shop","sparkVersion":"4.1.0"},"type":%q,"event":%s}`,
		d.sender, d.seq, at.Format(sparkTime), kind, body)}
}

// minute plays the n-th minute: a batch of each query that works, and a heartbeat
// before and after.
func (d *driverRig) minute(n int64) (out []heard) {
	for i, s := range d.queries {
		if n < d.until[i] {
			at := s.at().Add(3241 * time.Millisecond)
			out = append(out, d.wrap(at, "progress", bytes.TrimSpace(s.next())))
		}
	}
	for _, second := range []time.Duration{14, 44} {
		at := d.queries[0].start.Add(time.Duration(n)*time.Minute + second*time.Second)
		var active []string
		for i, s := range d.queries {
			if n >= d.until[i] && d.gone[i] {
				continue
			}
			active = append(active, fmt.Sprintf(`{"id":%q,"runId":%q,"triggerActive":%t}`, s.id, s.run, n >= d.until[i]))
		}
		out = append(out, d.wrap(at, "heartbeat", fmt.Appendf(nil, `{"active":[%s],"executors":{"count":4,"cores":16,"losses":0,"gcTimeMs":%d}}`, strings.Join(active, ","), 1000*n)))
	}
	return out
}

// hanging are the events of three drivers: one runs a query that hangs and one that
// goes without a word, one a query that works, and one falls silent with its query.
func hanging(minutes int64) (out []heard) {
	var all []*stream
	for i := range 4 {
		s := newStream(i)
		s.stepMs, s.operators, s.partitions = 60_000, 1, 2
		all = append(all, s)
	}
	drivers := []*driverRig{
		{sender: "1d7ff1a0-9c33-4c5b-8a2f-7e0a6f6b1c11", queries: all[:2], until: []int64{50, 60}, gone: []bool{false, true}},
		{sender: "2d7ff1a0-9c33-4c5b-8a2f-7e0a6f6b1c11", queries: all[2:3], until: []int64{minutes}, gone: []bool{false}},
		{sender: "3d7ff1a0-9c33-4c5b-8a2f-7e0a6f6b1c11", queries: all[3:], until: []int64{minutes}, gone: []bool{false}},
	}
	for n := range minutes {
		for i, d := range drivers {
			if i < 2 || n < 70 {
				out = append(out, d.minute(n)...)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b heard) int { return int(a.atMs - b.atMs) })
	return out
}

// pass lets time pass up to a moment as a running daemon does: the trackers are asked
// every five seconds from a moment on, the rules every fifteen. What is heard at the
// moment of a tick is heard before it.
func (m *mortal) pass(fromMs, toMs int64) {
	m.t.Helper()
	const second = 1000
	m.tickedMs = max(m.tickedMs, fromMs)
	for m.tickedMs+5*second < toMs {
		m.tickedMs += 5 * second
		at := m.tickedMs
		m.now.Store(at)
		m.track()
		if (at-fromMs)%(15*second) == 0 {
			m.app.judge.ask(func() { m.app.judge.drain(); m.app.judge.tick() })
			if m.app.journal != nil {
				m.app.journal.noteNotices()
				m.track()
			}
		}
	}
}

// track tells the trackers what time it is.
func (m *mortal) track() {
	if m.app.journal == nil {
		m.app.ask(m.app.tickShard)
		return
	}
	m.app.journal.sendSafely(m.app.newSplit(stepTick))
}

// TestABacktestOfAHistorySaysWhatTheDaemonSaidOfSilence: a trigger that hangs, a query
// that heartbeats no longer name and a driver that is gone are told by heartbeats, and a
// backtest of what the daemon kept finds each at the time at which the daemon did.
func TestABacktestOfAHistorySaysWhatTheDaemonSaidOfSilence(t *testing.T) {
	said := saysLikeItsHistory(t, hanging(90))
	for _, verdict := range []string{"hung batch", "gone", "dead driver"} {
		if !strings.Contains(said, verdict) {
			t.Errorf("the daemon never said %q:\n%s", verdict, said)
		}
	}
}

// saysLikeItsHistory lets a daemon hear events, and compares what it said with a backtest
// of what it kept.
func saysLikeItsHistory(t *testing.T, events []heard) string {
	t.Helper()
	var now atomic.Int64
	now.Store(events[0].atMs)
	var said []string
	o := testOptions(t)
	o.Now = func() time.Time { return time.UnixMilli(now.Load()) }
	o.TrackEvery, o.JudgeEvery, o.Shards = time.Hour, time.Hour, 3
	o.StoragePath = t.TempDir()
	o.OnAlert = func(v *rules.Verdict) {
		if v.Alert.State == rules.Firing {
			said = append(said, fmt.Sprintf("%s of %s at %s: %s", v.Rule, v.Query.Name, clockTime(v.Alert.FiringAtMs), v.Alert.Annotations.Get("summary")))
		}
	}
	a := start(t, o)
	m := &mortal{t: t, now: &now, app: a}
	for _, e := range events {
		m.pass(events[0].atMs, e.atMs)
		m.hear(e)
	}
	pack, err := LoadRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := replay.Backtest(t.Context(), replay.BacktestOptions{Inputs: replay.Inputs{Paths: []string{replay.HistoryPrefix + o.StoragePath}}, Rules: pack, All: true})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range b.Episodes {
		if e.Firing != nil {
			found = append(found, fmt.Sprintf("%s of %s at %s: %s", e.Alert, e.Query(), clockTime(e.FiringMs), e.Annotations["summary"]))
		}
	}
	slices.Sort(said)
	slices.Sort(found)
	if got, want := strings.Join(found, "\n"), strings.Join(said, "\n"); got != want {
		t.Errorf("the backtest:\n%s\nthe daemon:\n%s", got, want)
	}
	return strings.Join(said, "\n")
}

func clockTime(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.TimeOnly) }

// lives plays events to a daemon and lets time pass between them. What after returns goes
// on with the next event. It returns what the last daemon shows.
func lives(t *testing.T, shards int, events []heard, after func(*mortal, heard) *mortal) string {
	t.Helper()
	return livesOn(t, vfs.NewCrashableMem(), shards, events, after)
}

// livesOn is lives on a disk, or on none.
func livesOn(t *testing.T, disk vfs.FS, shards int, events []heard, after func(*mortal, heard) *mortal) string {
	t.Helper()
	var now atomic.Int64
	now.Store(events[0].atMs)
	m := born(t, disk, &now, shards)
	for _, e := range events {
		m.pass(events[0].atMs, e.atMs)
		m.hear(e)
		m = after(m, e)
	}
	defer m.stop()
	return m.shows()
}

// untouched is a daemon that nothing happens to.
func untouched(m *mortal, _ heard) *mortal { return m }

// reborn is the daemon that starts after a power cut of this moment.
func (m *mortal) reborn(random *rand.Rand, shards int) *mortal {
	next := m.cut(random)
	m.stop()
	return m.followed(next, shards)
}

// followed is the daemon that starts on a disk when this one is gone.
func (m *mortal) followed(disk vfs.FS, shards int) *mortal {
	again := born(m.t, disk, m.now, shards)
	again.tickedMs = m.tickedMs
	return again
}

// survives cuts the power of daemons again and again, once in so many events, has them save
// and read their rules anew as often, and compares the last one with a daemon that nothing
// happened to.
func survives(t *testing.T, events []heard, seeds uint64, once int) {
	t.Helper()
	want := lives(t, 2, events, untouched)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			// What happens when has dice of its own: a cut throws as often as files wait.
			when, random := rand.New(rand.NewPCG(seed, 70)), rand.New(rand.NewPCG(seed, 72))
			cuts := 0
			got := lives(t, 2, events, func(m *mortal, _ heard) *mortal {
				switch when.IntN(once) {
				case 0:
					m.app.journal.save()
				case 1:
					if err := m.app.Reload(); err != nil {
						t.Error(err)
					}
				case 2:
					cuts++
					return m.reborn(random, 1+when.IntN(3))
				}
				return m
			})
			if d := difference(got, want); d != "" {
				t.Errorf("after %d power cuts:\n%s", cuts, d)
			}
		})
	}
}

// TestAPowerCutShowsInNoVerdictOfSilence cuts the power of daemons that judge silence by
// heartbeats.
func TestAPowerCutShowsInNoVerdictOfSilence(t *testing.T) { survives(t, hanging(85), 3, 60) }

// TestARestartJudgesNoSilenceBeforeTheFirstTick cuts the power after each event around
// the moments at which silences become due: a daemon that starts between that moment and
// the tick that would have found it says what one says that lived.
func TestARestartJudgesNoSilenceBeforeTheFirstTick(t *testing.T) {
	events := hanging(65)
	want := lives(t, 2, events, untouched)
	for _, verdict := range []string{"hung batch", "gone"} {
		if !strings.Contains(want, verdict) {
			t.Fatalf("no verdict says %q:\n%s", verdict, want)
		}
	}
	random := rand.New(rand.NewPCG(1, 71))
	got := lives(t, 2, events, func(m *mortal, e heard) *mortal {
		if minute := (e.atMs - events[0].atMs) / time.Minute.Milliseconds(); minute != 53 && minute != 64 {
			return m
		}
		return m.reborn(random, 2)
	})
	if d := difference(got, want); d != "" {
		t.Error(d)
	}
}

// TestAnAlertThatTimeRaisedOutlivesTheNextRestartToo cuts the power right before time
// raises an alert and once more after it. What a daemon has replayed at its start counts as heard
// by all queries, also by those that the log no longer names: else the last heartbeat of
// a driver that died would be heard again after the alert, and would resolve it.
func TestAnAlertThatTimeRaisedOutlivesTheNextRestartToo(t *testing.T) {
	events := hanging(77)
	want := lives(t, 2, events, untouched)
	if !strings.Contains(want, `"activeAt":"2026-03-01T01:13:48.241Z"`) {
		t.Fatalf("no driver is found dead between the cuts:\n%s", want)
	}
	for _, shards := range []int{1, 3} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 73))
			got := lives(t, 2, events, func(m *mortal, e heard) *mortal {
				switch clockTime(e.atMs) {
				case "01:13:44", "01:14:14": // the tick of 01:13:48 finds it
					return m.reborn(random, shards)
				}
				return m
			})
			if d := difference(got, want); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAnAlertThatTimeRaisedIsOnDiskBeforeTheNextLookAtTheClock cuts the power after the
// rules have found a driver dead, and before the trackers look at the clock: the daemon
// that starts then knows the alert as one that has fired already.
func TestAnAlertThatTimeRaisedIsOnDiskBeforeTheNextLookAtTheClock(t *testing.T) {
	events := hanging(77)
	want := lives(t, 2, events, untouched)
	random := rand.New(rand.NewPCG(1, 76))
	got := lives(t, 2, events, func(m *mortal, e heard) *mortal {
		if clockTime(e.atMs) != "01:13:44" || !bytes.Contains(e.line, []byte(`"sender":"2`)) {
			return m
		}
		m.pass(events[0].atMs, e.atMs+4000)
		m.tickedMs = e.atMs + 4241
		m.now.Store(m.tickedMs)
		m.track()
		m.app.judge.ask(m.app.judge.drain)
		before := m.app.journal.store.NextSeq()
		m.app.judge.ask(m.app.judge.tick)
		await(t, "the alert on disk", func() error {
			if m.app.journal.store.NextSeq() == before {
				return errors.New("nothing was saved")
			}
			return nil
		})
		return m.reborn(random, 3)
	})
	if d := difference(got, want); d != "" {
		t.Error(d)
	}
}

// TestAHeartbeatIsJudgedOnceForEachQueryItNames compares daemons of different numbers of
// shards, to each of which every heartbeat goes.
func TestAHeartbeatIsJudgedOnceForEachQueryItNames(t *testing.T) {
	events := hanging(3)
	asked := func(shards int) string {
		var now atomic.Int64
		now.Store(events[0].atMs)
		m := born(t, nil, &now, shards)
		defer m.stop()
		for _, e := range events {
			m.hear(e)
		}
		return fmt.Sprint(value(t, scrape(t, m.app), "stategauge_rule_evaluations_total", "rule", "QueryHung"))
	}
	if one, four := asked(1), asked(4); one != four || one == "0" {
		t.Errorf("QueryHung was judged %s times with one shard, %s times with four", one, four)
	}
}

// TestADaemonThatCannotWaitForItsPartsSavesNothing stops a daemon one part of which does not
// end in time: what it knows is not saved half done, and the log tells the next one.
func TestADaemonThatCannotWaitForItsPartsSavesNothing(t *testing.T) {
	events := hanging(55)
	want := lives(t, 2, events, untouched)
	told := 0
	got := lives(t, 2, events, func(m *mortal, _ heard) *mortal {
		if told++; told != 200 {
			return m
		}
		_ = m.app.ended(context.DeadlineExceeded)
		next := m.cut(rand.New(rand.NewPCG(1, 74)))
		if err := m.app.Stop(); err == nil || !strings.Contains(err.Error(), "state is not saved") {
			t.Errorf("stop: %v", err)
		}
		return m.followed(next, 2)
	})
	if d := difference(got, want); told < 200 || d != "" {
		t.Error(d)
	}
}
