package score

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/rules"
)

const hungFlow = `groups:
  - name: g
    rules:
      - alert: Other
        silent: {with: anything, at_least: 10m}
        labels: {severity: page, symptom: stalled}
      # at_least: of the next rule
      - alert: QueryHung
        silent: {with: heartbeats, at_least: 4m, factor: 5}
        labels: {severity: page, symptom: stalled}
      - alert: Last
        silent: {with: record, at_least: 30m}
        labels: {severity: ticket, symptom: stalled}
`

func TestOnlyTheLeastSilenceOfOneRuleIsVaried(t *testing.T) {
	block := strings.Replace(hungFlow, "silent: {with: heartbeats, at_least: 4m, factor: 5}", "silent:\n          with: heartbeats\n          at_least: 4m # long\n          factor: 5", 1)
	for name, text := range map[string]string{
		"flow":  hungFlow,
		"block": block,
		"last":  hungFlow[:strings.Index(hungFlow, "      - alert: Last")],
		"short": "groups:\n  - name: g\n    rules:\n      - {alert: QueryHung, silent: {with: heartbeats, at_least: 4m}, labels: {severity: page, symptom: stalled}}\n",
	} {
		got, places := putAtLeast([]byte(text), "QueryHung", "90s")
		if want := strings.Replace(text, "at_least: 4m", "at_least: 90s", 1); places != 1 || string(got) != want {
			t.Errorf("%s: %d places, %s", name, places, cmp.Diff(want, string(got)))
		}
		packOf(t, string(got))
	}
	if got, places := putAtLeast([]byte(hungFlow), "Query", "90s"); places != 0 || string(got) != hungFlow {
		t.Errorf("a rule that is not there: %d places, %s", places, got)
	}
}

func TestTheRulesThatComeAreVaried(t *testing.T) {
	o := Options{Rules: wholeSources(), Delays: 1}
	got, err := o.hungRules(wholePack(t))
	if err != nil || len(got) != len(hungLeast) {
		t.Fatalf("%d variants, error %v", len(got), err)
	}
	for _, v := range got {
		var all, was []byte
		for i, s := range v.from {
			all, was = append(all, s.Data...), append(was, o.Rules[i].Data...)
		}
		if !bytes.Contains(all, []byte("silent: {with: heartbeats, factor: 5, at_least: "+v.atLeast+"}")) {
			t.Errorf("at least %s is not in the rules", v.atLeast)
		}
		if same := bytes.Equal(all, was); same != v.own {
			t.Errorf("at least %s: the rules' own %t, the same text %t", v.atLeast, v.own, same)
		}
	}
}

func TestRulesWhoseLeastSilenceCannotBeVariedAreAnError(t *testing.T) {
	const want = "rule QueryHung: at_least was found 0 times in the text of the rules, and must be there once to be varied"
	for name, text := range map[string]string{
		"without":          strings.Replace(hungFlow, "at_least: 4m, ", "", 1),
		"named at its end": strings.Replace(hungFlow, "- alert: QueryHung\n        silent: {with: heartbeats, at_least: 4m, factor: 5}", "- silent: {with: heartbeats, at_least: 4m, factor: 5}\n        alert: QueryHung", 1),
	} {
		o := tinyOptions(t)
		o.Rules, o.Delays = []rules.Source{{Name: "r.yaml", Data: []byte(text)}}, 1
		if r, err := Run(t.Context(), o); err == nil || err.Error() != want || len(r.Scenarios) > 0 {
			t.Errorf("%s: error %v, want %s before anything is played", name, err, want)
		}
	}
	o := Options{Rules: []rules.Source{{Name: "r.yaml", Data: []byte(quickRules)}}, Delays: 1}
	if got, err := o.hungRules(packOf(t, quickRules)); got != nil || err != nil {
		t.Errorf("rules without such a rule: %d variants, error %v", len(got), err)
	}
}

func TestReportsComeBackFromJSONAsTheyWere(t *testing.T) {
	r := &Report{
		Rules: 3, Seeds: 3, FirstSeed: 1001,
		Goals: []GoalRow{{Symptom: "stalled", Fault: "a batch hangs", Trigger: "10s", Severity: "page", Unit: inIntervals, Plays: 20, Found: 20, Median: 24.5, P90: 25}},
		Hung: []HungRow{
			{Trigger: "10s", AtLeast: "1m", Plays: 20, Found: 20, Median: 7.25, Seconds: 72.5, Pages: 2, Days: 100},
			{Trigger: "10s", AtLeast: "4m", Own: true, Plays: 20, Found: 8, Median: -1, Seconds: -1},
		},
		Healthy: []Exposure{{Source: "made", Trigger: "1m0s", Batches: 14_400, QueryDays: 10, ListenedDays: 5, By: map[string]int{}, Rules: map[string]int{}}},
	}
	r.Beside = &Report{FirstSeed: 1, Hung: r.Hung[:1]}
	write := func(r *Report) (data, text string) {
		var a, b bytes.Buffer
		if err := errors.Join(r.WriteJSON(&a), r.WriteText(&b)); err != nil {
			t.Fatal(err)
		}
		return a.String(), b.String()
	}
	data, text := write(r)
	back := &Report{}
	if err := json.Unmarshal([]byte(data), back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Hung, back.Hung); diff != "" || back.Healthy[0].ListenedDays != 5 {
		t.Errorf("%s %+v", diff, back.Healthy)
	}
	if again, textAgain := write(back); again != data || textAgain != text {
		t.Errorf("%s%s", cmp.Diff(data, again), cmp.Diff(text, textAgain))
	}
	for _, want := range []string{
		"| 1001 to 1020 | a batch hangs | 10s     |      | page  | 20    | 20    | 24.5   | 25              | -                  | 0     |\n",
		"## Delay of a hung batch and the least length of a silence\n",
		"| 1001 to 1020 | 10s     | 1m                        | 20    | 20    | 7.3                       | 72.5              | 100                | 2             | 20.0      | 63.0       |\n",
		"| 1001 to 1020 | 10s     | 4m (as it is)             | 20    | 8     | -                         | -                 | 0                  | 0             | -         | -          |\n",
		"| 1 to 20      | 10s     | 1m                        | 20    | 20    | 7.3                       | 72.5              | 100                | 2             | 20.0      | 63.0       |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestAShortLeastSilencePagesForPausesOfHealthyQueries(t *testing.T) {
	o := Options{Rules: []rules.Source{{Name: "r.yaml", Data: []byte(hungFlow)}}, FirstSeed: 1, TradeOff: 200_000}.withDefaults()
	x := runnerForTest(t, o, packOf(t, hungFlow))
	var rows []HungRow
	for _, least := range []string{"10s", "4m"} {
		data, _ := putAtLeast([]byte(hungFlow), hungRule, least)
		x.hung = append(x.hung, hungRules{atLeast: least, from: []rules.Source{{Name: "r.yaml", Data: data}}})
		rows = append(rows, HungRow{AtLeast: least})
	}
	if err := x.hungHealthy(t.Context(), rows, slowDonor(t, 2000)); err != nil {
		t.Fatal(err)
	}
	if short := &rows[0]; short.Pages == 0 || float64(short.Pages) > mostPauses*short.Days {
		t.Errorf("%d pages in %v query-days, where each query pauses at most once a day", short.Pages, short.Days)
	}
	if long := &rows[1]; long.Pages > 0 || long.Days < 10 {
		t.Errorf("%d pages in %v query-days, where no pause is so long", long.Pages, long.Days)
	}
}
