package app

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/exporter-toolkit/web"
)

// testOptions returns options for a daemon on a free port of the loopback
// address, with a log that goes to the test.
func testOptions(t testing.TB) Options {
	t.Helper()
	o := DefaultOptions()
	none, socket := "", false
	o.Web = &web.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0"}, WebConfigFile: &none, WebSystemdSocket: &socket}
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	return o
}

// withConfig writes a configuration file and points the options at it.
func withConfig(t testing.TB, o Options, text string) Options {
	t.Helper()
	o.ConfigFile = filepath.Join(t.TempDir(), "stategauge.yml")
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// start runs a daemon for the length of the test.
func start(t testing.TB, o Options) *App {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	t.Cleanup(func() {
		if err := a.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return a
}

func (a *App) url(path string) string { return "http://" + a.Addr().String() + path }

// answer is what the events endpoint says.
type answer struct {
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
	Rejected   []struct {
		Index int    `json:"index"`
		Error string `json:"error"`
	} `json:"rejected"`
}

func post(t testing.TB, a *App, body []byte) (int, answer) {
	t.Helper()
	return postTo(t, a, "/api/v1/events", body)
}

func postTo(t testing.TB, a *App, path string, body []byte) (int, answer) {
	t.Helper()
	r, err := http.Post(a.url(path), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var out answer
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
		t.Fatalf("status %d: %v", r.StatusCode, err)
	}
	return r.StatusCode, out
}

func get(t testing.TB, a *App, path string) (int, string) {
	t.Helper()
	r, err := http.Get(a.url(path))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// scrape parses the page of a daemon.
func scrape(t testing.TB, a *App) map[string]*dto.MetricFamily {
	t.Helper()
	code, page := get(t, a, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, page)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	f, err := p.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// value returns the value of the one series of a family that has all the labels.
func value(t testing.TB, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	var found []*dto.Metric
	for _, m := range families[name].GetMetric() {
		if hasLabels(m, labels) {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s%v: %d series, want 1", name, labels, len(found))
	}
	switch m := found[0]; {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	default:
		return m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
}

func hasLabels(m *dto.Metric, want []string) bool {
	for i := 0; i < len(want); i += 2 {
		ok := false
		for _, l := range m.Label {
			ok = ok || l.GetName() == want[i] && l.GetValue() == want[i+1]
		}
		if !ok {
			return false
		}
	}
	return true
}

func TestAPostedEventBecomesSeries(t *testing.T) {
	a := start(t, testOptions(t))
	s := newStream(1)
	code, got := post(t, a, append(append(s.started(), '\n'), s.ndjson(3)...))
	if code != http.StatusOK || got.Accepted != 4 || len(got.Rejected) != 0 {
		t.Fatalf("status %d, %+v", code, got)
	}
	f := scrape(t, a)
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"spark_streaming_batches_total", []string{"query_name", "orders_1", "kind", "data"}, 3},
		{"spark_streaming_last_batch_id", []string{"query_name", "orders_1"}, 2},
		{"spark_streaming_input_rows_total", []string{"source_index", "0"}, 150_000},
		{"spark_streaming_source_backlog_offsets", nil, 32 * 1500},
		{"spark_streaming_rocksdb_commit_task_seconds_total", []string{"operator_index", "1", "phase", "file_sync"}, 3 * 6.4},
		{"spark_streaming_rocksdb_last_batch_commit_store_seconds", []string{"operator_index", "1", "phase", "file_sync"}, .2},
		{"spark_streaming_rocksdb_writer_stall_seconds_total", []string{"operator_index", "0"}, 3 * .041},
		{"spark_streaming_batch_duration_seconds", nil, 3},
		{"spark_streaming_query_state", []string{"state", "running"}, 1},
		{"stategauge_events_total", []string{"source", "http", "outcome", "executed"}, 3},
		{"stategauge_events_total", []string{"source", "http", "outcome", "started"}, 1},
	} {
		if got := value(t, f, c.name, c.labels...); got < c.want*.999999 || got > c.want*1.000001 {
			t.Errorf("%s%v = %g, want %g", c.name, c.labels, got, c.want)
		}
	}
}

func TestARepeatedRequestCountsNothingTwice(t *testing.T) {
	a := start(t, testOptions(t))
	body := bytes.Clone(newStream(1).ndjson(5))
	post(t, a, body)
	code, got := post(t, a, body)
	if code != http.StatusOK || got.Duplicates != 5 {
		t.Fatalf("status %d, %+v; want 200 and 5 duplicates", code, got)
	}
	f := scrape(t, a)
	if got := value(t, f, "spark_streaming_batches_total", "kind", "data"); got != 5 {
		t.Errorf("batches = %g, want 5", got)
	}
	if got := value(t, f, "stategauge_events_total", "source", "http", "outcome", "duplicate"); got != 5 {
		t.Errorf("duplicates = %g, want 5", got)
	}
}

func TestARejectedEventCostsNothingElse(t *testing.T) {
	a := start(t, testOptions(t))
	s := newStream(1)
	body := bytes.Join([][]byte{bytes.Clone(s.next()), []byte(`{"id":`), []byte(`{"some":"thing"}`), s.next()}, []byte("\n"))
	code, got := post(t, a, body)
	if code != http.StatusOK || got.Accepted != 2 || len(got.Rejected) != 2 || got.Rejected[0].Index != 1 || got.Rejected[1].Index != 2 {
		t.Fatalf("status %d, %+v", code, got)
	}
}

func TestTheAPITellsQueriesRulesAndAlerts(t *testing.T) {
	a := start(t, testOptions(t))
	post(t, a, newStream(7).ndjson(2))
	code, body := get(t, a, "/api/v1/queries")
	var q struct {
		Status string
		Data   queriesData
	}
	if err := json.Unmarshal([]byte(body), &q); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v: %s", code, err, body)
	}
	if len(q.Data.Queries) != 1 || q.Data.Queries[0].Name != "orders_7" || q.Data.Queries[0].Batches != 2 || q.Data.AsOf.IsZero() {
		t.Errorf("queries: %+v", q.Data)
	}
	_, body = get(t, a, "/api/v1/rules")
	for _, want := range []string{`"status":"success"`, `"name":"CommitSyncLatencyRising"`, `"type":"alerting"`, `"state":"inactive"`} {
		if !strings.Contains(body, want) {
			t.Errorf("rules: %s lacks %s", body, want)
		}
	}
	_, body = get(t, a, "/api/v1/alerts")
	if want := `{"status":"success","data":{"alerts":[]}}`; strings.TrimSpace(body) != want {
		t.Errorf("alerts: %s, want %s", body, want)
	}
}

func TestTheDaemonSaysThatItIsHealthyAndReady(t *testing.T) {
	a := start(t, testOptions(t))
	for path, want := range map[string]string{"/-/healthy": `"status":"ok"`, "/-/ready": "ready", "/": "stategauge"} {
		code, body := get(t, a, path)
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestTwoDaemonsLiveInOneProcess(t *testing.T) {
	one, two := start(t, testOptions(t)), start(t, testOptions(t))
	post(t, one, newStream(1).ndjson(2))
	post(t, two, newStream(1).ndjson(3))
	if got := value(t, scrape(t, one), "spark_streaming_batches_total", "kind", "data"); got != 2 {
		t.Errorf("first daemon counts %g batches, want 2", got)
	}
	if got := value(t, scrape(t, two), "spark_streaming_batches_total", "kind", "data"); got != 3 {
		t.Errorf("second daemon counts %g batches, want 3", got)
	}
}

func TestStoppingTwiceAndAtTheSameTimeIsOneStop(t *testing.T) {
	a := start(t, testOptions(t))
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- a.Stop() }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestAPortInUseIsAStartError(t *testing.T) {
	a := start(t, testOptions(t))
	o := testOptions(t)
	o.Web.WebListenAddresses = &[]string{a.Addr().String()}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Fatalf("err = %v", err)
	}
}

func TestABadConfigurationReportsAllFaultsWithLines(t *testing.T) {
	o := withConfig(t, testOptions(t), "intake:\n  queries: 0\n  rules_queue: 1\nkafka:\n  brokerz: [a]\n")
	_, err := New(o)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"stategauge.yml:2:", "stategauge.yml:3:", "stategauge.yml:5:", `did you mean "brokers"?`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}
