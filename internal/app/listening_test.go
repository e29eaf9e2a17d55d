package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/rules"
)

const silenceRules = `groups:
  - name: silence
    rules:
      - alert: Silent
        silent: {with: record, factor: 3, at_least: 20m}
        labels: {severity: page, symptom: stalled}
        annotations: {summary: silent}
`

// stalls is a daemon that listens to queries of which one falls silent, and when its
// alert fired and ended.
type stalls struct {
	t    *testing.T
	now  atomic.Int64
	from int64
	file string
	m    *mortal
	said []string
}

func newStalls(t *testing.T) *stalls {
	s := &stalls{t: t, from: newStream(0).start.UnixMilli(), file: t.TempDir() + "/silence.yaml"}
	rewrite(t, s.file, silenceRules)
	s.now.Store(s.from)
	s.live(vfs.NewCrashableMem())
	return s
}

// live starts a daemon on a disk.
func (s *stalls) live(disk vfs.FS) {
	s.t.Helper()
	o := testOptions(s.t)
	o.Now = func() time.Time { return time.UnixMilli(s.now.Load()) }
	o.TrackEvery, o.SaveEvery, o.JudgeEvery = 5*time.Second, 24*time.Hour, 15*time.Second
	o.Speed = 1e-4 // the test lets time pass
	o.Shards, o.RuleFiles = 2, []string{s.file}
	o.StoragePath, o.StorageFS = "history", disk
	o.OnAlert = func(v *rules.Verdict) {
		s.said = append(s.said, fmt.Sprintf("%s of %s %s at minute %.1f", v.Rule, v.Query.Name, v.Alert.State, float64(s.now.Load()-s.from)/60_000))
	}
	a, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	a.Start()
	s.m = &mortal{t: s.t, now: &s.now, fs: disk, app: a}
}

// hear sends a batch of each stream every minute, up to a minute.
func (s *stalls) hear(minute int64, streams ...*stream) {
	for streams[0].batch < minute {
		for _, x := range streams {
			at := x.at().UnixMilli()
			s.m.pass(s.from, at)
			s.m.hear(heard{at, bytes.Clone(x.next())})
		}
	}
}

// pass lets time pass up to a minute.
func (s *stalls) pass(minute int64) { s.m.pass(s.from, s.from+minute*60_000) }

// down ends the daemon by a power cut and starts another so many minutes later.
func (s *stalls) down(minutes int64) {
	s.t.Helper()
	disk := s.m.cut(rand.New(rand.NewPCG(1, uint64(minutes))))
	s.m.stop()
	s.now.Add(minutes * 60_000)
	s.live(disk)
	s.m.app.judge.ask(func() {}) // it has looked at the clock
}

// TestAStallIsFoundAfterAKillWhenItWouldHaveBeenFoundWithoutOne kills daemons while a query
// is silent, long after anything was saved of it. Silence counts from the last event that
// the log holds; only the time in which no daemon listened is nobody's.
func TestAStallIsFoundAfterAKillWhenItWouldHaveBeenFoundWithoutOne(t *testing.T) {
	quiet, other := func() *stream { return slow(newStream(0)) }, func() *stream { return slow(newStream(1)) }
	for _, c := range []struct {
		name string
		play func(s *stalls)
		want int64 // minutes after the time without a kill
	}{
		{"no kill", func(s *stalls) { s.hear(40, quiet()) }, 0},
		{"killed after nine minutes, alone, and never saved", func(s *stalls) {
			s.hear(40, quiet())
			s.pass(48)
			s.down(0)
		}, 0},
		{"killed after nine minutes, saved before its last events", func(s *stalls) {
			x := quiet()
			s.hear(37, x)
			s.m.app.journal.save()
			s.hear(40, x)
			s.pass(48)
			s.down(1)
		}, 0},
		{"killed again and again", func(s *stalls) {
			s.hear(40, quiet())
			for minute := int64(42); minute < 58; minute += 3 {
				s.pass(minute)
				s.down(1)
			}
		}, 0},
		{"down for an hour", func(s *stalls) {
			s.hear(40, quiet())
			s.m.app.journal.save()
			s.pass(48)
			s.down(60)
		}, 60},
		{"down for an hour, and killed again before anything was saved", func(s *stalls) {
			s.hear(40, quiet())
			s.m.app.journal.save()
			s.pass(48)
			s.down(60)
			s.pass(110)
			s.down(0)
		}, 60},
		{"down twice, the other query saved between", func(s *stalls) {
			x, y := quiet(), other()
			s.hear(40, x, y)
			s.m.app.journal.save()
			s.pass(48)
			s.down(60)
			y.start = y.start.Add(70 * time.Minute)
			s.hear(42, y)
			s.m.app.journal.save()
			s.pass(112)
			s.down(30)
		}, 90},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStalls(t)
			defer func() { s.m.stop() }()
			c.play(s)
			s.pass(59 + c.want)
			want := fmt.Sprintf("Silent of orders_0 firing at minute %.1f", 59.2+float64(c.want))
			if got := strings.Join(s.said, "\n"); got != "" {
				t.Errorf("too early: %s", got)
			}
			s.pass(70 + c.want)
			if len(s.said) < 2 || s.said[1] != want {
				t.Errorf("%q, want %q", s.said, want)
			}
		})
	}
}

func slow(s *stream) *stream {
	s.stepMs, s.operators, s.partitions = 60_000, 1, 2
	return s
}

// TestWhatTimeMovesLeavesAPauseToTheNextTick: the trackers find a pause with their tick, and
// what they save before it does not hold the pause yet.
func TestWhatTimeMovesLeavesAPauseToTheNextTick(t *testing.T) {
	for _, c := range []struct {
		what            string
		clockMs, atMs   int64
		states, wantsMs int64
	}{
		{"before the first tick", 0, 5_000_000, 0, 0},
		{"between two ticks", 5_000_000, 5_003_000, 1, 5_003_000},
		{"as of an older look at the clock", 5_000_000, 4_999_000, 0, 5_000_000},
		{"when the process wakes", 5_000_000, 5_000_000 + pauseFrom.Milliseconds(), 0, 5_000_000},
	} {
		l := listening{clockMs: c.clockMs}
		if got := l.moved(c.atMs); int64(len(got)) != c.states || l.clockMs != c.wantsMs || len(l.pauses) != 0 {
			t.Errorf("%s: %d states, clock at %d ms, %d pauses", c.what, len(got), l.clockMs, len(l.pauses))
		}
	}
}
