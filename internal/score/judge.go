package score

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// result is what rules and peers made of one play.
type result struct {
	Batches   int64
	QueryDays float64
	Expected  []outcome
	// Wrong are alerts that nobody ordered: another symptom, another query, or before
	// the fault.
	Wrong []wrong
	Peers []peerResult
}

// outcome is how one expectation fared.
type outcome struct {
	Symptom    string
	CannotTell bool // the right answer is that it cannot be told
	Found      bool
	// Delay is from the fault's first batch to the alert, in batches; TicketDelay to the first
	// that is no mere information, -1 without one.
	Delay, TicketDelay int64
	// AfterMs is from when the trigger of the fault's first batch was due to the first
	// alert, milliseconds; -1 without one, or where no interval says when it was due.
	AfterMs int64
	// Hidden is set where the fault is smaller than the noise of its figures.
	Hidden bool
}

// wrong is an alert that should not have fired.
type wrong struct {
	Alert, Symptom, Severity string
	Early                    bool // the symptom is right, the fault had not begun
}

// judge plays a stream and holds what fired against the truth.
func judge(pack *rules.Pack, s *stream, sc *scenario.Scenario) (result, error) {
	return judgeBatches(pack, s, sc, func(*event.Batch) {})
}

// judgeBatches is judge, and shows every batch that was executed.
func judgeBatches(pack *rules.Pack, s *stream, sc *scenario.Scenario, show func(b *event.Batch)) (result, error) {
	var out result
	rec, peers := replay.NewRecorder(), newPeers()
	undecided := map[string]bool{} // rules that said so
	seen := map[event.QueryID]span{}
	t, watching := newTruth(pack, s, sc), newEyes(pack, sc)
	var p *replay.Player
	p = replay.NewPlayer(replay.PlayerOptions{
		Rules: pack,
		Update: func(u *event.Update) {
			rec.Update(u)
			if u.Outcome == event.OutcomeExecuted && u.Event.Batch != nil && !u.OutOfOrder {
				out.Batches++
				peers.push(u.Event.Batch)
				show(u.Event.Batch)
				watching.push(u, s.Queries[string(u.Event.Query.ID)])
				t.reach(u.Event.Batch, p.NowMs())
				seen[u.Event.Query.ID] = seen[u.Event.Query.ID].with(u.Event.Batch.StartMs)
			}
		},
		Verdict: func(v *rules.Verdict, atMs int64) {
			rec.Verdict(v, atMs)
			if v.Said == rules.SaidCannotTell || v.Said == rules.SaidCannotSeparate {
				undecided[v.Rule] = true
			}
		},
	})
	lines := replay.NewLines(p)
	for line := range bytes.Lines(s.lines) {
		if err := lines.Play(line); err != nil {
			return out, err
		}
	}
	for _, x := range seen {
		out.QueryDays += x.days()
	}
	episodes := sent(rec.Episodes(p.Engine()))
	t.fill(&out, episodes, undecided, watching)
	out.Peers = t.peers(peers)
	return out, nil
}

// sent leaves out what was inhibited when it began to fire: nobody heard of it.
func sent(all []*replay.Episode) (out []*replay.Episode) {
	for _, e := range all {
		if e.InhibitedBy == nil {
			out = append(out, e)
		}
	}
	return out
}

// span is the time from a query's first batch to its newest, Unix milliseconds.
type span struct{ from, to int64 }

func (s span) with(ms int64) span {
	if ms == event.Absent {
		return s
	}
	if s.from == 0 {
		s.from = ms
	}
	s.to = max(s.to, ms)
	return s
}

func (s span) days() float64 { return float64(s.to-s.from) / (24 * 3600 * 1000) }

// truth is what a scenario expects.
type truth struct {
	sc       *scenario.Scenario
	queries  map[string]int
	symptoms map[string]string // of rules, by alert name
	// beganMs is, beside sc.Expect, when the fault could first be seen, Unix
	// milliseconds: once the batch before its first one was over. Batch ids alone do not
	// tell: a fault may keep its first batch from ever ending, or set ids back.
	beganMs []int64
	// dueMs is, beside sc.Expect, when the trigger of the fault's first batch was due,
	// Unix milliseconds; 0 where that is not known.
	dueMs []int64
}

func newTruth(pack *rules.Pack, s *stream, sc *scenario.Scenario) *truth {
	t := &truth{sc: sc, queries: s.Queries, symptoms: symptomsOf(pack), beganMs: make([]int64, len(sc.Expect)), dueMs: make([]int64, len(sc.Expect))}
	for i := range sc.Expect {
		if sc.Expect[i].FromBatch > 0 {
			t.beganMs[i] = math.MaxInt64
		}
	}
	return t
}

// reach notes that a batch is over.
func (t *truth) reach(b *event.Batch, nowMs int64) {
	for i := range t.sc.Expect {
		x := &t.sc.Expect[i]
		if b.ID >= x.FromBatch-1 && (x.Query == 0 || t.queries[string(b.Query.ID)] == x.Query) {
			t.beganMs[i] = min(t.beganMs[i], nowMs)
			if b.ID == x.FromBatch-1 && b.StartMs != event.Absent && t.sc.Query.Trigger.Interval > 0 {
				t.dueMs[i] = b.StartMs + t.sc.Query.Trigger.Interval.Std().Milliseconds()
			}
		}
	}
}

// symptomsOf tells the symptom of each rule.
func symptomsOf(pack *rules.Pack) map[string]string {
	out := map[string]string{}
	st := rules.New(pack, rules.Options{}).Status(false)
	for _, g := range st.Groups {
		for i := range g.Rules {
			out[g.Rules[i].Alert] = g.Rules[i].Labels.Get("symptom")
		}
	}
	return out
}

func (t *truth) fill(out *result, episodes []*replay.Episode, undecided map[string]bool, watching *eyes) {
	for i := range t.sc.Expect {
		x := &t.sc.Expect[i]
		switch {
		case x.CannotTell:
			said := slices.ContainsFunc(keys(undecided), func(rule string) bool { return t.symptoms[rule] == x.Symptom })
			out.Expected = append(out.Expected, outcome{Symptom: x.Symptom, CannotTell: true, Found: said, Delay: -1, TicketDelay: -1, AfterMs: -1})
		case !x.Optional:
			found := t.look(i, episodes)
			found.Hidden = watching.hidden(i)
			out.Expected = append(out.Expected, found)
		}
	}
	for _, e := range episodes {
		if w, is := t.wrong(e); is {
			out.Wrong = append(out.Wrong, w)
		}
	}
}

func keys(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// look finds the first alert that meets an expectation.
func (t *truth) look(i int, episodes []*replay.Episode) outcome {
	x := &t.sc.Expect[i]
	out := outcome{Symptom: x.Symptom, Delay: -1, TicketDelay: -1, AfterMs: -1}
	for _, e := range episodes {
		if !t.meets(x, e) || e.FiringMs < t.beganMs[i] {
			continue
		}
		delay := max(0, e.FiringBatch-x.FromBatch)
		if !out.Found {
			out.Found, out.Delay = true, delay
			if t.dueMs[i] > 0 {
				out.AfterMs = max(0, e.FiringMs-t.dueMs[i])
			}
		}
		if out.TicketDelay < 0 && e.Severity != "info" {
			out.TicketDelay = delay
		}
	}
	return out
}

// meets reports whether an alert has the symptom and the query of an expectation.
func (t *truth) meets(x *scenario.Expectation, e *replay.Episode) bool {
	if x.CannotTell || e.Symptom != x.Symptom {
		return false
	}
	id := e.Labels["query_id"]
	return x.Query == 0 || id == "" || t.queries[id] == x.Query
}

// defaults reports whether the scenario's queries run RocksDB with what Spark has by
// default: no changelog checkpointing.
func (t *truth) defaults() bool {
	const stores = "spark.sql.streaming.stateStore."
	return strings.HasSuffix(t.sc.Conf[stores+"providerClass"], "RocksDBStateStoreProvider") && t.sc.Conf[stores+"rocksdb.changelogCheckpointing.enabled"] != "true"
}

// wrong tells an alert that meets no expectation, or comes before its fault.
func (t *truth) wrong(e *replay.Episode) (wrong, bool) {
	w := wrong{Alert: e.Alert, Symptom: e.Symptom, Severity: e.Severity}
	if e.Symptom == "watchdog" || e.Symptom == "posture" && t.defaults() {
		return w, false // it is to fire always; and it is so
	}
	for i := range t.sc.Expect {
		x := &t.sc.Expect[i]
		if !t.meets(x, e) {
			continue
		}
		if e.FiringMs >= t.beganMs[i] {
			return w, false
		}
		w.Early = true
	}
	return w, true
}
