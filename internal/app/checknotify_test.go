package app

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/rules/notify"
)

func checkNotify(t *testing.T, config string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stategauge.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := CheckNotify(t.Context(), NotifyCheck{ConfigFile: file, Severity: "info"}, &out)
	return out.String(), err
}

func TestCheckNotifySaysPerTargetWhetherAPageGetsThrough(t *testing.T) {
	am := runAlertmanager(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no entry", http.StatusUnauthorized) }))
	defer broken.Close()
	good, err := checkNotify(t, fmt.Sprintf("alerting: {alertmanagers: [{url: \"http://%s\"}]}\n", am))
	if err != nil || !strings.Contains(good, "http://"+am+": took the alert in ") || !strings.Contains(good, "holds it for none; took its end") {
		t.Errorf("got %q, %v", good, err)
	}
	both, err := checkNotify(t, fmt.Sprintf("alerting: {alertmanagers: [{url: \"http://%s\"}, {url: %q}]}\n", am, broken.URL))
	if !errors.Is(err, errDelivery) || !strings.Contains(both, broken.URL+": FAILED: ") || !strings.Contains(both, "401") || !strings.Contains(both, "took its end") {
		t.Errorf("got %q, %v", both, err)
	}
	await(t, "the test alert to be over", func() error {
		if all, err := amAlerts(am); err != nil || len(all) != 0 {
			return fmt.Errorf("%v, %v", all, err)
		}
		return nil
	})
}

func TestCheckNotifyNeedsSomewhereToSend(t *testing.T) {
	if _, err := checkNotify(t, "alerting: {}\n"); err == nil || !strings.Contains(err.Error(), "names no Alertmanager") {
		t.Errorf("got %v", err)
	}
	if _, err := checkNotify(t, "alertin: {}\n"); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCameOfATestIsSaidInWords(t *testing.T) {
	for _, c := range []struct {
		p    notify.Probed
		want string
	}{
		{notify.Probed{Fired: errNotYet}, "FAILED: not yet"},
		{notify.Probed{Took: 12 * time.Millisecond}, "took the alert in 12ms; FAILED: does not hold it, as if it had ended before it came; took its end"},
		{notify.Probed{Listed: true, Receivers: []string{"a", "b"}}, "took the alert in 0s; holds it for a, b; took its end"},
		{notify.Probed{Listed: true, Silenced: true}, "took the alert in 0s; holds it, silenced or inhibited: nobody is told; took its end"},
		{notify.Probed{Listed: true, Resolved: errNotYet, Skew: 10 * time.Minute}, "took the alert in 0s; FAILED to take its end: not yet; its clock is 10m0s ahead of ours"},
		{notify.Probed{Unlisted: errNotYet, Skew: -time.Minute}, "took the alert in 0s; does not say what it holds (not yet); took its end; its clock is 1m0s behind ours"},
	} {
		if got := probedText(&c.p); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
