package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// requireReal makes a missing server a failure instead of a skip.
const requireReal = "STATEGAUGE_REQUIRE_REAL"

// server finds the first of several program names.
func server(t *testing.T, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	if os.Getenv(requireReal) != "" {
		t.Fatalf("none of %v is installed", names)
	}
	t.Skipf("none of %v is installed", names)
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// launch runs a server for the length of the test and waits until it is ready.
func launch(t *testing.T, addr, name string, args ...string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
		if t.Failed() {
			b, _ := os.ReadFile(out.Name())
			t.Logf("%s said:\n%s", name, b[max(0, len(b)-4000):])
		}
	})
	await(t, name+" to be ready", func() error {
		r, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", r.StatusCode)
		}
		return nil
	})
}

// await asks until there is no error; servers of their own have clocks of their
// own.
func await(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// runPrometheus runs a Prometheus that scrapes the daemon every second.
func runPrometheus(t *testing.T, a *App, features string) string {
	t.Helper()
	bin, addr, dir := server(t, "prometheus"), freePort(t), t.TempDir()
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: stategauge\n  static_configs: [{targets: [%q]}]\n", a.Addr())
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config.file=" + conf, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + addr}
	if features != "" {
		args = append(args, "--enable-feature="+features)
	}
	launch(t, addr, bin, args...)
	return addr
}

// promQL evaluates an expression that has one sample.
func promQL(addr, expr string) (float64, error) {
	r, err := http.Get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	var out struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
		return 0, err
	}
	if len(out.Data.Result) != 1 {
		return 0, fmt.Errorf("%s: %d samples, want 1 %s", expr, len(out.Data.Result), out.Error)
	}
	return strconv.ParseFloat(fmt.Sprint(out.Data.Result[0].Value[1]), 64)
}

// awaitPromQL waits until an expression has a value within a relative tolerance.
func awaitPromQL(t *testing.T, addr, expr string, want, tolerance float64) {
	t.Helper()
	await(t, expr, func() error {
		got, err := promQL(addr, expr)
		if err != nil {
			return err
		}
		if math.Abs(got-want) > tolerance*math.Abs(want) {
			return fmt.Errorf("%s = %g, want %g", expr, got, want)
		}
		return nil
	})
}

func TestPrometheusReadsTheNumbersThatSparkSent(t *testing.T) {
	for _, c := range []struct{ name, features, quantile string }{
		{"text", "", `histogram_quantile(0.5, spark_streaming_batch_duration_seconds_bucket)`},
		{"native histograms", "native-histograms,exemplar-storage", `histogram_quantile(0.5, spark_streaming_batch_duration_seconds)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t, testOptions(t))
			s := newStream(1)
			s.operators = 2
			prom := runPrometheus(t, a, c.features)
			post(t, a, s.ndjson(4))
			awaitPromQL(t, prom, `spark_streaming_batches_total{kind="data"}`, 4, 0)
			post(t, a, s.ndjson(6))
			awaitPromQL(t, prom, `spark_streaming_batches_total{kind="data"}`, 10, 0)
			awaitPromQL(t, prom, `spark_streaming_state_rows{operator_index="1"}`, 600900, 0)
			awaitPromQL(t, prom, `sum by (phase) (spark_streaming_rocksdb_commit_task_seconds_total{operator_index="0",phase="file_sync"})`, 64, 1e-9)
			// The documented way to a mean per batch.
			awaitPromQL(t, prom, `increase(spark_streaming_phase_seconds_total{phase="addBatch"}[1m]) / ignoring(phase) sum without(kind) (increase(spark_streaming_batches_total[1m]))`, 3, .01)
			// Every batch took 3.241 s; a bucket is as wide as it is.
			awaitPromQL(t, prom, c.quantile, 3.241, .6)
			awaitPromQL(t, prom, `up`, 1, 0)
		})
	}
}

func TestPromtoolFindsNothingToSayAboutThePage(t *testing.T) {
	tool := server(t, "promtool")
	a := start(t, testOptions(t))
	s := newStream(1)
	post(t, a, append(append(s.started(), '\n'), s.ndjson(3)...))
	_, page := get(t, a, "/metrics")
	cmd := exec.Command(tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// runAlertmanager runs an Alertmanager without any route to a person.
func runAlertmanager(t *testing.T) string {
	t.Helper()
	bin, addr, dir := server(t, "prometheus-alertmanager", "alertmanager"), freePort(t), t.TempDir()
	conf := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(conf, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, addr, bin, "--config.file="+conf, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--cluster.listen-address=")
	return addr
}

// amAlert is an alert as Alertmanager lists it.
type amAlert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	Status              struct{ State string }
}

func amAlerts(addr string) ([]amAlert, error) {
	r, err := http.Get("http://" + addr + "/api/v2/alerts?active=true")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var out []amAlert
	return out, json.Unmarshal(b, &out)
}

// awaitAlerts waits until Alertmanager lists so many alerts of a name.
func awaitAlerts(t *testing.T, addr, name string, want int) []amAlert {
	t.Helper()
	var found []amAlert
	await(t, fmt.Sprintf("%d alerts %s", want, name), func() error {
		all, err := amAlerts(addr)
		if err != nil {
			return err
		}
		found = found[:0]
		for _, al := range all {
			if al.Labels["alertname"] == name {
				found = append(found, al)
			}
		}
		if len(found) != want {
			return fmt.Errorf("%d alerts of that name, %d in all", len(found), len(all))
		}
		return nil
	})
	return found
}

// play posts n further batches of a stream in requests of 50.
func play(t testing.TB, a *App, s *stream, n int) {
	t.Helper()
	for n > 0 {
		k := min(n, 50)
		if code, got := post(t, a, s.ndjson(k)); code != http.StatusOK || got.Accepted != k {
			t.Fatalf("status %d, %+v", code, got)
		}
		n -= k
	}
}

func TestAlertmanagerReceivesHoldsAndResolvesACommitSyncAlert(t *testing.T) {
	am := runAlertmanager(t)
	a := start(t, withConfig(t, testOptions(t), fmt.Sprintf("alerting:\n  hold_older_than: 0s\n  alertmanagers: [{url: \"http://%s\"}]\nqueries:\n  - {match: \"orders_*\", labels: {owner: orders}}\n", am)))
	s := newStream(1)
	s.operators, s.stepMs = 1, 60_000
	play(t, a, s, 400)
	got, err := amAlerts(am)
	got = slices.DeleteFunc(got, func(al amAlert) bool { return al.Labels["severity"] == "info" })
	if err != nil || len(got) != 0 {
		t.Fatalf("a steady stream raised %v, %v", got, err)
	}
	s.fileSyncMs *= 3
	play(t, a, s, 200)
	found := awaitAlerts(t, am, "CommitSyncLatencyRising", 1)[0]
	for k, want := range map[string]string{
		"severity": "ticket", "symptom": "commit-sync-rising", "query_name": "orders_1", "operator": "stateStoreSave", "operator_index": "0", "owner": "orders",
	} {
		if found.Labels[k] != want {
			t.Errorf("label %s = %q, want %q", k, found.Labels[k], want)
		}
	}
	for _, k := range []string{"summary", "description", "cause", "fix", "runbook_url"} {
		if found.Annotations[k] == "" {
			t.Errorf("annotation %s is empty", k)
		}
	}
	if now := time.Now(); found.StartsAt.After(now) || now.Sub(found.StartsAt) > time.Minute || found.EndsAt.Before(now.Add(3*time.Minute)) {
		t.Errorf("starts %s, ends %s: neither the time of detection nor a lease", found.StartsAt, found.EndsAt)
	}
	s.fileSyncMs /= 3
	play(t, a, s, 600)
	awaitAlerts(t, am, "CommitSyncLatencyRising", 0)
}
