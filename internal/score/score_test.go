package score

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// quickRules find slow uploads within some twenty batches.
const quickRules = `
signals:
  upload: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}
  duration: {of: query, value: duration_ms / 1000, unit: seconds}
groups:
  - name: trends
    rules:
      - alert: UploadWatched
        signal: upload
        rising: {over: 40 batches, min_points: 20, by: 25%, at_least: 1ms}
        labels: {severity: info, symptom: commit-sync-rising}
      - alert: UploadSlower
        signal: upload
        rising: {over: 40 batches, min_points: 20, by: 25%, at_least: 1ms}
        for: 8 batches
        keep_firing_for: 5 batches
        labels: {severity: ticket, symptom: commit-sync-rising}
      - alert: BatchSlower
        signal: duration
        rising: {over: 40 batches, min_points: 20, by: 200%, at_least: 100ms}
        for: 12 batches
        keep_firing_for: 5 batches
        labels: {severity: page, symptom: duration-rising}
`

func packOf(t testing.TB, text string) *rules.Pack {
	t.Helper()
	p, err := rules.Load(rules.Source{Name: "rules.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// line is one batch of a made-up query.
func line(id string, n int, every time.Duration, upload, duration float64) string {
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * every).Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf(`{"id":%q,"runId":"r","name":%q,"timestamp":%q,"batchId":%d,"numInputRows":100,"durationMs":{"addBatch":%.0f,"triggerExecution":%.0f},`+
		`"stateOperators":[{"operatorName":"dedupe","numRowsUpdated":50,"numStateStoreInstances":4,"customMetrics":{"rocksdbCommitFileSyncLatencyMs":%.0f}}],"sources":[]}`+"\n",
		id, id, at, 1000+n, duration, duration, 4*upload)
}

// streamOf is a stream of two queries over 300 batches whose uploads and durations
// are multiplied as told.
func streamOf(upload, duration func(query, n int) float64) *stream {
	s := &stream{Queries: map[string]int{"one": 1, "two": 2}}
	for n := range 300 {
		for q, id := range []string{"one", "two"} {
			wobble := 1 + 0.05*math.Sin(float64(n*n+q))
			s.lines = append(s.lines, line(id, n, time.Minute, 50*wobble*upload(q+1, n), 2000*wobble*duration(q+1, n))...)
		}
	}
	return s
}

func always(int, int) float64 { return 1 }

// onceFrom is a step of query q at batch n to x times as much.
func onceFrom(q, n int, x float64) func(int, int) float64 {
	return func(query, batch int) float64 {
		if query == q && batch >= n {
			return x
		}
		return 1
	}
}

func judged(t *testing.T, s *stream, expect ...scenario.Expectation) result {
	t.Helper()
	r, err := judge(packOf(t, quickRules), s, &scenario.Scenario{Name: "made", Expect: expect, Healthy: len(expect) == 0})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAFaultThatIsNamedRightlyIsFoundWithItsDelays(t *testing.T) {
	r := judged(t, streamOf(onceFrom(2, 150, 2), always), scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 2})
	if len(r.Expected) != 1 || len(r.Wrong) != 0 || r.Batches != 600 {
		t.Fatalf("%+v", r)
	}
	x := r.Expected[0]
	if !x.Found || x.Delay < 5 || x.Delay > 40 || x.TicketDelay <= x.Delay {
		t.Errorf("%+v", x)
	}
	if days := 2 * 299.0 / 1440; math.Abs(r.QueryDays-days) > 1e-9 {
		t.Errorf("%v query-days, want %v", r.QueryDays, days)
	}
}

func TestAnAlertOnTheWrongQueryOrWithTheWrongSymptomOrTooEarlyCountsAgainst(t *testing.T) {
	s := streamOf(onceFrom(2, 150, 2), always)
	for _, c := range []struct {
		name   string
		expect scenario.Expectation
		wrong  string
	}{
		{"another query", scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 1}, "ticket commit-sync-rising"},
		{"another symptom", scenario.Expectation{Symptom: "offsets-slow", FromBatch: 1150}, "ticket commit-sync-rising"},
		{"too early", scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1290}, "ticket commit-sync-rising early"},
		{"it cannot be told", scenario.Expectation{Symptom: "commit-sync-rising", CannotTell: true}, "ticket commit-sync-rising"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judged(t, s, c.expect)
			if r.Expected[0].Found || len(r.Wrong) != 2 || r.Wrong[0].Severity != "info" || r.Wrong[1].name() != c.wrong {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A query that dies in the fault's first batch never ends it, so the newest executed
// one is that before; and a new checkpoint begins again at 0.
func TestAFaultIsNotEarlyBecauseItsFirstBatchNeverEnds(t *testing.T) {
	s := &stream{Queries: map[string]int{"one": 1}}
	tr := newTruth(packOf(t, quickRules), s, &scenario.Scenario{Expect: scenario.Expectations{{Symptom: "failed", FromBatch: 1100}, {Symptom: "posture"}}})
	b := &event.Batch{ID: 1098, Query: event.QueryRef{ID: "one"}}
	tr.reach(b, 500)
	if tr.beganMs[0] < 1000 {
		t.Error("the fault has begun two batches before its first")
	}
	b.ID = 1099
	tr.reach(b, 1000)
	b.ID = 1100
	tr.reach(b, 2000)
	failed := &replay.Episode{Symptom: "failed", FiringMs: 1001, FiringBatch: 1099}
	if x := tr.look(0, []*replay.Episode{failed}); !x.Found || x.Delay != 0 {
		t.Errorf("%+v", x)
	}
	if w, is := tr.wrong(failed); is {
		t.Errorf("%+v", w)
	}
	failed.FiringMs = 999
	if w, is := tr.wrong(failed); !is || !w.Early {
		t.Errorf("an alert before the fault: %+v, wrong %t", w, is)
	}
	if w, is := tr.wrong(&replay.Episode{Symptom: "posture", FiringMs: 1}); is {
		t.Errorf("what holds from the beginning was found too early: %+v", w)
	}
}

func TestAnOptionalFindingIsNeitherMissingNorWrong(t *testing.T) {
	optional := scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Optional: true}
	for _, s := range []*stream{streamOf(onceFrom(1, 150, 2), always), streamOf(always, always)} {
		if r := judged(t, s, optional); len(r.Expected) != 0 || len(r.Wrong) != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestWhatIsHealthyExpectsNothing(t *testing.T) {
	if r := judged(t, streamOf(always, always)); len(r.Expected)+len(r.Wrong) != 0 {
		t.Errorf("%+v", r)
	}
	if r := judged(t, streamOf(onceFrom(1, 150, 3), always)); len(r.Wrong) != 2 {
		t.Errorf("%+v", r.Wrong)
	}
}

func TestPeersSeeWhatTheyWereMadeFor(t *testing.T) {
	r := judged(t, streamOf(always, onceFrom(1, 150, 3)), scenario.Expectation{Symptom: "duration-rising", FromBatch: 1150, Query: 1})
	for i, p := range r.Peers {
		if p.Found != 1 || p.Named != 1 || len(p.Delay) != 1 || p.Delay[0] < peerHold-1 {
			t.Errorf("%s: %+v", peerNames[i], p)
		}
	}
	r = judged(t, streamOf(always, onceFrom(1, 150, 3)), scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 2})
	for i, p := range r.Peers {
		if p.Found != 0 || p.Named != 0 {
			t.Errorf("%s found the fault on another query: %+v", peerNames[i], p)
		}
	}
	r = judged(t, streamOf(always, onceFrom(1, 100, 3)))
	if p := r.Peers[0]; p.Wrong != 1 {
		t.Errorf("a healthy query at which a threshold fired once: %+v", p)
	}
}

func TestAPeerFiresOnceAndAgainOnlyAfterItWasClear(t *testing.T) {
	s, began := &peerSeries{}, 0
	at := int64(0)
	feed := func(n int, v float64) {
		for range n {
			at += 60_000
			if s.push(at, v)[0] {
				began++
			}
		}
	}
	feed(100, 10)
	feed(4, 100)
	feed(10, 10)
	if began != 0 {
		t.Fatal("it did not wait")
	}
	feed(50, 100)
	feed(3, 10)
	feed(50, 100)
	feed(10, 10)
	feed(50, 100)
	if began != 2 {
		t.Errorf("fired %d times", began)
	}
}

func TestThePoissonBoundIsThatOfTheTables(t *testing.T) {
	for n, want := range map[int]float64{0: 2.996, 1: 4.744, 2: 6.296, 5: 10.513, 10: 16.962, 100: 118.08} {
		if got := poissonBound(n); math.Abs(got-want) > 0.001*want {
			t.Errorf("%d counted: %v, want %v", n, got, want)
		}
	}
}

func TestRatesArePerThousandQueryDays(t *testing.T) {
	e := Exposure{QueryDays: 2000, By: map[string]int{"page": 1}}
	rate, bound := e.Rate("page")
	none, upTo := e.Rate("ticket")
	if rate != 0.5 || math.Abs(bound-2.372) > 0.001 || none != 0 || math.Abs(upTo-1.498) > 0.001 {
		t.Errorf("%v below %v, %v below %v", rate, bound, none, upTo)
	}
}

func TestThresholdsAndHoldsAreScaledAndNothingElse(t *testing.T) {
	in := `
        rising: {over: 120 batches and 2h, by: 25%, at_least: 30ms, level: {by: 35%, before: 8h}}
        for: 20 batches and 30m   # why
        keep_firing_for: 20 batches
      - {alert: X, for: 1m, labels: {a: b}}
`
	want := `
        rising: {over: 120 batches and 2h, by: 50%, at_least: 60ms, level: {by: 70%, before: 8h}}
        for: 10 batches and 900s   # why
        keep_firing_for: 20 batches
      - {alert: X, for: 30s, labels: {a: b}}
`
	if diff := cmp.Diff(want, string(scaleRules([]byte(in), 2, 0.5))); diff != "" {
		t.Error(diff)
	}
	if got := string(scaleRules([]byte(in), 1, 1)); !strings.Contains(got, "by: 25%") || !strings.Contains(got, "20 batches and 1800s") {
		t.Error(got)
	}
}

func TestDefaultsThatAreSoAreNotWrong(t *testing.T) {
	posture := &replay.Episode{Symptom: "posture", Severity: "info", FiringMs: 1}
	conf := func(provider, changelog string) *scenario.Scenario {
		return &scenario.Scenario{Conf: map[string]string{
			"spark.sql.streaming.stateStore.providerClass": provider, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": changelog,
		}}
	}
	for _, c := range []struct {
		sc    *scenario.Scenario
		wrong bool
	}{
		{conf("org.x.RocksDBStateStoreProvider", "false"), false},
		{conf("org.x.RocksDBStateStoreProvider", ""), false},
		{conf("org.x.RocksDBStateStoreProvider", "true"), true},
		{conf("org.x.HDFSBackedStateStoreProvider", "false"), true},
	} {
		tr := newTruth(packOf(t, quickRules), &stream{}, c.sc)
		if _, is := tr.wrong(posture); is != c.wrong {
			t.Errorf("%v: wrong %v", c.sc.Conf, is)
		}
		if _, is := tr.wrong(&replay.Episode{Symptom: "failed", FiringMs: 1}); !is {
			t.Errorf("%v: what nobody ordered is right", c.sc.Conf)
		}
	}
}

func TestTheSeedsThatRulesWereTunedOnStandBeside(t *testing.T) {
	r := &Report{Rules: 3, Seeds: 2, FirstSeed: 1001, Sizes: []SizeRow{{Size: 3, Expected: 4, Found: 3}}}
	var alone, both strings.Builder
	if err := r.WriteText(&alone); err != nil {
		t.Fatal(err)
	}
	r.Beside = &Report{Seeds: 5, FirstSeed: 1, Sizes: []SizeRow{{Size: 3, Expected: 10, Found: 9}}}
	if err := r.WriteText(&both); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(alone.String(), "tuned") || !strings.Contains(both.String(), "tuned on seeds 1 to 5") ||
		!strings.Contains(both.String(), "| 1001 to 1002 | x3   | 4 ") || !strings.Contains(both.String(), "| 1 to 5       | x3   | 10 ") {
		t.Errorf("%s\n%s", alone.String(), both.String())
	}
}

func TestAskedForOrNotTheOwnNumberOfBatchesIsOneStream(t *testing.T) {
	c, sc := &cache{dir: "d"}, &scenario.Scenario{Name: "s", Batches: 300}
	name := func(batches int64) string {
		f, err := c.file(sc, simulator.Options{Batches: batches})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if name(0) != name(300) || name(0) == name(299) {
		t.Errorf("%s, %s, %s", name(0), name(300), name(299))
	}
}

// tiny is a scenario that plays in moments.
const tiny = `
batches: 150
query:
  trigger: {interval: 1m}
  watermark_delay: 2m
  operators: [{kind: aggregation, window: 2m}]
  sources: [{rows_per_second: 5, keys: {count: 100}}]
cluster: {executors: 1, cores: 2, real_stores: 1}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.shuffle.partitions: "2"
`

const tinyFault = tiny + `
faults: [{kind: store-slow, from_batch: 90}]
expect: {symptom: commit-sync-rising, from_batch: 90}
`

func tinyOptions(t testing.TB) Options {
	return Options{
		Rules:     []rules.Source{{Name: "rules.yaml", Data: []byte(quickRules)}},
		Scenarios: []Scenario{{"calm", []byte(tiny + "healthy: true\n")}, {"slow", []byte(tinyFault)}},
		Seeds:     1, Sizes: []float64{3}, CacheDir: t.TempDir(), Parallel: 2,
		Healthy: []HealthyRun{{time.Minute, 600}}, TradeOff: 600,
	}
}

func TestAScoreHasEveryPart(t *testing.T) {
	o := tinyOptions(t)
	said := make(chan string, 1000)
	o.Say = func(format string, args ...any) { said <- fmt.Sprintf(format, args...) }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Scenarios) != 2 || len(r.Sizes) != 1 || r.Sizes[0].Expected != 1 || r.Sizes[0].Found != 1 {
		t.Errorf("%+v %+v", r.Scenarios, r.Sizes)
	}
	if len(r.Healthy) != 2 || r.Healthy[1].Batches != 600 || math.Abs(r.Healthy[1].QueryDays-600.0/1440) > 1e-9 {
		t.Errorf("%+v", r.Healthy)
	}
	if len(r.TradeOff) != len(tradeOffPoints) || r.TradeOff[3].Found != 1 || r.TradeOff[3].Threshold != 1 || r.TradeOff[3].Hold != 1 {
		t.Errorf("%+v", r.TradeOff)
	}
	if len(said) == 0 {
		t.Error("nothing was said of the progress")
	}
	var text, data bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&data)); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"Faults found", "Alerts on healthy", "What users would write", "Delay", "Trade-off", "Scenario by scenario"} {
		if !strings.Contains(text.String(), "## "+title) {
			t.Errorf("no %q in\n%s", title, text.String())
		}
	}
	var back Report
	if err := json.Unmarshal(data.Bytes(), &back); err != nil || back.Rules != 3 {
		t.Errorf("error %v, %d rules", err, back.Rules)
	}
}

func TestTheSameScoreComesAgainFromTheCacheAndWithout(t *testing.T) {
	o := tinyOptions(t)
	text := func(o Options) string {
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		r.Seconds = 0
		for i := range r.Healthy {
			r.Healthy[i].Seconds = 0
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := text(o)
	files, err := filepath.Glob(filepath.Join(o.CacheDir, "*.zst"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, error %v", files, err)
	}
	if diff := cmp.Diff(first, text(o)); diff != "" {
		t.Errorf("from the cache: %s", diff)
	}
	if err := os.WriteFile(files[0], []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, text(o)); diff != "" {
		t.Errorf("from a broken cache: %s", diff)
	}
	without := o
	without.CacheDir = ""
	if diff := cmp.Diff(first, text(without)); diff != "" {
		t.Errorf("without a cache: %s", diff)
	}
}

func TestWhatCannotBeScoredIsAnError(t *testing.T) {
	o := tinyOptions(t)
	o.Rules = []rules.Source{{Name: "r.yaml", Data: []byte("group: []")}}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `did you mean "groups"?`) {
		t.Errorf("error %v", err)
	}
	o = tinyOptions(t)
	o.Scenarios = []Scenario{{"bad.yml", []byte("batchs: 5")}}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `did you mean "batches"?`) {
		t.Errorf("error %v", err)
	}
	o = tinyOptions(t)
	o.Scenarios = o.Scenarios[1:]
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no scenario is healthy") {
		t.Errorf("error %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, tinyOptions(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestEachStopsAtTheFirstErrorAndCallsNobodyTwice(t *testing.T) {
	calls := make([]int, 50)
	if err := each(t.Context(), 1, 50, func(i int) error { calls[i]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, n := range calls {
		if n != 1 {
			t.Errorf("%d was called %d times", i, n)
		}
	}
	wrong := errors.New("wrong")
	seen := 0
	err := each(t.Context(), 1, 50, func(i int) error {
		seen++
		if i == 3 {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || seen > 6 {
		t.Errorf("error %v after %d calls", err, seen)
	}
}
