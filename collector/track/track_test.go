package track

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stategauge/stategauge/event"
)

func batchEvent(q event.QueryID, r event.RunID, id, at int64) *event.Event {
	b := &event.Batch{}
	b.Reset()
	b.Query, b.Run, b.ID, b.StartMs, b.Executed = event.QueryRef{ID: q}, r, id, at, true
	b.Values[event.BatchDuration] = 1000
	return &event.Event{Kind: event.KindProgress, Batch: b, Query: b.Query, Run: r}
}

// counts applies events and returns how often each execution was counted.
func counts(tr *Tracker, events []*event.Event, now int64) map[string]int {
	got := map[string]int{}
	var out []event.Update
	for i, e := range events {
		out = tr.Apply(e, now+int64(i), out[:0])
		if out[len(out)-1].Outcome == event.OutcomeExecuted {
			got[fmt.Sprint(e.Query.ID, e.Run, e.Batch.ID)]++
		}
	}
	return got
}

// Whatever is repeated, shuffled within a run or late from the run before, the
// same executions are counted as in the clean stream, once each.
func TestAnyDeliveryOfAStreamCountsTheSameExecutions(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var clean, dirty []*event.Event
		for r := range 4 {
			var run []*event.Event
			for i := range 30 {
				at := epoch + int64(r)*hour + int64(i)*10_000
				run = append(run, batchEvent("q", event.RunID(fmt.Sprint("run", r)), int64(r*25+i), at))
			}
			clean = append(clean, run...)
			dirty = append(dirty, scramble(rng, run)...)
			if len(clean) > 30 {
				dirty = append(dirty, scramble(rng, clean)...)
			}
		}
		want := counts(New(DefaultConfig(), nil), clean, epoch+day/2)
		got := counts(New(DefaultConfig(), perfect{}), dirty, epoch+day/2)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: (-clean +dirty)\n%s", seed, diff)
		}
	}
}

// scramble repeats some events and shuffles all.
func scramble(rng *rand.Rand, in []*event.Event) []*event.Event {
	out := slices.Clone(in)
	for range rng.IntN(2 * len(in)) {
		out = append(out, in[rng.IntN(len(in))])
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func TestForgettingFilterNeverDoublesACount(t *testing.T) {
	c := DefaultConfig()
	c.WindowBatches = 64
	for _, f := range []Filter{nil, amnesiac{}, NewFilter(1)} {
		var events []*event.Event
		for i := range int64(1000) {
			events = append(events, batchEvent("q", "r", i, epoch+i*1000))
		}
		got := counts(New(c, f), append(events, events...), epoch+day/2)
		for k, n := range got {
			if n != 1 {
				t.Fatalf("%T: %s counted %d times", f, k, n)
			}
		}
		if len(got) != 1000 {
			t.Errorf("%T: %d executions counted, want 1000", f, len(got))
		}
	}
}

// amnesiac is a filter that has evicted everything.
type amnesiac struct{}

func (amnesiac) Has(*Key) bool { return false }
func (amnesiac) Add(*Key)      {}

// perfect is a filter that forgets nothing.
type perfect map[Key]bool

func (p perfect) Has(k *Key) bool { return p[*k] }
func (p perfect) Add(k *Key)      { p[*k] = true }

func TestFilterRemembersKeysAndForgetsOnlyTheOldest(t *testing.T) {
	f := NewFilter(1)
	defer f.Close()
	numbered := func(i uint64) (k Key) {
		binary.LittleEndian.PutUint64(k[:], i)
		return k
	}
	const n = 1_000_000 // more than 32 MiB hold
	for i := range uint64(n) {
		k := numbered(i)
		f.Add(&k)
	}
	missing := 0
	for i := range uint64(1000) {
		if k := numbered(n - 1 - i); !f.Has(&k) {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of the newest 1000 keys are gone", missing)
	}
	if k := numbered(0); f.Has(&k) {
		t.Error("the oldest key is still there: the test does not reach eviction")
	}
	if f.Added() != n {
		t.Errorf("own count %d, want %d", f.Added(), n)
	}
}

func TestKeysOfDifferentExecutionsDiffer(t *testing.T) {
	seen := map[Key]string{}
	for _, x := range []struct {
		q  event.QueryID
		r  event.RunID
		id int64
	}{{"a", "bc", 1}, {"ab", "c", 1}, {"a", "bc", 2}, {"", "abc", 1}, {"abc", "", 1}, {"a", "bc", -1}} {
		k, _ := keyOf(nil, x.q, x.r, x.id)
		if was := seen[k]; was != "" {
			t.Errorf("%v has the key of %s", x, was)
		}
		seen[k] = fmt.Sprint(x)
	}
}

// busyTracker has been through every kind of event.
func busyTracker(c Config) *Tracker {
	tr := New(c, nil)
	rng := rand.New(rand.NewPCG(5, 5))
	for _, o := range randomOps(rng, 3000) {
		o.apply(tr, nil)
	}
	return tr
}

func TestRestoredTrackerKnowsAllThatTheSavedOneKnew(t *testing.T) {
	tr := busyTracker(DefaultConfig())
	saved := tr.Snapshot([]byte("before"))[len("before"):]
	again := New(DefaultConfig(), nil)
	if err := again.Restore(saved); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr.Queries(nil), again.Queries(nil), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-saved +restored)\n%s", diff)
	}
	if !bytes.Equal(saved, again.Snapshot(nil)) {
		t.Error("a snapshot of the restored tracker differs")
	}
	rng := rand.New(rand.NewPCG(6, 6))
	for i, o := range randomOps(rng, 500) {
		a, b := o.apply(tr, nil), o.apply(again, nil)
		if diff := cmp.Diff(a, b, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("step %d is judged differently: (-saved +restored)\n%s", i, diff)
		}
	}
}

func TestSnapshotFitsAWindowOfAnotherSize(t *testing.T) {
	c := DefaultConfig()
	tr := New(c, nil)
	for i := range int64(300) {
		tr.Apply(batchEvent("q", "r", i, epoch+i*1000), epoch+i*1000, nil)
	}
	for _, size := range []int{64, 2048} {
		c.WindowBatches = size
		again := New(c, nil)
		if err := again.Restore(tr.Snapshot(nil)); err != nil {
			t.Fatal(err)
		}
		w := &again.byID["q"].cur.win
		if n := w.count(); w.newest != 299 || n != min(size, 300) || !w.has(299) || w.has(300) {
			t.Errorf("window of %d: newest %d, %d ids", size, w.newest, n)
		}
	}
}

func TestDamagedSnapshotIsRefusedAndChangesNothing(t *testing.T) {
	saved := busyTracker(DefaultConfig()).Snapshot(nil)
	tr := New(DefaultConfig(), nil)
	tr.Apply(batchEvent("kept", "r", 1, epoch), epoch, nil)
	small := DefaultConfig()
	small.Queries = 1
	future := slices.Clone(saved)
	future[len(snapshotMagic)] = 99
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":      {nil, "cut off"},
		"cut":        {saved[:len(saved)/2], "checksum"},
		"other file": {bytes.Repeat([]byte("x"), 100), "not a tracker snapshot"},
		"newer":      {future, "version 99"},
		"flipped":    {flip(saved, 40), "checksum"},
		"longer":     {sealed(append(slices.Clone(saved[:len(saved)-4]), 0)), "too many"},
		"shorter":    {sealed(saved[:len(saved)-8]), "query"},
	} {
		err := tr.Restore(tc.b)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tc.want)
		}
	}
	if err := New(small, nil).Restore(saved); err == nil {
		t.Error("more queries than the limit were restored")
	}
	if _, ok := tr.Status("kept"); !ok || tr.Len() != 1 {
		t.Error("a refused snapshot changed the tracker")
	}
}

func flip(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i] ^= 0x55
	return b
}

// sealed puts a right checksum at the end.
func sealed(body []byte) []byte {
	body = slices.Clone(body)
	return binary.LittleEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
}

func FuzzRestore(f *testing.F) {
	saved := busyTracker(DefaultConfig()).Snapshot(nil)
	f.Add(saved[:len(saved)-4])
	f.Add(New(DefaultConfig(), nil).Snapshot(nil))
	f.Add([]byte(snapshotMagic + "\x01\x00\x02"))
	f.Fuzz(func(t *testing.T, body []byte) {
		tr := New(DefaultConfig(), nil)
		if tr.Restore(sealed(body)) != nil {
			return
		}
		tr.Tick(epoch, nil)
		tr.Apply(batchEvent("q", "r", 1, epoch), epoch, nil)
		tr.Queries(nil)
	})
}

// op is one step of a random life.
type op struct {
	kind  int
	e     *event.Event
	nowMs int64
}

func (o op) apply(tr *Tracker, out []event.Update) []event.Update {
	switch o.kind {
	case 0:
		return tr.Tick(o.nowMs, out)
	case 1:
		tr.IntakePaused(o.nowMs-5000, o.nowMs)
		return out
	case 2:
		return tr.Forget("q3", o.nowMs, out)
	}
	e := *o.e
	return tr.Apply(&e, o.nowMs, out)
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 23)) }

func randomOps(rng *rand.Rand, n int) []op {
	ops := make([]op, n)
	now := epoch
	for i := range ops {
		now += rng.Int64N(20_000)
		bytes := [6]byte{byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())}
		ops[i] = opOf(bytes, now)
	}
	return ops
}

// opOf turns six bytes into a step: what, query, run, batch, time back, extras.
func opOf(b [6]byte, now int64) op {
	q, r := event.QueryID(fmt.Sprint("q", b[1]%4)), event.RunID(fmt.Sprint("r", b[2]%5))
	at := now - int64(b[4])*1000
	o := op{kind: int(b[0] % 24), nowMs: now, e: &event.Event{Query: event.QueryRef{ID: q}, Run: r, AtMs: at}}
	if b[5]%16 == 0 {
		o.e.AtMs, at = event.Absent, event.Absent
	}
	if b[5]%3 == 0 {
		o.e.Envelope = &event.Envelope{Sender: "s", Seq: int64(b[3]), Dropped: int64(b[4] % 3), Active: []event.ActiveQuery{{ID: q, Run: r, TriggerActive: b[5]%2 == 0}}}
		o.e.Query.Name = fmt.Sprint("name", b[1]%2)
	}
	switch {
	case o.kind == 3:
		o.e.Kind = event.KindStarted
	case o.kind == 4:
		o.e.Kind = event.KindTerminated
		if b[5]%2 == 0 {
			o.e.Failure = &event.Failure{Class: "X"}
		}
	case o.kind == 5:
		o.e.Kind = event.KindIdle
	case o.kind == 6:
		o.e.Kind = event.KindHeartbeat
	default:
		x := batchEvent(q, r, int64(b[3]), at)
		x.Query, x.Envelope, x.Batch.Executed = o.e.Query, o.e.Envelope, o.kind != 7
		o.e = x
	}
	return o
}

// Whatever comes in whatever order: no panic, no execution counted twice by one
// tracker while the query is known, every event judged exactly once.
func FuzzOperations(f *testing.F) {
	f.Add([]byte("\x08\x00\x00\x01\x00\x01\x08\x00\x00\x02\x00\x01\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x03\x01\x01\x00\x00\x03\x09\x01\x01\x05\x00\x01\x09\x01\x01\x05\x00\x01\x04\x01\x01\x00\x00\x02"))
	f.Add([]byte("\x09\x01\x01\x05\x00\x01\x09\x01\x02\x05\x00\x01\x09\x01\x01\x06\x00\x01\x09\x01\x02\x06\x00\x01"))
	f.Fuzz(func(t *testing.T, in []byte) { checkOps(t, in) })
}

func TestRandomOperationsNeverCountTwice(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		in := make([]byte, 6*400)
		for i := range in {
			in[i] = byte(rng.Uint32())
		}
		checkOps(t, in)
	}
}

func checkOps(t *testing.T, in []byte) {
	tr := New(DefaultConfig(), perfect{})
	counted := map[string]bool{}
	now := epoch
	for len(in) >= 6 {
		now += int64(in[5]) * 200
		o := opOf([6]byte(in), now)
		in = in[6:]
		us := o.apply(tr, nil)
		for i := range us {
			checkUpdate(t, o.kind > 2 && i == len(us)-1, &us[i], counted)
		}
	}
	total := int64(0)
	for _, s := range tr.Queries(nil) {
		total += s.Batches
	}
	if total > int64(len(counted)) {
		t.Fatalf("%d batches in the status, %d executions", total, len(counted))
	}
}

func checkUpdate(t *testing.T, own bool, u *event.Update, counted map[string]bool) {
	if own == (u.Outcome == event.OutcomeStateChange) || u.Outcome == event.OutcomeUnknown || u.Missed < 0 {
		t.Fatalf("update of a step (its event's own: %v) is %+v", own, u)
	}
	if u.State == event.StateRetired {
		for k := range counted {
			if strings.HasPrefix(k, string(u.Event.Query.ID)+"/") {
				delete(counted, k)
			}
		}
	}
	if u.Outcome != event.OutcomeExecuted {
		return
	}
	k := fmt.Sprint(u.Event.Query.ID, "/", u.Event.Run, "/", u.Event.Batch.ID)
	if counted[k] && u.Event.Batch.ID != event.Absent {
		t.Fatalf("%s was counted twice", k)
	}
	counted[k] = true
}

// Batches that come out of order, or twice, do not change how many are missing.
func TestMissedBatchesAddUpToWhatNeverCame(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		tr := New(DefaultConfig(), nil)
		var events []*event.Event
		missing := int64(0)
		for i := range int64(300) {
			if i > 0 && i < 299 && rng.IntN(10) == 0 {
				missing++
				continue
			}
			events = append(events, batchEvent("q", "r", i, epoch+i*1000))
		}
		for i := 1; i+6 < len(events); i += 6 {
			part := events[i : i+6]
			rng.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
		}
		got, now := int64(0), epoch+hour
		var out []event.Update
		for _, e := range events {
			now += 100
			out = tr.Apply(e, now, out[:0])
			out = tr.Apply(e, now, out)
			got += int64(out[0].Missed + out[1].Missed)
		}
		out = tr.Tick(now+2*minute, tr.Tick(now+minute, out[:0]))
		for _, u := range out {
			got += int64(u.Missed)
		}
		st, _ := tr.Status("q")
		if got != missing || st.Missed != missing {
			t.Fatalf("seed %d: %d missed in updates, %d in the status, want %d", seed, got, st.Missed, missing)
		}
	}
}

func TestMemoryPerQueryIsBounded(t *testing.T) {
	const n = 200
	tr := New(DefaultConfig(), nil)
	before := heap()
	for q := range n {
		id := event.QueryID(fmt.Sprint("query-", q))
		for r := range 8 {
			for i := range int64(40) {
				at := epoch + int64(r)*hour + i*10_000
				e := batchEvent(id, event.RunID(fmt.Sprint("run-", q, "-", r)), int64(r)*40+i, at)
				tr.Apply(e, at, nil)
			}
		}
	}
	each := float64(heap()-before) / n
	t.Logf("%.0f bytes per query", each)
	if each > 4096 {
		t.Errorf("%.0f bytes per query, want less than 4096", each)
	}
	var out []event.Update
	for q := range n {
		out = tr.Forget(event.QueryID(fmt.Sprint("query-", q)), epoch, out)
	}
	if len(tr.byID)+len(tr.order)+len(tr.c.Names.bearers) != 0 {
		t.Error("retired queries left something behind")
	}
	runtime.KeepAlive(tr)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	tr := New(DefaultConfig(), NewFilter(1))
	e := batchEvent("q", "r", 0, epoch)
	var out []event.Update
	if n := testing.AllocsPerRun(2000, func() {
		e.Batch.ID++
		e.Batch.StartMs += 10_000
		out = tr.Apply(e, e.Batch.StartMs, out[:0])
	}); n != 0 {
		t.Errorf("%g allocations per batch, want none", n)
	}
}

func TestEventsAreCompletedWithTheKnownName(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	e := batchEvent("q", "r", 0, epoch)
	e.Query.Name, e.Query.Application = "agg", "etl"
	tr.Apply(e, epoch, nil)
	end := &event.Event{Kind: event.KindTerminated, Query: event.QueryRef{ID: "q"}, Run: "r", AtMs: event.Absent}
	us := tr.Apply(end, epoch+1000, nil)
	if want := (event.QueryRef{ID: "q", Name: "agg", Application: "etl"}); us[0].Event.Query != want {
		t.Errorf("terminated event names %+v, want %+v", us[0].Event.Query, want)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	if c := DefaultConfig(); c.Validate() != nil {
		t.Errorf("defaults: %v", c.Validate())
	}
	c := Config{WindowBatches: 100, ReorderBatches: -1, ReorderMs: -1, TickGapMs: -1}
	err := c.Validate()
	if err == nil {
		t.Fatal("an empty config is valid")
	}
	for _, want := range []string{
		"queries (0)", "window batches (100)", "runs kept (0)", "max jump (0)", "reorder batches (-1)", "reorder time (-1",
		"overdue factor (0)", "run factor (0)", "overdue floor (0", "first batch time (0", "after a clean end (0",
		"after silence (0", "after failure (0", "tick gap (-1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word about %q in %v", want, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New took an invalid config")
		}
	}()
	New(c, nil)
}
