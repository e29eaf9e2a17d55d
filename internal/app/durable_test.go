package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// killsEnv is how often the daemon is killed, and events are how many it hears
// meanwhile: few in the ordinary tests, all of it in `make kills`.
const killsEnv = "STATEGAUGE_KILLS"

func killsWanted(t *testing.T) (kills, events int) {
	t.Helper()
	text := os.Getenv(killsEnv)
	if text == "" {
		return 3, 1500
	}
	kills, err := strconv.Atoi(text)
	if err != nil || kills < 1 {
		t.Fatalf("%s (%s) must be a number of at least 1", killsEnv, text)
	}
	return kills, 400 * kills
}

// ledger is an Alertmanager that keeps a book of every alert: how often it began and
// how often it ended.
type ledger struct {
	mu     sync.Mutex
	rings  map[string]bool
	began  map[string]int
	ended  map[string]int
	server *httptest.Server
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{rings: map[string]bool{}, began: map[string]int{}, ended: map[string]int{}}
	l.server = httptest.NewServer(http.HandlerFunc(l.take))
	t.Cleanup(l.server.Close)
	return l
}

func (l *ledger) take(w http.ResponseWriter, r *http.Request) {
	var got []struct {
		Labels map[string]string
		EndsAt time.Time
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, al := range got {
		key := fmt.Sprint(al.Labels)
		over := !al.EndsAt.After(time.Now())
		switch {
		case !over && !l.rings[key]:
			l.rings[key] = true
			l.began[key]++
		case over && l.rings[key]:
			l.rings[key] = false
			l.ended[key]++
		}
	}
}

// book is every alert with what became of it, as text.
func (l *ledger) book() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for key := range l.began {
		out = append(out, fmt.Sprintf("%s began %d times, ended %d times", key, l.began[key], l.ended[key]))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// durableRules are quick to find something and to forget it.
const durableRules = `signals:
  sync: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}
  duration: {of: query, value: duration_ms / 1000, unit: seconds}
groups:
  - name: durable
    rules:
      - alert: SyncSlow
        signal: sync
        above: {limit: 400ms, batches: "3 of 5"}
        for: 10 batches
        labels: {severity: page, symptom: commit-sync-rising}
        annotations: {summary: slow}
      - alert: SyncRising
        signal: sync
        rising: {over: 60 batches, by: 20%, min_points: 30}
        labels: {severity: ticket, symptom: commit-sync-rising}
        annotations: {summary: rising}
      - alert: SyncShifted
        signal: sync
        shifted: {recent: 10 batches, baseline: 40 batches, by: 25%}
        labels: {severity: ticket, symptom: commit-sync-rising}
        annotations: {summary: shifted}
      - alert: LongPending
        signal: duration
        above: {limit: 1s}
        for: 100000 batches
        labels: {severity: ticket, symptom: duration-rising}
        annotations: {summary: pending}
`

// durable is a topic with a stream of trouble, and daemons that read it.
type durable struct {
	t      *testing.T
	broker string
	events int // in each partition
	client *kgo.Client
	rules  string
}

func newDurable(t *testing.T, events int) *durable {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(killPartitions, killTopic), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.DefaultProduceTopic(killTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	d := &durable{t: t, broker: broker.ListenAddrs()[0], events: events / killPartitions, client: client, rules: filepath.Join(t.TempDir(), "durable.yaml")}
	rewrite(t, d.rules, durableRules)
	return d
}

// send writes the next n events of each partition: uploads that are slow for a while now and then, so that alerts come and go.
func (d *durable) send(streams []*stream, n int) {
	d.t.Helper()
	var records []*kgo.Record
	for range n {
		for p, s := range streams {
			s.fileSyncMs = 6400 + s.batch%13*20
			if s.batch%300 >= 200 {
				s.fileSyncMs *= 3
			}
			records = append(records, &kgo.Record{Partition: int32(p), Key: []byte(s.id), Value: bytes.Clone(s.next())})
		}
	}
	if err := d.client.ProduceSync(d.t.Context(), records...).FirstErr(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *durable) streams() []*stream {
	var out []*stream
	for p := range killPartitions {
		s := newStream(p)
		s.operators, s.partitions = 1, 2
		out = append(out, s)
	}
	return out
}

// config is a daemon's own, in a group of its own.
func (d *durable) config(group string, am *ledger) string {
	text := fmt.Sprintf("kafka: {brokers: [%q], topics: [%s], group: %s, session_timeout: 2s, heartbeat_interval: 500ms}\n"+
		"alerting: {hold_older_than: 0s, resend_delay: 1s, alertmanagers: [{url: %q}]}\n", d.broker, killTopic, group, am.server.URL)
	file := filepath.Join(d.t.TempDir(), group+".yml")
	rewrite(d.t, file, text)
	return file
}

// launch starts a daemon that keeps its history in a directory.
func (d *durable) launch(config, storage string) *victim {
	d.t.Helper()
	return launchVictim(d.t, asDaemon+"="+config, daemonRules+"="+d.rules, daemonStorage+"="+storage)
}

// awaitBatch waits until a daemon has heard the n-th event of every partition.
func (d *durable) awaitBatch(c *victim, n int) {
	d.t.Helper()
	await(d.t, fmt.Sprintf("batch %d of every partition", n-1), func() error { return reached(c, n) })
}

// reached tells why a daemon has not heard the n-th event of every partition yet.
func reached(c *victim, n int) error {
	queries, err := c.queries()
	if err != nil {
		return err
	}
	if len(queries) != killPartitions {
		return fmt.Errorf("%d queries", len(queries))
	}
	for _, q := range queries {
		if q.LastBatch == nil || *q.LastBatch < int64(n-1) {
			return fmt.Errorf("%s is not there yet", q.Name)
		}
	}
	return nil
}

// mortals are daemons that follow one another on one disk: killed from outside, or by
// themselves within an instant that seldom comes.
type mortals struct {
	*durable
	config, storage string
	deaths          *deaths
	live            *victim
}

// timely are the instants that these daemons die in.
var timely = []instant{inFlush, inCompaction, inEdit, inRemoval, inRebalance}

// launch starts the next daemon. A doomed one dies by itself, of what was the cause
// least often; that can be at its start.
func (m *mortals) launch(random *rand.Rand, doomed bool) {
	m.t.Helper()
	env := []string{asDaemon + "=" + m.config, daemonRules + "=" + m.rules, daemonStorage + "=" + m.storage}
	if doomed {
		env = append(env, m.deaths.at(rarest(m.deaths.came, timely), 1+random.IntN(3)))
	}
	var err error
	if m.live, err = startVictim(m.t, env...); err == nil {
		return
	}
	_ = m.live.end()
	if !m.deaths.note() {
		m.t.Fatalf("the daemon did not start: %v", err)
	}
	m.launch(random, false)
}

// awaitBatch waits until the daemon that lives has heard the n-th event of every
// partition. One that has died by itself is followed by another.
func (m *mortals) awaitBatch(random *rand.Rand, n int) {
	m.t.Helper()
	await(m.t, fmt.Sprintf("batch %d of every partition", n-1), func() error {
		err := reached(m.live, n)
		if err != nil && m.live.gone() == nil {
			if !m.deaths.note() {
				m.t.Fatalf("the daemon ended: %v", m.live.end())
			}
			m.launch(random, false)
		}
		return err
	})
}

// kill ends the daemon that lives from outside.
func (m *mortals) kill() {
	m.live.kill()
	_ = m.live.end()
	m.deaths.note() // or it was just dying by itself
}

// shows is what must be equal whatever happened to the daemon: the counters and
// levels of queries, the verdicts with their numbers, and the alerts.
func (d *durable) shows(c *victim) string {
	d.t.Helper()
	var out []string
	page := d.get(c, "/metrics")
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "spark_") && !strings.Contains(line, "last_event_timestamp") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return strings.Join(append(out, judgements(d.t, d.get(c, "/api/v1/rules"), d.get(c, "/api/v1/alerts"))...), "\n")
}

func (d *durable) get(c *victim, path string) string {
	d.t.Helper()
	r, err := http.Get("http://" + c.addr + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

// burst is how many events of each partition are sent at once. An alert lasts for
// several bursts, so that no daemon can sleep through one.
const burst = 25

// TestKillsShowInNoCounterWindowAlertOrPage kills a daemon with SIGKILL at random points
// of a stream, time and again, and within flushes, compactions and rebalances; and holds
// what the last one says against one that lives through the whole of it.
func TestKillsShowInNoCounterWindowAlertOrPage(t *testing.T) {
	kills, events := killsWanted(t)
	d := newDurable(t, events)
	killedAM, calmAM := newLedger(t), newLedger(t)
	m := &mortals{durable: d, config: d.config("killed", killedAM), storage: t.TempDir(), deaths: newDeaths(t)}
	calm := d.launch(d.config("calm", calmAM), t.TempDir())
	random := rand.New(rand.NewPCG(5, uint64(kills)))
	streams := d.streams()
	sent, killed := 0, 0
	m.launch(random, false)
	for sent < d.events {
		n := min(burst, d.events-sent)
		d.send(streams, n)
		sent += n
		if killed < kills && sent > (killed+1)*d.events/(kills+1) {
			if random.IntN(2) == 0 { // else at once, with the events on their way
				m.awaitBatch(random, sent-n+random.IntN(n))
			}
			m.kill()
			killed++
			m.launch(random, true)
		}
		d.awaitBatch(calm, sent)
		m.awaitBatch(random, sent)
	}
	await(t, "both to say the same", func() error {
		if diff := difference(d.shows(m.live), d.shows(calm)); diff != "" {
			return fmt.Errorf("after %d kills in %d events:\n%s", killed, d.events*killPartitions, diff)
		}
		return nil
	})
	await(t, "both to have paged the same", func() error {
		if got, want := killedAM.book(), calmAM.book(); got != want || want == "" {
			return fmt.Errorf("killed:\n%s\ncalm:\n%s", got, want)
		}
		return nil
	})
	t.Logf("%d kills in %d events of %d partitions, and within instants: %v; pages:\n%s", killed, d.events*killPartitions, killPartitions, m.deaths.came, killedAM.book())
	m.deaths.verdict(killed)
	for _, c := range []*victim{m.live, calm} {
		c.signal(syscall.SIGTERM)
		if err := c.end(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	}
}

// verdict demands that the daemons died in every instant, where there were many: a
// compaction comes once in several starts.
func (d *deaths) verdict(kills int) {
	d.t.Helper()
	if len(d.came) == 0 {
		d.t.Error("no daemon died within any instant")
	}
	for _, when := range timely {
		if kills >= 25 && d.came[when] == 0 {
			d.t.Errorf("no daemon died while %s", when)
		}
	}
}
