package app

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/rules"
)

// trendRules is a pack of the two trends that need least.
func trendRules(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("../../rules/testdata/trends.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func rewrite(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func postReload(t testing.TB, a *App) int {
	t.Helper()
	r, err := http.Post(a.url("/-/reload"), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

func TestABrokenReloadLeavesTheOldConfigurationInForce(t *testing.T) {
	o := withConfig(t, testOptions(t), "queries: [{match: \"*\", labels: {owner: a}}]\n")
	a := start(t, o)
	s := newStream(1)
	post(t, a, s.ndjson(3))
	rewrite(t, o.ConfigFile, "queries: [{match: }\n")
	if code := postReload(t, a); code != http.StatusUnprocessableEntity {
		t.Errorf("status %d, want 422", code)
	}
	post(t, a, s.ndjson(3))
	f := scrape(t, a)
	if value(t, f, "stategauge_config_last_reload_successful") != 0 || value(t, f, "spark_streaming_batches_total", "kind", "data") != 6 {
		t.Error("a broken reload was not told, or cost counts")
	}
	if got := a.overrides.Load().list; len(got) != 1 || got[0].Labels["owner"] != "a" {
		t.Errorf("overrides = %+v", got)
	}
	rewrite(t, o.ConfigFile, "queries: [{match: \"*\", labels: {owner: b}}]\n")
	if code := postReload(t, a); code != http.StatusOK {
		t.Errorf("status %d, want 200", code)
	}
	if f := scrape(t, a); value(t, f, "stategauge_config_last_reload_successful") != 1 {
		t.Error("a good reload was not told")
	}
}

// TestReloadsKeepPendingAlerts also shows that an unchanged rule keeps its window:
// without it the alert could not be pending right after.
func TestReloadsKeepPendingAlerts(t *testing.T) {
	o := testOptions(t)
	o.RuleFiles = []string{t.TempDir() + "/rules.yaml"}
	rewrite(t, o.RuleFiles[0], trendRules(t))
	a := start(t, o)
	s := newStream(1)
	s.operators, s.stepMs = 1, 60_000
	play(t, a, s, 400)
	s.fileSyncMs *= 3
	play(t, a, s, 60)
	before := alertStates(t, a)
	if len(before) == 0 {
		t.Fatal("no alert is pending or firing")
	}
	if code := postReload(t, a); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	if after := alertStates(t, a); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("after the reload %v, before %v", after, before)
	}
	rewrite(t, o.RuleFiles[0], "groups: []\nsignals: {}\n")
	if code := postReload(t, a); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	if after := alertStates(t, a); len(after) != 0 {
		t.Errorf("alerts of rules that are gone: %v", after)
	}
}

// alertStates waits for the rules to catch up and lists what they hold.
func alertStates(t *testing.T, a *App) []string {
	t.Helper()
	await(t, "the rules' queue to be empty", func() error {
		if n := a.judge.length(); n > 0 {
			return fmt.Errorf("%d updates wait", n)
		}
		return nil
	})
	var out []string
	a.judge.ask(func() {
		for _, al := range a.judge.engine.Alerts(nil) {
			out = append(out, al.Labels.Get("alertname")+" "+al.State.String())
		}
	})
	return out
}

func TestFiftyReloadsLeaveNoGoroutineBehind(t *testing.T) {
	am := "alerting:\n  resend_delay: %ds\n  alertmanagers: [{url: \"http://127.0.0.1:9\"}]\nkafka: {brokers: [\"127.0.0.1:9\"], topics: [t%d]}\n"
	o := withConfig(t, testOptions(t), fmt.Sprintf(am, 60, 0))
	a := start(t, o)
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for i := range 50 {
		rewrite(t, o.ConfigFile, fmt.Sprintf(am, 60+i%2, i%2))
		if err := a.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "goroutines to end", func() error {
		if n := runtime.NumGoroutine(); n > before+5 {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
}

func TestMutedQueriesAreNotDelivered(t *testing.T) {
	o := withConfig(t, testOptions(t), "queries: [{match: quiet, mute_until: 2999-01-01T00:00:00Z}]\n")
	a := start(t, o)
	labels := func(name string) rules.Labels { return rules.Labels{{Name: "query_name", Value: name}} }
	quiet, loud := rules.Alert{Labels: labels("quiet")}, rules.Alert{Labels: labels("loud")}
	if ov := a.overrides.Load(); !ov.muted(queryOfAlert(&quiet), time.Now()) || ov.muted(queryOfAlert(&loud), time.Now()) {
		t.Error("muting went to the wrong query")
	}
}

func TestLabelsOfTheRuleWinOverThoseOfTheConfiguration(t *testing.T) {
	got := withLabels(rules.Labels{{Name: "alertname", Value: "A"}, {Name: "team", Value: "x"}}, map[string]string{"team": "y", "owner": "z", "empty": ""})
	if want := "[{alertname A} {owner z} {team x}]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if !strings.HasPrefix(fmt.Sprint(got), "[{alertname") {
		t.Error("labels are not sorted")
	}
}

// TestTwoDaemonsGiveTheSameAlertTheSameLabels lets Alertmanager fold what a pair of
// daemons says. They see the same events in requests of different sizes.
func TestTwoDaemonsGiveTheSameAlertTheSameLabels(t *testing.T) {
	one, two := start(t, testOptions(t)), start(t, testOptions(t))
	raise := func(a *App, chunk int) {
		s := newStream(1)
		s.operators, s.stepMs = 2, 60_000
		for s.batch < 700 {
			if s.batch == 400 {
				s.fileSyncMs *= 3
			}
			if code, _ := post(t, a, s.ndjson(chunk)); code != http.StatusOK {
				t.Fatalf("status %d", code)
			}
		}
	}
	raise(one, 50)
	raise(two, 20)
	alertStates(t, one)
	alertStates(t, two)
	labels := func(a *App) (out []string) {
		a.judge.ask(func() {
			for _, al := range a.judge.engine.Alerts(nil) {
				if al.State == rules.Firing {
					out = append(out, fmt.Sprint(al.Labels))
				}
			}
		})
		sort.Strings(out)
		return out
	}
	first, second := labels(one), labels(two)
	if len(first) < 2 || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("alerts of one daemon %v, of the other %v", first, second)
	}
}
