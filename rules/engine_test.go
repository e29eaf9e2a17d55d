package rules

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
)

const (
	oneRule = "      - {alert: A, signal: rows, rising: {}, labels: {severity: ticket}}\n"
	opRule  = "      - {alert: Op, signal: op, rising: {}}\n"
)

// taken returns how many values the only rule's only series took in.
func taken(e *Engine) int {
	n := 0
	for _, q := range e.queries {
		for _, list := range q.rules {
			for _, s := range list {
				n += s.tracker.points()
			}
		}
	}
	return n
}

func TestOnlyExecutedBatchesFeedWindows(t *testing.T) {
	for _, c := range []struct {
		name string
		f    figures
		want int
	}{
		{"executed", figures{rows: 1}, 1},
		{"an idle copy", figures{rows: 1, outcomeOverride: true, outcome: event.OutcomeIdleCopy}, 0},
		{"a duplicate", figures{rows: 1, outcomeOverride: true, outcome: event.OutcomeDuplicate}, 0},
		{"late", figures{rows: 1, outcomeOverride: true, outcome: event.OutcomeLate}, 0},
		{"refused", figures{rows: 1, outcomeOverride: true, outcome: event.OutcomeRefused}, 0},
		{"no data", figures{noData: true}, 0},
		{"older than the last", figures{rows: 1, id: 50}, 0},
		{"the last again", figures{rows: 1, id: 100}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lifeStream(scriptedPack(t, oneRule))
			s.play(figures{rows: 1})
			before := taken(s.e)
			s.play(c.f)
			if got := taken(s.e) - before; got != c.want {
				t.Errorf("took in %d values, want %d", got, c.want)
			}
		})
	}
}

func TestABatchThatCameOutOfOrderIsNoPoint(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule))
	u := s.update(figures{rows: 1})
	u.OutOfOrder = true
	s.e.Apply(&u, nil)
	if got := taken(s.e); got != 0 {
		t.Errorf("took in %d values, want none", got)
	}
}

func TestWarmUpIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		name    string
		everyMs int64
		batches int
		trigger event.TriggerKind
		started bool
		first   int64
		want    int
	}{
		{"twenty batches, where they take longer than half an hour", 5 * minuteMs, 25, event.TriggerInterval, true, 100, 5},
		{"half an hour, where twenty batches take less", minuteMs, 40, event.TriggerInterval, true, 100, 10},
		{"a run from batch 0 on is new, its Started seen or not", minuteMs, 40, event.TriggerInterval, false, 0, 10},
		{"a run that was running already has warmed up", minuteMs, 40, event.TriggerInterval, false, 100, 40},
		{"a short run loses its first batch only", minuteMs, 5, event.TriggerAvailableNow, true, 100, 4},
		{"a default trigger is no exception", 5 * minuteMs, 25, event.TriggerDefault, true, 100, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(New(scriptedPack(t, oneRule), Options{}))
			s.everyMs, s.trigger, s.started, s.next = c.everyMs, c.trigger, c.started, c.first
			for range c.batches {
				s.play(figures{rows: 1})
			}
			if got := taken(s.e); got != c.want {
				t.Errorf("took in %d values, want %d", got, c.want)
			}
		})
	}
}

func TestARestartWarmsUpEvenWithoutItsStarted(t *testing.T) {
	s := newStream(New(scriptedPack(t, oneRule), Options{}))
	s.play(figures{rows: 1})
	s.restart("run-2")
	s.started = false
	for range 31 {
		s.play(figures{rows: 1})
	}
	if got := taken(s.e); got != 1 {
		t.Errorf("took in %d values after the restart, want the one after half an hour", got)
	}
}

func TestAStartedEventDatesTheWarmUp(t *testing.T) {
	s := newStream(New(scriptedPack(t, oneRule), Options{}))
	s.tell(event.KindStarted, event.OutcomeStarted, event.StateRunning)
	s.nowMs += hourMs // the first batch took its time
	s.newRun = false
	for range 21 {
		s.play(figures{rows: 1})
	}
	if got := taken(s.e); got != 1 {
		t.Errorf("took in %d values, want the one after twenty batches", got)
	}
}

func TestShortRunsAreOneSeries(t *testing.T) {
	s := newStream(New(scriptedPack(t, oneRule), Options{}))
	s.trigger = event.TriggerAvailableNow
	for run := range 10 {
		s.restart(strings.Repeat("r", run+1))
		for range 4 {
			s.play(figures{rows: 1})
		}
		s.tell(event.KindTerminated, event.OutcomeTerminated, event.StateTerminated)
		s.nowMs += 24 * hourMs
	}
	if got := taken(s.e); got != 30 {
		t.Errorf("the window holds %d values, want 3 of each of 10 runs", got)
	}
}

func TestAShortRunsEndResolvesNothing(t *testing.T) {
	s := newStream(New(scriptedPack(t, oneRule), Options{}))
	s.trigger = event.TriggerAvailableNow
	playLetters(s, "cF")
	if vs := s.tell(event.KindTerminated, event.OutcomeTerminated, event.StateTerminated); len(vs) > 0 {
		t.Errorf("got %v", lines(vs))
	}
	if got := standing(s.e); len(got) != 1 || !strings.Contains(got[0], "the run has ended") {
		t.Errorf("got %v", got)
	}
}

func TestWindowsBreakAtRunsAndPauses(t *testing.T) {
	restart := func(s *stream) { s.restart("run-2") }
	pause := func(s *stream) { s.nowMs += 10 * hourMs }
	for _, c := range []struct {
		name, keys string
		what       func(*stream)
		want       int // values kept from before
	}{
		{"a restart", "", restart, 0},
		{"a restart, where runs join", ", across_runs: true", restart, 10},
		{"a restart, where pauses join", ", across_pauses: true", restart, 0},
		{"a pause", "", pause, 0},
		{"a pause, where pauses join", ", across_pauses: true", pause, 10},
		{"a pause, where runs join", ", across_runs: true", pause, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStream(New(scriptedPack(t, "      - {alert: A, signal: rows, rising: {}"+c.keys+"}\n"), Options{}))
			for range 10 {
				s.play(figures{rows: 1})
			}
			c.what(s)
			s.play(figures{rows: 1})
			warm := s.newRun || s.run != "run-1"
			if got := taken(s.e); got != c.want+int(1-truth(warm)) {
				t.Errorf("the window holds %d values, want %d from before", got, c.want)
			}
		})
	}
}

func TestSlowStreamsHaveNoPausesInThem(t *testing.T) {
	s := newStream(New(scriptedPack(t, oneRule), Options{}))
	s.everyMs = 4 * hourMs
	for range 30 {
		s.play(figures{rows: 1})
	}
	if got := taken(s.e); got != 30 {
		t.Errorf("the window holds %d values, want 30", got)
	}
}

func TestTheTriggerDecidesWhatApplies(t *testing.T) {
	for _, c := range []struct {
		trigger        event.TriggerKind
		duration, sync int
	}{
		{event.TriggerInterval, 10, 10},
		{event.TriggerDefault, 10, 10},
		{event.TriggerUnknown, 10, 10},
		{event.TriggerRealTime, 0, 10},
		{event.TriggerContinuous, 0, 0},
	} {
		t.Run(c.trigger.String(), func(t *testing.T) {
			s := newStream(New(defaultPack(t), Options{}))
			s.trigger = c.trigger
			for range 10 {
				s.play(figures{})
			}
			got := map[string]int{}
			for _, g := range s.e.Status(true).Groups {
				for _, r := range g.Rules {
					for _, j := range r.Judgements {
						got[r.Alert] += j.Points
					}
				}
			}
			// Judged at the first batch and then each fifth minute: what matters is whether at all.
			if (got["BatchDurationRising"] > 0) != (c.duration > 0) || (got["CommitSyncLatencyRising"] > 0) != (c.sync > 0) {
				t.Errorf("judged %v, want duration %d, sync %d", got, c.duration, c.sync)
			}
		})
	}
}

func TestOperatorsAreJudgedApart(t *testing.T) {
	s := lifeStream(scriptedPack(t, opRule))
	s.play(figures{updated: 2, operators: 2})
	if got := standing(s.e); len(got) != 2 {
		t.Fatalf("got %v, want an alert for each operator", got)
	}
	for _, a := range s.e.Alerts(nil) {
		if a.Labels.Get("operator") != "stateStoreSave" || a.Labels.Get("operator_index") == "" {
			t.Errorf("labels are %v", a.Labels)
		}
	}
	vs := s.play(figures{updated: 2, operators: 1})
	if got := changed(vs, Resolved); len(got) != 1 || got[0].Alert.Labels.Get("operator_index") != "1" {
		t.Errorf("an operator went, got %v", lines(vs))
	}
}

func TestAnotherOperatorAtAPlaceIsAnotherSeries(t *testing.T) {
	s := lifeStream(scriptedPack(t, opRule))
	s.play(figures{updated: 2})
	u := s.update(figures{updated: 2})
	u.Event.Batch.Operators[0].Name = "dedupe"
	vs := s.e.Apply(&u, nil)
	if len(changed(vs, Resolved)) != 1 || len(changed(vs, Firing)) != 1 {
		t.Errorf("got %v, want the old one resolved and a new one", lines(vs))
	}
	if got := s.e.Alerts(nil); len(got) != 1 || got[0].Labels.Get("operator") != "dedupe" {
		t.Errorf("standing: %v", got)
	}
}

func TestLimitsAreKeptAndCounted(t *testing.T) {
	many := func(e *Engine) {
		for i := range 5 {
			s := lifeStream(nil)
			s.e, s.id, s.nowMs = e, strings.Repeat("q", i+1), startMs
			s.play(figures{rows: 2})
		}
	}
	for _, c := range []struct {
		name, rules string
		options     Options
		want        int
		message     string
	}{
		{"of a rule", "      - {alert: A, signal: rows, rising: {}, limit: 3}\n", Options{}, 3, "the rule's limit of 3 alerts is reached"},
		{"of the engine", oneRule, Options{MaxAlerts: 2}, 2, "the limit of 2 alerts in all is reached"},
		{"of queries", oneRule, Options{MaxQueries: 4}, 4, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := New(scriptedPack(t, c.rules), c.options)
			many(e)
			if got := len(e.Alerts(nil)); got != c.want {
				t.Errorf("got %d alerts, want %d", got, c.want)
			}
			if got := e.Status(false).Groups[0].Rules[0].LastError; got != c.message {
				t.Errorf("the rule says %q, want %q", got, c.message)
			}
		})
	}
}

func TestTheLimitOfAGroupCountsAllItsRules(t *testing.T) {
	p := scriptedPack(t, oneRule+"      - {alert: B, signal: rows, rising: {}}\n")
	p.groups[0].limit = 1
	s := lifeStream(p)
	s.play(figures{rows: 2})
	if got := standing(s.e); len(got) != 1 || got[0] != "A firing" {
		t.Errorf("got %v", got)
	}
}

func TestMetricsCountWhatHappened(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	head := "signals: {put: {of: operator, value: rocksdbPutLatency / stores}}\ngroups: [{name: g, rules: [{alert: P, signal: put, rising: {}}]}]"
	p, err := Load(Source{Name: "r.yaml", Data: []byte(head)})
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(New(p, Options{Metrics: m, MaxQueries: 1}))
	s.play(figures{putLatency: 100})
	s.play(figures{putLatency: 5.6e10})
	s.play(figures{})
	other := newStream(s.e)
	other.id = "q-2"
	other.play(figures{putLatency: 100})
	rule := m.of("P")
	for name, c := range map[string]struct {
		metric prometheus.Metric
		want   float64
	}{
		"evaluations": {rule.evaluations, 1}, "implausible": {rule.implausible, 1},
		"queries": {m.queries, 1}, "refused": {m.queriesRefused, 1},
	} {
		if got := counterValue(t, c.metric); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "stategauge_rule_") {
			t.Errorf("a series is called %s", f.GetName())
		}
	}
}

func TestUpdatesThatSayLittleAreHarmless(t *testing.T) {
	e := New(nil, Options{})
	for _, u := range []event.Update{
		{},
		{Event: &event.Event{}},
		{Event: &event.Event{Query: event.QueryRef{ID: "q"}}, Outcome: event.OutcomeExecuted},
		{Event: &event.Event{Query: event.QueryRef{ID: "q"}}, State: event.StateRetired},
		{Event: &event.Event{Query: event.QueryRef{ID: "r"}}, State: event.StateRetired},
	} {
		if vs := e.Apply(&u, nil); len(vs) > 0 {
			t.Errorf("got %v", lines(vs))
		}
	}
	if len(e.queries) != 0 {
		t.Errorf("%d queries are left", len(e.queries))
	}
	undated := newStream(New(scriptedPack(t, oneRule), Options{}))
	for range 30 {
		u := undated.update(figures{rows: 2})
		u.Event.Batch.StartMs, u.Event.AtMs = event.Absent, event.Absent
		undated.e.Apply(&u, nil)
	}
	for _, a := range undated.e.Alerts(nil) {
		if a.PendingAtMs != event.Absent {
			t.Errorf("an undated alert is dated %d", a.PendingAtMs)
		}
	}
	noID := newStream(New(scriptedPack(t, oneRule), Options{}))
	u := noID.update(figures{rows: 2})
	u.Event.Batch.ID = event.Absent
	noID.e.Apply(&u, nil)
	if taken(noID.e) != 0 {
		t.Error("a batch without an id was judged")
	}
}

func TestBatchIdsThatWentBackStillMakeASeries(t *testing.T) {
	s := newStream(New(scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, across_runs: true}\n"), Options{}))
	for range 10 {
		s.play(figures{rows: 1})
	}
	s.restart("run-2")
	s.next = 50
	for range 60 {
		s.play(figures{rows: 1})
	}
	q := s.e.queries["q-1"]
	if q.lastBatch != 109 || q.position-q.shift != 109 {
		t.Errorf("the last batch is %d at %d - %d", q.lastBatch, q.position, q.shift)
	}
	if got := taken(s.e); got != 10+60-30 {
		t.Errorf("the window holds %d values", got)
	}
}

func TestAlertsNameTheirQuery(t *testing.T) {
	s := lifeStream(scriptedPack(t,
		"      - {alert: A, signal: rows, rising: {}, labels: {severity: ticket, team: '{{ .Query.Application }}-team'}}\n"))
	u := s.update(figures{rows: 2})
	u.Event.Extra = []event.Label{{Name: "region", Value: "north"}, {Name: "severity", Value: "page"}}
	vs := s.e.Apply(&u, nil)
	want := "alertname=A application=shop query_id=q-1 query_name=orders region=north severity=ticket spark_cluster=east team=shop-team"
	if got := labelText(vs[len(vs)-1].Alert.Labels); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	nameless := lifeStream(scriptedPack(t, oneRule))
	nameless.name = ""
	vs = nameless.play(figures{rows: 2})
	if got := vs[0].Alert.Labels.Get("query_name"); got != "q-1" {
		t.Errorf("a query without a name is called %q", got)
	}
}

func labelText(l Labels) string {
	parts := make([]string, len(l))
	for i, x := range l {
		parts[i] = x.Name + "=" + x.Value
	}
	return strings.Join(parts, " ")
}

func TestAlertsCarryBatchesAndEventTime(t *testing.T) {
	p := scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, for: 3 batches, keep_firing_for: 2 batches}\n")
	s := lifeStream(p)
	vs := playLetters(s, "ccFFFFcc")
	at := func(batch int64) int64 { return startMs + (batch-100)*5*minuteMs }
	fired, resolved := changed(vs, Firing)[0].Alert, changed(vs, Resolved)[0].Alert
	if fired.FirstBatch != 102 || fired.FiringBatch != 104 || fired.LastBatch != 104 {
		t.Errorf("batches are %d, %d, %d", fired.FirstBatch, fired.FiringBatch, fired.LastBatch)
	}
	if fired.PendingAtMs != at(102) || fired.FiringAtMs != at(104) || fired.ResolvedAtMs != event.Absent {
		t.Errorf("times are %d, %d, %d", fired.PendingAtMs, fired.FiringAtMs, fired.ResolvedAtMs)
	}
	if resolved.ResolvedAtMs != at(107) || resolved.FiringAtMs != at(104) || resolved.LastBatch != 107 {
		t.Errorf("resolved at %d, fired at %d, last batch %d", resolved.ResolvedAtMs, resolved.FiringAtMs, resolved.LastBatch)
	}
	if labelText(fired.Labels) != labelText(resolved.Labels) {
		t.Error("labels changed while the alert lived")
	}
}

func TestGuardsLeaveBatchesOut(t *testing.T) {
	p := scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, when: input_rows > 1 and durationMs.getBatch > 0}\n")
	s := lifeStream(p)
	s.play(figures{rows: 2})
	s.play(figures{rows: 1, phases: map[event.MetricID]float64{event.DurationGetBatch: 5}})
	if got := taken(s.e); got != 0 {
		t.Errorf("took in %d values under a guard that is absent or false", got)
	}
	s.play(figures{rows: 2, phases: map[event.MetricID]float64{event.DurationGetBatch: 5}})
	if got := taken(s.e); got != 1 {
		t.Errorf("took in %d values, want 1", got)
	}
}

func TestTheUpdateMayBeReusedAfterApply(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule+opRule))
	s.play(figures{rows: 2, updated: 2})
	before := standing(s.e)
	s.batch.Reset()
	s.batch.Values[event.NumInputRows] = math.Inf(1)
	if got := standing(s.e); strings.Join(got, ";") != strings.Join(before, ";") {
		t.Errorf("got %v, want %v", got, before)
	}
}

func TestLabelsOfTheCarrierMayChangeBetweenAlerts(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule))
	for _, c := range []struct{ sent, want string }{{"north", "north"}, {"north", "north"}, {"south", "south"}, {"", "south"}} {
		u := s.update(figures{rows: letters['F']})
		if c.sent != "" {
			u.Event.Extra = []event.Label{{Name: "region", Value: c.sent}}
		}
		s.e.Apply(&u, nil)
		if got := s.e.Alerts(nil)[0].Labels.Get("region"); got != c.want {
			t.Errorf("sent %q: region is %q, want %q", c.sent, got, c.want)
		}
		s.play(figures{rows: letters['c']}) // resolves: the next finding is another alert
	}
}

func TestAnAlertKeepsItsLabelsWhileTheQuerysNameComesLate(t *testing.T) {
	s := lifeStream(scriptedPack(t, oneRule))
	s.name = ""
	playLetters(s, "F")
	s.name = "orders"
	playLetters(s, "F")
	if got := s.e.Alerts(nil); len(got) != 1 || got[0].Labels.Get("query_name") != "q-1" {
		t.Errorf("got %v", got)
	}
	if got := changed(playLetters(s, "c"), Resolved); len(got) != 1 || got[0].Alert.Labels.Get("query_name") != "q-1" {
		t.Errorf("resolved %v", lines(got))
	}
}

func TestAFailingLabelIsLeftOut(t *testing.T) {
	// The trial at load has another name for the query.
	p := scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, labels: {severity: ticket, "+
		"team: '{{ if eq .Query.Name \"orders\" }}{{ call .Query.Name }}{{ end }}x'}}\n")
	s := lifeStream(p)
	vs := s.play(figures{rows: 2})
	a := vs[len(vs)-1].Alert
	if a.State != Firing || a.Labels.Get("team") != "" || a.Labels.Get("severity") != "ticket" {
		t.Errorf("got %s: %s", a.State, labelText(a.Labels))
	}
	if got := s.e.Status(false).Groups[0].Rules[0].LastError; !strings.HasPrefix(got, "team: template: ") {
		t.Errorf("the rule says %q", got)
	}
}

func TestRepeatsLateEventsAndWhatCannotBeJudgedStayOutside(t *testing.T) {
	var outside []event.Outcome
	for _, o := range event.Outcomes() {
		if !Judgeable(o) {
			outside = append(outside, o)
		}
	}
	want := []event.Outcome{event.OutcomeDuplicate, event.OutcomeLate, event.OutcomeUnjudgeable, event.OutcomeRefused}
	if !slices.Equal(outside, want) {
		t.Errorf("outside are %v, want %v", outside, want)
	}
}
