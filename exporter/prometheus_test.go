package exporter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
)

// TestPrometheusReadsThePages has a real Prometheus scrape text, then protobuf
// with native histograms, and asks it for the numbers.
func TestPrometheusReadsThePages(t *testing.T) {
	path, err := exec.LookPath("prometheus")
	if err != nil || testing.Short() {
		t.Skip("prometheus is not installed, or the test is to be short")
	}
	reg := prometheus.NewRegistry()
	x := everything(t, Options{Registerer: reg})
	s := newStream("prom")
	for i := range 10 {
		x.Apply(s.executed(func(b *event.Batch) { b.Values[event.BatchDuration] = float64(100 * (i + 1)) }))
	}
	srv := httptest.NewServer(x.Handler(reg))
	defer srv.Close()
	t.Run("text", func(t *testing.T) {
		p := startPrometheus(t, path, srv.URL)
		p.want(`spark_streaming_batches_total{query_id="prom",kind="data"}`, "10")
		p.want(`sum(spark_streaming_batch_duration_seconds_bucket{query_id="prom",le="0.5"})`, "5")
		p.want(`spark_streaming_batch_duration_seconds_sum{query_id="prom"}`, "5.5")
		p.want(`count(spark_streaming_rocksdb_sst_bytes)`, "4")
		p.want(`stategauge_exported_queries`, "3")
		p.want(`up`, "1")
	})
	t.Run("protobuf", func(t *testing.T) {
		p := startPrometheus(t, path, srv.URL, "--enable-feature=native-histograms")
		p.want(`histogram_count(spark_streaming_batch_duration_seconds{query_id="prom"})`, "10")
		p.want(`histogram_sum(spark_streaming_batch_duration_seconds{query_id="prom"})`, "5.5")
		p.want(`histogram_fraction(0, 0.5, spark_streaming_batch_duration_seconds{query_id="prom"}) > bool 0.4`, "1")
		p.want(`spark_streaming_batches_total{query_id="prom",kind="data"}`, "10")
		p.want(`stategauge_exported_queries`, "3")
		p.want(`up`, "1")
	})
}

type server struct {
	t   *testing.T
	url string
	log *bytes.Buffer
}

// startPrometheus runs a Prometheus that scrapes target until the test ends.
func startPrometheus(t *testing.T, path, target string, args ...string) *server {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 200ms}\nscrape_configs: [{job_name: x, static_configs: [{targets: [%q]}]}]\n", u.Host)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, url: "http://" + addr, log: &bytes.Buffer{}}
	cmd := exec.Command(path, append(args, "--config.file="+conf, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)...)
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	return s
}

// want waits until a query has one result of the given value.
func (s *server) want(query, value string) {
	s.t.Helper()
	got := "no answer"
	for range 200 {
		if got = s.ask(query); got == value {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Errorf("%s = %s, want %s", query, got, value)
}

func (s *server) ask(query string) string {
	resp, err := http.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Result []struct{ Value []any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err.Error()
	}
	if len(answer.Data.Result) != 1 || len(answer.Data.Result[0].Value) != 2 {
		return fmt.Sprintf("%d results", len(answer.Data.Result))
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
