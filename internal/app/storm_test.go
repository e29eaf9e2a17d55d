package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// notices counts the messages that a receiver gets, and the alerts in them.
type notices struct {
	mu       sync.Mutex
	messages int
	alerts   map[string]bool // by query
}

func (n *notices) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var got paged
	if json.NewDecoder(r.Body).Decode(&got) != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.messages++
	for _, al := range got.Alerts {
		n.alerts[al.Labels["query_name"]] = true
	}
}

func (n *notices) counts() (messages, alerts int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.messages, len(n.alerts)
}

// TestAStormOfOneCauseFoldsIntoOneMessage lets all queries of a cluster become slow
// in the same minute: their alerts share the labels that an Alertmanager groups by.
func TestAStormOfOneCauseFoldsIntoOneMessage(t *testing.T) {
	const queries = 200
	n := &notices{alerts: map[string]bool{}}
	hook := httptest.NewServer(n)
	defer hook.Close()
	bin, am, dir := server(t, "prometheus-alertmanager", "alertmanager"), freePort(t), t.TempDir()
	conf := filepath.Join(dir, "alertmanager.yml")
	text := fmt.Sprintf("route: {receiver: hook, group_by: [alertname, spark_cluster], group_wait: 20s}\nreceivers: [{name: hook, webhook_configs: [{url: %q}]}]\n", hook.URL)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, am, bin, "--config.file="+conf, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+am, "--cluster.listen-address=")
	o := withConfig(t, testOptions(t), fmt.Sprintf("alerting: {alertmanagers: [{url: \"http://%s\"}]}\nlabels: {spark_cluster: [\"query:cluster\"]}\n", am))
	o.RuleFiles = []string{t.TempDir() + "/simple.yaml"}
	rewrite(t, o.RuleFiles[0], simpleRules)
	a := start(t, o)
	for i := range queries {
		s := newStream(i + 1)
		s.operators, s.stepMs, s.start = 1, 60_000, time.Now().Add(-45*time.Minute)
		body := append([]byte{}, s.ndjson(40)...)
		s.fileSyncMs *= 4
		body = append(append(body, '\n'), s.ndjson(2)...)
		if code, got := postTo(t, a, "/api/v1/events?cluster=east", body); code != http.StatusOK || got.Accepted != 42 {
			t.Fatalf("status %d, %+v", code, got)
		}
	}
	await(t, "all alerts to be told of", func() error {
		if messages, alerts := n.counts(); alerts != queries {
			return fmt.Errorf("%d alerts in %d messages", alerts, messages)
		}
		return nil
	})
	if messages, _ := n.counts(); messages != 1 {
		t.Errorf("%d messages for one cause", messages)
	}
	f := scrape(t, a)
	if sent, requests := value(t, f, "stategauge_notifications_sent_total"), value(t, f, "stategauge_notifications_latency_seconds"); sent < queries || requests < 4 || requests > queries {
		t.Errorf("%g alerts in %g requests", sent, requests)
	}
}

// TestABlockedJudgeResolvesNothing holds the judging goroutine up for longer than
// several ticks: what fires stays so, and the ticks that were missed are counted.
func TestABlockedJudgeResolvesNothing(t *testing.T) {
	am := runAlertmanager(t)
	a := troubled(t, fmt.Sprintf("alerting: {resend_delay: 1s, alertmanagers: [{url: \"http://%s\"}]}\n", am))
	awaitAlerts(t, am, "SyncSlow", 1)
	held := make(chan struct{})
	go a.judge.ask(func() { <-held })
	// The lease is four seconds; the delivery renews it meanwhile.
	for began := time.Now(); time.Since(began) < 6*time.Second; {
		awaitAlerts(t, am, "SyncSlow", 1)
	}
	close(held)
	awaitSeries(t, a, "stategauge_alerts", 1, "alertname", "SyncSlow", "alertstate", "firing")
	awaitAlerts(t, am, "SyncSlow", 1)
	await(t, "missed ticks", func() error {
		if value(t, scrape(t, a), "stategauge_rule_ticks_missed_total") == 0 {
			return errNotYet
		}
		return nil
	})
}
