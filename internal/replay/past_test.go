package replay

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// keeper puts on disk what a daemon would: everything that its tracker says of
// events and of passing time.
type keeper struct {
	t       testing.TB
	store   *history.Store
	words   *record.Dictionary
	tracker *track.Tracker
	ticked  int64
	updates []event.Update
	step    history.Step
	closed  bool
}

func newKeeper(t testing.TB, dir string) *keeper {
	t.Helper()
	store, err := history.Open(history.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, store: store, words: record.NewDictionary(0), tracker: track.New(track.DefaultConfig(), nil)}
	t.Cleanup(k.close)
	return k
}

func (k *keeper) close() {
	if k.closed {
		return
	}
	k.commit()
	k.closed = true
	if err := k.store.Close(); err != nil {
		k.t.Error(err)
	}
}

// hear takes an event in at our time nowMs.
func (k *keeper) hear(e *event.Event, nowMs int64) {
	for ; k.ticked != 0 && k.ticked+TrackEveryMs < nowMs; k.ticked += TrackEveryMs {
		k.keep(k.tracker.Tick(k.ticked+TrackEveryMs, k.updates[:0]), k.ticked+TrackEveryMs)
	}
	if k.ticked == 0 {
		k.ticked = nowMs
	}
	k.keep(k.tracker.Apply(e, nowMs, k.updates[:0]), nowMs)
}

func (k *keeper) keep(updates []event.Update, nowMs int64) {
	k.updates = updates
	for i := range updates {
		u := &updates[i]
		u.Origin = event.Origin{Source: "http", ReceivedMs: nowMs}
		k.put(u, ownMs(u.Event))
	}
	if len(k.step.Records) >= 500 {
		k.commit()
	}
}

// put stores an update as it is.
func (k *keeper) put(u *event.Update, atMs int64) {
	q := u.Event.Query
	lineage := q.Name
	if lineage == "" {
		lineage = string(q.ID)
	}
	if u.Outcome == event.OutcomeHeartbeat {
		q.ID = event.QueryID(u.Event.Envelope.Sender)
	}
	if atMs <= 0 {
		atMs = u.Origin.ReceivedMs
	}
	k.step.Records = append(k.step.Records, history.Record{
		Query: q.ID, Lineage: lineage, AtMs: atMs, Body: record.AppendStored(nil, record.Live, u, k.words),
	})
}

func (k *keeper) commit() {
	if len(k.step.Records) == 0 {
		return
	}
	pending := k.words.Pending()
	for _, w := range pending {
		k.step.Words = append(k.step.Words, history.Word(w))
	}
	k.step.Seq = k.store.NextSeq()
	if err := k.store.Commit([]*history.Step{&k.step}); err != nil {
		k.t.Fatal(err)
	}
	k.words.Stored(pending)
	k.step = history.Step{}
}

// hearText takes the events of NDJSON in, each when it leaves its sender.
func (k *keeper) hearText(text []byte) {
	k.t.Helper()
	pool := decode.NewPool(decode.DefaultLimits())
	now := int64(0)
	for line := range bytes.Lines(text) {
		pool.Get().Body(line, func(_ int, e *event.Event, rej *collector.Reject) bool {
			if rej != nil {
				k.t.Fatal(rej.Err)
			}
			now = max(now, heardMs(e))
			k.hear(e, now)
			return true
		})
	}
}

// simulated plays a scenario that comes with stategauge and returns its events.
func simulated(t testing.TB, name string, batches int64) []byte {
	t.Helper()
	var out bytes.Buffer
	play(t, name, batches, func(m *simulator.Message) error {
		out.Write(m.Data)
		return out.WriteByte('\n')
	})
	return out.Bytes()
}

// play hands on the events of a scenario that comes with stategauge.
func play(t testing.TB, name string, batches int64, emit func(*simulator.Message) error) {
	t.Helper()
	f, err := configs.Scenarios().Open(name + ".yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Load(name, data)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simulator.New(sc, simulator.Options{Seed: 5, Batches: batches})
	if err != nil {
		t.Fatal(err)
	}
	for m, err := sim.Next(); err == nil; m, err = sim.Next() {
		if err := emit(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := sim.Close(); err != nil {
		t.Fatal(err)
	}
}

func builtInRules(t testing.TB) *rules.Pack {
	t.Helper()
	var in []rules.Source
	for _, r := range configs.Rules() {
		in = append(in, rules.Source{Name: r.Name, Data: r.Data})
	}
	p, err := rules.Load(in...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// jsonOf is what a backtest prints.
func jsonOf(t testing.TB, pack *rules.Pack, in Inputs) string {
	t.Helper()
	var out bytes.Buffer
	if err := backtest(t, BacktestOptions{Inputs: in, Rules: pack, All: true}).Write(&out, FormatJSON); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestABacktestOfAHistoryIsThatOfTheEventsInIt(t *testing.T) {
	pack := builtInRules(t)
	for _, c := range []struct {
		scenario string
		batches  int64
	}{
		{"commit-sync-rising", 300},
		{"failed", 200},
		{"restart-loop", 0},
		{"checkpoint-reset", 0},
		{"sender-lost", 0},
		{"checkpoint-shared", 0},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			if raceEnabled && c.scenario != "restart-loop" {
				t.Skip("one scenario shows races as well as five")
			}
			t.Parallel()
			text := simulated(t, c.scenario, c.batches)
			dir := t.TempDir()
			k := newKeeper(t, dir)
			k.hearText(text)
			k.commit()
			want := jsonOf(t, pack, Inputs{Stdin: bytes.NewReader(text)})
			if want == "" {
				t.Fatal("nothing fired")
			}
			// The daemon still runs: the store is open for writing.
			if diff := cmp.Diff(want, jsonOf(t, pack, Inputs{Paths: []string{"history:" + dir}})); diff != "" {
				t.Errorf("while it is open elsewhere: %s", diff)
			}
			k.close()
			if diff := cmp.Diff(want, jsonOf(t, pack, Inputs{Paths: []string{"history:" + dir}})); diff != "" {
				t.Errorf("after it was closed: %s", diff)
			}
		})
	}
}

// order plays inputs and returns the batches and other events in the order in which
// they came.
func order(t testing.TB, in Inputs) (out []string, sum Intake) {
	t.Helper()
	sum, err := Merge(t.Context(), in, func(it *collector.Item) { out = append(out, told(it.Event)) })
	if err != nil {
		t.Fatal(err)
	}
	return out, sum
}

func told(e *event.Event) string {
	if e.Batch == nil {
		return fmt.Sprintf("%s %v", e.Query.Name, e.Kind)
	}
	return fmt.Sprintf("%s %d", e.Query.Name, e.Batch.ID)
}

const noon = int64(1_926_331_200_000)

// executed is batch n of a query that runs one a minute, each for 20 seconds.
func executed(query string, n int64) *event.Event {
	b := &event.Batch{}
	b.Reset()
	b.Query, b.Run = event.QueryRef{ID: event.QueryID("id-" + query), Name: query}, "run"
	b.ID, b.StartMs, b.Executed = n, noon+n*60_000, true
	b.Values[event.BatchDuration], b.Values[event.DurationAddBatch] = 20_000, 19_000
	return &event.Event{Kind: event.KindProgress, Batch: b, Query: b.Query, Run: "run", AtMs: b.StartMs}
}

// received puts an event on disk that the daemon received at the given time.
func (k *keeper) received(e *event.Event, ms int64) *keeper {
	u := event.Update{Event: e, Outcome: event.OutcomeExecuted, Origin: event.Origin{Source: "http", ReceivedMs: ms}}
	k.put(&u, ownMs(e))
	return k
}

func TestQueriesOfAHistoryComeSideBySideAndWithFiles(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(150) {
		k.received(executed("a", n), noon+n*60_000+20_100)
	}
	for n := range int64(50) {
		e := executed("b", n)
		e.AtMs += 30_000
		e.Batch.StartMs += 30_000
		k.received(e, e.AtMs+20_100)
	}
	k.commit()
	file := newStream("f")
	file.add(0, 3, func(n int, b batch) {
		b["timestamp"] = moment(noon + int64(n)*60_000 + 10_000)
	})
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte(file.text()), 0o600); err != nil {
		t.Fatal(err)
	}
	got, sum := order(t, Inputs{Paths: []string{"history:" + dir, path}})
	if len(got) != 203 || sum.Events != 203 || sum.Files != 2 {
		t.Fatalf("%d events, %+v", len(got), sum.Summary)
	}
	// The file's batches take a second, so each is heard before that of the history.
	if diff := cmp.Diff([]string{"f 0", "a 0", "b 0", "f 1", "a 1", "b 1", "f 2", "a 2", "b 2", "a 3", "b 3"}, got[:11]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a 49", "b 49", "a 50", "a 51"}, got[101:105]); diff != "" {
		t.Error(diff)
	}
}

func TestEventsOfAQueryComeInTheOrderOfTheirReceipt(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(400) {
		late := int64(100)
		if n == 10 || n == 11 {
			late = 300 * 60_000 // five hours
		}
		k.received(executed("a", n), noon+n*60_000+20_000+late)
	}
	k.commit()
	got, _ := order(t, Inputs{Paths: []string{"history:" + dir}})
	if len(got) != 400 {
		t.Fatalf("%d events", len(got))
	}
	if diff := cmp.Diff([]string{"a 9", "a 12", "a 13"}, got[9:12]); diff != "" {
		t.Error(diff)
	}
	if at := slices.Index(got, "a 10"); at < 1 || got[at-1] != "a 309" || got[at+1] != "a 310" {
		t.Errorf("the late batch came at place %d: %v", at, got[max(0, at-2):at+3])
	}
}

func TestWhatWasReadAgainAtOnceComesInItsOwnTime(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	const takeover = noon + 6*hourMs
	for _, q := range []string{"a", "b"} {
		for n := range int64(300) {
			k.received(executed(q, n), takeover+n)
		}
	}
	k.commit()
	got, _ := order(t, Inputs{Paths: []string{"history:" + dir}})
	for i, what := range got {
		if want := fmt.Sprintf("%c %d", 'a'+i%2, i/2); what != want {
			t.Fatalf("event %d is %q, want %q", i, what, want)
		}
	}
}

func TestWhatTrackersSaidOfPassingTimeIsNoEvent(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	k.received(executed("a", 0), noon+20_100)
	tick := event.Update{
		Event:   &event.Event{Kind: event.KindTick, Query: event.QueryRef{ID: "id-a", Name: "a"}, AtMs: noon + 30_000},
		Outcome: event.OutcomeStateChange, State: event.StateOverdue,
	}
	k.put(&tick, tick.Event.AtMs)
	k.received(executed("a", 1), noon+80_100)
	k.commit()
	got, sum := order(t, Inputs{Paths: []string{"history:" + dir}})
	if diff := cmp.Diff([]string{"a 0", "a 1"}, got); diff != "" || sum.Events != 2 || sum.Rejected != 0 {
		t.Errorf("%+v %s", sum.Summary, diff)
	}
}

func TestABatchThatIsThereTwiceIsJudgedOnce(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(20) {
		k.received(executed("a", n), noon+n*60_000+20_100).received(executed("a", n), noon+n*60_000+20_200)
	}
	k.commit()
	r, err := Examine(t.Context(), Options{Paths: []string{"history:" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Events != 40 || r.Queries[0].Batches != 20 || r.Queries[0].Repeats != 20 {
		t.Errorf("%d events, %d batches, %d repeats", r.Events, r.Queries[0].Batches, r.Queries[0].Repeats)
	}
}

func TestHolesInASendersNumbersAreNoLossesInAHistory(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(3) {
		e := executed("a", n)
		e.Envelope = &event.Envelope{Sender: "s", Seq: 10 * n, Dropped: 7, AtMs: event.Absent}
		k.received(e, noon+n*60_000+20_100)
	}
	k.commit()
	if _, err := Merge(t.Context(), Inputs{Paths: []string{"history:" + dir}}, func(it *collector.Item) {
		if e := it.Event.Envelope; e.Seq != event.Absent || e.Dropped != 7 || e.Sender != "s" {
			t.Errorf("%+v", e)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

func TestBoundsHoldForHistoriesAndFilesAlike(t *testing.T) {
	dir := t.TempDir()
	s := newStream("a").started(0).add(0, 300, nil).ended(nil)
	k := newKeeper(t, dir)
	k.hearText([]byte(s.text()))
	k.commit()
	in := Inputs{FromMs: s.start.Add(100 * s.every).UnixMilli(), ToMs: s.start.Add(180 * s.every).UnixMilli()}
	for _, path := range []string{"history:" + dir, "-"} {
		in.Paths, in.Stdin = []string{path}, strings.NewReader(s.text())
		got, sum := order(t, in)
		if len(got) != 80 || sum.Events != 80 || got[0] != "a 100" || got[79] != "a 179" {
			t.Errorf("%s: %d events, %d counted, %v", path, len(got), sum.Events, got)
		}
	}
	in.FromMs, in.ToMs = s.start.Add(299*s.every).UnixMilli(), 0
	for _, path := range []string{"history:" + dir, "-"} {
		in.Paths, in.Stdin = []string{path}, strings.NewReader(s.text())
		if got, _ := order(t, in); !slices.Equal(got, []string{"a 299", "a terminated"}) && !slices.Equal(got, []string{"a 299", " terminated"}) {
			t.Errorf("%s: what has no date is to go with what came before it: %q", path, got)
		}
	}
}

func TestAnyNumberOfRecordsOfOneTimeIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	const all = 5000
	for n := range int64(all) {
		e := executed("a", n)
		e.AtMs, e.Batch.StartMs = noon, noon
		k.received(e, noon+20_000+n)
	}
	k.received(executed("a", all), noon+all*60_000+20_100)
	k.commit()
	got, _ := order(t, Inputs{Paths: []string{"history:" + dir}})
	for n := range all + 1 {
		if want := fmt.Sprintf("a %d", n); n >= len(got) || got[n] != want {
			t.Fatalf("%d events, %s is missing", len(got), want)
		}
	}
}

// reading opens what is read ahead to a test.
func reading(t *testing.T, dir string) *pastReader {
	t.Helper()
	store, err := history.Open(history.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r := &pastReader{past: &past{path: "history:" + dir, dir: dir}, ctx: t.Context(), store: store}
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMemoryIsBoundedWhateverTheOrderOfReceipt(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	rng := rand.New(rand.NewPCG(3, 5))
	for n := range int64(3000) {
		k.received(executed("a", n), noon+hourMs*24*30+rng.Int64N(hourMs))
	}
	k.commit()
	r := reading(t, dir)
	r.chunk, r.ahead = 64, 16
	made := map[*held]bool{}
	n, most := 0, 0
	for l := r.reels[0]; ; n++ {
		if err := l.fill(); err != nil {
			t.Fatal(err)
		}
		h := l.take()
		if h == nil {
			break
		}
		made[h] = true
		most = max(most, len(l.waiting)+1)
		if len(l.filed) > 64 {
			t.Fatalf("%d records are kept as they are stored", len(l.filed))
		}
		r.free = append(r.free, h)
	}
	if n != 3000 || most != 16 || len(made) > 17 {
		t.Errorf("%d events, up to %d waited, %d were decoded at once", n, most, len(made))
	}
}

func TestQueriesOutOfBoundsAreNotRead(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	k.received(executed("early", 0), noon).received(executed("late", 1000), noon+1000*60_000).received(executed("meant", 500), noon+500*60_000)
	k.commit()
	r := reading(t, dir)
	r.fromMs, r.toMs, r.reels = noon+60_000, noon+900*60_000, nil
	if err := r.open(); err != nil || len(r.reels) != 1 || r.reels[0].id != "id-meant" {
		t.Errorf("%d queries are read, error %v", len(r.reels), err)
	}
}

func TestAQueryThatChangedItsNameIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	k := newKeeper(t, dir)
	for n := range int64(6) {
		e := executed("q", n)
		e.Query.Name = fmt.Sprintf("name %d", n/2%2)
		k.received(e, noon+n*60_000+20_100)
	}
	k.commit()
	got, _ := order(t, Inputs{Paths: []string{"history:" + dir}})
	if diff := cmp.Diff([]string{"name 0 0", "name 0 1", "name 1 2", "name 1 3", "name 0 4", "name 0 5"}, got); diff != "" {
		t.Error(diff)
	}
}
