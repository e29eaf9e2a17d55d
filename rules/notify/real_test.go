package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stategauge/stategauge/rules"
)

// realAM is an Alertmanager process on loopback.
type realAM struct {
	url, address string
	dir          string // with its configuration and what it keeps
	webhooks     chan webhook
	stop         func() // ends the process
}

// webhook is what Alertmanager posts to a receiver.
type webhook struct {
	Status string `json:"status"`
	Alerts []struct {
		Status   string            `json:"status"`
		Labels   map[string]string `json:"labels"`
		StartsAt time.Time         `json:"startsAt"`
		EndsAt   time.Time         `json:"endsAt"`
	} `json:"alerts"`
}

// startReal starts the Alertmanager that is on the PATH. Without one the test is
// skipped, or fails where STATEGAUGE_REQUIRE_REAL is set.
func startReal(t *testing.T) *realAM {
	t.Helper()
	findReal(t)
	am := &realAM{webhooks: make(chan webhook, 100)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var w webhook
		if err := json.NewDecoder(r.Body).Decode(&w); err != nil {
			t.Errorf("webhook: %v", err)
		}
		am.webhooks <- w
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	text := fmt.Sprintf(`
route: {receiver: hook, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: hook, webhook_configs: [{url: %q, send_resolved: true}]}]
`, receiver.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	am.address = freeAddress(t)
	am.url, am.dir = "http://"+am.address, dir
	am.launch(t)
	return am
}

// launch starts the process, again too: it finds what it kept.
func (am *realAM) launch(t *testing.T) {
	t.Helper()
	var output bytes.Buffer
	cmd := exec.Command(findReal(t), "--config.file="+filepath.Join(am.dir, "alertmanager.yml"), "--storage.path="+filepath.Join(am.dir, "data"),
		"--web.listen-address="+am.address, "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	am.stop = sync.OnceFunc(func() { end(cmd.Process, exited) })
	t.Cleanup(am.stop)
	until(t, "ready", func() bool {
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("alertmanager ended: %v\n%s", err, output.String())
		default:
		}
		resp, err := http.Get(am.url + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func findReal(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"prometheus-alertmanager", "alertmanager"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("STATEGAUGE_REQUIRE_REAL") != "" {
		t.Fatal("no Alertmanager on the PATH, and STATEGAUGE_REQUIRE_REAL is set")
	}
	t.Skip("no Alertmanager on the PATH")
	return ""
}

// end stops the one process that the test started.
func end(p *os.Process, exited <-chan error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return // it has ended
	}
	select {
	case <-exited:
	case <-time.After(5 * time.Second):
		if p.Kill() == nil {
			<-exited
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// until polls for at most 30 seconds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never %s", what)
		}
	}
}

// active reports whether the Alertmanager holds the alert as firing.
func (am *realAM) active(t *testing.T, name string) bool {
	t.Helper()
	resp, err := http.Get(am.url + "/api/v2/alerts?active=true&filter=alertname%3D" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return len(list) == 1 && list[0].Labels["severity"] == "ticket"
}

func (am *realAM) awaitWebhook(t *testing.T, status string) webhook {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case w := <-am.webhooks:
			if w.Status == status {
				return w
			}
			t.Errorf("webhook says %s", w.Status)
		case <-deadline:
			t.Fatalf("no webhook says %s", status)
		}
	}
}

func TestRealAlertmanagerReceivesHoldsAndResolves(t *testing.T) {
	am := startReal(t)
	// A lease of two seconds, renewed twice a second.
	b := start(t, Options{Targets: []Target{{URL: am.url}}, Tick: 500 * time.Millisecond, ResendDelay: 500 * time.Millisecond})
	defer b.stop()
	began := time.Now()
	b.fire("CommitSyncLatencyRising")
	w := am.awaitWebhook(t, "firing")
	if s := w.Alerts[0].StartsAt; s.Sub(began).Abs() > time.Second {
		t.Errorf("starts at %v, fired at %v", s, began)
	}
	held := time.After(5 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for holding := true; holding; {
		if !am.active(t, "CommitSyncLatencyRising") {
			t.Fatal("the Alertmanager let go of it")
		}
		select {
		case <-held:
			holding = false
		case <-tick.C:
		}
	}
	resolved := time.Now()
	b.resolve("CommitSyncLatencyRising")
	w = am.awaitWebhook(t, "resolved")
	if e := w.Alerts[0].EndsAt; e.Sub(resolved).Abs() > time.Second {
		t.Errorf("ends at %v, resolved at %v", e, resolved)
	}
	until(t, "resolved in the API", func() bool { return !am.active(t, "CommitSyncLatencyRising") })
	if got := b.metric(t, "stategauge_notifications_failed_total"); got != 0 {
		t.Errorf("%v requests failed", got)
	}
}

func TestRealAlertmanagerTakesWhatItsRulesForbidFromUsMadeFit(t *testing.T) {
	am := startReal(t)
	b := start(t, Options{Targets: []Target{{URL: am.url}}})
	defer b.stop()
	odd := alert("Odd", rules.Firing)
	odd.Labels = append(odd.Labels,
		rules.Label{Name: "bad name", Value: "v"}, rules.Label{Name: "empty"}, rules.Label{Name: "text", Value: "a\xffb"})
	b.Notify(t.Context(), append(alerts(rules.Firing, "Plain"), odd))
	until(t, "both active", func() bool { return am.active(t, "Odd") && am.active(t, "Plain") })
	if got := b.metric(t, "stategauge_notifications_dropped_total"); got != 0 {
		t.Errorf("%v given up", got)
	}
}

func TestRealAlertmanagerLetsALeaseLapseWhenNobodyRenewsIt(t *testing.T) {
	am := startReal(t)
	b := start(t, Options{Targets: []Target{{URL: am.url}}, Tick: 500 * time.Millisecond, ResendDelay: 500 * time.Millisecond})
	defer b.stop()
	b.fire("Orphan")
	am.awaitWebhook(t, "firing")
	b.stop()
	am.awaitWebhook(t, "resolved")
}
