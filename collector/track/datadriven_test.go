package track

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
)

// epoch is the moment 0 of every test stream.
const epoch = int64(1_800_000_000_000)

// TestStreams plays the streams under testdata. A line of an "events" command is
// `<our time> <kind> key=value...`; times are durations since the epoch. Keys:
// q, run, name, app, batch, at (default: our time), dur, rows, rate, fail, seq,
// dropped, sender, active. Each update is printed in short.
func TestStreams(t *testing.T) {
	datadriven.Walk(t, "testdata/streams", func(t *testing.T, path string) {
		var tr *Tracker
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if tr == nil || d.Cmd == "new" {
				tr = New(configOf(t, d), perfect{})
			}
			return play(t, tr, d)
		})
	})
}

func configOf(t *testing.T, d *datadriven.TestData) Config {
	c := DefaultConfig()
	if d.Cmd != "new" {
		return c
	}
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		switch a.Key {
		case "queries":
			c.Queries = atoi(t, v)
		case "window":
			c.WindowBatches = atoi(t, v)
		case "runs":
			c.RunsKept = atoi(t, v)
		case "tickgap":
			c.TickGapMs = ms(t, v)
		case "trigger":
			kind := v
			c.TriggerFor = func(event.QueryRef) (event.TriggerKind, float64) { return kindOf(t, kind), 15000 }
		default:
			t.Fatalf("unknown setting %q", a.Key)
		}
	}
	return c
}

func kindOf(t *testing.T, s string) event.TriggerKind {
	for k := event.TriggerUnknown; k <= event.TriggerContinuous; k++ {
		if k.String() == s {
			return k
		}
	}
	t.Fatalf("unknown trigger %q", s)
	return 0
}

func play(t *testing.T, tr *Tracker, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		return ""
	case "queries":
		return describe(tr)
	case "snapshot":
		b := tr.Snapshot(nil)
		if err := tr.Restore(b); err != nil {
			t.Fatal(err)
		}
		return ""
	case "events":
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			for _, u := range playLine(t, tr, strings.Fields(line)) {
				b.WriteString(short(&u) + "\n")
			}
		}
		return b.String()
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func playLine(t *testing.T, tr *Tracker, f []string) []event.Update {
	if len(f) < 2 {
		t.Fatalf("line %q is too short", f)
	}
	now := epoch + ms(t, f[0])
	switch f[1] {
	case "tick":
		return tr.Tick(now, nil)
	case "forget":
		return tr.Forget(event.QueryID(f[2]), now, nil)
	case "pause":
		tr.IntakePaused(epoch+ms(t, f[2]), now)
		return nil
	}
	return tr.Apply(parseEvent(t, now, f[1], f[2:]), now, nil)
}

func parseEvent(t *testing.T, now int64, kind string, args []string) *event.Event {
	b := &event.Batch{}
	b.Reset()
	e := &event.Event{AtMs: now, Query: event.QueryRef{ID: "q"}, Run: "r1"}
	env := event.Envelope{Sender: "s", Seq: event.Absent, Dropped: event.Absent, AtMs: event.Absent}
	start, dur := now, int64(2000)
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "q":
			e.Query.ID = event.QueryID(v)
		case "run":
			e.Run = event.RunID(v)
		case "name":
			e.Query.Name = v
		case "app":
			e.Query.Application = v
		case "batch":
			b.ID = int64(atoi(t, v))
		case "at":
			e.AtMs, start = event.Absent, event.Absent
			if v != "none" {
				e.AtMs = epoch + ms(t, v)
				start = e.AtMs
			}
		case "dur":
			dur = ms(t, v)
		case "rows":
			b.Values[event.NumInputRows] = float64(atoi(t, v))
		case "rate":
			b.Values[event.InputRowsPerSecond] = float64(atoi(t, v))
		case "trigger":
			b.Trigger = kindOf(t, v)
		case "interval":
			b.Values[event.TriggerIntervalMs] = float64(ms(t, v))
		case "fail":
			e.Failure = &event.Failure{Class: v, Message: "it broke"}
		case "seq":
			env.Seq, e.Envelope = int64(atoi(t, v)), &env
		case "dropped":
			env.Dropped, e.Envelope = int64(atoi(t, v)), &env
		case "sender":
			env.Sender, e.Envelope = v, &env
		case "active":
			id, busy, _ := strings.Cut(v, ":")
			env.Active, e.Envelope = append(env.Active, event.ActiveQuery{ID: event.QueryID(id), TriggerActive: busy == "busy"}), &env
		default:
			t.Fatalf("unknown key %q", k)
		}
	}
	e.Kind = eventKind(t, kind)
	if e.Kind != event.KindProgress {
		return e
	}
	b.StartMs, b.Query, b.Run = start, e.Query, e.Run
	b.Values[event.BatchDuration] = float64(dur)
	b.Values[event.DurationTriggerExecution] = float64(dur)
	if b.Executed = kind == "batch"; b.Executed {
		b.Values[event.DurationAddBatch] = float64(dur) * 0.9
	}
	e.Batch = b
	return e
}

func eventKind(t *testing.T, s string) event.Kind {
	switch s {
	case "batch", "copy":
		return event.KindProgress
	case "started":
		return event.KindStarted
	case "idle":
		return event.KindIdle
	case "terminated":
		return event.KindTerminated
	case "heartbeat":
		return event.KindHeartbeat
	}
	t.Fatalf("unknown kind %q", s)
	return 0
}

func short(u *event.Update) string {
	var b strings.Builder
	b.WriteString(u.Outcome.String())
	if u.Event.Query.ID != "" && u.Event.Query.ID != "q" {
		fmt.Fprintf(&b, " q=%s", u.Event.Query.ID)
	}
	if u.State != event.StateUnknown {
		fmt.Fprintf(&b, " %s", u.State)
	}
	if u.Was != u.State && u.Was != event.StateUnknown {
		fmt.Fprintf(&b, " (was %s)", u.Was)
	}
	flag := func(on bool, name string) {
		if on {
			b.WriteString(" " + name)
		}
	}
	flag(u.NewQuery, "new-query")
	flag(u.NewRun, "new-run")
	flag(u.SegmentStart, "segment")
	flag(u.StartedSeen, "started-seen")
	flag(u.Reexecuted, "reexecuted")
	flag(u.Rewound, "rewound")
	flag(u.OutOfOrder, "out-of-order")
	flag(u.SharedRuns, "shared-runs")
	if u.Missed > 0 {
		fmt.Fprintf(&b, " missed=%d/%s", u.Missed, u.MissedReason)
	}
	if u.Successor != "" {
		fmt.Fprintf(&b, " successor=%s", u.Successor)
	}
	return b.String()
}

func describe(tr *Tracker) string {
	var b strings.Builder
	for _, s := range tr.Queries(nil) {
		fmt.Fprintf(&b, "%s %q %s run=%s runs=%d batches=%d last=%s seen=%s", s.Query.ID, s.Query.Name, s.State, s.Run, s.Runs,
			s.Batches, number(s.LastBatch), time.Duration(s.LastSeenMs-epoch)*time.Millisecond)
		fmt.Fprintf(&b, " dup=%d late=%d missed=%d again=%d idle=%d", s.Duplicates, s.Late, s.Missed, s.Reexecuted, s.Idle)
		if s.Trigger != event.TriggerUnknown {
			fmt.Fprintf(&b, " trigger=%s", s.Trigger)
		}
		if !math.IsNaN(s.IntervalMs) {
			fmt.Fprintf(&b, "/%gs/%s", s.IntervalMs/1000, s.IntervalFrom)
		}
		if s.Failure != nil {
			fmt.Fprintf(&b, " failure=%s", s.Failure.Class)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func number(v int64) string {
	if v == event.Absent {
		return "none"
	}
	return strconv.FormatInt(v, 10)
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ms(t *testing.T, s string) int64 {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d.Milliseconds()
}
