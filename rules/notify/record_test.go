package notify

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/rules"
)

func newNotifier(t *testing.T, o Options) *Notifier {
	t.Helper()
	n, err := New(o, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPayloadIsWhatTheAPITakes(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("east", 7200))
	got, err := payload([]*record{
		{labels: map[string]string{"alertname": "A"}, annotations: map[string]string{"summary": "s"}, startsAt: at, generatorURL: "http://g/1"},
		{labels: map[string]string{"alertname": "B"}, annotations: map[string]string{}, startsAt: at, resolvedAt: at.Add(time.Minute)},
	}, at.Add(time.Hour), at.Add(4*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"labels":{"alertname":"A"},"annotations":{"summary":"s"},"startsAt":"2026-03-01T10:00:00Z","endsAt":"2026-03-01T10:04:00Z","generatorURL":"http://g/1"},` +
		`{"labels":{"alertname":"B"},"annotations":{},"startsAt":"2026-03-01T10:00:00Z","endsAt":"2026-03-01T10:01:00Z"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestLabelsAreMadeFit(t *testing.T) {
	n := newNotifier(t, Options{ExternalLabels: rules.Labels{{Name: "cluster", Value: "prod"}, {Name: "severity", Value: "outer"}}})
	a := &rules.Alert{Labels: rules.Labels{
		{Name: "alertname", Value: "bad\xffbytes"},
		{Name: "empty", Value: ""},
		{Name: "odd-näme", Value: "v"},
		{Name: "1st", Value: "v"},
		{Name: "severity", Value: "page"},
		{Name: "long", Value: strings.Repeat("ä", 2000)},
	}}
	labels, _ := n.labelsOf(a)
	long := labels["long"]
	delete(labels, "long")
	want := map[string]string{"alertname": "bad\uFFFDbytes", "odd_n_me": "v", "_1st": "v", "severity": "page", "cluster": "prod"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Error(diff)
	}
	if len(long) > maxLabelBytes || !utf8.ValidString(long) || !strings.HasSuffix(long, "…") {
		t.Errorf("long value has %d bytes", len(long))
	}
}

func TestAnnotationsAreCut(t *testing.T) {
	n := newNotifier(t, Options{})
	a := alert("big", rules.Firing)
	a.Annotations = rules.Labels{{Name: "description", Value: strings.Repeat("x", 1<<20)}}
	r := n.file(&a, time.Now())
	if got := len(r.annotations["description"]); got > maxAnnotationBytes || got < maxAnnotationBytes-10 {
		t.Errorf("%d bytes", got)
	}
}

func TestIdentityIsTheLabelsAlone(t *testing.T) {
	n := newNotifier(t, Options{})
	a, b := alert("x", rules.Firing), alert("x", rules.Firing)
	b.Annotations = rules.Labels{{Name: "summary", Value: "other"}}
	first, second := n.file(&a, time.Now()), n.file(&b, time.Now().Add(time.Hour))
	if first.key != second.key || first.epoch != second.epoch || !first.startsAt.Equal(second.startsAt) {
		t.Error("other annotations made another alert")
	}
	if got := n.book.get(first.key).annotations["summary"]; got != "other" {
		t.Errorf("annotation is %q", got)
	}
	if keyOf(map[string]string{"a": "b", "c": "d"}) == keyOf(map[string]string{"a": `b"c="d`}) {
		t.Error("two sets share an identity")
	}
}

func TestGeneratorURLIsAskedPerAlert(t *testing.T) {
	n := newNotifier(t, Options{GeneratorURL: func(a *rules.Alert) string { return "http://me/alerts?name=" + a.Labels.Get("alertname") }})
	a := alert("x", rules.Firing)
	if got := n.file(&a, time.Now()).generatorURL; got != "http://me/alerts?name=x" {
		t.Errorf("%q", got)
	}
}

func TestClockSetBackKeepsStartBeforeEnd(t *testing.T) {
	n := newNotifier(t, Options{})
	a := alert("x", rules.Firing)
	now := time.Now()
	n.file(&a, now)
	a.State = rules.Resolved
	if r := n.file(&a, now.Add(-time.Hour)); !r.startsAt.Before(r.resolvedAt) {
		t.Errorf("from %v to %v", r.startsAt, r.resolvedAt)
	}
}

func TestAnAlertThatIsOverAtOnceStillEndsAfterItsStart(t *testing.T) {
	n := newNotifier(t, Options{})
	now := time.Now()
	known, unknown := alert("known", rules.Firing), alert("unknown", rules.Resolved)
	n.file(&known, now)
	known.State, unknown.ResolvedAtMs = rules.Resolved, unknown.FiringAtMs
	for _, a := range []*rules.Alert{&known, &unknown} {
		if r := n.file(a, now); !r.startsAt.Before(r.resolvedAt) {
			t.Errorf("%v: from %v to %v", a.Labels, r.startsAt, r.resolvedAt)
		}
	}
}

func TestOptionsReportAllFaults(t *testing.T) {
	o := Options{
		Targets: []Target{{URL: "am:9093"}, {URL: "http://u:secret@"}, {URL: "http://ok"}, {URL: "http://ok"}, {URL: "http://bad\x7f"}},
		Tick:    -1, BatchAlerts: -1,
	}
	_, err := New(o, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"targets[0].url", "targets[1].url", "targets[3].url (http://ok) must not repeat", "targets[4].url must be a URL", "tick (-1ns) must not", "batch_alerts (-1)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password shows: %v", err)
	}
}

func TestClientThatCannotBeBuiltStopsTheStart(t *testing.T) {
	o := Options{Targets: []Target{{URL: "http://am", NewClient: func(string) (*http.Client, error) { return nil, errors.New("no certificate") }}}}
	if _, err := New(o, prometheus.NewRegistry(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "alertmanager http://am: no certificate") {
		t.Errorf("%v", err)
	}
}

func FuzzTextsAreAlwaysFitToSend(f *testing.F) {
	f.Add("alertname", "plain")
	f.Add("", "\xff\xfe")
	f.Add("9 lives", strings.Repeat("€", 400))
	f.Fuzz(func(t *testing.T, name, value string) {
		for k, v := range texts(rules.Labels{{Name: name, Value: value}}, 100) {
			if !utf8.ValidString(v) || len(v) > 100 || v == "" {
				t.Errorf("value %q", v)
			}
			if legalName(k) != k {
				t.Errorf("name %q", k)
			}
		}
		if _, err := json.Marshal(texts(rules.Labels{{Name: name, Value: value}}, 100)); err != nil {
			t.Error(err)
		}
	})
}
