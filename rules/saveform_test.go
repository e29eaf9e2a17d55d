package rules

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// everyDetector has a rule for each, over short windows.
const everyDetector = `
signals:
  took: {of: query, value: duration_ms / 1000, unit: seconds}
  busy: {of: query, value: duration_ms / 1000, unit: seconds, when: input_rows > 5000}
  sync: {of: operator, value: rocksdbCommitFileSyncLatencyMs / 1000 / stores, unit: seconds}
groups:
  - name: g
    rules:
      - {alert: Rising, signal: sync, rising: {over: 40 batches, min_points: 20, by: 10%, agree_over: 60 batches, adjusted_for: rows_updated, level: {recent: 10 batches, before: 30 batches, by: 20%}}, evidence: {rows: rows_updated}}
      - {alert: Sparse, signal: busy, rising: {over: 40 batches, min_points: 20, by: 10%}}
      - {alert: Shifted, signal: took, shifted: {recent: 5 batches, baseline: 20 batches, by: 20%, adjusted_for: input_rows}}
      - {alert: Spiking, signal: took, spiking: {over: 80 batches, min_points: 60, factor: 3, min_spikes: 4, rhythm: any, beside: {rows: input_rows}}}
      - {alert: Reaches, signal: took, reaches: {limit: 100s, within: 2h, over: 40 batches, min_points: 30, detrend: daily}}
      - {alert: Follows, signal: sync, follows: {driver: rocksdbBytesCopied, rival: rows_updated, over: 40 batches, min_points: 30}}
      - {alert: Stands, signal: took, stands: {over: 10 batches, while: input_rows}}
      - {alert: Above, signal: took, above: {limit: 15s, batches: 2 of 3, recover: 12s, pooled: {weight: input_rows, at_least: 100, over: 5 batches}}, labels: {severity: ticket}}
      - {alert: Silent, silent: {with: anything, factor: 5, at_least: 10m}}
      - {alert: Failed, failed: {}}
      - {alert: Restarting, restarting: {starts: 3, within: 15m}}
      - {alert: Missed, changed: {what: missed, within: 1h}}
  - name: many
    rules:
      - {alert: Fleet, fleet: {of: Above, queries: 2, share: 30%, within: 1h}}
      - {alert: Sender, sender: {queries: 2, factor: 3, at_least: 3m}}
`

// lived is an engine that has judged two queries by a pack for so many batches, with all
// that can be kept of them: alerts, a heartbeat, a failure before, batches that never
// came, a heir.
func lived(tb testing.TB, p *Pack, batches int) *Engine {
	tb.Helper()
	e := New(p, Options{})
	var streams []*stream
	for _, id := range []string{"q-b", "q-a"} {
		s := newStream(e)
		s.id, s.name = id, "orders "+id
		streams = append(streams, s)
	}
	n := newNoise(4)
	for i := range batches {
		for _, s := range streams {
			f := figures{duration: 10_000 * n.next(), rows: 4000 * n.next(), sync: 100 * n.next(), updated: 800 * n.next(), copied: 1e6 * n.next(), operators: 2}
			if i > batches-30 {
				f.duration, f.sync = 2.5*f.duration, 2*f.sync
			}
			if i%3 == 0 {
				f.rows = 20_000
			}
			s.play(f)
		}
		e.Tick(streams[0].nowMs, nil)
		if i == batches/3 {
			streams[0].tell(event.KindTerminated, event.OutcomeFailed, event.StateFailed)
			streams[0].state = event.StateRunning
			streams[0].restart("run-2")
		}
	}
	env := &event.Envelope{Sender: "host-7", Active: []event.ActiveQuery{{ID: "q-a", Run: "run-1", TriggerActive: true}}}
	e.Apply(&event.Update{Event: &event.Event{Kind: event.KindHeartbeat, Envelope: env}, Outcome: event.OutcomeHeartbeat, Origin: event.Origin{ReceivedMs: streams[0].nowMs}}, nil)
	e.bequeath(e.queries["q-a"], "q-c")
	return e
}

// plainOf unfolds what a saved form holds.
func plainOf(tb testing.TB, data []byte) []byte {
	tb.Helper()
	plain, err := s2.Decode(nil, data[len(savedMagic)+2:len(data)-4])
	if err != nil {
		tb.Fatal(err)
	}
	return plain
}

// TestTheSavedFormStaysWhatItWas reads the forms that testdata/save keeps of this
// version, and writes what it read again. What fails here needs another savedVersion.
func TestTheSavedFormStaysWhatItWas(t *testing.T) {
	p := loaded(t, everyDetector)
	e := lived(t, p, 130)
	rest, queries := saveAll(e)
	forms := map[string][]byte{"rest": rest, "query": queries[0]}
	if rewrite := flag.Lookup("rewrite"); rewrite != nil && rewrite.Value.String() == "true" {
		for name, data := range forms {
			if err := os.WriteFile(savedFile(name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name := range forms {
		data, err := os.ReadFile(savedFile(name))
		if err != nil {
			t.Fatal(err)
		}
		n := New(p, Options{})
		var again []byte
		if name == "rest" {
			_, err = n.Load(data)
			again = n.Save(nil)
		} else {
			_, err = n.LoadQuery(data)
			again = n.SaveQuery("q-a", nil)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(plainOf(t, again), plainOf(t, data)) {
			t.Errorf("%s of version %d is written otherwise now", name, savedVersion)
		}
	}
	n := reborn(t, e)
	if len(n.around.senders) != 1 || len(n.heirs) != 1 || n.alerts == 0 || len(n.rules[12].groups) != 1 {
		t.Errorf("little was tried: %d senders, %d heirs, %d alerts, %d groups", len(n.around.senders), len(n.heirs), n.alerts, len(n.rules[12].groups))
	}
	checkCounts(t, n)
}

func savedFile(name string) string { return fmt.Sprintf("testdata/save/v%d.%s", savedVersion, name) }

// TestEveryFieldThatIsKeptIsKnownToTheSavedForm lists the fields of everything that
// holds state. A new field is either carried, and then savedVersion goes up, or worked
// out anew after a load, and then the list says so by standing here.
func TestEveryFieldThatIsKeptIsKnownToTheSavedForm(t *testing.T) {
	var b strings.Builder
	for _, x := range []any{
		queryState{},
		series{},
		liveAlert{},
		Judgement{},
		Facts{},
		uploads{},
		story{},
		recent{},
		days{},
		heartbeats{},
		sender{},
		exception{},
		starts{},
		start{},
		happenings{},
		occurrence{},
		firstBatch{},
		predecessor{},
		shape{},
		operatorShape{},
		reload{},
		column{},
		columnSet{},
		sharedRing{},
		evidenceRing{},
		history{},
		frozen{},
		steadyClock{},
		dailyCycle{},
		looked{},
		pool{},
		risingTracker{},
		window{},
		shiftedTracker{},
		spikingTracker{},
		reachesTracker{},
		followsTracker{},
		standsTracker{},
		aboveTracker{},
		Engine{},
		ruleState{},
		surroundings{},
		heard{},
		trend.Columns{},
		trend.Pace{},
		trend.CUSUM{},
		trend.RisingResult{},
	} {
		of := reflect.TypeOf(x)
		fmt.Fprintf(&b, "%s:", of.Name())
		if of.Kind() == reflect.Array {
			fmt.Fprintf(&b, " %d", of.Len())
		}
		for i := 0; of.Kind() == reflect.Struct && i < of.NumField(); i++ {
			b.WriteString(" " + of.Field(i).Name)
		}
		b.WriteString("\n")
	}
	const name = "testdata/save/fields"
	if rewrite := flag.Lookup("rewrite"); rewrite != nil && rewrite.Value.String() == "true" {
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("fields that hold state are others now (-known +found):\n%s", d)
	}
}

// unchanged fails where loading data is no error, or changes the engine.
func unchanged(t *testing.T, e *Engine, what string, data []byte, want string) {
	t.Helper()
	rest, queries := saveAll(e)
	_, err := e.LoadQuery(data)
	if err == nil {
		t.Fatalf("%s: loaded", what)
	}
	if _, other := e.Load(data); other == nil {
		t.Fatalf("%s: loaded as what belongs to no query", what)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want it to say %q", what, err, want)
	}
	again, others := saveAll(e)
	if !bytes.Equal(rest, again) || !slices.EqualFunc(queries, others, bytes.Equal) {
		t.Fatalf("%s: the engine is another after the error", what)
	}
	checkCounts(t, e)
}

func TestABrokenFormIsAnErrorAndChangesNothing(t *testing.T) {
	p := loaded(t, everyDetector)
	e := lived(t, p, 90)
	data := e.SaveQuery("q-a", nil)
	e.Forget("q-a", e.nowMs, nil)
	unchanged(t, e, "nothing", nil, "no saved state")
	unchanged(t, e, "something else", []byte("something else altogether"), "no saved state")
	for n := range len(data) {
		if n%37 == 0 {
			unchanged(t, e, fmt.Sprint("the first ", n, " bytes"), data[:n], "")
		}
	}
	for at := 0; at < len(data); at += 41 {
		bent := slices.Clone(data)
		bent[at] ^= 0x10
		unchanged(t, e, fmt.Sprint("a wrong bit in byte ", at), bent, "")
	}
	newer := slices.Clone(data)
	newer[len(savedMagic)+1] = savedVersion + 1
	unchanged(t, e, "a newer version", resealed(newer), "newer than 1")
	older := slices.Clone(data)
	older[len(savedMagic)+1] = 0
	unchanged(t, e, "a version that never was", resealed(older), "its version is 0")
	plain := plainOf(t, data)
	unchanged(t, e, "something behind the end", pack(nil, savedQuery, append(slices.Clone(plain), 0)), "left behind its end")
	unchanged(t, e, "content that is cut", pack(nil, savedQuery, plain[:len(plain)-3]), "ends too early")
	if dropped, err := e.LoadQuery(data); err != nil || len(dropped) > 0 {
		t.Errorf("the whole form: dropped %v, %v", dropped, err)
	}
}

func resealed(data []byte) []byte {
	sum := crc32.Checksum(data[:len(data)-4], castagnoli)
	binary.LittleEndian.PutUint32(data[len(data)-4:], sum)
	return data
}

func TestAKnownQueryIsNotLoadedOver(t *testing.T) {
	e := lived(t, loaded(t, everyDetector), 40)
	data := e.SaveQuery("q-a", nil)
	if _, err := e.LoadQuery(data); !errors.Is(err, ErrKnown) {
		t.Errorf("got %v, want ErrKnown", err)
	}
	o := New(e.pack, Options{MaxQueries: 1})
	if _, err := o.LoadQuery(data); err != nil {
		t.Fatal(err)
	}
	if _, err := o.LoadQuery(e.SaveQuery("q-b", nil)); err == nil || errors.Is(err, ErrKnown) {
		t.Errorf("one query too many: %v", err)
	}
}

func TestAnUnknownQuerySavesNothing(t *testing.T) {
	e := New(loaded(t, everyDetector), Options{})
	if data := e.SaveQuery("nobody", []byte("x")); string(data) != "x" {
		t.Errorf("got %d bytes", len(data))
	}
	if ids := e.Queries(nil); len(ids) != 0 {
		t.Errorf("queries %v", ids)
	}
	if got := lived(t, loaded(t, everyDetector), 3).Queries([]event.QueryID{"x"}); !slices.Equal(got, []event.QueryID{"x", "q-a", "q-b"}) {
		t.Errorf("queries %v, want them in order behind what was there", got)
	}
}

// TestOnlyAChangedRuleLosesItsState loads into packs in which one rule is another, has
// other labels, or is not there.
func TestOnlyAChangedRuleLosesItsState(t *testing.T) {
	e := lived(t, loaded(t, everyDetector), 130)
	rest, queries := saveAll(e)
	for _, c := range []struct{ name, from, to, why string }{
		{"another limit", "limit: 15s", "limit: 14s", "the rule was changed"},
		{"another name", "alert: Above,", "alert: Higher,", "the rule was removed"},
		{"other labels", "labels: {severity: ticket}", "labels: {severity: page}", "the rule's labels were changed"},
		{"another hold", "labels: {severity: ticket}}", "labels: {severity: ticket}, keep_firing_for: 9 batches}", ""},
	} {
		text := strings.Replace(strings.Replace(everyDetector, c.from, c.to, 1), "of: Above", "of: Rising", 1)
		if text == everyDetector {
			t.Fatal(c.name)
		}
		n := New(loaded(t, text), Options{})
		dropped, err := n.Load(rest)
		if err != nil {
			t.Fatal(err)
		}
		if len(dropped) != 1 || dropped[0].Rule != "Fleet" || dropped[0].Why != "the rule was changed" || len(dropped[0].Firing) != 1 || dropped[0].Firing[0].Get("alertname") != "Fleet" {
			t.Errorf("%s: of what belongs to no query %+v was dropped, want the fleet", c.name, dropped)
		}
		for _, data := range queries {
			dropped, err := n.LoadQuery(data)
			if err != nil {
				t.Fatal(err)
			}
			if c.why == "" {
				if len(dropped) > 0 {
					t.Errorf("%s: dropped %+v", c.name, dropped)
				}
				continue
			}
			if len(dropped) != 1 || dropped[0].Rule != "Above" || dropped[0].Why != c.why || len(dropped[0].Firing) != 1 || dropped[0].Firing[0].Get("alertname") != "Above" {
				t.Errorf("%s: dropped %+v", c.name, dropped)
			}
		}
		checkCounts(t, n)
		for id, q := range n.queries {
			for ri, list := range q.rules {
				was := e.queries[id].rules[ri]
				if c.why != "the rule's labels were changed" && c.why != "" && ri == 7 {
					continue
				}
				for k := range list {
					if list[k].tracker != nil && list[k].tracker.points() != was[k].tracker.points() {
						t.Errorf("%s: %s has %d points, had %d", c.name, n.pack.rules[ri].alert, list[k].tracker.points(), was[k].tracker.points())
					}
				}
			}
		}
	}
}

// TestQueriesMayBeLoadedBeforeTheRest: senders are the same ones whatever comes first.
func TestQueriesMayBeLoadedBeforeTheRest(t *testing.T) {
	e := lived(t, loaded(t, everyDetector), 60)
	rest, queries := saveAll(e)
	n := New(e.pack, Options{})
	for _, data := range queries {
		if _, err := n.LoadQuery(data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Load(rest); err != nil {
		t.Fatal(err)
	}
	again, others := saveAll(n)
	if !bytes.Equal(rest, again) || !slices.EqualFunc(queries, others, bytes.Equal) {
		t.Error("it is another engine")
	}
	if p := n.queries["q-a"].story.beats.sender; p == nil || p != n.around.senders["host-7"] {
		t.Errorf("the query's sender %+v is not the engine's", p)
	}
}

// TestAnEngineThatLoadedJudgesOnWithOtherQueries gives a query that was saved by one
// engine to another that has queries of its own, as when a partition moves.
func TestAnEngineThatLoadedJudgesOnWithOtherQueries(t *testing.T) {
	p := loaded(t, everyDetector)
	e, o := lived(t, p, 130), New(p, Options{})
	s := newStream(o)
	s.id, s.name = "q-x", "others"
	for range 50 {
		s.play(figures{duration: 10_000})
	}
	if _, err := o.LoadQuery(e.SaveQuery("q-a", nil)); err != nil {
		t.Fatal(err)
	}
	if ids := o.Queries(nil); !slices.Equal(ids, []event.QueryID{"q-a", "q-x"}) {
		t.Errorf("queries %v", ids)
	}
	want := []string{}
	for _, a := range e.Alerts(nil) {
		if a.Labels.Get("query_id") == "q-a" {
			want = append(want, labelText(a.Labels)+a.State.String())
		}
	}
	got := []string{}
	for _, a := range o.Alerts(nil) {
		if a.Labels.Get("query_id") == "q-a" {
			got = append(got, labelText(a.Labels)+a.State.String())
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("alerts %v, want %v", got, want)
	}
	checkCounts(t, o)
}

// FuzzLoad loads content under a good checksum, and judges on with what came of it: it
// may be refused, and nothing else.
func FuzzLoad(f *testing.F) {
	p := loaded(f, everyDetector)
	e := lived(f, p, 90)
	rest, queries := saveAll(e)
	f.Add(plainOf(f, rest), false)
	for _, data := range queries {
		plain := plainOf(f, data)
		f.Add(plain, true)
		f.Add(plain[:len(plain)/2], true)
	}
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, plain []byte, query bool) {
		if len(plain) > 1<<20 {
			return
		}
		n := New(p, Options{})
		var err error
		if query {
			_, err = n.LoadQuery(pack(nil, savedQuery, plain))
		} else {
			_, err = n.Load(pack(nil, savedRest, plain))
		}
		if err != nil {
			if len(n.queries) != 0 || n.alerts != 0 {
				t.Fatalf("an error left something: %v", err)
			}
			return
		}
		for _, id := range append(n.Queries(nil), "q-a") {
			s := newStream(n)
			s.id, s.nowMs = string(id), startMs+10*dayMs
			for i := range 40 {
				s.play(figures{duration: 1000 * float64(1+i%7), sync: float64(i), operators: 2})
			}
			n.Tick(s.nowMs, nil)
			reborn(t, n)
		}
	})
}
