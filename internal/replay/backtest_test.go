package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// uploadRules find slow uploads quickly, and a page among the consequences.
const uploadRules = `
signals:
  upload: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}
  duration: {of: query, value: duration_ms / 1000, unit: seconds}
groups:
  - name: trends
    rules:
      - alert: UploadSlower
        signal: upload
        rising: {over: 40 batches, min_points: 20, by: 25%, at_least: 10ms}
        for: 4 batches
        keep_firing_for: 5 batches
        labels: {severity: ticket, symptom: commit-sync-rising}
        annotations: {summary: "uploads of {{ .Query.Name }} are slow", cause: "slow store", fix: "look at it"}
      - alert: BatchSlower
        signal: duration
        rising: {over: 40 batches, min_points: 20, by: 25%, at_least: 100ms}
        for: 12 batches
        keep_firing_for: 5 batches
        labels: {severity: page, symptom: duration-rising}
inhibit:
  - causes: [commit-sync-rising]
    consequences: [duration-rising]
`

func packOf(t testing.TB, text string) *rules.Pack {
	t.Helper()
	p, err := rules.Load(rules.Source{Name: "rules.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// uploadsSlowedDown has uploads that take four times as long from one batch to another,
// and whole batches that take longer with them.
func uploadsSlowedDown(name string, batches, from, to int) *stream {
	return newStream(name).add(0, batches, func(n int, b batch) {
		if n < from || n >= to {
			return
		}
		metrics(b)["rocksdbCommitFileSyncLatencyMs"] = 1600 + n*7%50
		d := b["durationMs"].(map[string]any)
		d["addBatch"], d["triggerExecution"] = 2400+n*7%50, 2510+n*7%50
	})
}

func backtest(t testing.TB, o BacktestOptions) *Backtested {
	t.Helper()
	b, err := Backtest(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func linesOf(t testing.TB, b *Backtested) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := b.Write(&out, FormatJSON); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for l := range strings.Lines(out.String()) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		all = append(all, m)
	}
	return all
}

func TestEachFiringEpisodeIsOneLineWithItsKeys(t *testing.T) {
	s := uploadsSlowedDown("shop", 400, 150, 260)
	b := backtest(t, BacktestOptions{Inputs: Inputs{Stdin: strings.NewReader(s.text())}, Rules: packOf(t, uploadRules)})
	all := linesOf(t, b)
	if len(all) != 1 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	l := all[0]
	keys := slices.Sorted(func(yield func(string) bool) {
		for k := range l {
			if !yield(k) {
				return
			}
		}
	})
	want := []string{
		"alertname", "annotations", "firing_at", "firing_batch", "first_batch", "inhibited_by", "labels", "last_batch",
		"pending_at", "resolved_at", "severity", "symptom",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
	firing, first, last := l["firing_batch"].(float64), l["first_batch"].(float64), l["last_batch"].(float64)
	if firing < 150 || firing > 190 || first < 140 || first > firing || last <= 260 {
		t.Errorf("first batch %v, firing %v, last %v", first, firing, last)
	}
	if got := l["annotations"].(map[string]any)["summary"]; got != "uploads of shop are slow" {
		t.Errorf("summary %q", got)
	}
	at := func(key string) time.Time {
		when, err := time.Parse(time.RFC3339, fmt.Sprint(l[key]))
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	if !at("pending_at").Before(at("firing_at")) || !at("firing_at").Before(at("resolved_at")) {
		t.Errorf("pending %v, firing %v, resolved %v", l["pending_at"], l["firing_at"], l["resolved_at"])
	}
	if at("firing_at") != s.start.Add(time.Duration(firing)*s.every) {
		t.Errorf("fired at %v, at batch %v", l["firing_at"], firing)
	}
}

func TestInhibitedEpisodesAreShownOnRequestAndPassTheirSeverityOn(t *testing.T) {
	o := BacktestOptions{Rules: packOf(t, uploadRules)}
	o.Stdin = strings.NewReader(uploadsSlowedDown("shop", 400, 150, 400).text())
	o.All = true
	all := linesOf(t, backtest(t, o))
	if len(all) != 2 {
		t.Fatalf("%d lines: %v", len(all), all)
	}
	cause, consequence := all[0], all[1]
	if cause["symptom"] != "commit-sync-rising" || cause["severity"] != "page" || cause["inhibited_by"] != nil || cause["resolved_at"] != nil {
		t.Errorf("the cause took over no severity, or did not go on: %v", cause)
	}
	if consequence["inhibited_by"] != "UploadSlower" || consequence["severity"] != "page" {
		t.Errorf("%v", consequence)
	}
	if cause["last_batch"].(float64) < 395 {
		t.Errorf("an alert that still fires was last judged at batch %v of 399", cause["last_batch"])
	}
}

func TestNothingFiredIsNoFailure(t *testing.T) {
	o := BacktestOptions{Rules: packOf(t, uploadRules)}
	o.Stdin = strings.NewReader(newStream("calm").add(0, 300, nil).text())
	b := backtest(t, o)
	if got := linesOf(t, b); len(got) != 0 || b.Events != 300 || b.Queries != 1 {
		t.Errorf("%v of %d events, %d queries", got, b.Events, b.Queries)
	}
	var out bytes.Buffer
	if err := b.Write(&out, FormatText); err != nil {
		t.Fatal(err)
	}
	want := "300 events of 1 query, 2031-02-03 04:00:00Z to 2031-02-03 06:29:30Z\n\nnothing fired\n"
	if diff := cmp.Diff(want, strings.ReplaceAll(out.String(), "06:29:30.910", "06:29:30")); diff != "" {
		t.Error(diff)
	}
}

func TestATimelineReadsFromTopToBottom(t *testing.T) {
	o := BacktestOptions{Rules: packOf(t, uploadRules), All: true}
	o.Stdin = strings.NewReader(uploadsSlowedDown("shop", 400, 150, 260).text())
	var out bytes.Buffer
	if err := backtest(t, o).Write(&out, FormatText); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "timeline.golden")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
	if err := backtest(t, o).Write(&out, "xml"); err == nil || !strings.Contains(err.Error(), `"xml" must be text or json`) {
		t.Errorf("error %v", err)
	}
}

// heardOrder plays files and returns the batches in the order in which they came.
func heardOrder(t *testing.T, in Inputs) (order []string, sum Intake) {
	t.Helper()
	sum, err := Merge(t.Context(), in, func(it *collector.Item) {
		order = append(order, fmt.Sprintf("%s %d", it.Event.Query.Name, it.Event.Batch.ID))
	})
	if err != nil {
		t.Fatal(err)
	}
	return order, sum
}

func TestFilesOfSeveralQueriesArePlayedSideBySide(t *testing.T) {
	dir := t.TempDir()
	a, b := newStream("a").add(0, 300, nil), newStream("b")
	b.start = b.start.Add(100*b.every + b.every/2)
	b.add(0, 300, nil)
	for name, s := range map[string]*stream{"a": a, "b": b} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s.text()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	order, sum := heardOrder(t, Inputs{Paths: []string{dir}})
	if len(order) != 600 || sum.Events != 600 || sum.Files != 2 {
		t.Fatalf("%d played, %+v", len(order), sum)
	}
	if order[0] != "a 0" || order[100] != "a 100" || order[101] != "b 0" || order[102] != "a 101" || order[599] != "b 299" {
		t.Errorf("%v", order[95:110])
	}
}

func TestTheOrderWithinALogIsThatOfItsArrival(t *testing.T) {
	s := newStream("a").add(0, 10, nil)
	s.lines[3], s.lines[7] = s.lines[7], s.lines[3]
	order, _ := heardOrder(t, Inputs{Stdin: strings.NewReader(s.text())})
	if order[3] != "a 7" || order[7] != "a 3" {
		t.Errorf("%v", order)
	}
}

func TestAnyNumberOfLogsIsReadWithAFewOpen(t *testing.T) {
	dir := t.TempDir()
	for i := range maxLanes + 40 {
		s := newStream(fmt.Sprintf("q%03d", i)).add(0, 2, nil)
		if err := os.WriteFile(filepath.Join(dir, s.name), []byte(s.text()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	order, sum := heardOrder(t, Inputs{Paths: []string{dir}})
	if len(order) != 2*(maxLanes+40) || sum.Files != maxLanes+40 {
		t.Errorf("%d events of %d files", len(order), sum.Files)
	}
}

func TestAPathThatCannotBeReadCostsNoOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, []byte(newStream("a").add(0, 5, nil).text()), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Backtest(t.Context(), BacktestOptions{Inputs: Inputs{Paths: []string{"/nowhere/at/all", file}}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/at/all") || b.Events != 5 {
		t.Errorf("%d events, error %v", b.Events, err)
	}
}

func TestAnEndedContextStopsTheReplayAndItsReaders(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	s := newStream("a").add(0, 3000, nil)
	n := 0
	_, err := Merge(ctx, Inputs{Stdin: strings.NewReader(s.text())}, func(*collector.Item) {
		if n++; n == 10 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || n != 10 {
		t.Errorf("%d events, error %v", n, err)
	}
	// The readers have ended; their goroutines may take a moment to leave.
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestRejectsAreCountedBeyondTheirList(t *testing.T) {
	whole := newStream("a").add(0, 1, nil).text()
	text := strings.Repeat(whole[:200]+"\n", 10) + whole
	sum, err := Merge(t.Context(), Inputs{Stdin: strings.NewReader(text), MaxRejected: 4}, func(*collector.Item) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Rejects) > 4 || len(sum.Rejects)+sum.Hidden != sum.Rejected || sum.Rejected == 0 {
		t.Errorf("%d listed, %d hidden, %d in all", len(sum.Rejects), sum.Hidden, sum.Rejected)
	}
}

// ticks counts what a Player's engine and tracker are told of passing time.
func ticksOver(t *testing.T, gapMs int64) (tracked, judged int64) {
	t.Helper()
	p := NewPlayer(PlayerOptions{})
	p.AdvanceTo(1_000_000)
	var last [2]int64
	for from := p.nowMs; p.nowMs < from+gapMs; {
		last = [2]int64{p.tracked, p.judged}
		p.AdvanceTo(min(p.nowMs+1000, from+gapMs))
		if p.tracked != last[0] {
			tracked++
		}
		if p.judged != last[1] {
			judged++
		}
	}
	return tracked, judged
}

func TestTimePassesInTheDaemonsTicksBetweenEvents(t *testing.T) {
	if tracked, judged := ticksOver(t, 600_000); tracked != 119 || judged != 39 {
		t.Errorf("%d ticks of the tracker and %d of the rules before the end of ten minutes", tracked, judged)
	}
}

func TestAClockThatLeapsAYearDoesNotTakeLong(t *testing.T) {
	p := NewPlayer(PlayerOptions{})
	p.AdvanceTo(1_000_000)
	for range 200 {
		p.AdvanceTo(p.nowMs + 365*24*hourMs)
	}
	if p.tracked > p.nowMs || p.nowMs-p.tracked > calmMs {
		t.Errorf("now %d, last tick %d", p.nowMs, p.tracked)
	}
	p.AdvanceTo(5)
	if p.nowMs < 1_000_000 {
		t.Error("the clock went back")
	}
}

func TestSilenceBeforeTheNewestEventIsSeenAndAfterItIsNot(t *testing.T) {
	states := func(events ...*event.Event) (out []event.State) {
		p := NewPlayer(PlayerOptions{Update: func(u *event.Update) {
			if u.Outcome == event.OutcomeStateChange {
				out = append(out, u.State)
			}
		}})
		for _, e := range events {
			p.Play(e, event.Origin{})
		}
		return out
	}
	at := func(n int64, id int64) *event.Event {
		b := &event.Batch{ID: id, StartMs: n, Run: "r", Query: event.QueryRef{ID: "q"}, Executed: true}
		b.Values.Clear()
		b.Values[event.BatchDuration], b.Values[event.DurationAddBatch] = 1000, 900
		return &event.Event{Kind: event.KindProgress, Batch: b, Query: b.Query, Run: "r", AtMs: n}
	}
	const minute = 60_000
	var calm []*event.Event
	for i := range int64(30) {
		calm = append(calm, at((i+1)*minute, i))
	}
	if got := states(calm...); len(got) != 0 {
		t.Errorf("silence after the newest event was judged: %v", got)
	}
	if got := states(append(calm, at(200*minute, 30))...); len(got) != 1 || got[0] != event.StateOverdue {
		t.Errorf("an hour and more of silence between two batches: %v", got)
	}
}
