package notify

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/rules"
)

var probeLabels = rules.Labels{{Name: "alertname", Value: "Test"}, {Name: "severity", Value: "info"}}

// probeAll probes servers that answer as the handlers say.
func probeAll(t *testing.T, handlers ...http.HandlerFunc) []Probed {
	t.Helper()
	var o Options
	for _, h := range handlers {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		o.Targets = append(o.Targets, Target{URL: s.URL})
	}
	return prober(t, o).Probe(t.Context(), probeLabels, nil, 0)
}

func prober(t *testing.T, o Options) *Notifier {
	t.Helper()
	n, err := New(o, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// answers returns a handler with one answer for posts and one for questions.
func answers(post int, list string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(post)
			return
		}
		if list == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(list))
	}
}

func TestProbesSayWhatCameOfTheAlertAtEachTarget(t *testing.T) {
	held := `[{"receivers":[{"name":"pager"},{"name":"mail"}],"status":{"state":"active"}}]`
	silenced := `[{"receivers":[{"name":"pager"}],"status":{"state":"suppressed"}}]`
	got := probeAll(t, answers(200, held), answers(200, silenced), answers(200, `[]`), answers(200, ""), answers(400, held), answers(200, "no JSON"))
	if len(got) != 6 {
		t.Fatalf("%d answers", len(got))
	}
	if p := got[0]; !p.OK() || !p.Listed || strings.Join(p.Receivers, " ") != "pager mail" || p.Silenced {
		t.Errorf("held: %+v", p)
	}
	if p := got[1]; !p.OK() || !p.Silenced {
		t.Errorf("silenced: %+v", p)
	}
	if p := got[2]; p.OK() || p.Listed || p.Unlisted != nil {
		t.Errorf("taken and forgotten: %+v", p)
	}
	if p := got[3]; !p.OK() || p.Unlisted == nil || !strings.Contains(p.Unlisted.Error(), "403") {
		t.Errorf("not allowed to ask: %+v", p)
	}
	if p := got[4]; p.OK() || p.Fired == nil || !strings.Contains(p.Fired.Error(), "400") {
		t.Errorf("refused: %+v", p)
	}
	if p := got[5]; !p.OK() || p.Unlisted == nil {
		t.Errorf("unreadable: %+v", p)
	}
}

func TestAProbeIsResolvedWhateverEndsTheWaiting(t *testing.T) {
	am := &fakeAM{}
	ctx, cancel := context.WithCancel(t.Context())
	// Somebody interrupts once the alert is there.
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			cancel()
		}
		return am.RoundTrip(r)
	})}
	n := prober(t, Options{Targets: []Target{{URL: "http://am", NewClient: func(string) (*http.Client, error) { return client, nil }}}})
	got := n.Probe(ctx, probeLabels, nil, time.Hour)
	if len(got) != 1 || got[0].Fired != nil || got[0].Resolved != nil {
		t.Errorf("got %+v", got)
	}
	if s := am.state("Test"); s != "resolved" {
		t.Errorf("the alert is left %s", s)
	}
}

type transport func(r *http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAProbeReachesEveryAddressOfAName(t *testing.T) {
	am := &fakeAM{}
	target := am.target("all")
	target.ResolveAll = true
	n := prober(t, Options{
		Targets: []Target{target, {URL: "http://127.0.0.1:1"}},
		Lookup:  func(context.Context, string) ([]string, error) { return []string{"192.0.2.1", "192.0.2.2"}, nil },
	})
	got := n.Probe(t.Context(), probeLabels, nil, 0)
	if len(got) != 3 || got[0].Fired != nil || got[1].Fired != nil || !strings.HasSuffix(got[1].Name, "at 192.0.2.2:9093") {
		t.Errorf("got %+v", got)
	}
	if got[2].Fired == nil || got[2].OK() {
		t.Errorf("nobody is there: %+v", got[2])
	}
}

func TestANameThatCannotBeLookedUpIsOneFailure(t *testing.T) {
	n := prober(t, Options{
		Targets: []Target{{URL: "http://nowhere:9093", ResolveAll: true}},
		Lookup:  func(context.Context, string) ([]string, error) { return nil, errRefused },
	})
	if got := n.Probe(t.Context(), probeLabels, nil, 0); len(got) != 1 || got[0].Fired == nil {
		t.Errorf("got %+v", got)
	}
}

func TestRealAlertmanagerSaysWhoWouldBeTold(t *testing.T) {
	am := startReal(t)
	n := prober(t, Options{Targets: []Target{{URL: am.url}}})
	got := n.Probe(t.Context(), probeLabels, nil, 0)
	if len(got) != 1 || !got[0].OK() || strings.Join(got[0].Receivers, "") != "hook" || got[0].Skew.Abs() > 5*time.Second {
		t.Errorf("got %+v", got)
	}
	until(t, "resolved", func() bool { return !am.active(t, "Test") })
}
