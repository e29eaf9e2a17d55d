package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fleetRig is a keyed topic of many queries, and daemons that share it.
type fleetRig struct {
	t       *testing.T
	broker  string
	client  *kgo.Client
	streams []*stream
	am      *ledger
	rules   string
}

const fleetPartitions = 6

func newFleetRig(t *testing.T, queries int) *fleetRig {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(fleetPartitions, killTopic), kfake.GroupMinSessionTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.DefaultProduceTopic(killTopic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r := &fleetRig{t: t, broker: broker.ListenAddrs()[0], client: client, am: newLedger(t), rules: filepath.Join(t.TempDir(), "durable.yaml")}
	rewrite(t, r.rules, durableRules)
	for i := range queries {
		s := newStream(i)
		s.operators, s.partitions, s.stepMs, s.start = 1, 2, 60_000, time.Now().Add(-2*time.Hour)
		r.streams = append(r.streams, s)
	}
	return r
}

// send writes n events of every query, keyed by its id: those of every second query
// with slow uploads.
func (r *fleetRig) send(n int) {
	r.t.Helper()
	var records []*kgo.Record
	for range n {
		for i, s := range r.streams {
			if i%2 == 0 {
				s.fileSyncMs = 20_000 // 0.6 s a store
			}
			records = append(records, &kgo.Record{Key: []byte(s.id), Value: bytes.Clone(s.next())})
		}
	}
	if err := r.client.ProduceSync(r.t.Context(), records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// join starts a daemon in a group. With storage it keeps a history.
func (r *fleetRig) join(group, storage string) *App {
	r.t.Helper()
	text := fmt.Sprintf("kafka: {brokers: [%q], topics: [%s], group: %s, session_timeout: 2s, heartbeat_interval: 200ms}\n"+
		"alerting: {hold_older_than: 0s, resend_delay: 1s, alertmanagers: [{url: %q}]}\n", r.broker, killTopic, group, r.am.server.URL)
	o := withConfig(r.t, testOptions(r.t), text)
	o.RuleFiles, o.JudgeEvery, o.StoragePath = []string{r.rules}, 200*time.Millisecond, storage
	a, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	a.Start()
	return a
}

// owners tells which daemon has which query, and how many of its batches.
func owners(t *testing.T, apps ...*App) map[string][]int64 {
	t.Helper()
	out := map[string][]int64{}
	for i, a := range apps {
		var all struct{ Data queriesData }
		_, body := get(t, a, "/api/v1/queries")
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		for _, q := range all.Data.Queries {
			if out[q.Name] == nil {
				out[q.Name] = make([]int64, len(apps))
			}
			out[q.Name][i] = q.Batches
		}
	}
	return out
}

// awaitOneOwner waits until every query has one daemon, which has heard all of its
// batches, and every daemon has some; and tells how long that took.
func (r *fleetRig) awaitOneOwner(what string, batches int64, apps ...*App) {
	r.t.Helper()
	began := time.Now()
	await(r.t, what, func() error {
		has := make([]int, len(apps))
		all := owners(r.t, apps...)
		if len(all) != len(r.streams) {
			return fmt.Errorf("%d queries", len(all))
		}
		for name, heard := range all {
			owned := 0
			for i, n := range heard {
				if n == batches {
					owned++
					has[i]++
				} else if n > 0 {
					return fmt.Errorf("%s: daemon %d has heard %d of %d batches", name, i, n, batches)
				}
			}
			if owned != 1 {
				return fmt.Errorf("%s has %d owners: %v", name, owned, heard)
			}
		}
		for i, n := range has {
			if n == 0 {
				return fmt.Errorf("daemon %d has nothing", i)
			}
		}
		r.t.Logf("%s: %v queries each, after %s", what, has, time.Since(began).Round(100*time.Millisecond))
		return nil
	})
}

// awaitAlertsOf waits until the daemons together hold so many firing alerts, none
// twice and none withheld.
func (r *fleetRig) awaitAlertsOf(want int, apps ...*App) {
	r.t.Helper()
	await(r.t, fmt.Sprintf("%d alerts", want), func() error {
		var pages []string
		for _, a := range apps {
			_, page := get(r.t, a, "/api/v1/alerts")
			pages = append(pages, page)
		}
		return heldOnce(want, pages)
	})
}

// heldOnce tells why the daemons whose lists of alerts these are do not hold so many
// firing alerts, none twice and none withheld.
func heldOnce(want int, pages []string) error {
	seen := map[string]int{}
	for _, page := range pages {
		var got struct{ Data struct{ Alerts []alertJSON } }
		if err := json.Unmarshal([]byte(page), &got); err != nil {
			return err
		}
		for _, al := range got.Data.Alerts {
			if al.State == "firing" && al.Withheld == "" {
				seen[fmt.Sprint(al.Labels)]++
			}
		}
	}
	for labels, n := range seen {
		if n > 1 {
			return fmt.Errorf("%d daemons hold %s", n, labels)
		}
	}
	if len(seen) != want {
		return fmt.Errorf("%d alerts of %d: %.1500s", len(seen), want, strings.Join(pages, ""))
	}
	return nil
}

// pagedOnce checks that every alert began once and none has ended.
func (r *fleetRig) pagedOnce(want int) {
	r.t.Helper()
	await(r.t, "every page to have left once", func() error {
		book := r.am.book()
		if once := strings.Count(book, "began 1 times, ended 0 times"); once != want || strings.Count(book, "\n")+1 != want {
			return fmt.Errorf("%d of %d alerts began once and rang on:\n%s", once, want, book)
		}
		return nil
	})
}

// TestDaemonsShareATopicAndHandAlertsOverWithoutASecondPage lets daemons join and
// leave a consumer group: cleanly, and by vanishing. Queries go to one daemon each
// with all of their past; alerts that ring go on ringing, once.
func TestDaemonsShareATopicAndHandAlertsOverWithoutASecondPage(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("history=%v", kept), func(t *testing.T) {
			storage := func(name string) string {
				if !kept {
					return ""
				}
				return filepath.Join(t.TempDir(), name)
			}
			queries := 24
			if os.Getenv(killsEnv) != "" {
				queries = 300
			}
			r := newFleetRig(t, queries)
			first := r.join("shared", storage("a"))
			defer stopped(t, first)
			r.send(50)
			r.awaitOneOwner("the first daemon alone", 50, first)
			r.awaitAlertsOf(queries/2, first)
			r.pagedOnce(queries / 2)

			second := r.join("shared", storage("b"))
			r.awaitOneOwner("a second daemon", 50, first, second)
			r.awaitAlertsOf(queries/2, first, second)
			for _, a := range []*App{first, second} {
				for _, m := range scrape(t, a)["spark_streaming_batches_total"].GetMetric() {
					if a == second && m.GetCounter().GetValue() != 0 {
						t.Errorf("what was counted elsewhere counts here: %v", m)
					}
				}
			}
			r.send(5)
			third := r.join("shared", storage("c"))
			defer stopped(t, third)
			r.awaitOneOwner("a third daemon", 55, first, second, third)
			r.awaitAlertsOf(queries/2, first, second, third)

			stopped(t, second)
			r.send(5)
			r.awaitOneOwner("the second daemon gone", 60, first, third)
			r.awaitAlertsOf(queries/2, first, third)
			r.pagedOnce(queries / 2)
		})
	}
}

func stopped(t *testing.T, a *App) {
	t.Helper()
	if err := a.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestDaemonsOfTwoGroupsSayTheSameOfAnAlert: both read everything, and what they post
// differs in no label, so that an Alertmanager takes it for one alert.
func TestDaemonsOfTwoGroupsSayTheSameOfAnAlert(t *testing.T) {
	r := newFleetRig(t, 4)
	r.send(50)
	one, two := r.join("one", ""), r.join("two", "")
	defer stopped(t, one)
	defer stopped(t, two)
	for _, a := range []*App{one, two} {
		r.awaitAlertsOf(2, a)
	}
	r.pagedOnce(2)
}

// TestWithoutADiskTheTopicBringsWindowsAndAlertsBack restarts a daemon that keeps
// nothing: it reads its past again and says of it what it said, and nobody is paged a
// second time.
func TestWithoutADiskTheTopicBringsWindowsAndAlertsBack(t *testing.T) {
	r := newFleetRig(t, 4)
	r.send(50)
	a := r.join("lone", "")
	r.awaitAlertsOf(2, a)
	r.pagedOnce(2)
	_, before := get(t, a, "/api/v1/rules")
	stopped(t, a)
	again := r.join("lone", "")
	defer stopped(t, again)
	r.awaitAlertsOf(2, again)
	_, after := get(t, again, "/api/v1/rules")
	none := `{"data":{}}`
	if d := difference(strings.Join(judgements(t, after, none), "\n"), strings.Join(judgements(t, before, none), "\n")); d != "" {
		t.Errorf("after the restart:\n%s", d)
	}
	if got := value(t, scrape(t, again), "spark_streaming_batches_total", "query_id", r.streams[0].id); got != 0 {
		t.Errorf("%g batches of before the restart were counted again", got)
	}
	r.pagedOnce(2)
}

// TestAnAlertThatEndsWhileTheDaemonIsDownIsResolved stops a daemon whose alerts ring.
// What it reads after the start says that all is well again: the resolve is sent, and
// what still holds rings on without a second page.
func TestAnAlertThatEndsWhileTheDaemonIsDownIsResolved(t *testing.T) {
	r := newFleetRig(t, 4)
	storage := t.TempDir()
	a := r.join("lone", storage)
	r.send(50)
	r.awaitAlertsOf(2, a)
	r.pagedOnce(2)
	stopped(t, a)
	for range 30 {
		r.sendOne(r.streams[0], 6400)
		r.sendOne(r.streams[2], 20_000)
	}
	again := r.join("lone", storage)
	defer stopped(t, again)
	r.awaitAlertsOf(1, again)
	await(t, "the resolve of one", func() error {
		book := r.am.book()
		if strings.Count(book, "began 1 times, ended 1 times") != 1 || strings.Count(book, "began 1 times, ended 0 times") != 1 {
			return fmt.Errorf("%s", book)
		}
		return nil
	})
	if got := value(t, scrape(t, again), "spark_streaming_batches_total", "query_id", r.streams[0].id); got != 80 {
		t.Errorf("%g batches counted over the restart, want 80", got)
	}
}

func (r *fleetRig) sendOne(s *stream, fileSyncMs int64) {
	r.t.Helper()
	s.fileSyncMs = fileSyncMs
	if err := r.client.ProduceSync(r.t.Context(), &kgo.Record{Key: []byte(s.id), Value: bytes.Clone(s.next())}).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// TestARestartedDaemonLetsGoOfWhatItHadBefore gives a daemon that came back from its
// history alone a partner: of queries that it has not heard of since it must know
// which partitions they live in.
func TestARestartedDaemonLetsGoOfWhatItHadBefore(t *testing.T) {
	r := newFleetRig(t, 12)
	storage := t.TempDir()
	a := r.join("shared", storage)
	r.send(50)
	r.awaitOneOwner("the first daemon alone", 50, a)
	r.awaitAlertsOf(6, a)
	r.pagedOnce(6)
	stopped(t, a)
	again := r.join("shared", storage)
	defer stopped(t, again)
	r.awaitAlertsOf(6, again)
	second := r.join("shared", t.TempDir())
	defer stopped(t, second)
	r.awaitOneOwner("a second daemon", 50, again, second)
	r.awaitAlertsOf(6, again, second)
	r.pagedOnce(6)
}

// TestADaemonThatComesBackToFewerPartitionsForgetsTheRest lets another take the
// partitions of one that is down: when it comes back it must not go on with all that
// its history holds.
func TestADaemonThatComesBackToFewerPartitionsForgetsTheRest(t *testing.T) {
	r := newFleetRig(t, 12)
	storage := t.TempDir()
	a := r.join("shared", storage)
	r.send(50)
	r.awaitOneOwner("the first daemon alone", 50, a)
	stopped(t, a)
	second := r.join("shared", t.TempDir())
	defer stopped(t, second)
	r.awaitOneOwner("the second daemon alone", 50, second)
	r.send(5)
	r.awaitOneOwner("the second daemon alone, later", 55, second)
	again := r.join("shared", storage)
	defer stopped(t, again)
	r.awaitOneOwner("both", 55, again, second)
	r.awaitAlertsOf(6, again, second)
	r.pagedOnce(6)
}
