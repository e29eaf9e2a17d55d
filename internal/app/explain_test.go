package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// simpleRules find at once what the tests do to a stream: a cause, its consequence,
// and a limit that only the configuration knows.
const simpleRules = `signals:
  sync: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}
  duration: {of: query, value: duration_ms / 1000, unit: seconds}
  memory: {of: operator, value: memoryUsedBytes, unit: bytes}
groups:
  - name: simple
    rules:
      - alert: SyncSlow
        signal: sync
        above: {limit: 400ms}
        labels: {severity: ticket, symptom: sync}
        annotations: {summary: "uploads take {{ show .Unit .Value }}", cause: "a <slow> store", fix: "look", runbook_url: "javascript:alert(1)"}
      - alert: BatchSlow
        signal: duration
        above: {limit: 6s}
        labels: {severity: ticket, symptom: duration}
      - alert: MemoryHigh
        signal: memory
        above: {limit: memory_limit_bytes}
        labels: {severity: info, symptom: memory}
inhibit:
  - {causes: [sync], consequences: [duration]}
`

// troubled is a daemon with simpleRules whose one query has become slow.
func troubled(t *testing.T, config string) *App {
	t.Helper()
	o := withConfig(t, testOptions(t), config)
	o.RuleFiles = []string{t.TempDir() + "/it's simple.yaml"}
	rewrite(t, o.RuleFiles[0], simpleRules)
	o.JudgeEvery = 20 * time.Millisecond
	s := newStream(1)
	s.operators, s.stepMs = 1, 60_000
	s.start = time.Now().Add(-50 * time.Minute)
	a := start(t, o)
	play(t, a, s, 40)
	s.fileSyncMs *= 4
	play(t, a, s, 2)
	alertStates(t, a) // the cause fires before the consequence
	s.addBatchMs *= 4
	play(t, a, s, 2)
	alertStates(t, a)
	return a
}

// rulesData is what /api/v1/rules answers.
func rulesData(t *testing.T, a *App, query string) map[string]ruleJSON {
	t.Helper()
	_, body := get(t, a, "/api/v1/rules"+query)
	var got struct{ Data struct{ Groups []groupJSON } }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	out := map[string]ruleJSON{}
	for _, g := range got.Data.Groups {
		for _, r := range g.Rules {
			out[r.Name] = r
		}
	}
	return out
}

func TestRulesTellWhatTheyLastSaidAndByWhichNumbers(t *testing.T) {
	a := troubled(t, "")
	r := rulesData(t, a, "")["SyncSlow"]
	if r.State != "firing" || r.Signal != "sync" || r.Unit != "seconds" || r.Detector != "above" || len(r.Alerts) != 1 || len(r.Judgements) != 1 {
		t.Fatalf("got %+v", r)
	}
	j := r.Judgements[0]
	if j.QueryName != "orders_1" || j.Said != "found" || j.State != "firing" || j.OperatorIndex == nil || j.Value == nil || *j.Value != 0.8 || j.Limit == nil || *j.Limit != 0.4 {
		t.Errorf("got %+v", j)
	}
	if want := `stategauge backtest --all '--rules=` + strings.ReplaceAll(a.opts.RuleFiles[0], "'", `'\''`) + `' EVENTS`; r.Reproduce != want {
		t.Errorf("reproduce: %s, want %s", r.Reproduce, want)
	}
	al := r.Alerts[0]
	if al.FiringAt == nil || al.FirstBatch == nil || *al.FirstBatch < 30 || al.LastBatch == nil || al.Withheld != "" {
		t.Errorf("got %+v", al)
	}
}

func TestARuleThatCannotTellSaysWhatItWouldNeed(t *testing.T) {
	a := troubled(t, "")
	j := rulesData(t, a, "")["MemoryHigh"].Judgements
	if len(j) != 1 || j[0].Said != "cannot tell" || !strings.Contains(j[0].Why, "memory_limit") {
		t.Errorf("got %+v", j)
	}
}

func TestWhatTheConfigurationKnowsReachesTheRules(t *testing.T) {
	a := troubled(t, "queries:\n  - {match: \"*\", memory_limit: 1GiB, critical: true}\n  - {match: \"orders_?\", memory_limit: 128MiB}\n")
	j := rulesData(t, a, "")["MemoryHigh"].Judgements
	if len(j) != 1 || j[0].Said != "found" || j[0].Limit == nil || *j[0].Limit != 128<<20 {
		t.Errorf("got %+v", j)
	}
}

func TestAConsequenceIsShownAsInhibitedAndNotDelivered(t *testing.T) {
	a := troubled(t, "")
	_, body := get(t, a, "/api/v1/alerts?rule=BatchSlow")
	if !strings.Contains(body, `"inhibited_by":"SyncSlow"`) || !strings.Contains(body, `"withheld":"inhibited"`) {
		t.Errorf("got %s", body)
	}
	await(t, "the series of both", func() error {
		page := scrape(t, a)
		if !hasAlert(page, "BatchSlow", "inhibited") || !hasAlert(page, "SyncSlow", "firing") {
			return errNotYet
		}
		return nil
	})
	a.judge.ask(func() {
		for _, al := range a.delivery.told {
			if al.Labels.Get("alertname") == "BatchSlow" {
				t.Error("the consequence was delivered")
			}
		}
	})
}

func TestAnswersCanBeNarrowed(t *testing.T) {
	a := troubled(t, "")
	for _, c := range []struct {
		query        string
		rules, judge int // rules, and judgements of SyncSlow
	}{
		{"", 3, 1},
		{"?query=orders_1", 3, 1},
		{"?query=00000001-1111-4222-8333-444444444444", 3, 1},
		{"?query=nobody", 3, 0},
		{"?rule=SyncSlow", 1, 1},
		{"?rule_name[]=SyncSlow&rule_name[]=BatchSlow", 2, 1},
		{"?rule_group[]=other", 0, 0},
		{"?file[]=" + url.QueryEscape(a.opts.RuleFiles[0]), 3, 1},
		{"?type=record", 0, 0},
		{"?type=alert&judgements=false", 3, 0},
	} {
		got := rulesData(t, a, c.query)
		if len(got) != c.rules || len(got["SyncSlow"].Judgements) != c.judge {
			t.Errorf("%s: %d rules, %d judgements", c.query, len(got), len(got["SyncSlow"].Judgements))
		}
	}
	if _, body := get(t, a, "/api/v1/alerts?query=nobody"); !strings.Contains(body, `"alerts":[]`) {
		t.Errorf("alerts of nobody: %s", body)
	}
}

func TestThePageShowsAlertsAndQueriesToAPerson(t *testing.T) {
	a := troubled(t, "")
	r, err := http.Get(a.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("policy %q", csp)
	}
	_, page := get(t, a, "/")
	for _, want := range []string{
		"(1) stategauge", "SyncSlow", "uploads take 800ms", "a &lt;slow&gt; store", "not delivered: inhibited", "by SyncSlow", "orders_1", "running", "2 firing", `http-equiv="refresh"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"<slow>", "javascript:", "http://", "https://", "<script"} {
		if strings.Contains(page, never) {
			t.Errorf("the page holds %q", never)
		}
	}
	if strings.Index(page, "uploads take") > strings.Index(page, "not delivered") {
		t.Error("what rings does not come first")
	}
	if _, page = get(t, a, "/?query=nobody%3Cb%3E"); strings.Contains(page, "SyncSlow") || !strings.Contains(page, "nobody&lt;b&gt;") {
		t.Error("a page of one query shows another, or is not escaped")
	}
}

func TestThePageOfAFreshDaemonSaysHowToBegin(t *testing.T) {
	a := start(t, testOptions(t))
	if _, page := get(t, a, "/"); !strings.Contains(page, "api/v1/events") || !strings.Contains(page, "None.") {
		t.Errorf("got %s", page)
	}
}
