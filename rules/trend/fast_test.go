package trend

import (
	"math"
	"testing"
)

// fastWindows judge a stream of one batch a second over 2 hours, in blocks.
func fastWindow() *Window { return NewWindow(Span{Batches: 120, Ms: 7_200_000}, 0) }

func TestFastHealthyStreamIsQuiet(t *testing.T) {
	for _, c := range []struct {
		name  string
		noise func(*noise) float64
		most  int
	}{{"independent with outliers", iidNoise, 0}, {"memory .6", arNoise, 1}, {"memory .6 and spikes", spikyNoise, 1}} {
		n, e, w := newNoise(5, c.noise), episodes{hold: 1200}, fastWindow()
		for i := range int64(25_000) {
			w.Push(Point{Batch: i, AtMs: i * 1000, Value: n.value(), Load: math.NaN()})
			if i%10 == 0 { // ten batches make no difference to a window of 7,200
				found := w.Rising(DefaultRising()).Verdict == Found
				for range 10 {
					e.see(found)
				}
			}
		}
		if e.count > c.most {
			t.Errorf("%s: %d episodes in 25,000 batches", c.name, e.count)
		}
	}
}

func TestFastStreamsStepAndRampAreFound(t *testing.T) {
	for name, fault := range map[string]func(k float64) float64{
		"step by half":             func(float64) float64 { return 1.5 },
		"half as much again, in 2": func(k float64) float64 { return 1 + math.Min(k/7200, 1)/2 },
	} {
		n, w, found := newNoise(6, arNoise), fastWindow(), int64(-1)
		for i := int64(0); i < 24_000 && found < 0; i++ {
			v := n.value()
			if i >= 10_000 {
				v *= fault(float64(i - 10_000))
			}
			w.Push(Point{Batch: i, AtMs: i * 1000, Value: v, Load: math.NaN()})
			if i >= 10_000 && i%60 == 0 && w.Rising(DefaultRising()).Verdict == Found {
				found = i - 10_000
			}
		}
		if found < 0 || found > 7200 {
			t.Errorf("%s found after %d s", name, found)
		}
	}
}

func TestSinceOfAFastStreamIsRightToABlock(t *testing.T) {
	w := fastWindow()
	for i := range int64(12_000) {
		v := 100 + wobble(int(i))
		if i >= 8000 {
			v += 60
		}
		w.Push(Point{Batch: i, AtMs: i * 1000, Value: v, Load: math.NaN()})
	}
	r := w.Rising(DefaultRising())
	if r.Verdict != Found {
		t.Fatalf("%+v", r)
	}
	near(t, "since", float64(r.Since), 8000, 90)
	if r.Batches < 7200 || r.N > MaxPoints {
		t.Errorf("%d batches in %d points", r.Batches, r.N)
	}
}

func TestFindingEndsOnceTheHumpHasPassed(t *testing.T) {
	w := NewWindow(Span{Batches: 120}, 0)
	during, after := 0, 0
	for i := range 600 { // up by half and down again within 80 batches
		v := 100 + wobble(i) + 50*math.Max(0, 1-math.Abs(float64(i-300))/40)
		w.Push(Point{Batch: int64(i), AtMs: int64(i) * 60_000, Value: v, Load: math.NaN()})
		switch found := w.Rising(DefaultRising()).Verdict == Found; {
		case found && i < 340:
			during++
		case found:
			after++
		}
	}
	if during < 15 || after > 10 {
		t.Errorf("found %d times during the hump and %d after", during, after)
	}
}
