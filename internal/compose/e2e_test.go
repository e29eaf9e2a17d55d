package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/stategauge/stategauge/internal/app"
)

// mayBeEmpty are panels that a healthy query of a few batches leaves empty.
var mayBeEmpty = map[string]bool{"Alerts": true, "Missed batches": true, "Trend slopes": true}

// histograms is how Prometheus takes them: it keeps one form only, up to 2.44.
type histograms struct {
	features string
	skip     string // part of expressions that ask for the other form
	numbers  map[string]float64
}

var forms = map[string]histograms{
	"classic, by OpenMetrics": {
		"exemplar-storage", "spark_streaming_batch_duration_seconds{",
		map[string]float64{"spark_streaming_batch_duration_seconds_count": batches, "spark_streaming_rocksdb_commit_file_sync_seconds_count": batches},
	},
	"native, by protobuf": {
		"exemplar-storage,native-histograms", "_bucket{",
		map[string]float64{
			"histogram_count(spark_streaming_batch_duration_seconds)":           batches,
			"histogram_sum(spark_streaming_batch_duration_seconds)":             18.24 * batches,
			"histogram_count(spark_streaming_rocksdb_commit_file_sync_seconds)": batches,
		},
	},
}

const batches = 4

// TestDashboardShowsWhatWasPosted runs the daemon and a real Prometheus, posts
// batches, and asks every question that the dashboard asks.
func TestDashboardShowsWhatWasPosted(t *testing.T) {
	prometheus := lookPath(t, "prometheus")
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon := startDaemon(t)
			p := startPrometheus(t, prometheus, strings.TrimPrefix(daemon, "http://"), form.features)
			for i := range batches {
				post(t, daemon, i)
				p.await(t, fmt.Sprintf("spark_streaming_last_batch_id == %d", firstBatch+i))
			}
			p.checkDashboards(t, form.skip)
			p.checkNumbers(t, numbers)
			p.checkNumbers(t, form.numbers)
			p.checkExemplars(t)
		})
	}
}

// TestEveryFamilyOfThePageIsDocumented reads the page itself: names that are put
// together at run time stand in no source.
func TestEveryFamilyOfThePageIsDocumented(t *testing.T) {
	daemon := startDaemon(t)
	post(t, daemon, 0)
	answer, err := http.Get(daemon + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	known, n := documentedSeries(t), 0
	for line := range strings.Lines(string(page)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[1] != "TYPE" || !seriesName.MatchString(words[2]) {
			continue
		}
		n++
		if !known[words[2]] {
			t.Errorf("docs/metrics.md does not explain %s", words[2])
		}
	}
	if n < 60 {
		t.Errorf("only %d families on the page", n)
	}
}

func (p *promServer) checkDashboards(t *testing.T, skip string) {
	for file, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				if strings.Contains(target.Expr, skip) || mayBeEmpty[panel.Title] {
					continue
				}
				if p.query(t, fillVariables(target.Expr)) == 0 {
					t.Errorf("%s, %s: no data for %s", file, panel.Title, target.Expr)
				}
			}
		}
	}
}

// numbers is what docs/example-event.json says, posted as so many batches.
var numbers = map[string]float64{
	`sum(spark_streaming_batches_total{kind="data"})`:                            batches,
	`spark_streaming_last_batch_duration_seconds`:                                18.24,
	`sum(spark_streaming_phase_seconds_total)`:                                   18.236 * batches,
	`spark_streaming_rocksdb_last_batch_commit_store_seconds{phase="file_sync"}`: 61.8 / 64,
	`spark_streaming_state_commit_task_seconds_total`:                            96.4 * batches,
	`spark_streaming_state_rows`:                                                 3120450,
	`sum(spark_streaming_source_backlog_offsets)`:                                1400 + 1290,
	`sum(spark_streaming_utilization_ratio)`:                                     18.24 / 30,
	`spark_streaming_input_rows_total{source_index="0"}`:                         45210 * batches,
	`sum(spark_streaming_rocksdb_block_cache_lookups_total{result="miss"})`:      20480 * batches,
	`spark_streaming_query_state{state="running"}`:                               1,
	`sum(stategauge_events_total{source="http",outcome="executed"})`:             batches,
}

func (p *promServer) checkNumbers(t *testing.T, numbers map[string]float64) {
	for expr, want := range numbers {
		if n := p.query(t, fmt.Sprintf("abs((%s) - %g) < %g", expr, want, 1e-6*max(want, 1))); n != 1 {
			t.Errorf("%s is not %g: %s", expr, want, p.get(t, "/api/v1/query", expr))
		}
	}
}

func (p *promServer) checkExemplars(t *testing.T) {
	text := p.get(t, "/api/v1/query_exemplars", `{__name__=~"spark_streaming_batch_duration_seconds.*"}`)
	if !strings.Contains(text, `"batch_id":"`) {
		t.Errorf("no batch id in the exemplars: %s", text)
	}
}

func fillVariables(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$window", "1h", "$application", ".*", "$query_name", ".*", "$operator", ".*").Replace(expr)
}

// startDaemon serves on a free port of the loopback and returns its base URL.
func startDaemon(t *testing.T) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "stategauge.yml")
	if err := os.WriteFile(config, []byte("queries: [{match: '*', interval: 30s}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := app.DefaultOptions()
	o.Logger = slog.New(slog.DiscardHandler)
	o.ConfigFile = config
	listen, none, no := []string{"127.0.0.1:0"}, "", false
	o.Web = &web.FlagConfig{WebListenAddresses: &listen, WebConfigFile: &none, WebSystemdSocket: &no}
	a, err := app.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- a.Run(ctx, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("daemon: %v", err)
		}
	})
	return "http://" + a.Addr().String()
}

const firstBatch = 1284

// post sends the documentation's example as batch firstBatch+i, dated now.
func post(t *testing.T, daemon string, i int) {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal([]byte(readFile(t, "docs", "example-event.json")), &e); err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-20 * time.Second).UTC()
	e["batchId"] = firstBatch + i
	e["timestamp"] = began.Format("2006-01-02T15:04:05.000Z")
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(daemon+"/api/v1/events", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `"accepted":1`) {
		t.Fatalf("%s: %s", answer.Status, text)
	}
}

// promServer is a running Prometheus.
type promServer struct{ base string }

// startPrometheus runs Prometheus on the loopback and lets it scrape target every
// second.
func startPrometheus(t *testing.T, program, target, features string) *promServer {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: stategauge\n  static_configs: [{targets: ['%s']}]\n", target)
	if strings.Contains(features, "native") && !isPrometheus2(t) {
		config = strings.Replace(config, "  static", "  scrape_native_histograms: true\n  static", 1)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddress(t)
	var log bytes.Buffer
	cmd := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr,
		"--enable-feature="+features)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus:\n%s", log.String())
		}
	})
	p := &promServer{"http://" + addr}
	p.await(t, `up{job="stategauge"} == 1`)
	return p
}

func isPrometheus2(t *testing.T) bool {
	t.Helper()
	return strings.HasPrefix(run(t, lookPath(t, "promtool"), "--version"), "promtool, version 2.")
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

// await polls until expr has a result; scraping takes its time.
func (p *promServer) await(t *testing.T, expr string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if n, err := p.ask(expr); err == nil && n > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("never true: %s", expr)
}

// query returns how many series an instant query gives.
func (p *promServer) query(t *testing.T, expr string) int {
	t.Helper()
	n, err := p.ask(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
	}
	return n
}

func (p *promServer) ask(expr string) (int, error) {
	answer, err := http.Get(p.base + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var out struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		return 0, err
	}
	if out.Status != "success" {
		return 0, fmt.Errorf("%s", out.Error)
	}
	return len(out.Data.Result), nil
}

// get returns an answer as it is, with exemplars asked for over the last hour.
func (p *promServer) get(t *testing.T, path, expr string) string {
	t.Helper()
	now := time.Now()
	q := url.Values{"query": {expr}, "start": {fmt.Sprint(now.Add(-time.Hour).Unix())}, "end": {fmt.Sprint(now.Add(time.Minute).Unix())}}
	answer, err := http.Get(p.base + path + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}
