package track

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stategauge/stategauge/event"
)

// reader feeds one run of a query, batch by batch, a second apart.
type reader struct {
	tr     *Tracker
	nowMs  int64
	missed int
}

func newReader() *reader { return &reader{tr: New(DefaultConfig(), nil), nowMs: epoch} }

func (r *reader) read(ids ...int64) (outcomes []event.Outcome) {
	for _, id := range ids {
		r.nowMs += 1000
		out := r.tr.Apply(batchEvent("q", "r", id, epoch+id*1000), r.nowMs, nil)
		r.note(out)
		outcomes = append(outcomes, out[len(out)-1].Outcome)
	}
	return outcomes
}

// wait lets the time pass after which holes are given up.
func (r *reader) wait() {
	for range 3 {
		r.nowMs += 5000
		r.note(r.tr.Tick(r.nowMs, nil))
	}
}

func (r *reader) note(us []event.Update) {
	for i := range us {
		r.missed += us[i].Missed
	}
}

func (r *reader) check(t *testing.T, want int) {
	t.Helper()
	if r.missed != want {
		t.Errorf("%d batches are missed, want %d", r.missed, want)
	}
	if st, _ := r.tr.Status("q"); st.Missed != int64(want) {
		t.Errorf("the status has %d missed, want %d", st.Missed, want)
	}
}

func TestAHoleThatIsFilledAfterTheHandoverIsNotMissed(t *testing.T) {
	r := newReader()
	r.read(1, 2, 4)
	r.tr.TakenOver()
	r.read(10, 11)
	if got := r.read(3); got[0] != event.OutcomeExecuted {
		t.Errorf("the late batch is %v", got[0])
	}
	r.wait()
	r.check(t, 0)
}

func TestAHoleThatIsNeverFilledIsMissedAfterTheHandover(t *testing.T) {
	r := newReader()
	r.read(1, 2, 4)
	r.tr.TakenOver()
	r.read(10, 11)
	r.check(t, 0)
	r.wait()
	r.check(t, 1)
	r.read(14) // a hole of our own
	r.wait()
	r.check(t, 3)
}

func TestTheHoleIsFilledBeforeTheNewestGoesOn(t *testing.T) {
	r := newReader()
	r.read(1, 2, 4)
	r.tr.TakenOver()
	r.read(3) // read again from before; the handover is still to be seen
	r.read(20, 21)
	r.wait()
	r.check(t, 0)
}

// What was read elsewhere does not make the run further: holes wait as long as
// without the handover.
func TestTheJumpOfAHandoverGivesNoHoleUp(t *testing.T) {
	r := newReader()
	r.read(1, 2, 4)
	r.tr.TakenOver()
	r.read(500)
	r.check(t, 0)
	r.read(501, 502, 503, 504, 505)
	r.nowMs -= 4000 // the same moment, as it were: only ids pass
	r.read(506)
	r.check(t, 1) // eight ids of our own after the hole: 4, and seven from 500
}

func TestBatchesThatWentByElsewhereAreCountedWhenTheyComeHereAfterAll(t *testing.T) {
	r := newReader()
	r.read(1, 2, 3)
	r.tr.TakenOver()
	r.read(8, 9, 12) // 10 and 11 are a hole
	r.wait()
	r.check(t, 2)
	got := r.read(5, 6)
	if got[0] != event.OutcomeExecuted || got[1] != event.OutcomeExecuted {
		t.Errorf("they are %v", got)
	}
	r.read(15) // 13 and 14 are missed: what went by elsewhere is not set off against them
	r.wait()
	r.check(t, 4)
}

func TestTwoHandoversInARowLoseNoHole(t *testing.T) {
	r := newReader()
	r.read(1, 2, 4)
	r.tr.TakenOver()
	r.read(10, 12) // 11 is a hole
	r.tr.TakenOver()
	r.read(20, 21)
	r.wait()
	r.check(t, 2) // 3 and 11
	r.read(22)
	r.wait()
	r.check(t, 2)
}

func TestAHandoverBeyondTheWindowTellsOfTheHolesItLeaves(t *testing.T) {
	r := newReader()
	r.read(1, 2, 5)
	r.tr.TakenOver()
	r.read(5000, 5001)
	r.wait()
	r.check(t, 2)
}

func TestOnlyTheQueriesOfThePartitionAreHandedOver(t *testing.T) {
	tr, now := New(DefaultConfig(), nil), epoch
	missed := map[event.QueryID]int{}
	step := func(id int64) {
		for _, q := range []event.QueryID{"moved", "stayed"} {
			now += 1000
			tr.Apply(batchEvent(q, "r", id, now), now, nil)
		}
	}
	step(1)
	tr.TakenOverWhere(func(id event.QueryID) bool { return id == "moved" })
	step(5)
	for range 3 {
		now += 6000
		for _, u := range tr.Tick(now, nil) {
			missed[u.Event.Query.ID] += u.Missed
		}
	}
	if diff := cmp.Diff(map[event.QueryID]int{"stayed": 3}, missed); diff != "" {
		t.Error(diff)
	}
}

func TestAHandoverSurvivesARestart(t *testing.T) {
	r := newReader()
	r.read(1, 2, 4)
	r.tr.TakenOver()
	for _, ids := range [][]int64{{10}, {11}, {12, 3}} {
		again := New(DefaultConfig(), nil)
		if err := again.Restore(r.tr.Snapshot(nil)); err != nil {
			t.Fatal(err)
		}
		r.tr = again
		r.read(ids...)
	}
	r.wait()
	r.check(t, 0)
}

// However batches come and partitions move: what never came here, and was not read
// elsewhere, is missed, no more and no less.
func TestMissedBatchesAddUpAcrossHandovers(t *testing.T) {
	for seed := range uint64(200) {
		rng := seeded(seed)
		r, want, id := newReader(), 0, int64(1)
		r.read(id)
		for range 30 {
			id++
			switch rng.IntN(6) {
			case 0: // lost
				n := 1 + rng.IntN(3)
				want += n
				id += int64(n)
				r.read(id)
			case 1: // late by one
				r.read(id+1, id)
				id++
			case 2:
				r.tr.TakenOver()
				id += rng.Int64N(40)
				r.read(id)
			case 3: // filled after a handover
				r.read(id + 1)
				r.tr.TakenOver()
				gone := id
				id += 2 + rng.Int64N(40)
				r.read(id, gone)
			default:
				r.read(id)
			}
			if rng.IntN(4) == 0 {
				r.wait()
			}
		}
		r.read(id + 1) // a hand-over that nothing followed must not hide the end
		r.wait()
		if r.missed != want {
			t.Fatalf("seed %d: %d missed, want %d", seed, r.missed, want)
		}
	}
}

func TestReleasedQueriesSayThatTheyMoved(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	for i := range 6 {
		e := batchEvent(event.QueryID(fmt.Sprint("q", i)), "r", 1, epoch+int64(i))
		e.Query.Name = "shared"
		tr.Apply(e, epoch, nil)
	}
	out := tr.Release(func(id event.QueryID) bool { return id == "q1" || id == "q4" || id == "q5" }, epoch+1000, nil)
	var got []string
	for _, u := range out {
		if !u.Moved || u.Was != event.StateRunning || u.Successor != "" || u.Outcome != event.OutcomeStateChange {
			t.Errorf("%+v", u)
		}
		got = append(got, string(u.Event.Query.ID)+" "+u.State.String()+" "+u.Event.Query.Name)
	}
	if diff := cmp.Diff([]string{"q1 retired shared", "q4 retired shared", "q5 retired shared"}, got); diff != "" {
		t.Error(diff)
	}
	if tr.Len() != 3 || len(tr.byID) != 3 || len(tr.c.Names.bearers[nameKey{name: "shared"}]) != 3 {
		t.Errorf("%d, %d, %v", tr.Len(), len(tr.byID), tr.c.Names.bearers)
	}
	if out := tr.Release(func(event.QueryID) bool { return true }, epoch+2000, nil); len(out) != 3 || tr.Len()+len(tr.c.Names.bearers)+len(tr.byID) != 0 {
		t.Errorf("%d updates, %d queries left", len(out), tr.Len())
	}
	// It may come back, as a query like any other.
	back := tr.Apply(batchEvent("q1", "r", 2, epoch+9000), epoch+9000, nil)
	if !back[0].NewQuery || back[0].Missed != 0 || back[0].Moved {
		t.Errorf("%+v", back[0])
	}
}

func TestForgottenAndRetiredQueriesDidNotMove(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	tr.Apply(batchEvent("a", "r", 1, epoch), epoch, nil)
	tr.Apply(batchEvent("b", "r", 1, epoch), epoch, nil)
	out := tr.Forget("a", epoch+1, nil)
	out = tr.Tick(epoch+30*day, tr.Tick(epoch+1, out))
	for _, u := range tr.Tick(epoch+60*day, out) {
		if u.Moved {
			t.Errorf("%+v", u)
		}
	}
}

// diary is what a tracker said, in the order in which it would be kept.
type diary []event.Update

func (d *diary) note(us []event.Update, receivedMs int64) {
	for _, u := range us {
		u.Origin.ReceivedMs = receivedMs
		e := *u.Event
		u.Event = &e
		*d = append(*d, u)
	}
}

// unlike compares what was said with what a replay said.
func unlike(want, got []event.Update) string {
	return cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(event.Update{}, "Origin"))
}

// A tracker is saved now and then; what it said since then is replayed into a
// restored one, which from there on is like the one that was never saved.
func TestReplayedUpdatesLeadToTheStateThatWas(t *testing.T) {
	for seed := range uint64(40) {
		rng := seeded(seed)
		c := DefaultConfig()
		c.Senders = NewSenders()
		tr := New(c, perfect{})
		ops := randomOps(rng, 300)
		at := rng.IntN(len(ops) - 50)
		var d diary
		var saved, senders []byte
		var filter perfect
		for i, o := range ops[:at+40] {
			if i == at {
				saved, senders, d = tr.Snapshot(nil), c.Senders.Snapshot(nil), nil
				filter = maps.Clone(tr.filter.(perfect))
			}
			if o.kind == 1 {
				continue // a pause is told to the tracker by its owner, and no update says so
			}
			d.note(o.apply(tr, nil), o.nowMs)
			if i == at+20 {
				d.note(tr.Release(func(id event.QueryID) bool { return id == "q2" }, o.nowMs, nil), o.nowMs)
			}
		}
		again := replayed(t, New(c, filter), saved, senders, d)
		for i, o := range ops[at+40:] {
			if diff := unlike(o.apply(tr, nil), o.apply(again, nil)); diff != "" {
				t.Fatalf("seed %d: step %d after the replay: (-never +replayed)\n%s", seed, i, diff)
			}
		}
	}
}

func replayed(t *testing.T, like *Tracker, saved, senders []byte, d diary) *Tracker {
	t.Helper()
	c := like.c
	c.Senders = NewSenders()
	again := New(c, like.filter)
	if err := again.Restore(saved); err != nil {
		t.Fatal(err)
	}
	if err := c.Senders.Restore(senders); err != nil {
		t.Fatal(err)
	}
	var got []event.Update
	for i := range d {
		e := *d[i].Event
		u := d[i]
		u.Event = &e
		got = again.Replay(&u, got)
	}
	if diff := unlike(d, got); diff != "" {
		t.Fatalf("(-said +replayed)\n%s", diff)
	}
	return again
}

func TestReplayKeepsPausesApartFromSilence(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	var d diary
	for i := range int64(20) {
		tr.Apply(batchEvent("q", "r", i, epoch+i*10_000), epoch+i*10_000, nil)
		tr.Apply(batchEvent("still", "r", i, epoch+i*10_000), epoch+i*10_000, nil)
	}
	tr.Tick(epoch+190_000, nil)
	saved := tr.Snapshot(nil)
	for i := int64(20); i < 25; i++ { // "still" says nothing, and we do listen
		d.note(tr.Apply(batchEvent("q", "r", i, epoch+i*10_000), epoch+i*10_000, nil), epoch+i*10_000)
	}
	again := New(DefaultConfig(), nil)
	if err := again.Restore(saved); err != nil {
		t.Fatal(err)
	}
	for i := range d {
		again.Replay(&d[i], nil)
	}
	// Down from 240 s to 10,000 s. The silence of 50 s before counts, ours does not.
	if out := again.Tick(epoch+10_000_000, nil); len(out) != 0 {
		t.Errorf("%+v", out)
	}
	out := again.Tick(epoch+10_000_000+60_000, nil)
	if len(out) != 1 || out[0].Event.Query.ID != "still" || out[0].State != event.StateOverdue {
		t.Errorf("%+v", out)
	}
}

// A partition that is taken over is read again from its past, into a tracker that
// knows nothing: from the windows that this fills it judges on like the old owner.
func TestAPartitionReadAgainFillsTheWindows(t *testing.T) {
	old := New(DefaultConfig(), nil)
	var past []*event.Event
	for i := range int64(200) {
		if i%20 == 13 {
			continue
		}
		run := event.RunID(fmt.Sprint("run", i/80))
		past = append(past, batchEvent("q", run, i, epoch+i*10_000))
	}
	for _, e := range past {
		old.Apply(e, e.Batch.StartMs+2000, nil)
	}
	heir, handedOver := New(DefaultConfig(), nil), epoch+day/2
	for _, e := range past[60:] {
		heir.Apply(e, handedOver, nil)
	}
	for range 2 { // holes of the past are told of in the past
		handedOver += 6000
		heir.Tick(handedOver, nil)
	}
	for i := int64(195); i < 260; i++ {
		e := batchEvent("q", "run2", i, epoch+i*10_000)
		handedOver += 10_000
		a, b := old.Apply(e, e.Batch.StartMs+2000, nil)[0], heir.Apply(e, handedOver, nil)[0]
		if a.Outcome != b.Outcome || a.Missed != b.Missed || a.NewRun != b.NewRun || a.Trigger != b.Trigger ||
			fmt.Sprint(a.IntervalMs) != fmt.Sprint(b.IntervalMs) {
			t.Fatalf("batch %d: the old owner says %+v, the new one %+v", i, a, b)
		}
	}
}
