package trend

import (
	"math"
	"slices"
	"testing"
)

// pacedRun feeds a store and asks it both ways.
type pacedRun struct {
	columns      *Columns
	number       int
	pace         Pace
	row          [1]float32
	i            int64
	dear, gated  int
	paced, whole episodes
}

func newPacedRun(span Span) *pacedRun {
	r := &pacedRun{columns: NewColumns(1, ColumnsOptions{Longest: span})}
	r.number = r.columns.Watch(0, span)
	r.paced.hold, r.whole.hold = 5, 5
	return r
}

func (r *pacedRun) push(v float64) (paced, whole RisingResult) {
	r.row[0] = float32(v)
	r.columns.Push(r.i, r.i*60_000, r.row[:])
	r.i++
	before := r.pace.next
	o := DefaultRising()
	paced = r.columns.RisingPaced(r.number, NoLoad, o, &r.pace)
	whole = r.columns.RisingWatched(r.number, NoLoad, o)
	r.dear += count(r.pace.next != before)
	r.gated += count(whole.RawZ > o.GateZ)
	r.paced.see(paced.Verdict == Found)
	r.whole.see(whole.Verdict == Found)
	return paced, whole
}

func TestPacedJudgementSparesDearTestsAndAddsNoEpisodes(t *testing.T) {
	arithmeticOnly(t)
	for name, noise := range map[string]func(*noise) float64{"independent": iidNoise, "memory .6": arNoise, "spikes": spikyNoise, "wandering": wanderNoise} {
		r, n := newPacedRun(Span{Batches: 120}), newNoise(31, noise)
		for range 12_000 {
			r.push(n.value())
		}
		t.Logf("%-12s %d dear tests instead of %d in %d batches, %d episodes instead of %d", name, r.dear, r.gated, r.i, r.paced.count, r.whole.count)
		if 4*r.dear > r.gated || r.paced.count > r.whole.count+2 {
			t.Errorf("%s: %d dear tests of %d, %d episodes of %d", name, r.dear, r.gated, r.paced.count, r.whole.count)
		}
	}
}

func TestPacedJudgementIsHardlyLater(t *testing.T) {
	arithmeticOnly(t)
	for name, fault := range map[string]func(k int) float64{
		"step by half": func(int) float64 { return 1.5 }, "ramp of .5 % a batch": func(k int) float64 { return 1 + 0.005*float64(k) },
	} {
		var later []int
		for seed := range uint64(20) {
			r, n := newPacedRun(Span{Batches: 120}), newNoise(400+seed, iidNoise)
			paced, whole := -1, -1
			for i := 0; i < 500 && (paced < 0 || whole < 0); i++ {
				v := n.value()
				if i >= 200 {
					v *= fault(i - 200)
				}
				p, w := r.push(v)
				if i >= 200 && paced < 0 && p.Verdict == Found {
					paced = i
				}
				if i >= 200 && whole < 0 && w.Verdict == Found {
					whole = i
				}
			}
			if paced < 0 || whole < 0 {
				t.Fatalf("%s: found at %d, paced at %d", name, whole, paced)
			}
			later = append(later, paced-whole)
		}
		slices.Sort(later)
		t.Logf("%s: later by %d batches in the median, %d at most", name, later[10], later[19])
		if later[10] > 4 || later[19] > 15 || later[0] < 0 {
			t.Errorf("%s: later by %v batches", name, later)
		}
	}
}

func TestFindingOfAPacedJudgementEndsWithTheCheapTest(t *testing.T) {
	r := newPacedRun(Span{Batches: 60})
	for i := range 60 {
		r.push(100 + 2*float64(i) + wobble(i))
	}
	if r.pace.found == nil {
		t.Fatal("the ramp was not found")
	}
	for i := range 200 {
		if p, _ := r.push(220 + wobble(i)); i > 70 && p.Verdict != Clear {
			t.Fatalf("%+v after %d level batches", p, i)
		}
	}
	r.pace.Reset()
	if r.pace != (Pace{}) {
		t.Errorf("%+v", r.pace)
	}
}

func TestRestIsShorterTheNearerTheTestWasToPassing(t *testing.T) {
	o := DefaultRising()
	last := math.Inf(1)
	for _, z := range []float64{-1, 1, 2, 2.5, 3, 3.09} {
		rest := o.rest(Fit{Z: z, Rise: 10, Start: 10}, 120)
		if rest > last || rest < 2 || rest > 15 {
			t.Errorf("rest after z %v is %v", z, rest)
		}
		last = rest
	}
	if rest := o.rest(Fit{Z: 9, Rise: 0.1, Start: 10}, 120); rest != 15 {
		t.Errorf("rest after a tiny rise is %v", rest)
	}
}
