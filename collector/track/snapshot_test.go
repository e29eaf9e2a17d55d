package track

import (
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stategauge/stategauge/event"
)

var update = flag.Bool("update", false, "write golden files anew")

// filled sets everything below v to something that is not zero, each to something
// else where its type allows.
type filled struct{ n int64 }

func (f *filled) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(settable(v.Field(i)))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fillAll(v)
	case reflect.Array:
		f.fillAll(v)
	case reflect.String:
		v.SetString(fmt.Sprint("s", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64, reflect.Int32:
		v.SetInt(f.n)
	case reflect.Uint64:
		v.SetUint(uint64(f.n) << 20)
	case reflect.Uint8:
		v.SetUint(uint64(1 + f.n%5))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(float64(f.n))
	default:
		panic(fmt.Sprint("no way to fill a ", v.Type()))
	}
}

func (f *filled) fillAll(v reflect.Value) {
	for i := range v.Len() {
		f.fill(settable(v.Index(i)))
	}
}

// settable lets unexported fields be set.
func settable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// filledQuery has something in every field, within what the fields may hold.
func filledQuery() *query {
	q, f := &query{}, &filled{}
	f.fill(reflect.ValueOf(q).Elem())
	q.gaps.n, q.gaps.next, q.beats.n, q.beats.next, q.began.n = memory, 3, memory, 5, uint8(len(q.began.at))
	for i, r := range append(q.earlier, q.cur) {
		r.win.bits = make([]uint64, DefaultConfig().WindowBatches/64)
		r.win.bits[i], r.win.bits[i+3] = math.MaxUint64, 0x0123_4567_89ab_cdef
	}
	return q
}

// A field that somebody adds and forgets here shows as one that came back empty.
func TestEveryFieldOfAQueryIsInItsSnapshot(t *testing.T) {
	c := DefaultConfig()
	tr := New(c, nil)
	q := filledQuery()
	tr.order, tr.tickMs = []*query{q}, 77
	again := New(c, nil)
	if err := again.Restore(tr.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	got := again.byID[q.ref.ID]
	got.config = q.config   // comes from the configuration
	got.filedMs = q.filedMs // is of the table of names
	all := cmp.AllowUnexported(query{}, run{}, ghosts{}, spacing{}, beats{}, beat{}, starts{}, trigger{}, window{}, stamps{})
	if diff := cmp.Diff(q, got, all); diff != "" {
		t.Errorf("(-saved +restored)\n%s", diff)
	}
	if again.tickMs != 77 {
		t.Errorf("the newest tick is %d, want 77", again.tickMs)
	}
}

// What else a Tracker has is either its configuration, built from the queries, or
// memory that is used again.
func TestATrackerHasNoStateBesideItsQueries(t *testing.T) {
	known := map[string]bool{"c": true, "filter": true, "byID": true, "order": true, "tickMs": true, "key": true, "scratch": true}
	for i, typ := 0, reflect.TypeFor[Tracker](); i < typ.NumField(); i++ {
		if name := typ.Field(i).Name; !known[name] {
			t.Errorf("%s is not known to be saved, or not to need it", name)
		}
	}
}

func TestEveryFieldOfASenderIsInItsSnapshot(t *testing.T) {
	p := &sender{}
	(&filled{}).fill(reflect.ValueOf(p).Elem())
	p.high = p.low + senderWindow
	s, again := NewSenders(), NewSenders()
	s.byName["x"] = p
	if err := again.Restore(s.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, again.byName["x"], cmp.AllowUnexported(sender{})); diff != "" {
		t.Errorf("(-saved +restored)\n%s", diff)
	}
}

func TestDamagedSnapshotOfSendersIsRefusedAndChangesNothing(t *testing.T) {
	s := NewSenders()
	s.Observe(&event.Envelope{Sender: "a", Seq: 7, Dropped: 1}, epoch)
	saved := s.Snapshot(nil)
	before := s.Statuses(nil)
	for name, b := range map[string][]byte{
		"empty": nil, "cut": saved[:len(saved)-5], "flipped": flip(saved, 12), "of a tracker": New(DefaultConfig(), nil).Snapshot(nil),
		"longer": sealed(append(slices.Clone(saved[:len(saved)-4]), 0)), "impossible": sealed([]byte(sendersMagic + "\x02\x02\x02a\x01\x04\x02")),
	} {
		if err := s.Restore(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if diff := cmp.Diff(before, s.Statuses(nil)); diff != "" {
		t.Error(diff)
	}
}

func FuzzRestoreSenders(f *testing.F) {
	s := NewSenders()
	for i := range int64(3000) {
		s.Observe(&event.Envelope{Sender: fmt.Sprint("s", i%3), Seq: i * 2, Dropped: i}, epoch)
	}
	saved := s.Snapshot(nil)
	f.Add(saved[:len(saved)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		s := NewSenders()
		if s.Restore(sealed(body)) != nil {
			return
		}
		s.Observe(&event.Envelope{Sender: "s1", Seq: 9000, Dropped: 2}, epoch)
		s.Statuses(nil)
	})
}

// shadow is a tracker that is replaced by its restored snapshot again and again.
type shadow struct {
	tr    *Tracker
	every int
	steps int
}

func newShadow(c Config, every int) *shadow {
	c.Senders = NewSenders()
	return &shadow{tr: New(c, perfect{}), every: every}
}

func (s *shadow) after(t *testing.T) {
	t.Helper()
	if s.steps++; s.steps%s.every != 0 {
		return
	}
	c := s.tr.c
	c.Senders = NewSenders()
	again := New(c, s.tr.filter)
	if err := again.Restore(s.tr.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	if err := c.Senders.Restore(s.tr.c.Senders.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	s.tr = again
}

// shadows tells whether one that is never restored and those that are say the same.
type shadows struct {
	tr  *Tracker
	all []*shadow
}

func newShadows(c Config) *shadows {
	s := &shadows{}
	for _, every := range []int{1, 3, 17, 211} {
		s.all = append(s.all, newShadow(c, every))
	}
	c.Senders = NewSenders()
	s.tr = New(c, perfect{})
	return s
}

// do takes a step with all of them; do must not share what Apply changes.
func (s *shadows) do(t *testing.T, what string, do func(tr *Tracker) []event.Update) []event.Update {
	t.Helper()
	want := do(s.tr)
	for _, o := range s.all {
		if got := do(o.tr); !slices.EqualFunc(want, got, alike) {
			t.Fatalf("%s: restored after each %d steps, (-never +restored)\n%s", what, o.every, cmp.Diff(want, got, cmpopts.EquateNaNs()))
		}
		o.after(t)
	}
	return want
}

// alike compares what a tracker says; the figures of a batch are not its own.
func alike(a, b event.Update) bool {
	if a.Event.Kind != b.Event.Kind || a.Event.Query != b.Event.Query || a.Event.Run != b.Event.Run || a.Event.AtMs != b.Event.AtMs {
		return false
	}
	a.Event, b.Event = nil, nil
	if math.IsNaN(a.IntervalMs) && math.IsNaN(b.IntervalMs) {
		a.IntervalMs, b.IntervalMs = 0, 0
	}
	return a == b
}

func TestRestoredTrackersJudgeTheStreamsAsBefore(t *testing.T) {
	files, err := filepath.Glob("testdata/streams/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := newShadows(DefaultConfig())
			for line := range linesOfEvents(t, path) {
				s.do(t, line, func(tr *Tracker) []event.Update { return playLine(t, tr, strings.Fields(line)) })
			}
			for i := range int64(100) {
				s.do(t, "closing tick", func(tr *Tracker) []event.Update { return tr.Tick(epoch+10*day+i*hour, nil) })
			}
		})
	}
}

// linesOfEvents yields the lines of the events commands of a file.
func linesOfEvents(t *testing.T, path string) func(yield func(string) bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		events := false
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "events":
				events = true
			case line == "----" || line == "":
				events = false
			case events && !strings.HasPrefix(line, "#") && !yield(line):
				return
			}
		}
	}
}

func TestRestoredTrackersJudgeRandomLivesAsBefore(t *testing.T) {
	for seed := range uint64(4) {
		s := newShadows(DefaultConfig())
		for i, o := range randomOps(seeded(seed), 250) {
			if i%50 == 49 {
				s.do(t, "handover", func(tr *Tracker) []event.Update { tr.TakenOver(); return nil })
			}
			s.do(t, fmt.Sprint("seed ", seed, " step ", i), func(tr *Tracker) []event.Update { return o.apply(tr, nil) })
		}
	}
}

func TestAnOlderFormIsRead(t *testing.T) {
	for _, file := range []string{"v1.hex", "v2.hex"} {
		c := DefaultConfig()
		want := storied(c)
		tr := New(c, nil)
		if err := tr.Restore(golden(t, file, want)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if diff := cmp.Diff(want.Queries(nil), tr.Queries(nil), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: (-made +read)\n%s", file, diff)
		}
		if diff := cmp.Diff(want.Snapshot(nil), tr.Snapshot(nil)); diff != "" {
			t.Errorf("%s: saved again it differs", file)
		}
	}
}

// golden returns the bytes of a saved form; the newest is written anew on request.
func golden(t *testing.T, file string, tr *Tracker) []byte {
	t.Helper()
	path := filepath.Join("testdata", "snapshots", file)
	if *update && file == fmt.Sprintf("v%d.hex", formVersion) {
		if err := os.WriteFile(path, []byte(hex.EncodeToString(tr.Snapshot(nil))+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheWrittenFormChangesOnlyWithItsVersion(t *testing.T) {
	tr := storied(DefaultConfig())
	if got := tr.Snapshot(nil); string(got) != string(golden(t, fmt.Sprintf("v%d.hex", formVersion), tr)) {
		t.Error("the form is another one: give it a new version, keep reading the old one, and write a file for it")
	}
}

// split saves the tracker as if its queries had been spread over n.
func split(t *testing.T, tr *Tracker, n int) [][]byte {
	t.Helper()
	whole := tr.Snapshot(nil)
	out := make([][]byte, n)
	for i := range out {
		part := New(tr.c, nil)
		if err := part.Adopt(whole, func(id event.QueryID) bool { return ShardOf(id, n) == i }); err != nil {
			t.Fatal(err)
		}
		out[i] = part.Snapshot(nil)
	}
	return out
}

func TestStateOfAnyNumberOfTrackersIsAdoptedByAnyOther(t *testing.T) {
	whole := New(DefaultConfig(), nil)
	for i := range 50 {
		e := batchEvent(event.QueryID(fmt.Sprint("q", i)), "r", int64(i), epoch+int64(i))
		e.Query.Name = fmt.Sprint("name", i%7)
		whole.Apply(e, epoch, nil)
	}
	for _, n := range []int{1, 2, 5} {
		for _, m := range []int{1, 3, 8} {
			got := map[event.QueryID]QueryStatus{}
			for i := range m {
				tr := New(DefaultConfig(), nil)
				for _, b := range split(t, whole, n) {
					if err := tr.Adopt(b, func(id event.QueryID) bool { return ShardOf(id, m) == i }); err != nil {
						t.Fatal(err)
					}
				}
				for _, s := range tr.Queries(nil) {
					got[s.Query.ID] = s
				}
			}
			if diff := cmp.Diff(len(got), whole.Len()); diff != "" {
				t.Errorf("%d into %d: %s", n, m, diff)
			}
			for _, want := range whole.Queries(nil) {
				if diff := cmp.Diff(want, got[want.Query.ID], cmpopts.EquateNaNs()); diff != "" {
					t.Errorf("%d into %d: %s", n, m, diff)
				}
			}
		}
	}
}

func TestAdoptedQueriesKnowTheirSuccessors(t *testing.T) {
	named := func(id event.QueryID, at int64) *event.Event {
		e := batchEvent(id, "r", 1, at)
		e.Query.Name = "totals"
		return e
	}
	old, young := New(DefaultConfig(), nil), New(DefaultConfig(), nil)
	old.Apply(named("old", epoch), epoch, nil)
	young.Apply(named("young", epoch+hour), epoch+hour, nil)
	tr := New(DefaultConfig(), nil)
	for _, b := range [][]byte{young.Snapshot(nil), old.Snapshot(nil)} {
		if err := tr.Adopt(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	var successor event.QueryID
	for _, u := range tr.Tick(epoch+3*hour, nil) {
		if u.Event.Query.ID == "old" && u.State == event.StateRetired {
			successor = u.Successor
		}
	}
	if successor != "young" || tr.Len() != 1 {
		t.Errorf("successor %q, %d queries left", successor, tr.Len())
	}
}

func TestAdoptionThatFailsChangesNothing(t *testing.T) {
	c := DefaultConfig()
	c.Queries = 3
	tr := New(c, nil)
	tr.Apply(batchEvent("a", "r", 1, epoch), epoch, nil)
	other := New(DefaultConfig(), nil)
	for _, id := range []event.QueryID{"a", "b", "c", "d"} {
		other.Apply(batchEvent(id, "r", 1, epoch), epoch, nil)
	}
	before := tr.Snapshot(nil)
	for name, tc := range map[string]struct {
		b    []byte
		mine map[event.QueryID]bool
		want string
	}{
		"known already": {other.Snapshot(nil), map[event.QueryID]bool{"a": true, "b": true}, `query "a" is known already`},
		"too many":      {other.Snapshot(nil), map[event.QueryID]bool{"b": true, "c": true, "d": true}, "3 queries are kept"},
		"cut":           {other.Snapshot(nil)[:40], map[event.QueryID]bool{"b": true}, "checksum"},
	} {
		err := tr.Adopt(tc.b, func(id event.QueryID) bool { return tc.mine[id] })
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "adopt") {
			t.Errorf("%s: error %v, want one about %q", name, err, tc.want)
		}
		if string(tr.Snapshot(nil)) != string(before) {
			t.Errorf("%s: the tracker changed", name)
		}
	}
	if err := tr.Adopt(other.Snapshot(nil), func(id event.QueryID) bool { return id > "b" }); err != nil || tr.Len() != 3 {
		t.Errorf("%v, %d queries", err, tr.Len())
	}
}

// A snapshot that is adopted late comes from a time at which nobody listened: the
// silence since then is ours.
func TestTheTimeBetweenSavingAndAdoptingIsNobodysSilence(t *testing.T) {
	old := New(DefaultConfig(), nil)
	for i := range int64(20) {
		old.Apply(batchEvent("q", "r", i, epoch+i*10_000), epoch+i*10_000, nil)
	}
	old.Tick(epoch+200_000, nil)
	saved := old.Snapshot(nil)
	fresh, busy := New(DefaultConfig(), nil), New(DefaultConfig(), nil)
	busy.Tick(epoch+6*hour, nil)
	for _, tr := range []*Tracker{fresh, busy} {
		if err := tr.Adopt(saved, nil); err != nil {
			t.Fatal(err)
		}
		if out := tr.Tick(epoch+6*hour+1000, nil); len(out) != 0 {
			t.Errorf("%+v", out)
		}
		out := tr.Tick(epoch+6*hour+1000+119*second, nil)
		if len(out) != 1 || out[0].State != event.StateOverdue {
			t.Errorf("two minutes of our own later: %+v", out)
		}
	}
	tr := New(DefaultConfig(), nil)
	tr.Apply(batchEvent("waits", "r", 1, epoch), epoch, nil)
	tr.Tick(epoch, nil)
	late := New(DefaultConfig(), nil)
	late.Tick(epoch+day, nil)
	if err := tr.Adopt(late.Snapshot(nil), nil); err != nil {
		t.Fatal(err)
	}
	if out := tr.Tick(epoch+day+1000, nil); len(out) != 0 {
		t.Errorf("a query that was here is taken for silent: %+v", out)
	}
}

func TestFewerRunsKeptThanWereSavedStillKnowTheOthersAsOld(t *testing.T) {
	c := DefaultConfig()
	tr := New(c, nil)
	for i := range int64(4) {
		tr.Apply(batchEvent("q", event.RunID(fmt.Sprint("r", i)), i, epoch+i*minute), epoch+i*minute, nil)
	}
	c.RunsKept = 1
	again := New(c, nil)
	if err := again.Restore(tr.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	out := again.Apply(batchEvent("q", "r0", 9, epoch+hour), epoch+hour, nil)
	if out[0].Outcome != event.OutcomeLate {
		t.Errorf("a batch of the first run is %v", out[0].Outcome)
	}
}

func TestShardsOfQueriesAreTheSameEverywhere(t *testing.T) {
	var b strings.Builder
	for _, id := range []event.QueryID{"", "q", "clicks", "5b1f9e0c-64c1-4f0e-9a53-3a1a7a9d1c11", "Ünïcode", "a-much-longer-id-of-the-hand-made-kind-0001"} {
		fmt.Fprintf(&b, "%q", id)
		for _, n := range []int{1, 2, 3, 4, 8, 16, 61} {
			fmt.Fprintf(&b, " %d", ShardOf(id, n))
		}
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "shards.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestShardsGetAboutAsManyQueriesEach(t *testing.T) {
	for _, n := range []int{2, 3, 4, 8, 13} {
		got := map[int]int{}
		for i := range 10_000 {
			got[ShardOf(event.QueryID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761, i)), n)]++
		}
		for _, count := range slices.Collect(maps.Values(got)) {
			if mean := 10_000 / n; count < mean*8/10 || count > mean*12/10 {
				t.Errorf("of %d shards one has %d queries, the mean is %d", n, count, mean)
			}
		}
		if len(got) != n {
			t.Errorf("%d of %d shards have queries", len(got), n)
		}
	}
}
