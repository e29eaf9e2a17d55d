package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

const (
	startMs  = 1_780_000_000_000
	minuteMs = 60_000
	hourMs   = 60 * minuteMs
	stores   = 4
)

// stream plays one query to an engine, batch by batch.
type stream struct {
	e        *Engine
	id, name string
	run      event.RunID
	next     int64 // batch id
	nowMs    int64
	everyMs  int64
	trigger  event.TriggerKind
	state    event.State
	started  bool // the run's Started was seen
	newRun   bool
	verdicts []Verdict
	batch    event.Batch
}

func newStream(e *Engine) *stream {
	return &stream{
		e: e, id: "q-1", name: "orders", run: "run-1", nowMs: startMs, everyMs: minuteMs, next: 100,
		trigger: event.TriggerInterval, state: event.StateRunning, newRun: true,
	}
}

// figures are what one batch says, per store and in milliseconds where times.
type figures struct {
	duration, rows          float64
	sync, updated, copied   float64
	phases                  map[event.MetricID]float64
	operators               int // 0 is one
	noData, outcomeOverride bool
	outcome                 event.Outcome
	id                      int64 // 0 is the next one
	commit, instances       float64
	putLatency              float64
}

// play sends one batch and gathers what the engine says.
func (s *stream) play(f figures) []Verdict {
	u := s.update(f)
	before := len(s.verdicts)
	s.verdicts = s.e.Apply(&u, s.verdicts)
	s.newRun = false
	return s.verdicts[before:]
}

// update builds the next batch's update.
func (s *stream) update(f figures) event.Update {
	id := s.next
	if f.id != 0 {
		id = f.id
	} else {
		s.next++
	}
	s.fill(f, id)
	u := event.Update{
		Event: &event.Event{
			Kind: event.KindProgress, Batch: &s.batch, Run: s.run, AtMs: s.nowMs,
			Query: event.QueryRef{ID: event.QueryID(s.id), Name: s.name, Application: "shop"}, Cluster: "east",
		},
		Outcome: event.OutcomeExecuted, State: s.state, Trigger: s.trigger, NewRun: s.newRun, SegmentStart: s.newRun,
		StartedSeen: s.started, IntervalMs: math.NaN(),
	}
	if f.outcomeOverride {
		u.Outcome = f.outcome
	}
	s.nowMs += s.everyMs
	return u
}

func (s *stream) fill(f figures, id int64) {
	b := &s.batch
	b.Reset()
	b.Query = event.QueryRef{ID: event.QueryID(s.id), Name: s.name}
	b.Run, b.ID, b.StartMs = s.run, id, s.nowMs
	b.Values[event.BatchDuration] = or(f.duration, 2000)
	b.Values[event.DurationTriggerExecution] = b.Values[event.BatchDuration]
	b.Values[event.DurationAddBatch] = b.Values[event.BatchDuration]
	b.Values[event.NumInputRows] = or(f.rows, 1000)
	if f.noData {
		b.Values[event.NumInputRows] = 0
	}
	for phase, ms := range f.phases {
		b.Values[phase] = ms
	}
	for range max(1, f.operators) {
		o := b.AddOperator()
		o.Name = "stateStoreSave"
		n := or(f.instances, stores)
		o.Values[event.NumStateStoreInstances] = n
		o.Values[event.NumShufflePartitions] = n
		o.Values[event.NumRowsUpdated] = or(f.updated, 1000)
		o.Values[event.RocksDBCommitFileSyncLatency] = or(f.sync, 100) * n
		o.Values[event.RocksDBBytesCopied] = or(f.copied, 1e6) * n
		o.Values[event.CommitTime] = or(f.commit, 150) * n
		if f.putLatency > 0 {
			o.Values[event.RocksDBPutLatency] = f.putLatency
		}
	}
	b.Settle()
}

func or(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}

// tell sends an update without a batch.
func (s *stream) tell(kind event.Kind, outcome event.Outcome, state event.State) []Verdict {
	before := len(s.verdicts)
	s.state = state
	u := event.Update{
		Event:   &event.Event{Kind: kind, Run: s.run, AtMs: s.nowMs, Query: event.QueryRef{ID: event.QueryID(s.id)}},
		Outcome: outcome, State: state, Trigger: s.trigger, IntervalMs: math.NaN(),
	}
	s.verdicts = s.e.Apply(&u, s.verdicts)
	return s.verdicts[before:]
}

// restart begins a new run, its Started seen.
func (s *stream) restart(run string) {
	s.run, s.newRun, s.started = event.RunID(run), true, true
}

// noise is what healthy batches look like: skewed, a heavy tail, a short memory,
// and a spike now and then.
type noise struct {
	r    *rand.Rand
	last float64
}

func newNoise(seed uint64) *noise { return &noise{r: rand.New(rand.NewPCG(seed, 7))} }

// next returns a factor around 1.
func (n *noise) next() float64 {
	n.last = 0.15*n.last + n.r.NormFloat64()
	x := math.Exp(0.22 * n.last)
	if n.r.Float64() < 0.03 {
		x *= 2 + 2*n.r.Float64()
	}
	return x
}

// changed lists the alerts among verdicts that came to a state.
func changed(vs []Verdict, to AlertState) []Verdict {
	var out []Verdict
	for _, v := range vs {
		if v.Alert != nil && v.Alert.State == to {
			out = append(out, v)
		}
	}
	return out
}

// line shows a verdict in one line.
func line(v Verdict) string {
	if v.Alert == nil {
		return fmt.Sprintf("%s: %s", v.Rule, v.Said)
	}
	a := v.Alert
	text := fmt.Sprintf("%s: %s -> %s", v.Rule, v.Was, a.State)
	if op := a.Labels.Get("operator_index"); op != "" {
		text += " operator=" + op
	}
	if a.State == Firing || a.State == Pending {
		text += fmt.Sprintf(" since batch %d, value %s", a.FirstBatch, digits(a.Value))
	}
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	return text
}

func TestAHealthyNoisyStreamGivesNoAlert(t *testing.T) {
	for seed := range uint64(5) {
		s := newStream(New(defaultPack(t), Options{}))
		n := newNoise(seed)
		for range 2000 {
			load := n.next()
			s.play(figures{
				duration: 2000 * (0.5 + 0.5*load) * n.next(), rows: 1000 * load, updated: 800 * load,
				sync: 100 * (0.5 + 0.5*load) * n.next(),
			})
		}
		for _, v := range changed(s.verdicts, Firing) {
			t.Errorf("seed %d: %s", seed, line(v))
		}
	}
}

func TestAStepInFileSyncFiresAndNamesItsBatch(t *testing.T) {
	for seed := range uint64(5) {
		s := newStream(New(defaultPack(t), Options{}))
		n := newNoise(seed)
		for i := range 1000 {
			f := figures{sync: 100 * n.next(), rows: 1000 * n.next()}
			if i >= 700 {
				f.sync *= 2
			}
			s.play(f)
		}
		fired := changed(s.verdicts, Firing)
		if len(fired) != 1 || fired[0].Rule != "CommitSyncLatencyRising" {
			t.Fatalf("seed %d: want one CommitSyncLatencyRising, got %v", seed, lines(fired))
		}
		a := fired[0].Alert
		if delay := a.FiringBatch - 800; delay < 20 || delay > 100 {
			t.Errorf("seed %d: fired %d batches after the step, want 20 to 100", seed, delay)
		}
		if math.Abs(float64(a.FirstBatch-800)) > 25 {
			t.Errorf("seed %d: it began at batch %d, want about 800", seed, a.FirstBatch)
		}
		if got := changed(s.verdicts, Resolved); len(got) > 0 {
			t.Errorf("seed %d: a level that stays is no recovery: %v", seed, lines(got))
		}
	}
}

func lines(vs []Verdict) []string {
	out := make([]string, len(vs))
	for i := range vs {
		out[i] = line(vs[i])
	}
	return out
}

func TestARiseThatLoadExplainsIsSaidToBe(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(3)
	for i := range 800 {
		load := 1 + math.Max(0, float64(i-400))/150
		noisy := load * (0.9 + 0.2*n.r.Float64())
		s.play(figures{
			duration: 2000 * noisy * (0.95 + 0.1*n.r.Float64()), rows: 10_000 * noisy,
			sync: 100 * noisy * (0.95 + 0.1*n.r.Float64()), updated: 8000 * noisy,
		})
	}
	if fired := changed(s.verdicts, Firing); len(fired) > 0 {
		t.Errorf("load fired an alert: %v", lines(fired))
	}
	explained := map[string]bool{}
	for _, v := range s.verdicts {
		explained[v.Rule] = explained[v.Rule] || v.Said == SaidExplained
	}
	if !explained["CommitSyncLatencyRising"] || !explained["BatchDurationRising"] {
		t.Errorf("explained by load: got %v, want both rules", explained)
	}
}

func TestADailyCycleOfLoadGivesNoTicket(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(4)
	for i := range 4 * 1440 {
		day := 1 - 0.6*math.Cos(2*math.Pi*float64(i)/1440)
		load := day * (0.9 + 0.2*n.r.Float64())
		s.play(figures{
			duration: (500 + 1500*load) * math.Exp(0.15*n.r.NormFloat64()), rows: 10_000 * load,
			sync: (30 + 70*load) * math.Exp(0.15*n.r.NormFloat64()), updated: 8000 * load,
		})
	}
	if fired := changed(s.verdicts, Firing); len(fired) > 0 {
		t.Errorf("got %v", lines(fired))
	}
}

func TestASawToothIsNoRise(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(6)
	for i := range 2000 {
		s.play(figures{
			sync:     (100 + 40*float64(i%10)) * math.Exp(0.05*n.r.NormFloat64()),
			duration: 2000 + 300*float64(i%10),
		})
	}
	if fired := changed(s.verdicts, Firing); len(fired) > 0 {
		t.Errorf("got %v", lines(fired))
	}
}

func TestMorePartitionsChangeNoMean(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(7)
	for i := range 1200 {
		f := figures{sync: 200 * math.Exp(0.1*n.r.NormFloat64()), instances: 200}
		if i >= 700 {
			f.instances = 400
		}
		s.play(f)
	}
	if fired := changed(s.verdicts, Firing); len(fired) > 0 {
		t.Errorf("got %v", lines(fired))
	}
}

func TestALevelThatStaysFiresOnceUntilItIsTheNewNormal(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(8)
	for i := range 2400 {
		f := figures{sync: 100 * n.next()}
		if i >= 700 {
			f.sync *= 1.6
		}
		s.play(f)
	}
	fired, resolved := changed(s.verdicts, Firing), changed(s.verdicts, Resolved)
	if len(fired) != 1 || len(resolved) != 1 {
		t.Fatalf("fired %v, resolved %v, want once each", lines(fired), lines(resolved))
	}
	if lasted := resolved[0].Alert.LastBatch - 800; lasted < 480 || lasted > 650 {
		t.Errorf("it resolved %d batches after the step, want about 500", lasted)
	}
	if !strings.Contains(resolved[0].Alert.Reason, "new baseline") {
		t.Errorf("the reason is %q", resolved[0].Alert.Reason)
	}
}

func TestASlowDriftIsFound(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(9)
	for i := range 1300 {
		drift := 1 + 0.002*math.Max(0, math.Min(500, float64(i-700)))
		s.play(figures{duration: 2000 * drift * math.Exp(0.15*n.r.NormFloat64())})
	}
	if fired := changed(s.verdicts, Firing); len(fired) != 1 || fired[0].Rule != "BatchDurationRising" {
		t.Errorf("got %v", lines(fired))
	}
}

func TestAFastStreamIsJudgedByTime(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	s.everyMs = 5000
	n := newNoise(10)
	for i := range 9000 {
		f := figures{duration: 1000, sync: 100 * n.next()}
		if i >= 7000 {
			f.sync *= 2
		}
		s.play(f)
	}
	fired := changed(s.verdicts, Firing)
	if len(fired) != 1 {
		t.Fatalf("got %v", lines(fired))
	}
	if held := fired[0].Alert.FiringAtMs - fired[0].Alert.PendingAtMs; held < 30*minuteMs {
		t.Errorf("it was pending for %d ms, want half an hour", held)
	}
	for _, q := range s.e.queries {
		for _, set := range q.columns {
			if n := set.cols.Bytes(); n > 20_000 {
				t.Errorf("%d columns keep %d bytes", len(set.list), n)
			}
		}
	}
}

func TestRecoveryResolvesAfterTheStay(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(11)
	for i := range 1200 {
		f := figures{sync: 100 * n.next()}
		if i >= 700 && i < 900 {
			f.sync *= 2.5
		}
		s.play(f)
	}
	resolved := changed(s.verdicts, Resolved)
	if len(resolved) != 1 {
		t.Fatalf("got %v", lines(resolved))
	}
	if after := resolved[0].Alert.LastBatch - 1000; after < 30 || after > 150 {
		t.Errorf("resolved %d batches after the recovery, want 30 to 150", after)
	}
	if !strings.HasPrefix(resolved[0].Alert.Reason, "it went back to 1") {
		t.Errorf("the reason is %q", resolved[0].Alert.Reason)
	}
}
