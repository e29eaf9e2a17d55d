package kafka

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// binary builds the daemon once.
var binary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(shared.folder, "stategauge")
	out, err := exec.Command("go", "build", "-o", file, "github.com/stategauge/stategauge/cmd/stategauge").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return file, nil
})

// daemon is a process of the built binary.
type daemon struct {
	t       *testing.T
	addr    string
	logFile string
	cmd     *exec.Cmd
	ended   chan struct{}
	result  error
}

// runDaemon runs a daemon that reads topic through brokers as a member of group.
func runDaemon(t *testing.T, brokers, topic, group string) *daemon {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	config := filepath.Join(folder, "stategauge.yml")
	text := fmt.Sprintf("kafka: {brokers: [%q], topics: [%s], group: %s, watch_interval: 1s, session_timeout: 3s, heartbeat_interval: 1s}\n", brokers, topic, group)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, addr: freeAddress(t), logFile: filepath.Join(folder, "log"), ended: make(chan struct{})}
	log, err := os.Create(d.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = exec.Command(file, "serve", "--config.file="+config, "--web.listen-address="+d.addr)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		d.result = d.cmd.Wait()
		close(d.ended)
	}()
	t.Cleanup(d.clear)
	await(t, "the daemon to be ready", func() error {
		_, err := d.get("/-/ready")
		return err
	})
	return d
}

func (d *daemon) clear() {
	d.signal(syscall.SIGKILL)
	<-d.ended
	if d.t.Failed() {
		d.t.Logf("the daemon said:\n%s", tailOf(d.logFile))
	}
}

func (d *daemon) signal(s syscall.Signal) { _ = d.cmd.Process.Signal(s) }

// pause stops every thread of the process, until it is sent SIGCONT.
func (d *daemon) pause() {
	d.t.Helper()
	d.signal(syscall.SIGSTOP)
	await(d.t, "the daemon to stand still", func() error {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", d.cmd.Process.Pid))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no threads are shown (%w)", err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil || !strings.Contains(string(b), ") T ") {
				return fmt.Errorf("a thread runs: %s (%w)", b, err)
			}
		}
		return nil
	})
}

// stop ends the daemon as an operator does.
func (d *daemon) stop() {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	<-d.ended
	if d.result != nil {
		d.t.Errorf("the daemon ended with %v", d.result)
	}
}

// get returns a page; the error is for any status but 200.
func (d *daemon) get(path string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + d.addr + path)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", path, r.StatusCode, b)
	}
	return string(b), err
}

// healthy returns an error unless the daemon says that Kafka is well.
func (d *daemon) healthy() error {
	page, err := d.get("/-/healthy")
	if err == nil && !strings.Contains(page, `"kafka":"ok"`) {
		err = fmt.Errorf("health is %s", page)
	}
	return err
}

// query is what the daemon says of the query in one partition.
type query struct {
	Batches   int64 `json:"batches"`
	LastBatch int64 `json:"last_batch"`
	Missed    int64 `json:"missed_batches"`
}

// queries returns the queries by partition; a partition nothing is known of has an
// empty one.
func (d *daemon) queries(partitions int) ([]query, error) {
	page, err := d.get("/api/v1/queries")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Queries []struct {
				Name string `json:"name"`
				query
			} `json:"queries"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(page), &answer); err != nil {
		return nil, err
	}
	out := slices.Repeat([]query{{LastBatch: -1}}, partitions)
	for _, q := range answer.Data.Queries {
		var p int
		if _, err := fmt.Sscanf(q.Name, "query_%d", &p); err != nil {
			return nil, fmt.Errorf("query %q: %w", q.Name, err)
		}
		out[p] = q.query
	}
	return out, nil
}

// series returns the sum over the series of a name that have the labels.
func (d *daemon) series(name string, labels ...string) (float64, error) {
	page, err := d.get("/metrics")
	if err != nil {
		return 0, err
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		if has(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum, nil
}

func has(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
			return l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}) {
			return false
		}
	}
	return true
}

// count is series for a test's log and checks.
func (d *daemon) count(name string, labels ...string) float64 {
	d.t.Helper()
	n, err := d.series(name, labels...)
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// hasAll waits until the daemon has applied each event of f once, from the batches
// first on, shows no lag, is well and has committed.
func (d *daemon) hasAll(f *feed, group string, first ...int64) {
	d.t.Helper()
	await(d.t, "every event to be applied once", func() error {
		got, err := d.queries(len(f.sent))
		if err != nil {
			return err
		}
		for p, q := range got {
			from := int64(0)
			if p < len(first) {
				from = first[p]
			}
			if q.LastBatch != f.sent[p]-1 || q.Batches != f.sent[p]-from || q.Missed != 0 {
				return fmt.Errorf("query %d is %+v, want batches %d to %d", p, q, from, f.sent[p]-1)
			}
		}
		return nil
	})
	d.settled(f, group)
}

// settled waits until the daemon is well, lags by nothing and has committed the end.
func (d *daemon) settled(f *feed, group string) {
	d.t.Helper()
	await(d.t, "health, lag and commits", func() error {
		if err := d.healthy(); err != nil {
			return err
		}
		if lag, err := d.series("stategauge_kafka_lag", "topic", f.topic); err != nil || lag != 0 {
			return fmt.Errorf("lag is %g (%w)", lag, err)
		}
		if at := f.committed(group, f.topic, len(f.sent)); !slices.Equal(at, f.ends()) {
			return fmt.Errorf("the group is at %v, want %v", at, f.ends())
		}
		return nil
	})
	if n := d.count("stategauge_kafka_partitions_assigned"); int(n) != len(f.sent) {
		d.t.Errorf("%g partitions are read, want %d", n, len(f.sent))
	}
}
