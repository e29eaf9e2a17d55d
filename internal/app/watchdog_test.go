package app

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestTheWatchdogReachesAlertmanagerWhateverElseHappens(t *testing.T) {
	am := runAlertmanager(t)
	text := fmt.Sprintf("alerting: {watchdog: true, alertmanagers: [{url: \"http://%s\"}]}\nqueries: [{match: \"*\", mute_until: 2999-01-01T00:00:00Z}]\n", am)
	o := withConfig(t, testOptions(t), text)
	o.RuleFiles = []string{t.TempDir() + "/none.yaml"}
	rewrite(t, o.RuleFiles[0], "groups: []\n")
	o.JudgeEvery = 50 * time.Millisecond
	a := start(t, o)
	got := awaitAlerts(t, am, "Watchdog", 1)[0] // no rule, no query, all muted
	if got.Labels["severity"] != "none" || got.Annotations["summary"] == "" {
		t.Errorf("got %+v", got)
	}
	if _, body := get(t, a, "/api/v1/alerts"); body != "{\"status\":\"success\",\"data\":{\"alerts\":[]}}\n" {
		t.Errorf("it counts as an alert of the rules: %s", body)
	}
	rewrite(t, o.ConfigFile, fmt.Sprintf("alerting: {alertmanagers: [{url: \"http://%s\"}]}\n", am))
	if code := postReload(t, a); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	awaitAlerts(t, am, "Watchdog", 0)
}
