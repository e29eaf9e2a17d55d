package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// fakeAM is an Alertmanager without a network: it keeps alerts as the real one does
// and answers as the test says.
type fakeAM struct {
	mu       sync.Mutex
	requests []request
	held     map[string]posted // by alertname
	lapsed   []string          // alerts whose lease had run out when they came again
	// answer decides on the n-th request, from 0; nil means 200 at once.
	answer func(n int, alerts []posted) reply
	ahead  time.Duration // how far its clock is ahead
	noDate bool
}

type request struct {
	at     time.Time
	alerts []posted
	status int
}

type reply struct {
	status int // 0 means 200
	after  time.Duration
	err    error
	hang   bool // until the request is given up
}

var errRefused = errors.New("connection refused")

func (f *fakeAM) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var alerts []posted
	if err := json.Unmarshal(body, &alerts); err != nil {
		return nil, err
	}
	a := f.plan(alerts)
	if err := f.wait(r.Context(), a); err != nil {
		return nil, err
	}
	return f.finish(a, alerts), nil
}

// set changes what answer reads.
func (f *fakeAM) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// plan notes the request's place and asks the test for the answer.
func (f *fakeAM) plan(alerts []posted) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	var a reply
	if f.answer != nil {
		a = f.answer(len(f.requests), alerts)
	}
	if a.status == 0 {
		a.status = 200
	}
	f.requests = append(f.requests, request{time.Now(), alerts, a.status})
	return a
}

func (f *fakeAM) wait(ctx context.Context, a reply) error {
	if a.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if a.err != nil {
		return a.err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(a.after):
		return nil
	}
}

func (f *fakeAM) finish(a reply, alerts []posted) *http.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.status == 200 {
		for _, p := range alerts {
			f.hold(p)
		}
	}
	header := http.Header{}
	if !f.noDate {
		header.Set("Date", time.Now().Add(f.ahead).UTC().Format(http.TimeFormat))
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(bytes.NewBufferString("answer\nsecond line"))}
}

func (f *fakeAM) hold(p posted) {
	if f.held == nil {
		f.held = map[string]posted{}
	}
	name := p.Labels["alertname"]
	old, known := f.held[name]
	if known && old.EndsAt.Before(time.Now()) && p.EndsAt.After(time.Now()) {
		f.lapsed = append(f.lapsed, name)
	}
	f.held[name] = p
}

// got returns the requests so far.
func (f *fakeAM) got() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]request(nil), f.requests...)
}

// state says how the Alertmanager sees an alert now.
func (f *fakeAM) state(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.held[name]
	switch {
	case !ok:
		return "unknown"
	case p.EndsAt.After(time.Now()):
		return "firing"
	}
	return "resolved"
}

func (f *fakeAM) last(name string) posted {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[name]
}

// target returns a Target that reaches the fake.
func (f *fakeAM) target(host string) Target {
	return Target{URL: "http://" + host + ":9093", NewClient: func(string) (*http.Client, error) {
		return &http.Client{Transport: f}, nil
	}}
}

// alert returns an alert in a state; event times are far off on purpose.
func alert(name string, state rules.AlertState) rules.Alert {
	a := rules.Alert{
		Labels:      rules.Labels{{Name: "alertname", Value: name}, {Name: "severity", Value: "ticket"}},
		Annotations: rules.Labels{{Name: "summary", Value: name + " rises"}},
		State:       state, FiringAtMs: 1_000_000, ResolvedAtMs: event.Absent,
	}
	if state == rules.Resolved {
		a.ResolvedAtMs = 1_000_000 + 600_000
	}
	return a
}

func alerts(state rules.AlertState, names ...string) []rules.Alert {
	var out []rules.Alert
	for _, n := range names {
		out = append(out, alert(n, state))
	}
	return out
}

func numbered(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("alert-%03d", i))
	}
	return out
}

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.b.Bytes(), []byte(text))
}

// bench is a running notifier.
type bench struct {
	*Notifier
	reg  *prometheus.Registry
	logs *logBuffer
	stop func() // and wait for the end
}

// start runs a notifier until the test ends or stop is called.
func start(t *testing.T, o Options) *bench {
	t.Helper()
	b := &bench{reg: prometheus.NewRegistry(), logs: &logBuffer{}}
	if o.Jitter == nil {
		o.Jitter = func() float64 { return 1 }
	}
	n, err := New(o, b.reg, slog.New(slog.NewTextHandler(b.logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	b.Notifier = n
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	var once sync.Once
	b.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run ends with %v", err)
			}
		})
	}
	return b
}

func (b *bench) fire(names ...string) {
	b.Notify(context.Background(), alerts(rules.Firing, names...))
}

func (b *bench) resolve(names ...string) {
	b.Notify(context.Background(), alerts(rules.Resolved, names...))
}

// metric returns the sum of the series of a family whose labels hold all of want,
// given as name, value, name, value.
func (b *bench) metric(t *testing.T, family string, want ...string) float64 {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if matches(labels, want) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func matches(labels map[string]string, want []string) bool {
	for i := 0; i < len(want); i += 2 {
		if labels[want[i]] != want[i+1] {
			return false
		}
	}
	return true
}
