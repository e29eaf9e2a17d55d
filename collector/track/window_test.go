package track

import (
	"math/rand/v2"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// The window answers like a set that forgets what lies below its newest ids.
func TestWindowAnswersLikeASetOfTheNewestIds(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := newWindow(64 << rng.IntN(3))
		model, newest := map[int64]bool{}, int64(event.Absent)
		at := rng.Int64N(1000)
		for range 300 {
			id := max(0, at+rng.Int64N(w.size())-w.size()/2)
			if rng.IntN(50) == 0 {
				at += 3 * w.size()
			}
			at += rng.Int64N(3)
			if !w.below(id) {
				model[id], newest = true, max(newest, id)
			}
			w.mark(id)
			checkWindow(t, &w, model, newest, at)
		}
	}
}

func checkWindow(t *testing.T, w *window, model map[int64]bool, newest, at int64) {
	t.Helper()
	if w.newest != newest {
		t.Fatalf("newest %d, want %d", w.newest, newest)
	}
	low := newest - w.size()
	held, unseen := 0, int64(0)
	for id := max(0, low+1); id <= newest; id++ {
		if w.has(id) != model[id] {
			t.Fatalf("id %d of window (%d, %d]: has %v, want %v", id, low, newest, w.has(id), model[id])
		}
		if model[id] {
			held++
		} else {
			unseen++
		}
	}
	if w.count() != held {
		t.Fatalf("%d ids held, want %d", w.count(), held)
	}
	if low < 0 {
		return
	}
	if got := w.holes(low, newest); got != unseen {
		t.Fatalf("%d holes, want %d", got, unseen)
	}
	if got := w.holes(low-10, newest); got != unseen+10 || w.has(low) || w.has(newest+1) || w.has(at+1<<40) {
		t.Fatalf("outside the window: %d holes, want %d", got, unseen+10)
	}
}

func TestEmptyWindowKnowsNothing(t *testing.T) {
	w := newWindow(64)
	if w.has(0) || w.below(0) || w.below(-1) || w.count() != 0 {
		t.Error("an empty window claims to know something")
	}
	w.mark(5)
	w.reset()
	if w.has(5) || w.newest != event.Absent {
		t.Error("a window that was reset remembers")
	}
}

func TestStampsKeepTheNewestTimes(t *testing.T) {
	var s stamps
	for i, step := range []struct {
		at   int64
		want verdict
	}{
		{10, fresh}, {20, fresh}, {10, seen}, {5, fresh}, {5, seen}, // room for three
		{30, fresh}, {5, tooOld}, {10, seen}, {4, tooOld}, {25, fresh}, {10, tooOld}, {20, seen}, {40, fresh}, {20, tooOld}, {25, seen},
	} {
		if got := s.note(step.at, 3); got != step.want {
			t.Errorf("step %d: time %d is judged %d, want %d", i, step.at, got, step.want)
		}
	}
}

func TestMedianIsThatOfTheNewestDistances(t *testing.T) {
	var s spacing
	if m := s.median(); m == m || s.longest() != 0 {
		t.Error("an empty ring knows a median")
	}
	for i := range int64(100) {
		s.add(1000 + i)
		s.add(0)
		s.add(-5)
	}
	if s.median() != 1084 || s.longest() != 1099 {
		t.Errorf("median %g, longest %g; want 1084 and 1099", s.median(), s.longest())
	}
}

func TestRhythmOfRunsNeedsThreeOfThem(t *testing.T) {
	var s starts
	s.add(100)
	s.add(200)
	s.add(200) // the same start again
	s.add(150) // came late
	if d := s.usual(); d == d {
		t.Errorf("two starts have a rhythm of %g", d)
	}
	for i := range int64(20) {
		s.add(300 + i*50)
	}
	if s.usual() != 50 {
		t.Errorf("rhythm %g, want 50", s.usual())
	}
}

func TestForgottenRunsCannotPassForNewOnes(t *testing.T) {
	var g ghosts
	if g.has("") || g.has("run") {
		t.Error("an empty list knows a run")
	}
	g.add("")
	for i := range 40 {
		g.add(event.RunID(rune('A' + i)))
	}
	if g.has("") || !g.has(event.RunID(rune('A'+39))) || !g.has(event.RunID(rune('A'+8))) || g.has(event.RunID(rune('A'+7))) {
		t.Error("the list does not hold the newest 32 runs")
	}
}
