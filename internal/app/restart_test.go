package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// heard is one event on its way to a daemon.
type heard struct {
	atMs int64
	line []byte
}

// simulated plays scenarios side by side and returns their events in order of time.
func simulated(t *testing.T, batches int64, names ...string) []heard {
	t.Helper()
	var out []heard
	for i, name := range names {
		data, err := fs.ReadFile(configs.Scenarios(), name+".yml")
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Load(name, data)
		if err != nil {
			t.Fatal(err)
		}
		s, err := simulator.New(sc, simulator.Options{Seed: uint64(i + 1), Batches: batches})
		if err != nil {
			t.Fatal(err)
		}
		for {
			m, err := s.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, heard{m.AtMs, bytes.Clone(m.Data)})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(out, func(a, b heard) int { return int(a.atMs - b.atMs) })
	return out
}

// mortal is a daemon on a clock of the test's, with a disk that forgets at a power
// cut what was not synced.
type mortal struct {
	t   *testing.T
	now *atomic.Int64
	fs  vfs.FS
	app *App

	tickedMs int64 // when pass let it tick last
}

func born(t *testing.T, fs vfs.FS, now *atomic.Int64, shards int) *mortal {
	t.Helper()
	o := testOptions(t)
	o.Now = func() time.Time { return time.UnixMilli(now.Load()) }
	o.TrackEvery, o.JudgeEvery, o.SaveEvery = time.Hour, time.Hour, time.Hour // the test does
	o.Shards = shards
	if fs != nil {
		o.StoragePath, o.StorageFS = "history", fs
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	a.judge.ask(func() {}) // the rules' clock has started, at this moment
	return &mortal{t: t, now: now, fs: fs, app: a}
}

// hear posts one event and lets the rules judge it.
func (m *mortal) hear(e heard) {
	m.t.Helper()
	m.now.Store(e.atMs)
	if code, got := post(m.t, m.app, e.line); code != http.StatusOK || got.Accepted != 1 {
		m.t.Fatalf("status %d, %+v", code, got)
	}
	m.app.judge.ask(m.app.judge.drain)
}

// cut is the disk as a power cut at this moment leaves it. The daemon goes on, on a
// disk that nobody reads any more.
func (m *mortal) cut(random *rand.Rand) vfs.FS {
	return m.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: random})
}

func (m *mortal) stop() {
	m.t.Helper()
	if err := m.app.Stop(); err != nil {
		m.t.Errorf("stop: %v", err)
	}
}

// shows is everything that must not tell of a restart: the queries' series, the
// verdicts with their numbers, the alerts.
func (m *mortal) shows() string {
	m.t.Helper()
	m.app.judge.ask(m.app.judge.tick) // rules of many queries are judged when time passes
	_, page := get(m.t, m.app, "/metrics")
	var out []string
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "spark_") {
			out = append(out, line)
		}
	}
	slices.Sort(out) // queries stand in the order in which this process met them
	_, verdicts := get(m.t, m.app, "/api/v1/rules")
	_, alerts := get(m.t, m.app, "/api/v1/alerts")
	return strings.Join(append(out, judgements(m.t, verdicts, alerts)...), "\n")
}

// judgements are what the API says of each rule and subject and of each alert, one a
// line and sorted: subjects too stand in the order of their first word.
func judgements(t *testing.T, verdicts, alerts string) []string {
	t.Helper()
	var said struct {
		Data struct {
			Groups []struct {
				Rules []struct {
					Name       string
					Judgements []json.RawMessage
				}
			}
			Alerts []json.RawMessage
		}
	}
	for _, text := range []string{verdicts, alerts} {
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for _, g := range said.Data.Groups {
		for _, r := range g.Rules {
			for _, v := range r.Judgements {
				out = append(out, r.Name+" "+string(v))
			}
		}
	}
	for _, al := range said.Data.Alerts {
		out = append(out, string(al))
	}
	slices.Sort(out)
	return out
}

// unharmed is what a daemon shows in the end that hears everything and to which nothing
// happens.
func unharmed(t *testing.T, events []heard) string {
	t.Helper()
	var now atomic.Int64
	now.Store(events[0].atMs)
	calm := born(t, nil, &now, 2)
	for _, e := range events {
		calm.hear(e)
	}
	defer calm.stop()
	return calm.shows()
}

// difference is what only one of two lists of lines has, some of it.
func difference(got, want string) string {
	count := map[string]int{}
	for _, line := range strings.Split(got, "\n") {
		count[line]++
	}
	for _, line := range strings.Split(want, "\n") {
		count[line]--
	}
	var out []string
	for line, n := range count {
		switch {
		case n > 0:
			out = append(out, fmt.Sprintf("%.400s (only here)", line))
		case n < 0:
			out = append(out, fmt.Sprintf("%.400s (missing)", line))
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 12)], "\n")
}

// TestAPowerCutShowsInNoSeriesVerdictOrAlert cuts the power of daemons again and
// again while queries go through a fault, a restart and a steady time. State is
// saved in between now and then. In the end the last daemon says what one says that
// nothing ever happened to.
func TestAPowerCutShowsInNoSeriesVerdictOrAlert(t *testing.T) {
	batches := int64(150)
	if raced {
		batches = 25 // the simulator is slow under the race detector
	}
	events := simulated(t, batches, "commit-sync-rising", "redeploys", "steady-join")
	var now atomic.Int64
	want := unharmed(t, events)
	if !strings.Contains(want, "spark_streaming_") || !strings.Contains(want, `"state"`) {
		t.Fatalf("nothing to compare:\n%.2000s", want)
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			now.Store(events[0].atMs)
			var disk vfs.FS = vfs.NewCrashableMem()
			cuts := 0
			m := born(t, disk, &now, 2)
			for _, e := range events {
				m.hear(e)
				switch random.IntN(100) {
				case 0:
					m.app.journal.save()
				case 1:
					next := m.cut(random)
					m.stop()
					m = born(t, next, &now, 1+random.IntN(3))
					cuts++
				}
			}
			if got := m.shows(); got != want {
				if d := difference(got, want); d != "" {
					t.Errorf("after %d power cuts:\n%s", cuts, d)
				}
			}
			t.Logf("%d events, %d power cuts", len(events), cuts)
			m.stop()
		})
	}
}

// TestAClockThatJumpsIsNobodysSilence sets the machine's clock back by an hour and then
// forward by a day, with a restart after each: nothing is counted twice, nothing
// resolved, nobody found silent.
func TestAClockThatJumpsIsNobodysSilence(t *testing.T) {
	m, s, now := remembering(t, vfs.NewCrashableMem())
	random := rand.New(rand.NewPCG(1, 1))
	for _, jump := range []time.Duration{-time.Hour, 24 * time.Hour} {
		for i := range 30 {
			e := heard{s.at().Add(jump).UnixMilli(), s.next()}
			m.hear(e)
			if i%10 == 0 {
				m.app.journal.sendSafely(m.app.newSplit(stepTick))
				m.app.judge.ask(m.app.judge.tick)
			}
		}
		m.app.journal.save()
		next := m.cut(random)
		m.stop()
		m = born(t, next, now, 2)
	}
	defer m.stop()
	families := scrape(t, m.app)
	if got := value(t, families, "spark_streaming_batches_total", "query_id", s.id); got != 270 {
		t.Errorf("%g batches counted, want 270", got)
	}
	_, alerts := get(t, m.app, "/api/v1/alerts")
	for _, silent := range []string{`"symptom":"stalled"`, `"symptom":"sender-lost"`} {
		if strings.Contains(alerts, silent) {
			t.Errorf("the clock's jump raised %s: %s", silent, alerts)
		}
	}
	_, queries := get(t, m.app, "/api/v1/queries")
	if !strings.Contains(queries, `"state":"running"`) {
		t.Errorf("the query is no longer running: %s", queries)
	}
}

// TestABacktestOfAHistoryFindsWhatTheDaemonHeard keeps events on a real disk, and lets
// a backtest read them there while the daemon runs.
func TestABacktestOfAHistoryFindsWhatTheDaemonHeard(t *testing.T) {
	var events []heard
	for i := range 2 {
		s := newStream(i)
		s.stepMs = 60_000
		for n := range 80 {
			if i == 1 && n == 45 {
				s.fileSyncMs *= 4
			}
			events = append(events, heard{s.at().UnixMilli() + int64(i), bytes.Clone(s.next())})
		}
	}
	slices.SortStableFunc(events, func(a, b heard) int { return int(a.atMs - b.atMs) })
	var now atomic.Int64
	now.Store(events[0].atMs)
	o := testOptions(t)
	o.RuleFiles = []string{t.TempDir() + "/durable.yaml"}
	rewrite(t, o.RuleFiles[0], durableRules)
	o.Now = func() time.Time { return time.UnixMilli(now.Load()) }
	o.TrackEvery, o.JudgeEvery = time.Hour, time.Hour
	o.StoragePath = t.TempDir()
	a := start(t, o)
	m := &mortal{t: t, now: &now, app: a}
	var file bytes.Buffer
	for _, e := range events {
		m.hear(e)
		file.Write(append(bytes.TrimSpace(e.line), '\n'))
	}
	pack, err := LoadRules(o.RuleFiles)
	if err != nil {
		t.Fatal(err)
	}
	episodes := func(in replay.Inputs) string {
		b, err := replay.Backtest(t.Context(), replay.BacktestOptions{Inputs: in, Rules: pack})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, e := range b.Episodes {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(append(line, '\n'))
		}
		return out.String()
	}
	got, want := episodes(replay.Inputs{Paths: []string{replay.HistoryPrefix + o.StoragePath}}), episodes(replay.Inputs{Stdin: &file})
	if got != want || want == "" {
		t.Errorf("from the history:\n%s\nfrom the events:\n%s", got, want)
	}
}
