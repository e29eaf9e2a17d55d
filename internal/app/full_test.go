package app

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// TestAFullIntakeAnswersAtOnceAndLosesNothing holds the rules still until their
// queue is full: senders are told to come back, and what was refused is taken
// when they do.
func TestAFullIntakeAnswersAtOnceAndLosesNothing(t *testing.T) {
	a := start(t, withConfig(t, testOptions(t), "intake: {rules_queue: 1024}\n"))
	release, held := make(chan struct{}), make(chan struct{})
	go a.judge.ask(func() { close(held); <-release })
	<-held
	s := newStream(1)
	s.operators, s.partitions = 1, 2
	var refused []byte
	for refused == nil {
		body := bytes.Clone(s.ndjson(50))
		switch code := postCode(t, a, body); code {
		case http.StatusOK:
		case http.StatusTooManyRequests:
			refused = body
		default:
			t.Fatalf("status %d", code)
		}
		if s.batch > 2000 {
			t.Fatal("the queue never fills")
		}
	}
	if code, _ := get(t, a, "/metrics"); code != http.StatusOK {
		t.Errorf("a full intake costs the page: status %d", code)
	}
	close(release)
	await(t, "room in the queue", func() error {
		if code := postCode(t, a, refused); code != http.StatusOK {
			return collector.ErrFull
		}
		return nil
	})
	f := scrape(t, a)
	if got := value(t, f, "spark_streaming_batches_total", "kind", "data"); got != float64(s.batch) {
		t.Errorf("%g batches counted, %d sent", got, s.batch)
	}
	if value(t, f, "stategauge_intake_refused_total") == 0 {
		t.Error("nothing says that intake was refused")
	}
}

// postCode posts with a client that does not wait: a refusal must not hang.
func postCode(t *testing.T, a *App, body []byte) int {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Post(a.url("/api/v1/events"), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "" {
		t.Error("a refusal does not say when to come back")
	}
	return r.StatusCode
}

func TestNothingIsTakenOnceTheDaemonStops(t *testing.T) {
	a := start(t, testOptions(t))
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := a.Handle(context.Background(), &collector.Step{Items: []collector.Item{{Event: &event.Event{}}}}); err == nil {
		t.Error("a stopped daemon took a step")
	}
}

// TestAHeartbeatReachesTheQueriesOfEveryShard needs more shards than one.
func TestAHeartbeatReachesTheQueriesOfEveryShard(t *testing.T) {
	o := testOptions(t)
	o.Shards = 4
	a := start(t, o)
	var active bytes.Buffer
	for i := range 8 {
		s := newStream(i)
		post(t, a, s.ndjson(2))
		if i > 0 {
			active.WriteByte(',')
		}
		active.WriteString(`{"id":"` + s.id + `","runId":"` + s.run + `","triggerActive":true}`)
	}
	code, got := post(t, a, []byte(`{"v":1,"sender":"one","seq":1,"at":"2026-03-01T00:01:00Z","type":"heartbeat","event":{"active":[`+active.String()+`]}}`))
	if code != http.StatusOK || got.Accepted != 1 {
		t.Fatalf("status %d, %+v", code, got)
	}
	beats := 0
	a.ask(func(s *shard) {
		for _, q := range s.tracker.Queries(nil) {
			if q.HeartbeatMs != event.Absent && q.TriggerActive {
				beats++
			}
		}
	})
	if beats != 8 {
		t.Errorf("%d queries heard the heartbeat, want 8", beats)
	}
}

// BenchmarkPostWhileTheRulesStandStill posts single events from 16 senders at up to
// 2,000 a second while nothing is judged: first they are taken, then, with the
// rules' queue full, refused. One iteration is one second.
func BenchmarkPostWhileTheRulesStandStill(b *testing.B) {
	a := start(b, testOptions(b))
	release, held := make(chan struct{}), make(chan struct{})
	go a.judge.ask(func() { close(held); <-release })
	<-held
	defer close(release)
	const senders, perSecond = 16, 2000
	var (
		mu     sync.Mutex
		took   []time.Duration
		taken  int
		waited sync.WaitGroup
	)
	for i := range senders {
		s := newStream(i)
		waited.Go(func() {
			tick := time.NewTicker(time.Second * senders / perSecond)
			defer tick.Stop()
			for range b.N * perSecond / senders {
				<-tick.C
				body := bytes.NewReader(s.next())
				began := time.Now()
				r, err := http.Post(a.url("/api/v1/events"), "application/json", body)
				if err != nil {
					b.Error(err)
					return
				}
				r.Body.Close()
				mu.Lock()
				took = append(took, time.Since(began))
				if r.StatusCode == http.StatusOK {
					taken++
				}
				mu.Unlock()
			}
		})
	}
	waited.Wait()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(float64(taken)/float64(len(took)), "taken")
}
