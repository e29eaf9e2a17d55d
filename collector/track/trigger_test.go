package track

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// stream makes the batches of one query the way Spark's trigger executors do.
type stream struct {
	rng   *rand.Rand
	nowMs int64
	id    int64
	prev  int64 // start of the trigger before, idle ones included
	out   []*event.Event
}

func newStream(seed uint64) *stream {
	return &stream{rng: rand.New(rand.NewPCG(seed, 1)), nowMs: epoch + 12345}
}

func (s *stream) lag(most int) int64 { return s.rng.Int64N(int64(most)) }

func (s *stream) batch(dur int64, rows float64) {
	b := &event.Batch{}
	b.Reset()
	b.Query, b.Run, b.ID, b.StartMs, b.Executed = event.QueryRef{ID: "q"}, "r", s.id, s.nowMs, true
	b.Values[event.BatchDuration] = float64(dur)
	b.Values[event.DurationAddBatch] = float64(dur) * 0.8
	b.Values[event.NumInputRows] = rows
	if s.prev > 0 {
		b.Values[event.InputRowsPerSecond] = rows / (float64(s.nowMs-s.prev) / 1000)
	}
	s.out = append(s.out, &event.Event{Kind: event.KindProgress, Batch: b, Query: b.Query, Run: b.Run})
	s.prev = s.nowMs
	s.nowMs += dur
	s.id++
}

// onGrid waits for the next point of the interval's grid, unless the batch before
// overran: then the next trigger starts at once.
func (s *stream) onGrid(interval int64) {
	if next := s.prev/interval*interval + interval; s.prev > 0 && s.nowMs <= next {
		s.nowMs = next
	}
	s.nowMs += s.lag(8)
}

func (s *stream) idle() {
	e := &event.Event{Kind: event.KindIdle, Query: event.QueryRef{ID: "q"}, Run: "r", AtMs: s.nowMs}
	s.out = append(s.out, e)
	s.prev = s.nowMs
}

func judged(t *testing.T, s *stream, c Config) QueryStatus {
	t.Helper()
	tr := New(c, nil)
	for _, e := range s.out {
		now := timeOf(e)
		if e.Batch != nil {
			now = e.Batch.EndMs()
		}
		tr.Apply(e, now, nil)
	}
	st, ok := tr.Status("q")
	if !ok {
		t.Fatal("query is not known")
	}
	return st
}

func wantTrigger(t *testing.T, st QueryStatus, kind event.TriggerKind, ms float64) {
	t.Helper()
	same := st.IntervalMs == ms || math.IsNaN(ms) && math.IsNaN(st.IntervalMs)
	if st.Trigger != kind || !same {
		t.Errorf("trigger %s at %g ms, want %s at %g ms", st.Trigger, st.IntervalMs, kind, ms)
	}
}

func TestIntervalIsFoundFromStartsOnAGrid(t *testing.T) {
	for _, interval := range []int64{1000, 10_000, 15_000, 60_000, 90_000, 3_600_000} {
		for seed := range uint64(20) {
			s := newStream(seed)
			for range 40 {
				s.onGrid(interval)
				s.batch(interval/10+s.lag(int(interval/2)), 1000)
			}
			wantTrigger(t, judged(t, s, DefaultConfig()), event.TriggerInterval, float64(interval))
		}
	}
}

func TestOverrunsDoNotMisleadTheInterval(t *testing.T) {
	for seed := range uint64(50) {
		s := newStream(seed)
		for i := range 60 {
			s.onGrid(10_000)
			dur := 3000 + s.lag(2000)
			if i%4 == 1 {
				dur = 11_000 + s.lag(15_000)
			}
			s.batch(dur, 1000)
		}
		wantTrigger(t, judged(t, s, DefaultConfig()), event.TriggerInterval, 10_000)
	}
}

func TestIntervalIsKeptWhileEveryBatchOverruns(t *testing.T) {
	s := newStream(3)
	for i := range 200 {
		s.onGrid(10_000)
		dur := int64(4000)
		if i > 30 {
			dur = 14_000 + s.lag(4000)
		}
		s.batch(dur, 1000)
	}
	wantTrigger(t, judged(t, s, DefaultConfig()), event.TriggerInterval, 10_000)
}

func TestIdleSpellsDoNotHideTheInterval(t *testing.T) {
	for seed := range uint64(50) {
		s := newStream(seed)
		for range 60 {
			s.onGrid(5000)
			s.batch(500+s.lag(1500), 100)
			for range s.lag(6) {
				s.onGrid(5000)
				s.idle()
				s.nowMs += 20
			}
		}
		wantTrigger(t, judged(t, s, DefaultConfig()), event.TriggerInterval, 5000)
	}
}

func TestDefaultTriggerStartsAtOnce(t *testing.T) {
	for seed := range uint64(50) {
		s := newStream(seed)
		for range 60 {
			s.nowMs += 2 + s.lag(20)
			s.batch(1000+s.lag(4000), 1000)
		}
		wantTrigger(t, judged(t, s, DefaultConfig()), event.TriggerDefault, math.NaN())
	}
}

// An idle query with the default trigger polls every 10 ms and says so every ten
// seconds, which must not be taken for an interval of ten seconds.
func TestIdleSpellsDoNotMakeTheDefaultTriggerAnInterval(t *testing.T) {
	for seed := range uint64(50) {
		s := newStream(seed)
		for range 60 {
			s.batch(300+s.lag(3000), 1000)
			for range s.lag(4) {
				s.nowMs += 10_000 + s.lag(12)
				s.idle()
			}
			s.nowMs += s.lag(9000)
			s.prev = s.nowMs - 11 // the last poll that found nothing
		}
		st := judged(t, s, DefaultConfig())
		if st.Trigger == event.TriggerInterval {
			t.Errorf("seed %d: took idle spells for an interval of %g ms", seed, st.IntervalMs)
		}
	}
}

func TestRealTimeModeIsConstantLengthNotExplainedByWork(t *testing.T) {
	s := newStream(1)
	for range 20 {
		s.nowMs += 5 + s.lag(10)
		s.batch(300_000+s.lag(60), 1000)
		s.out[len(s.out)-1].Batch.Values[event.DurationAddBatch] = 2000
	}
	wantTrigger(t, judged(t, s, DefaultConfig()), event.TriggerRealTime, 300_000)
}

func TestIrregularStartsTellNothing(t *testing.T) {
	wrong := 0
	for seed := range uint64(200) {
		s := newStream(seed)
		for range 40 {
			s.nowMs += 500 + s.lag(60_000)
			s.prev = 0
			s.batch(300+s.lag(2000), 0)
		}
		if judged(t, s, DefaultConfig()).Trigger == event.TriggerInterval {
			wrong++
		}
	}
	if wrong > 2 {
		t.Errorf("%d of 200 irregular streams were taken for an interval", wrong)
	}
}

func TestShortRunsThatEndCleanlyAreAvailableNow(t *testing.T) {
	for _, tc := range []struct {
		batches int
		fail    bool
		kind    event.TriggerKind
	}{
		{batches: 4, kind: event.TriggerAvailableNow},
		{batches: 1, kind: event.TriggerOnce},
		{batches: 1, fail: true, kind: event.TriggerUnknown},
	} {
		tr := New(DefaultConfig(), nil)
		now := runsOf(tr, tc.batches, tc.fail)
		st, _ := tr.Status("q")
		wantTrigger(t, st, tc.kind, math.NaN())
		if tc.fail {
			continue
		}
		// Its silence is judged by the rhythm of its runs, an hour here.
		tr.c.TickGapMs = 0
		if us := tr.Tick(now+hour, nil); len(us) != 0 {
			t.Errorf("%d updates within the rhythm, want none", len(us))
		}
		us := tr.Tick(now+3*hour, nil)
		if len(us) != 1 || us[0].State != event.StateOverdue {
			t.Errorf("three times the rhythm: %+v, want overdue", us)
		}
	}
}

// runsOf plays six hourly runs and returns when the last ended.
func runsOf(tr *Tracker, batches int, fail bool) int64 {
	now := epoch
	for r := range 6 {
		now = epoch + int64(r)*hour
		run := event.RunID(rune('a' + r))
		for i := range batches {
			s := &stream{nowMs: now, id: int64(r*batches + i)}
			s.batch(20_000, 100)
			s.out[0].Run, s.out[0].Batch.Run = run, run
			now += 20_010
			tr.Apply(s.out[0], now, nil)
		}
		end := &event.Event{Kind: event.KindTerminated, Query: event.QueryRef{ID: "q"}, Run: run, AtMs: now}
		if fail {
			end.Failure = &event.Failure{Class: "X"}
		}
		tr.Apply(end, now, nil)
	}
	return now
}

func TestConfiguredTriggerIsAskedAgainOnReconfigure(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	s := newStream(1)
	s.batch(100, 1)
	tr.Apply(s.out[0], s.nowMs, nil)
	tr.Reconfigure(func(event.QueryRef) (event.TriggerKind, float64) { return event.TriggerInterval, 30_000 })
	st, _ := tr.Status("q")
	wantTrigger(t, st, event.TriggerInterval, 30_000)
	if st.IntervalFrom != event.IntervalConfig {
		t.Errorf("interval from %s, want config", st.IntervalFrom)
	}
	tr.Reconfigure(nil)
	st, _ = tr.Status("q")
	wantTrigger(t, st, event.TriggerUnknown, math.NaN())
}
