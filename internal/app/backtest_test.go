package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
)

// quickRules find slow uploads and slow batches within some twenty batches, so that
// a short test sees alerts pend, fire, be inhibited, take a severity over, resolve.
const quickRules = `
signals:
  upload: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}
  duration: {of: query, value: duration_ms / 1000, unit: seconds}
groups:
  - name: trends
    rules:
      - alert: UploadSlower
        signal: upload
        rising: {over: 40 batches, min_points: 20, by: 25%, at_least: 10ms}
        for: 4 batches
        keep_firing_for: 5 batches
        labels: {severity: ticket, symptom: commit-sync-rising}
      - alert: BatchSlower
        signal: duration
        rising: {over: 40 batches, min_points: 20, by: 25%, at_least: 100ms}
        for: 12 batches
        keep_firing_for: 5 batches
        labels: {severity: page, symptom: duration-rising}
      - alert: UploadsSlowEverywhere
        fleet: {of: UploadSlower, queries: 2, share: 50%}
        for: 1m
        labels: {severity: page, symptom: checkpoint-store-slow}
inhibit:
  - causes: [commit-sync-rising]
    consequences: [duration-rising]
`

// spoken is one event with the time at which it leaves its query.
type spoken struct {
	at   time.Time
	line []byte
}

// twoTroubledQueries write slow uploads for a while, one later than the other, and
// then one of them says nothing for a quarter of an hour.
func twoTroubledQueries() []spoken {
	var out []spoken
	for q := 1; q <= 2; q++ {
		s := newStream(q)
		s.operators = 1
		s.start = s.start.Add(time.Duration(q) * 3 * time.Second)
		for n := range 420 {
			s.fileSyncMs, s.addBatchMs = 6400+int64(n*7%50), 3000+int64(n*7%50)
			if n > 190+10*q && n < 320 {
				s.fileSyncMs, s.addBatchMs = 4*s.fileSyncMs, 2*s.addBatchMs
			}
			s.batch = int64(n)
			if q == 2 && n > 380 {
				s.start = s.start.Add(15 * time.Minute)
				n = 1000
			}
			at := s.at().Add(time.Duration(s.addBatchMs+241) * time.Millisecond)
			out = append(out, spoken{at, bytes.Clone(s.next())})
			if n == 1000 {
				break
			}
		}
	}
	slices.SortStableFunc(out, func(a, b spoken) int { return a.at.Compare(b.at) })
	return out
}

// fired is what both sides must agree on.
type fired struct {
	Labels                    map[string]string
	Pending, Firing, Resolved int64
	Inhibited                 string
	First, FiringBatch        int64
}

// served collects what the daemon's engine fires, looking after each event and tick.
type served struct {
	list []*fired
	live map[string]*fired
}

func (s *served) look(alerts []rules.Alert, nowMs int64) {
	seen := map[string]bool{}
	for i := range alerts {
		al := &alerts[i]
		if al.State != rules.Firing {
			continue
		}
		labels := map[string]string{}
		for _, l := range al.Labels {
			labels[l.Name] = l.Value
		}
		severity := labels["severity"]
		delete(labels, "severity")
		key := fmt.Sprint(labels)
		labels["severity"] = severity
		seen[key] = true
		f := s.live[key]
		if f == nil {
			f = &fired{Pending: al.PendingAtMs, Firing: al.FiringAtMs, Inhibited: al.InhibitedBy, First: al.FirstBatch, FiringBatch: al.FiringBatch, Resolved: event.Absent}
			s.live[key] = f
			s.list = append(s.list, f)
		}
		f.Labels = labels
	}
	for key, f := range s.live {
		if !seen[key] {
			f.Resolved = nowMs
			delete(s.live, key)
		}
	}
}

// serve plays the events to a daemon over HTTP, on a clock that moves as a
// backtest's does.
func serve(t *testing.T, ruleFiles []string, shards int, events []spoken) []*fired {
	t.Helper()
	var now atomic.Int64
	o := testOptions(t)
	o.RuleFiles, o.Shards = ruleFiles, shards
	o.TrackEvery, o.JudgeEvery = time.Hour, time.Hour // the test ticks
	o.Now = func() time.Time { return time.UnixMilli(now.Load()) }
	now.Store(events[0].at.UnixMilli())
	a := start(t, o)
	got := &served{live: map[string]*fired{}}
	began := now.Load()
	look := func(tick bool) {
		if !a.judge.ask(func() {
			a.judge.drain()
			if tick {
				a.judge.tick()
			}
			got.look(a.judge.engine.Alerts(nil), now.Load())
		}) {
			t.Fatal("the rules have stopped")
		}
	}
	for _, e := range events {
		for at := now.Load() + 1; at < e.at.UnixMilli(); at++ {
			if since := at - began; since%replay.TrackEveryMs == 0 {
				now.Store(at)
				a.ask(a.tickShard)
				look(since%replay.JudgeEveryMs == 0)
			}
		}
		now.Store(e.at.UnixMilli())
		if code, answer := post(t, a, e.line); code != 200 || answer.Accepted != 1 {
			t.Fatalf("status %d, %+v", code, answer)
		}
		look(false)
	}
	return got.list
}

func TestABacktestFiresWhatTheDaemonFires(t *testing.T) {
	ruleFile := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(ruleFile, []byte(quickRules), 0o600); err != nil {
		t.Fatal(err)
	}
	// Two alerts per query and one of both.
	if n := firesAlike(t, []string{ruleFile}, 2, twoTroubledQueries()); n != 5 {
		t.Errorf("%d alerts fired, want 5", n)
	}
}

func TestABacktestOfBadHoursFiresWhatADaemonOfSeveralShardsFires(t *testing.T) {
	var events []spoken
	for _, e := range badHours(125) {
		events = append(events, spoken{time.UnixMilli(e.atMs), e.line})
	}
	if n := firesAlike(t, nil, 3, events); n < 10 {
		t.Errorf("%d alerts fired, want many", n)
	}
}

// firesAlike compares what a daemon fires with what a backtest of the same events does,
// and returns how many alerts those are.
func firesAlike(t *testing.T, ruleFiles []string, shards int, events []spoken) int {
	t.Helper()
	want := serve(t, ruleFiles, shards, events)
	var text bytes.Buffer
	for _, e := range events {
		text.Write(append(bytes.TrimSpace(e.line), '\n'))
	}
	pack, err := LoadRules(ruleFiles)
	if err != nil {
		t.Fatal(err)
	}
	b, err := replay.Backtest(t.Context(), replay.BacktestOptions{Inputs: replay.Inputs{Stdin: &text}, Rules: pack, All: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []*fired
	for _, e := range b.Episodes {
		f := &fired{Labels: e.Labels, Pending: e.PendingMs, Firing: e.FiringMs, Resolved: e.ResolvedMs, First: -1, FiringBatch: e.FiringBatch}
		if e.FirstBatch != nil {
			f.First = *e.FirstBatch
		}
		if e.InhibitedBy != nil {
			f.Inhibited = *e.InhibitedBy
		}
		got = append(got, f)
	}
	for _, list := range [][]*fired{want, got} {
		slices.SortFunc(list, func(x, y *fired) int {
			return bytes.Compare(fmt.Append(nil, x.Firing, x.Labels), fmt.Append(nil, y.Firing, y.Labels))
		})
		for _, f := range list {
			// A batch that resolves an alert is dated by its trigger, some seconds before
			// it was heard; the daemon's side notes the latter.
			f.Resolved = (f.Resolved - f.Firing) / 20_000
			if f.Labels["query_id"] == "" {
				f.FiringBatch = -1 // a backtest fills in the newest batch of the members
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("daemon - backtest +:\n%s", diff)
	}
	return len(want)
}
