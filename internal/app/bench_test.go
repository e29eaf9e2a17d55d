package app

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// asDaemon makes the test binary a daemon, so that a benchmark can measure the
// daemon's own processor time and memory; its value is the configuration file,
// and daemonRules the rule file, if any.
const (
	asDaemon = "STATEGAUGE_TEST_DAEMON"
	// daemonStorage is where it keeps its history, if at all.
	daemonStorage = "STATEGAUGE_TEST_STORAGE"
	daemonRules   = "STATEGAUGE_TEST_RULES"
)

func TestMain(m *testing.M) {
	if file, ok := os.LookupEnv(asDaemon); ok {
		if err := daemon(file, os.Getenv(daemonRules)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func daemon(config, ruleFile string) error {
	o := DefaultOptions()
	none, socket := "", false
	o.Web = &web.FlagConfig{WebListenAddresses: &[]string{"127.0.0.1:0"}, WebConfigFile: &none, WebSystemdSocket: &socket}
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	o.ConfigFile, o.StoragePath = config, os.Getenv(daemonStorage)
	o.SaveEvery = time.Second
	if ruleFile != "" {
		o.RuleFiles = []string{ruleFile}
	}
	end, err := doomed()
	if err != nil {
		return err
	}
	if end != nil {
		end.attach(&o)
	}
	a, err := New(o)
	if err != nil {
		return err
	}
	fmt.Println(a.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if end != nil {
		context.AfterFunc(ctx, end.stop)
	}
	return a.Run(ctx, nil)
}

// child is a daemon in a process of its own.
type child struct {
	b    *testing.B
	addr string
	pid  int
}

func runChild(b *testing.B, config string, rulesOn bool) *child {
	b.Helper()
	return runChildWith(b, config, rulesOn, "")
}

// runChildWith runs a daemon that keeps its history in a directory.
func runChildWith(b *testing.B, config string, rulesOn bool, storage string) *child {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asDaemon+"="+configFile(b, config), daemonStorage+"="+storage)
	if !rulesOn {
		f := b.TempDir() + "/none.yaml"
		if err := os.WriteFile(f, []byte("groups: []\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		cmd.Env = append(cmd.Env, daemonRules+"="+f)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return &child{b, strings.TrimSpace(line), cmd.Process.Pid}
}

func configFile(b *testing.B, text string) string {
	f := b.TempDir() + "/stategauge.yml"
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return f
}

// cpu returns the processor time that the daemon has used, in seconds. It is read
// from outside: asking the daemon would cost it a whole page.
func (c *child) cpu() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid))
	if err != nil {
		c.b.Fatal(err)
	}
	// Fields 14 and 15 after the name, which stands in brackets, in ticks of 10 ms.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	var user, system float64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		c.b.Fatal(err)
	}
	return (user + system) / 100
}

// settle waits until the daemon has nothing left to do.
func (c *child) settle() {
	for last := -1.0; ; time.Sleep(100 * time.Millisecond) {
		now := c.cpu()
		if now == last {
			return
		}
		last = now
	}
}

// figures reads the daemon's own figures, each the sum over its series.
func (c *child) figures(names ...string) []float64 {
	r, err := http.Get("http://" + c.addr + "/metrics")
	if err != nil {
		c.b.Fatal(err)
	}
	defer r.Body.Close()
	out := make([]float64, len(names))
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		for i, n := range names {
			if rest, ok := strings.CutPrefix(lines.Text(), n); ok && (rest[0] == ' ' || rest[0] == '{') {
				var v float64
				if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err != nil {
					c.b.Fatal(err)
				}
				out[i] += v
			}
		}
	}
	return out
}

func (c *child) post(body []byte) {
	r, err := http.Post("http://"+c.addr+"/api/v1/events", "application/x-ndjson", bytes.NewReader(body))
	if err != nil {
		c.b.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusTooManyRequests {
		c.b.Fatalf("status %d", r.StatusCode)
	}
	if r.StatusCode == http.StatusTooManyRequests {
		c.post(body)
	}
}

// fleet makes bodies of 50 events in which many queries take turns.
type fleet struct {
	streams []*stream
	next    int
}

func newFleet(queries int) *fleet {
	f := &fleet{}
	for i := range queries {
		s := newStream(i)
		s.fileSyncMs += int64(i % 97)
		f.streams = append(f.streams, s)
	}
	return f
}

// event returns the next query's next event; its numbers change from batch to
// batch as real ones do.
func (f *fleet) event() []byte {
	s := f.streams[f.next]
	f.next = (f.next + 1) % len(f.streams)
	s.addBatchMs = 3000 + (s.batch*7919)%400
	s.rows = 50_000 + (s.batch*104729)%5000
	return s.next()
}

func (f *fleet) body(events int) []byte {
	var out bytes.Buffer
	for range events {
		out.Write(f.event())
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// BenchmarkDaemon measures the daemon from outside: its processor time per event
// and its memory, over the number of queries, by carrier, with rules and without.
// 400 queries are 100,000 series. One iteration is 2,000 events of 7 KB.
func BenchmarkDaemon(b *testing.B) {
	for _, queries := range []int{10, 400, 1000, 10_000} {
		for _, rulesOn := range []bool{false, true} {
			b.Run(fmt.Sprintf("http/queries=%d/rules=%v", queries, rulesOn), func(b *testing.B) {
				benchHTTP(b, queries, rulesOn)
			})
		}
	}
	for _, rulesOn := range []bool{false, true} {
		b.Run(fmt.Sprintf("kafka/queries=1000/rules=%v", rulesOn), func(b *testing.B) {
			benchKafka(b, 1000, rulesOn)
		})
	}
}

const eventsPerIteration = 2000

func benchHTTP(b *testing.B, queries int, rulesOn bool) {
	c, f := runChild(b, "", rulesOn), newFleet(queries)
	for range 2 * queries / 50 {
		c.post(f.body(50))
	}
	var bodies [][]byte
	for range b.N * eventsPerIteration / 50 {
		bodies = append(bodies, f.body(50))
	}
	measure(b, c, func() {
		for _, body := range bodies {
			c.post(body)
		}
	})
}

func benchKafka(b *testing.B, queries int, rulesOn bool) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "spark-events"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(broker.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.DefaultProduceTopic("spark-events"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	c := runChild(b, fmt.Sprintf("kafka: {brokers: [%q], topics: [spark-events]}\n", broker.ListenAddrs()[0]), rulesOn)
	f, sent := newFleet(queries), 0
	produce := func(n int) {
		var records []*kgo.Record
		for range n {
			key := []byte(f.streams[f.next].id)
			records = append(records, &kgo.Record{Key: key, Value: bytes.Clone(f.event())})
		}
		if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
			b.Fatal(err)
		}
		sent += n
	}
	produce(2 * queries)
	for int(c.figures("stategauge_events_total")[0]) < sent {
	}
	measure(b, c, func() { produce(b.N * eventsPerIteration) })
	if got := c.figures("stategauge_events_total")[0]; int(got) != sent {
		b.Fatalf("%g events were taken, %d were sent", got, sent)
	}
}

// measure reports what f costs the daemon, the work that it leaves behind
// included.
func measure(b *testing.B, c *child, f func()) {
	c.settle()
	before := c.cpu()
	b.ResetTimer()
	f()
	b.StopTimer()
	c.settle()
	used := c.cpu() - before
	page := c.figures("process_resident_memory_bytes", "stategauge_series")
	events := float64(b.N * eventsPerIteration)
	b.ReportMetric(used/events*1e6, "cpu-µs/event")
	b.ReportMetric(events/used, "events/cpu-s")
	b.ReportMetric(page[0]/1e6, "rss-MB")
	b.ReportMetric(page[1], "series")
}
