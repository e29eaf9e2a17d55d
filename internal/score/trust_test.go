package score

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/rules"
)

func reportForTest() *Report {
	return &Report{
		Seeds: 3, FirstSeed: 1001, Beside: &Report{Seeds: 2, FirstSeed: 1},
		Pack: []RuleRow{
			{"Watchdog", "watchdog", "info"}, {"Slow", "slow", "ticket"}, {"SlowEarly", "slow", "info"}, {"Never", "never-played", "page"},
		},
		Sizes:     []SizeRow{{Size: 0, Expected: 3, Found: 3, FoundShare: 1, RightShare: 1, Visible: 3, VisibleShare: 1}, {Size: 1.5, Expected: 6, Found: 5, FoundShare: 0.833, RightShare: 0.667, Visible: 5, VisibleShare: 0.8}},
		Scenarios: []ScenarioRow{{Scenario: "a", Size: 1.5, Wrong: map[string]int{"ticket other": 2, "info slow early": 1}}, {Scenario: "b", Size: 1.5, Wrong: map[string]int{"page other": 1}}},
		Delays: []DelayRow{
			{Scenario: "a", Symptom: "slow", Size: 1.5, Expected: 3, Found: 3, Any: 10, Ticket: 30},
			{Scenario: "c", Symptom: "slow", Size: 1.5, Expected: 3, Found: 2, Any: 20, Ticket: -1},
		},
		Healthy: []Exposure{
			{Source: "scenarios", Trigger: "all", QueryDays: 10, Rules: map[string]int{"Slow": 9}},
			{Source: "made", Trigger: "1m0s", QueryDays: 2000, By: map[string]int{"ticket": 1, "info": 4}, Rules: map[string]int{"Slow": 1, "SlowEarly": 4}},
			{Source: "made", Trigger: "10s", QueryDays: 500, By: map[string]int{}, Rules: map[string]int{}},
		},
	}
}

const errorTablesWanted = `Seeds 1001 to 1003; rules were tuned on seeds 1 to 2.

| faults | number | found and rightly named | and no ticket or page wrong beside | visible beyond the noise | found of them |
|---|---|---|---|---|---|
| of a size of their own | 3 | 1.000 | 1.000 | 3 | 1.000 |
| x1.5 | 6 | 0.833 | 0.667 | 5 | 0.800 |

| healthy queries, trigger | query-days | pages per 1,000 (the true rate, at most) | tickets per 1,000 (at most) | information per 1,000 |
|---|---|---|---|---|
| 1m | 2000 | 0 (1.5) | 0.5 (2.4) | 2 |
| 10s | 500 | 0 (6) | 0 (6) | 0 |
`

const symptomTableWanted = `
| symptom | rules | own | x1.5 | alert | ticket or page | healthy, 1m | healthy, 10s | confused with |
|---|---|---|---|---|---|---|---|---|
| never-played | Never (page) |  |  | - | - | 0 | 0 |  |
| slow | Slow (ticket), SlowEarly (info) |  | 5/6 | 10 | 30 | 2.5 | 0 | info slow early 1, ticket other 2 |
`

func TestWhatWasMeasuredIsPutBetweenTheMarksOfAPage(t *testing.T) {
	page := []byte("# Rules\n\n" + tableBegins + "\nold\n" + tableEnds + "\n\nMore.\n")
	got, err := PutErrorTable(page, reportForTest())
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	if !strings.HasPrefix(text, "# Rules\n\n"+tableBegins+"\n\n"+errorTablesWanted) || !strings.HasSuffix(text, symptomTableWanted+"\n"+tableEnds+"\n\nMore.\n") {
		t.Errorf("%s", text)
	}
	again, err := PutErrorTable(got, reportForTest())
	if err != nil || cmp.Diff(text, string(again)) != "" {
		t.Errorf("put in again it differs: %s, error %v", cmp.Diff(text, string(again)), err)
	}
}

func TestAPageWithoutItsMarksIsAnErrorAndLeftAlone(t *testing.T) {
	for _, c := range []struct{ name, page, want string }{
		{"none", "# Rules\n", `the page has the line "` + tableBegins + `" 0 times, and must have it once`},
		{"one", tableBegins + "\n", `the page has the line "` + tableEnds + `" 0 times, and must have it once`},
		{"twice", tableBegins + tableBegins + tableEnds, `the page has the line "` + tableBegins + `" 2 times, and must have it once`},
		{"turned round", tableEnds + "\n" + tableBegins, "the mark of the table's end stands before that of its beginning"},
	} {
		if got, err := PutErrorTable([]byte(c.page), reportForTest()); err == nil || err.Error() != c.want || got != nil {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
}

// A rule that nobody measured must not come along unnoticed.
func TestTheReferenceOfRulesHasAMeasurementOfEveryRuleThatComes(t *testing.T) {
	page, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	begin, end, err := errorTable(page)
	if err != nil {
		t.Fatalf("docs/rules.md: %v", err)
	}
	var sources []rules.Source
	for _, f := range configs.Rules() {
		sources = append(sources, rules.Source{Name: f.Name, Data: f.Data})
	}
	pack, err := rules.Load(sources...)
	if err != nil {
		t.Fatal(err)
	}
	all := rulesOf(pack)
	if len(all) != pack.Len() {
		t.Fatalf("%d rules listed of %d", len(all), pack.Len())
	}
	measured := page[begin:end]
	for _, r := range all {
		if r.Symptom == "watchdog" {
			continue
		}
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(r.Symptom) + ` \|[^|]*\b` + regexp.QuoteMeta(r.Alert) + ` \(`)
		if !row.Match(measured) {
			t.Errorf("rule %s (%s) has no measurement in docs/rules.md: run make score", r.Alert, r.Symptom)
		}
	}
}
