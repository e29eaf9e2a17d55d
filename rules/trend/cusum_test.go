package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// frozen returns a CUSUM over a baseline of 100 and spread 10.
func frozen(o CUSUMOptions) *CUSUM {
	c := NewCUSUM(o)
	c.Freeze(Baseline{N: 100, Level: 100, Spread: 10})
	return c
}

func TestCUSUMOfAWorkedExample(t *testing.T) {
	c := frozen(CUSUMOptions{K: 1, H: 5, Cap: 3})
	steps := []struct {
		value, sum float64
		verdict    Verdict
	}{
		{100, 0, Clear},   // 0 - 1, held at 0
		{130, 2, Clear},   // 3 - 1
		{115, 2.5, Clear}, // + 1.5 - 1
		{500, 4.5, Clear}, // capped at 3
		{100, 3.5, Clear}, // - 1
		{130, 5.5, Found}, // + 2
		{1e9, 7.5, Found}, // capped
		{130, 9.5, Found}, // + 2
		{130, 10, Found},  // held at twice the limit
		{-1e9, 6, Found},  // capped below too: -3 - 1
		{90, 4, Clear},    // -1 - 1
		{math.NaN(), 4, Clear},
	}
	for i, s := range steps {
		c.Push(int64(10+i), s.value)
		a := c.Alarm()
		if a.Verdict != s.verdict || math.Abs(a.Sum-s.sum) > 1e-9 {
			t.Errorf("after value %d (%v): %v with a sum of %v, want %v with %v", i, s.value, a.Verdict, a.Sum, s.verdict, s.sum)
		}
	}
	if a := c.Alarm(); a.Since != 11 || a.Batches != 10 {
		t.Errorf("since batch %d, %d batches", a.Since, a.Batches)
	}
}

func TestCUSUMWithoutABaselineHasTooFewPoints(t *testing.T) {
	c := NewCUSUM(CUSUMOptions{})
	c.Push(1, 1e9)
	if a := c.Alarm(); a.Verdict != TooFew || a.Since != -1 {
		t.Errorf("%+v", a)
	}
}

func TestCUSUMLooksOnlyTheWayItIsAsked(t *testing.T) {
	for _, c := range []struct {
		side     Side
		up, down bool
	}{{Upward, true, false}, {Downward, false, true}, {BothWays, true, true}} {
		for move, want := range map[float64]bool{50: c.up, -50: c.down} {
			x := frozen(CUSUMOptions{Side: c.side})
			for i := range int64(20) {
				x.Push(i, 100+move)
			}
			a := x.Alarm()
			if (a.Verdict == Found) != want || want && a.Down != (move < 0) {
				t.Errorf("side %d, move %v: %+v", c.side, move, a)
			}
		}
	}
}

func TestSpikesAloneNeverAlarmACUSUM(t *testing.T) {
	c := frozen(DefaultCUSUM())
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range int64(5000) {
		v := 100 + 10*rng.NormFloat64()
		if i%5 == 0 {
			v *= 50
		}
		c.Push(i, v)
		if c.Alarm().Verdict == Found {
			t.Fatalf("alarm at batch %d: %+v", i, c.Alarm())
		}
	}
}

func TestNewBaselineStartsTheSumsAfresh(t *testing.T) {
	c := frozen(DefaultCUSUM())
	for i := range int64(20) {
		c.Push(i, 150)
	}
	c.Freeze(Baseline{N: 60, Level: 150, Spread: 10})
	if a := c.Alarm(); a.Verdict != Clear || a.Sum != 0 {
		t.Errorf("%+v", a)
	}
	if c.Baseline().Level != 150 {
		t.Errorf("%+v", c.Baseline())
	}
}

func TestCUSUMRecoversSoonFromALongFault(t *testing.T) {
	c := frozen(DefaultCUSUM())
	for i := range int64(10_000) {
		c.Push(i, 200)
	}
	batches := 0
	for c.Alarm().Verdict == Found {
		c.Push(int64(10_000+batches), 100)
		batches++
	}
	if batches > 13 {
		t.Errorf("still alarmed after %d batches at the baseline", batches)
	}
}

// watchCUSUM counts episodes over healthy batches; the baseline is learned from 100
// batches and renewed every 500 while all is quiet.
func watchCUSUM(o CUSUMOptions, n *noise, batches int) (e episodes, alarmed int) {
	c, s := NewCUSUM(o), new(Scratch)
	e.hold = 1
	var last []float64
	for i := range batches {
		v := n.value()
		last = append(last, v)
		if len(last) > 100 {
			last = last[1:]
		}
		if len(last) == 100 && (!c.Baseline().Known() || i%500 == 0 && c.Alarm().Verdict == Clear) {
			c.Freeze(s.Baseline(last, 0))
		}
		c.Push(int64(i), v)
		found := c.Alarm().Verdict == Found
		e.see(found)
		if found {
			alarmed++
		}
		if e.open && i%500 == 499 { // as one would who has looked into it and dismissed it
			c.Freeze(s.Baseline(last, 0))
		}
	}
	return e, alarmed
}

func TestCUSUMErrorTable(t *testing.T) {
	const batches = 20_000
	for _, c := range []struct {
		name  string
		noise func(*noise) float64
		most  int // some three times what was measured
	}{
		{"independent with outliers", iidNoise, 10},
		{"memory .6", arNoise, 45},
		{"memory .6 and spikes", spikyNoise, 30},
	} {
		e, alarmed := watchCUSUM(DefaultCUSUM(), newNoise(21, c.noise), batches)
		p, plain := watchCUSUM(CUSUMOptions{K: 0.5, H: 5, Cap: 1e9}, newNoise(21, c.noise), batches)
		t.Logf("%-26s %.2f episodes per 1,000 batches, %.4f of them alarmed; k .5, h 5, no cap: %.2f, %.4f", c.name,
			1000*float64(e.count)/batches, float64(alarmed)/batches, 1000*float64(p.count)/batches, float64(plain)/batches)
		if e.count > c.most {
			t.Errorf("%s: %d episodes in %d batches", c.name, e.count, batches)
		}
		if 4*alarmed >= plain {
			t.Errorf("%s: alarmed for %d batches, the plain one for %d", c.name, alarmed, plain)
		}
	}
}

func TestCUSUMFindsAStepSoon(t *testing.T) {
	for _, c := range []struct {
		by     float64
		least  int
		within int
	}{{1.4, 15, 45}, {2, 20, 20}} {
		found, delay := 0, 0
		for seed := range uint64(20) {
			n, x, s := newNoise(300+seed, arNoise), NewCUSUM(DefaultCUSUM()), new(Scratch)
			var before []float64
			for range 100 {
				before = append(before, n.value())
			}
			x.Freeze(s.Baseline(before, 0))
			for i := range 100 {
				x.Push(int64(i), c.by*n.value())
				if x.Alarm().Verdict == Found {
					found, delay = found+1, delay+i
					break
				}
			}
		}
		t.Logf("step of %v: %d of 20 after %d batches", c.by, found, delay/max(found, 1))
		if found < c.least || delay/max(found, 1) > c.within {
			t.Errorf("step of %v: %d of 20 after %d batches", c.by, found, delay/max(found, 1))
		}
	}
}
