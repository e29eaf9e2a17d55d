package score

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/simulator/scenario"
)

func TestDelaysThatHaveAGoalAreOfScenariosThatCome(t *testing.T) {
	for i := range delayCases {
		c := &delayCases[i]
		sc, err := c.load()
		if err != nil {
			t.Fatal(err)
		}
		if len(sc.Faults) != 1 || sc.Query.Trigger.Interval == 0 || len(c.goals) == 0 {
			t.Errorf("%s: %d faults at intervals of %v, %d goals", c.scenario, len(sc.Faults), sc.Query.Trigger.Interval.Std(), len(c.goals))
		}
		if from := sc.Expect[0].FromBatch; c.batches > 0 && from >= c.batches {
			t.Errorf("%s ends after %d batches, before its fault at %d", c.scenario, c.batches, from)
		}
		if c.every > 0 && sc.Query.Trigger.Interval.Std() != c.every {
			t.Errorf("%s at %v, want %v", c.scenario, sc.Query.Trigger.Interval.Std(), c.every)
		}
	}
}

func TestAQuantileLiesBetweenTwoValuesAndIsEndlessWhereTooMuchIsMissed(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v     []float64
		share float64
		want  float64
	}{
		{nil, 0.5, -1},
		{[]float64{7}, 0.9, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 2, 3}, 0.5, 2.5},
		{[]float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 0.9, 90},
		{[]float64{1, 2, inf}, 0.5, 2},
		{[]float64{1, inf, inf}, 0.5, -1},
		{[]float64{1, 2, inf}, 0.9, -1},
	} {
		if got := quantile(c.v, c.share); got != c.want {
			t.Errorf("%v of %v: %v, want %v", c.share, c.v, got, c.want)
		}
	}
}

func TestADelayIsThatOfTheFirstAlertThatIsGraveEnough(t *testing.T) {
	sc := &scenario.Scenario{}
	sc.Query.Trigger.Interval = strictyaml.Duration(time.Minute)
	play := func(x outcome, early ...string) delayPlay {
		p := delayPlay{Outcome: x, Early: map[string]bool{}, Rise: 0.5}
		for _, s := range early {
			p.Early[s] = true
		}
		return p
	}
	plays := []delayPlay{
		play(outcome{Symptom: "s", Found: true, Delay: 10, TicketDelay: 50, AfterMs: 240_000}),
		play(outcome{Symptom: "s", Found: true, Delay: 20, TicketDelay: 60, AfterMs: 300_000}, "info"),
		play(outcome{Symptom: "s", Found: true, Delay: 30, TicketDelay: -1, AfterMs: 360_000}, "info", "ticket"),
	}
	c := delayCase{scenario: "x", fault: "y", unit: inBatches, goals: []delayGoal{{"info", 40}, {"ticket", 65}}}
	common := GoalRow{Symptom: "s", Scenario: "x", Fault: "y", Trigger: "1m0s", Unit: inBatches, Plays: 3, Rise: 0.5}
	info, ticket := common, common
	info.Severity, info.Found, info.Median, info.P90, info.Goal, info.Early = "info", 3, 20, 28, 40, 2
	ticket.Severity, ticket.Found, ticket.Median, ticket.P90, ticket.Goal, ticket.Early = "ticket", 2, 60, -1, 65, 1
	if diff := cmp.Diff([]GoalRow{info, ticket}, c.rows(sc, plays)); diff != "" {
		t.Error(diff)
	}
	c = delayCase{unit: inIntervals, goals: []delayGoal{{"page", 5}}}
	if row := c.rows(sc, plays)[0]; row.Median != 5 || row.Rise != 0 {
		t.Errorf("%+v", row)
	}
}

// The fault is a ramp of 10 batches, and twice as much in the end.
func TestAPlayTellsItsDelayAndHowMuchTheUploadsRose(t *testing.T) {
	sc := &scenario.Scenario{
		Faults: []scenario.Fault{{FromBatch: 1150, Ramp: 10}}, Expect: scenario.Expectations{{Symptom: "commit-sync-rising", FromBatch: 1150}},
	}
	sc.Query.Trigger.Interval = strictyaml.Duration(time.Minute)
	ramp := func(_, n int) float64 { return 1 + min(1, max(0, float64(n-150)/10)) }
	p, err := delayOf(packOf(t, quickRules), streamOf(ramp, always), sc)
	if err != nil {
		t.Fatal(err)
	}
	x := p.Outcome
	if !x.Found || x.Delay < 5 || x.Delay > 40 || x.TicketDelay <= x.Delay || math.Abs(p.Rise-1) > 0.02 || len(p.Early) != 0 {
		t.Errorf("%+v", p)
	}
	// It fires once its batch of two seconds is over.
	if want := (float64(x.Delay)*60 + 2) * 1000; math.Abs(float64(x.AfterMs)-want) > 15_500 {
		t.Errorf("%d ms after the fault's first batch was due, want %v or a tick later", x.AfterMs, want)
	}
	if p, err = delayOf(packOf(t, quickRules), streamOf(onceFrom(1, 100, 2), always), sc); err != nil || !p.Early["info"] || !p.Early["ticket"] {
		t.Errorf("alerts before the fault: %+v, error %v", p, err)
	}
}

func TestGoalsStandInTablesOfTheirOwn(t *testing.T) {
	r := &Report{FirstSeed: 1001, Goals: []GoalRow{
		{Symptom: "commit-sync-rising", Fault: "+50 %", Trigger: "1m0s", Severity: "info", Plays: 20, Found: 20, Median: 36, P90: 41.25, Goal: 40, Rise: 0.482},
		{Symptom: "stalled", Fault: "a batch hangs", Trigger: "10s", Severity: "page", Plays: 20, Found: 18, Median: 24, P90: -1, Goal: 5, Early: 1},
	}}
	var b strings.Builder
	r.goals(&b)
	for _, want := range []string{
		"## Delay of commit-sync-rising\n", "## Delay of a hung batch\n",
		"| 1001 to 1020 | +50 % | 1m0s    | 48 % | info  | 20    | 20    | 36     | 41.3            | 40                 | 0     |\n",
		"| 1001 to 1020 | a batch hangs | 10s     |      | page  | 20    | 18    | 24     | -               | 5                  | 1     |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
