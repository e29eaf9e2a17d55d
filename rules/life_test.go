package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// scripted is a detector for tests of everything around detectors: the signal's
// value says what it finds.
type scripted struct{}

func (scripted) name() string                              { return "scripted" }
func (scripted) describe() string                          { return "scripted" }
func (scripted) inputs() []*expression                     { return nil }
func (scripted) span() Extent                              { return Extent{Batches: 12} }
func (scripted) newTracker(*trend.Scratch) tracker         { return &scriptedTracker{} }
func (t *scriptedTracker) push(p trend.Point, _ []float64) { t.last = p; t.n++ }
func (t *scriptedTracker) reset()                          { *t = scriptedTracker{} }
func (t *scriptedTracker) points() int                     { return t.n }
func (t *scriptedTracker) judge(*Judgement) Judgement {
	said := map[float64]Said{1: SaidClear, 2: SaidFound, 3: SaidTooFew, 4: SaidCannotTell, 5: SaidExplained}
	if t.n == 0 {
		return Judgement{Said: SaidTooFew, Since: -1}
	}
	value := 2.0
	if t.last.Value == 1 {
		value = 1
	}
	return Judgement{
		Said: said[t.last.Value], Value: value, Start: 1, End: 2, Rise: 1, Relative: 1, Since: t.last.Batch, Points: t.n, How: "trend",
	}
}

type scriptedTracker struct {
	last trend.Point
	n    int
}

// scriptedPack loads rules and replaces their detectors.
func scriptedPack(t testing.TB, rules string) *Pack {
	t.Helper()
	head := "signals:\n  rows: {of: query, value: input_rows, unit: rows}\n  op: {of: operator, value: rows_updated, unit: rows}\n" +
		"groups:\n  - name: g\n    rules:\n"
	p, err := Load(Source{Name: "r.yaml", Data: []byte(head + rules)})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.rules {
		if !r.ofEvents() {
			r.detector = scripted{}
		}
	}
	return p
}

// letters are the script's values: clear, found, too few, cannot tell, explained.
var letters = map[rune]float64{'c': 1, 'F': 2, 't': 3, '?': 4, 'e': 5}

// lifeStream has a batch each five minutes, so that each is judged, and begins
// amid a run, so that none is warm-up.
func lifeStream(p *Pack) *stream {
	s := newStream(New(p, Options{}))
	s.everyMs = 5 * minuteMs
	return s
}

// TestLifeOfAnAlert runs testdata: the holds and a script of judgements in, what
// the engine says out. A script has one letter a batch and words for all else.
func TestLifeOfAnAlert(t *testing.T) {
	datadriven.RunTest(t, "testdata/life", func(t *testing.T, d *datadriven.TestData) string {
		rule := "      - {alert: A, signal: rows, rising: {}"
		for _, arg := range d.CmdArgs {
			rule += fmt.Sprintf(", %s: %s", arg.Key, strings.ReplaceAll(arg.Vals[0], "_", " "))
		}
		return playScript(lifeStream(scriptedPack(t, rule+"}\n")), d.Input)
	})
}

// playScript plays words: letters are batches, the rest is what its case says.
func playScript(s *stream, script string) string {
	var b strings.Builder
	for _, word := range strings.Fields(script) {
		var said []Verdict
		switch word {
		case "stop":
			said = s.tell(event.KindTerminated, event.OutcomeTerminated, event.StateTerminated)
		case "fail":
			said = s.tell(event.KindTerminated, event.OutcomeFailed, event.StateFailed)
		case "overdue":
			said = s.tell(event.KindTick, event.OutcomeStateChange, event.StateOverdue)
		case "idle":
			said = s.tell(event.KindIdle, event.OutcomeIdle, event.StateIdle)
		case "retire":
			said = s.tell(event.KindTick, event.OutcomeStateChange, event.StateRetired)
		case "restart":
			s.restart(string(s.run) + "'")
		case "pause":
			s.nowMs += 10 * 24 * hourMs
		case "day":
			s.nowMs += 12 * 24 * hourMs
			s.verdicts = s.e.Tick(s.nowMs, s.verdicts)
		case "alerts":
			fmt.Fprintln(&b, "alerts:", strings.Join(standing(s.e), "; "))
		default:
			said = playLetters(s, word)
		}
		for _, v := range said {
			fmt.Fprintf(&b, "%s at batch %d: %s\n", word, s.next-1, line(v))
		}
	}
	return b.String()
}

// playLetters plays one batch a letter.
func playLetters(s *stream, word string) []Verdict {
	before := len(s.verdicts)
	s.state = event.StateRunning
	for _, letter := range word {
		s.play(figures{rows: letters[letter], updated: letters[letter]})
	}
	return s.verdicts[before:]
}

// standing lists the alerts of the engine.
func standing(e *Engine) []string {
	var out []string
	for _, a := range e.Alerts(nil) {
		text := a.Labels.Get("alertname") + " " + a.State.String()
		if f := a.Annotations.Get("frozen"); f != "" {
			text += " (" + f + ")"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// TestWhatNeverHeldLongEnoughIsNeverSent plays random scripts: an alert fires only
// after as many findings in a row as the rule asks for, resolves only after it
// fired, and a pending one that ends says nothing.
func TestWhatNeverHeldLongEnoughIsNeverSent(t *testing.T) {
	const hold, keep = 4, 3
	rule := fmt.Sprintf("      - {alert: A, signal: rows, rising: {}, for: %d batches, keep_firing_for: %d batches}\n", hold, keep)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := lifeStream(scriptedPack(t, rule))
		found, clear, firing := 0, 0, false
		for range 300 {
			letter := []rune("ccFFFFFFt?e")[r.IntN(11)]
			vs := playLetters(s, string(letter))
			found, clear = runs(letter, found, clear)
			for _, v := range vs {
				switch {
				case v.Alert == nil:
				case v.Alert.State == Firing:
					if firing || found < hold {
						t.Fatalf("seed %d: fired after %d findings", seed, found)
					}
					firing = true
				case v.Alert.State == Resolved:
					if !firing || clear < keep {
						t.Fatalf("seed %d: resolved after %d clear batches, firing %v", seed, clear, firing)
					}
					firing = false
				case v.Alert.ResolvedAtMs != event.Absent:
					t.Fatalf("seed %d: a pending alert was resolved", seed)
				}
			}
		}
		if got := len(changed(standingVerdicts(s.e), Firing)) == 1; got != firing {
			t.Fatalf("seed %d: firing is %v, alerts say %v", seed, firing, got)
		}
	}
}

// runs counts findings and clear batches in a row; what cannot be judged breaks
// neither a clear stretch nor adds to it.
func runs(letter rune, found, clear int) (int, int) {
	switch letter {
	case 'F':
		return found + 1, 0
	case 'c', 'e':
		return 0, clear + 1
	}
	return 0, clear
}

func standingVerdicts(e *Engine) []Verdict {
	var out []Verdict
	for _, a := range e.Alerts(nil) {
		out = append(out, Verdict{Alert: &a})
	}
	return out
}

func TestTicksThatCameTooLateAreCountedAndChangeNothing(t *testing.T) {
	s := lifeStream(scriptedPack(t, "      - {alert: A, signal: rows, rising: {}}\n"))
	playLetters(s, "F")
	m := s.e.opts.Metrics
	for _, at := range []int64{15_000, 30_000, 30_000 + 6*15_000, 120_000 + 15_000} {
		if vs := s.e.Tick(startMs+at, nil); len(vs) > 0 {
			t.Errorf("a tick said %v", lines(vs))
		}
	}
	if got := counterValue(t, m.ticksMissed); got != 5 {
		t.Errorf("got %v missed ticks, want 5", got)
	}
	if got := standing(s.e); len(got) != 1 {
		t.Errorf("alerts after late ticks: %v", got)
	}
}

// TestCountsStayTrueWhateverHappens plays random lives of many queries, with
// operators that come and go, restarts, reloads and ends.
func TestCountsStayTrueWhateverHappens(t *testing.T) {
	packs := []*Pack{
		scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, for: 2 batches}\n"+opLine),
		scriptedPack(t, opLine+"      - {alert: A, signal: rows, rising: {}, labels: {severity: page}}\n"),
		scriptedPack(t, "      - {alert: B, signal: rows, rising: {}}\n"),
		nil,
	}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		e := New(packs[0], Options{MaxQueries: 5, MaxOperators: 3})
		streams := make([]*stream, 7)
		for i := range streams {
			streams[i] = lifeStream(nil)
			streams[i].e, streams[i].id = e, fmt.Sprint("q", i)
		}
		for range 400 {
			randomStep(r, e, streams[r.IntN(len(streams))], packs)
			checkCounts(t, e)
		}
	}
}

const opLine = "      - {alert: Op, signal: op, rising: {}}\n"

func randomStep(r *rand.Rand, e *Engine, s *stream, packs []*Pack) {
	switch r.IntN(20) {
	case 0:
		s.restart(fmt.Sprint(r.IntN(100)))
	case 1:
		s.tell(event.KindTerminated, event.OutcomeTerminated, event.StateTerminated)
	case 2:
		s.tell(event.KindTick, event.OutcomeStateChange, event.StateRetired)
	case 3:
		e.Reload(packs[r.IntN(len(packs))], s.nowMs, nil)
	case 4:
		s.nowMs += r.Int64N(100*hourMs) - 50*hourMs
	case 5:
		s.next -= r.Int64N(50)
	default:
		s.state = event.StateRunning
		s.play(figures{rows: float64(1 + r.IntN(5)), updated: float64(1 + r.IntN(5)), operators: 1 + r.IntN(5)})
	}
}

func checkCounts(t *testing.T, e *Engine) {
	t.Helper()
	alerts := e.Alerts(nil)
	byRule, seen := map[string]int{}, map[string]bool{}
	for _, a := range alerts {
		byRule[a.Labels.Get("alertname")]++
		if key := labelText(a.Labels); seen[key] {
			t.Fatalf("two alerts are %s", key)
		} else {
			seen[key] = true
		}
	}
	sum := 0
	for i, st := range e.rules {
		sum += st.alerts
		if st.alerts != byRule[e.pack.rules[i].alert] {
			t.Fatalf("rule %s counts %d alerts, there are %d", e.pack.rules[i].alert, st.alerts, byRule[e.pack.rules[i].alert])
		}
	}
	if sum != len(alerts) || e.alerts != len(alerts) || len(e.queries) > e.opts.MaxQueries {
		t.Fatalf("%d alerts are counted as %d and %d, %d queries", len(alerts), sum, e.alerts, len(e.queries))
	}
}

func counterValue(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}
