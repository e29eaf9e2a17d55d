package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// paged is what Alertmanager hands to a receiver.
type paged struct {
	Status string
	Alerts []struct {
		Status              string
		Labels, Annotations map[string]string
	}
}

// pagingAlertmanager runs an Alertmanager that tells pager of everything at once.
func pagingAlertmanager(t *testing.T, pager string) string {
	t.Helper()
	bin, addr, dir := server(t, "prometheus-alertmanager", "alertmanager"), freePort(t), t.TempDir()
	conf := filepath.Join(dir, "alertmanager.yml")
	text := fmt.Sprintf("route: {receiver: pager, group_by: [alertname, query_name], group_wait: 0s, group_interval: 1s}\nreceivers: [{name: pager, webhook_configs: [{url: %q}]}]\n", pager)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, addr, bin, "--config.file="+conf, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--cluster.listen-address=")
	return addr
}

// pager collects the text of what it is told.
type pager struct {
	mu    sync.Mutex
	texts map[string]string // by alert and query
}

func (p *pager) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var got paged
	if json.NewDecoder(r.Body).Decode(&got) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, al := range got.Alerts {
		if al.Status != "firing" || al.Labels["severity"] == "info" {
			continue // nobody's pager rings for information
		}
		var b strings.Builder
		fmt.Fprintf(&b, "[%s] %s: %s\n", strings.ToUpper(al.Labels["severity"]), al.Labels["query_name"], al.Labels["alertname"])
		for _, name := range []string{"summary", "description", "cause", "evidence", "fix", "runbook_url"} {
			if text := al.Annotations[name]; text != "" {
				fmt.Fprintf(&b, "  %s: %s\n", name, text)
			}
		}
		p.texts[al.Labels["query_name"]+" "+al.Labels["alertname"]] = b.String()
	}
}

// of returns what is said of a query.
func (p *pager) of(query string) (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, text := range p.texts {
		if strings.HasPrefix(key, query+" ") {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

// TestWhatAPersonReadsOnThePager plays three queries into trouble and shows, with -v,
// what arrives.
func TestWhatAPersonReadsOnThePager(t *testing.T) {
	p := &pager{texts: map[string]string{}}
	hook := httptest.NewServer(p)
	defer hook.Close()
	am := pagingAlertmanager(t, hook.URL)
	a := start(t, withConfig(t, testOptions(t), fmt.Sprintf("alerting: {hold_older_than: 0s, alertmanagers: [{url: \"http://%s\"}]}\n", am)))
	slowStore, slowCode, both := newStream(1), newStream(2), newStream(3)
	for _, s := range []*stream{slowStore, slowCode, both} {
		s.operators, s.stepMs = 1, 60_000
		play(t, a, s, 400)
	}
	slowStore.fileSyncMs *= 3
	slowCode.addBatchMs *= 3
	both.fileSyncMs *= 2
	both.addBatchMs *= 3
	for _, s := range []*stream{slowStore, slowCode, both} {
		play(t, a, s, 200)
	}
	for _, s := range []*stream{slowStore, slowCode, both} {
		await(t, "an alert of "+s.name, func() error {
			if len(p.of(s.name)) == 0 {
				return errNotYet
			}
			return nil
		})
		for _, text := range p.of(s.name) {
			t.Log("\n" + text)
			for _, want := range []string{s.name, "summary: ", "cause: ", "fix: ", "runbook_url: https://"} {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
			for _, never := range []string{"<no value>", "%!", "NaN", "{{", "template error", "Inf"} {
				if strings.Contains(text, never) {
					t.Errorf("it says %q:\n%s", never, text)
				}
			}
			if len(text) > 4000 || bytes.Count([]byte(text), []byte("\n")) > 40 {
				t.Errorf("%d bytes are too much to read at night", len(text))
			}
		}
	}
}
