package simulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/operator"
)

func TestWatermarkIsTheSmallestOfItsSourcesAndOneBatchBehind(t *testing.T) {
	w := newWatermark(2, 10, false)
	w.observe(0, 110)
	if w.advance() {
		t.Fatal("it moves though one source has sent nothing")
	}
	w.observe(1, 60)
	w.observe(0, 90) // older rows do not turn it back
	if !w.advance() || w.nowMs != 50 || w.lateMs != 0 {
		t.Fatalf("watermark %d, rows are late below %d", w.nowMs, w.lateMs)
	}
	w.observe(1, 500)
	if !w.advance() || w.nowMs != 100 || w.lateMs != 50 {
		t.Fatalf("watermark %d, rows are late below %d", w.nowMs, w.lateMs)
	}
	if w.advance() || w.lateMs != 100 {
		t.Fatal("it moves without rows")
	}
}

func TestWatermarkPolicyMaxFollowsTheFastestSource(t *testing.T) {
	w := newWatermark(2, 10, true)
	w.observe(1, 60)
	if !w.advance() || w.nowMs != 50 {
		t.Fatalf("watermark %d", w.nowMs)
	}
}

func TestAWatermarkFromACheckpointNeverGoesBack(t *testing.T) {
	w := newWatermark(1, 10, false)
	w.reset(100, 90)
	w.observe(0, 50)
	if w.advance(); w.nowMs != 100 {
		t.Fatalf("watermark %d", w.nowMs)
	}
}

// loads counts partitions by executor.
func loads(p *placement, executors int) []int { return p.load(executors, nil) }

func TestPartitionsStayUnlessTheirExecutorIsGone(t *testing.T) {
	p := newPlacement(10, 4)
	before := slices.Clone(p.of)
	moved := p.vacate([]int{1}, 4)
	for i, slot := range p.of {
		if before[i] != 1 && slot != before[i] {
			t.Errorf("partition %d moved from %d to %d without need", i, before[i], slot)
		}
	}
	if got := loads(p, 4); slices.Max(got)-slices.Min(got) > 1 {
		t.Errorf("loads %v", got)
	}
	if len(moved) != 3 {
		t.Errorf("%d moves", len(moved))
	}
}

func TestGrowingAndShrinkingKeepLoadsEven(t *testing.T) {
	p := newPlacement(16, 2)
	if moved := p.spread(5); len(moved) < 7 {
		t.Errorf("%d moves", len(moved))
	}
	if got := loads(p, 5); slices.Max(got) > 4 || slices.Min(got) < 2 {
		t.Errorf("loads on five %v", got)
	}
	p.vacate([]int{3, 4}, 3)
	if got := loads(p, 3); slices.Max(got)-slices.Min(got) > 1 {
		t.Errorf("loads on three %v", got)
	}
}

func TestLostLocalityMovesItsShareToOthers(t *testing.T) {
	p := newPlacement(1000, 4)
	moves := p.scatter(0.3, 4, rand.New(rand.NewPCG(1, 2)))
	if len(moves) < 250 || len(moves) > 350 {
		t.Errorf("%d moves of 1000", len(moves))
	}
	for _, m := range moves {
		if m.from == m.to {
			t.Fatal("a move to where it was")
		}
	}
	if alone := newPlacement(4, 1).scatter(1, 1, nil); alone != nil {
		t.Error("moves with a single executor")
	}
}

func TestEveryCopyHasARealModel(t *testing.T) {
	for partitions := 1; partitions < 40; partitions++ {
		for reals := 0; reals <= partitions+1; reals++ {
			c := newCopies(partitions, reals, 1)
			n := 0
			for p := range partitions {
				if c.real(p) {
					n++
				}
				if m := c.model(p); c.reals < partitions && (!c.real(m) || m > p) {
					t.Fatalf("%d of %d: partition %d copies %d", reals, partitions, p, m)
				}
			}
			if want := c.reals; n != want {
				t.Fatalf("%d of %d: %d are real", reals, partitions, n)
			}
		}
	}
}

func TestACopyFollowsItsRowsAndKeepsPartsInsideTheWhole(t *testing.T) {
	c := newCopies(8, 2, 1)
	src := operator.Result{Updated: 100, RowsTotal: 5000, Output: 100, Update: time.Second, Commit: 300 * time.Millisecond, Instances: 1, Uploaded: []int64{4}}
	src.Custom.Clear()
	src.Custom[event.RocksDBPutCount] = 100
	src.Custom[event.RocksDBCommitFileSyncLatency] = 290
	for i := range 200 {
		var dst operator.Result
		c.copy(&dst, &src, 0.5, rand.New(rand.NewPCG(uint64(i), 1)))
		if dst.Updated != 50 || dst.Custom[event.RocksDBPutCount] != 50 || dst.RowsTotal != 5000 || dst.Uploaded[0] != 4 {
			t.Fatalf("copy %+v", dst)
		}
		if sync := dst.Custom[event.RocksDBCommitFileSyncLatency]; sync > float64(dst.Commit.Milliseconds()) {
			t.Fatalf("file sync %v in a commit of %v", sync, dst.Commit)
		}
		if dst.Custom.Has(event.RocksDBLoadLatency) {
			t.Fatal("a figure that this version has not")
		}
	}
}

func TestCopiesKeepSumsNearThoseOfRealStores(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.1"), "CHANGELOG", "true")
	text = replaced(replaced(text, "FAULT", "store-slow"), `partitions: "3"`, `partitions: "12"`)
	sums := func(real int) (rows, updates float64) {
		s := start(t, parse(t, replaced(text, "cores: 2}", fmt.Sprintf("cores: 2, real_stores: %d}", real))), Options{Seed: 8})
		play(t, s, all)
		a := s.Accounts()[0]
		last := a.Last(0)
		return last[event.NumRowsTotal], a.Operators[0][event.NumRowsUpdated]
	}
	rows, updates := sums(0)
	copiedRows, copiedUpdates := sums(3)
	if r := copiedRows / rows; r < 0.9 || r > 1.1 {
		t.Errorf("%v rows with copies, %v without", copiedRows, rows)
	}
	if r := copiedUpdates / updates; r < 0.98 || r > 1.02 {
		t.Errorf("%v updates with copies, %v without", copiedUpdates, updates)
	}
}

func TestQueueReusesMemoryAndKeepsOrder(t *testing.T) {
	var q queue
	for i := range 100 {
		q.push(message{atMs: int64(2 * i)}, []byte("first"))
		q.push(message{atMs: int64(2*i + 1)}, []byte("second, longer"))
		for want := range 2 {
			m := q.pop()
			if m.atMs != int64(2*i+want) {
				t.Fatalf("message of %d", m.atMs)
			}
			q.release(m.data)
		}
	}
	if q.len() != 0 || len(q.items) > 2 || len(q.spare) != 2 {
		t.Errorf("%d waiting, %d slots, %d buffers", q.len(), len(q.items), len(q.spare))
	}
}

func TestIdleClockByVersion(t *testing.T) {
	for _, c := range []struct {
		atOnce bool
		want   []int64
	}{{true, []int64{0, 10, 20}}, {false, []int64{10, 20}}} {
		clock := idleClock{intervalMs: 10, atOnce: c.atOnce}
		var got []int64
		for at := range int64(25) {
			if clock.due(at) {
				got = append(got, at)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("at once %t: told at %v, want %v", c.atOnce, got, c.want)
		}
	}
}
