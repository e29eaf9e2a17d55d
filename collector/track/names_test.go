package track

import (
	"fmt"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// A job that starts its query under one name with a new checkpoint each time must
// not make each new start dearer than the one before.
func TestANameThatManyQueriesShareIsNotWatched(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	var out []event.Update
	for i := range 4 * maxNamesakes {
		e := batchEvent(event.QueryID(fmt.Sprint("q", i)), "r", 1, epoch+int64(i)*1000)
		e.Query.Name, e.Batch.Query.Name = "all", "all"
		out = tr.Apply(e, epoch+int64(i)*1000, out[:0])
	}
	if next := tr.successor(tr.order[0]); next != "" {
		t.Errorf("of more than %d namesakes %s is taken for the successor", maxNamesakes, next)
	}
	for i := range 4 * maxNamesakes {
		out = tr.Forget(event.QueryID(fmt.Sprint("q", i)), epoch+day, out[:0])
	}
	if names := len(tr.c.Names.bearers); names != 0 || tr.Len() != 0 {
		t.Errorf("%d names and %d queries are left", names, tr.Len())
	}
}

// A query with a new checkpoint has a new id, and with it perhaps another shard.
func TestASuccessorIsFoundInWhicheverTrackerItIs(t *testing.T) {
	c := DefaultConfig()
	c.Names = NewNames()
	trackers := []*Tracker{New(c, nil), New(c, nil)}
	say := func(tr *Tracker, id event.QueryID, ms int64) {
		e := batchEvent(id, "r", 0, ms)
		e.Query.Name, e.Batch.Query.Name = "agg", "agg"
		tr.Apply(e, ms, nil)
	}
	say(trackers[0], "old", epoch)
	say(trackers[1], "beside", epoch-minute) // and so no successor
	say(trackers[1], "new", epoch+minute)
	say(trackers[1], "beside", epoch+2*minute)
	out := trackers[0].Tick(epoch+hour, nil)
	if len(out) != 1 || out[0].State != event.StateRetired || out[0].Successor != "new" {
		t.Fatalf("got %+v", out)
	}
	say(trackers[0], "old", epoch+2*hour) // it comes back, as one that is there now
	if out := trackers[1].Tick(epoch+3*hour, nil); len(out) != 2 || out[0].Successor != "old" || out[1].Successor != "old" {
		t.Errorf("got %+v", out)
	}
	if n := len(c.Names.bearers); n != 1 {
		t.Errorf("%d names are kept", n)
	}
}

// A partition that went to another daemon and came back brings a hole that the
// other one filled; a hole after that is a loss again.
func TestWhatAnotherDaemonReadIsNotMissed(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	now := epoch
	missed := func(run event.RunID, ids ...int64) (n int) {
		var out []event.Update
		for _, id := range ids {
			now += 10_000
			out = tr.Apply(batchEvent("q", run, id, now), now, out)
		}
		now += 60_000
		out = tr.Tick(now, out)
		for _, u := range out {
			n += u.Missed
		}
		return n
	}
	if n := missed("one", 1, 2, 3); n != 0 {
		t.Errorf("%d missed of a stream without holes", n)
	}
	tr.TakenOver()
	if n := missed("one", 10, 11); n != 0 {
		t.Errorf("%d batches that another daemon read are missed", n)
	}
	if n := missed("one", 15); n != 3 {
		t.Errorf("%d missed after the handover, want 3", n)
	}
	if out := tr.Apply(batchEvent("q", "one", 2, epoch+20_000), now, nil); out[len(out)-1].Outcome != event.OutcomeDuplicate {
		t.Errorf("a repeat from before the handover is %v", out[len(out)-1].Outcome)
	}
	tr.TakenOver()
	if n := missed("two", 40, 41); n != 0 {
		t.Errorf("%d missed across runs, one of which another daemon read", n)
	}
}
