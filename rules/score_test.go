package rules

import (
	"math"
	"strings"
	"testing"
)

// series are shapes of healthy noise, as factors around 1.
var healthy = map[string]func(n *noise) func(i int) float64{
	"independent with outliers": func(n *noise) func(int) float64 {
		return func(int) float64 { return n.next() }
	},
	"long memory": func(n *noise) func(int) float64 {
		x := 0.0
		return func(int) float64 {
			x = 0.6*x + n.r.NormFloat64()
			return math.Exp(0.18 * x)
		}
	},
	"memory and a spike each ten batches": func(n *noise) func(int) float64 {
		x := 0.0
		return func(i int) float64 {
			x = 0.6*x + n.r.NormFloat64()
			if i%10 == 0 {
				return 5 * math.Exp(0.18*x)
			}
			return math.Exp(0.18 * x)
		}
	},
	"a level that wanders": func(n *noise) func(int) float64 {
		level := 0.0
		return func(int) float64 {
			level += -level/500 + 0.1*math.Sqrt(2.0/500)*n.r.NormFloat64()
			return math.Exp(level + 0.15*n.r.NormFloat64())
		}
	},
}

const (
	scoredRuns    = 2
	scoredBatches = 3000
)

// TestHealthyNoiseGivesNoTicket counts episodes of the default pack over streams
// without a fault: 24,000 batches of four noises, at most two.
func TestHealthyNoiseGivesNoTicket(t *testing.T) {
	episodes := 0
	for name, shape := range healthy {
		for seed := range uint64(scoredRuns) {
			s := newStream(New(defaultPack(t), Options{}))
			sync, took := shape(newNoise(seed)), shape(newNoise(seed+100))
			for i := range scoredBatches {
				s.play(figures{duration: 2000 * took(i), sync: 100 * sync(i)})
			}
			for _, v := range changed(s.verdicts, Firing) {
				t.Logf("%s, seed %d: %s", name, seed, line(v))
				episodes++
			}
		}
	}
	if episodes > 2 {
		t.Errorf("%d false tickets in %d batches, want at most 2", episodes, len(healthy)*scoredRuns*scoredBatches)
	}
}

// TestFaultsAreFound plays faults on noise and asks how many are found, and when.
func TestFaultsAreFound(t *testing.T) {
	const runs = 6
	for _, c := range []struct {
		name  string
		fault func(since float64) float64
		found int     // of runs
		delay float64 // mean, in batches
	}{
		{"a step by half", func(float64) float64 { return 1.5 }, 6, 90},
		{"a step to double", func(float64) float64 { return 2 }, 6, 80},
		{"half a percent more a batch", func(since float64) float64 { return 1 + 0.005*since }, 6, 140},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, delays := 0, 0.0
			for seed := range uint64(runs) {
				s := newStream(New(defaultPack(t), Options{}))
				n := newNoise(seed)
				for i := range 1000 {
					f := figures{sync: 400 * n.next()} // far above the floor of 50 ms
					if since := i - 650; since >= 0 {
						f.sync *= c.fault(float64(since))
					}
					s.play(f)
				}
				if fired := changed(s.verdicts, Firing); len(fired) > 0 {
					found++
					delays += float64(fired[0].Alert.FiringBatch - 750)
				}
			}
			delay := delays / float64(max(1, found))
			t.Logf("found %d of %d after %.0f batches", found, runs, delay)
			if found < c.found || delay > c.delay {
				t.Errorf("found %d of %d after %.0f batches, want %d after at most %.0f", found, runs, delay, c.found, c.delay)
			}
		})
	}
}

func TestTheSameStreamGivesTheSameVerdicts(t *testing.T) {
	run := func(beside int) []string {
		e := New(defaultPack(t), Options{})
		s := newStream(e)
		n, m := newNoise(12), newNoise(13)
		others := make([]*stream, beside)
		for i := range others {
			others[i] = newStream(e)
			others[i].id = string(rune('a' + i))
		}
		for i := range 900 {
			f := figures{sync: 100 * n.next(), duration: 2000 * n.next()}
			if i > 600 {
				f.sync *= 1.8
			}
			s.play(f)
			for _, o := range others {
				o.play(figures{sync: 500 * m.next(), duration: 9000 * m.next()})
			}
		}
		return lines(s.verdicts)
	}
	alone, again, beside := run(0), run(0), run(3)
	if len(alone) < 4 {
		t.Fatalf("only %v was said", alone)
	}
	for i := range alone {
		if i >= len(again) || i >= len(beside) || alone[i] != again[i] || alone[i] != beside[i] {
			t.Fatalf("alone %v, again %v, beside others %v", alone, again, beside)
		}
	}
}

func TestAReloadAmidAFaultDoesNotDelayItsAlert(t *testing.T) {
	run := func(reload bool) int64 {
		s := newStream(New(defaultPack(t), Options{}))
		n := newNoise(14)
		for i := range 900 {
			f := figures{sync: 100 * n.next()}
			if i >= 650 {
				f.sync *= 1.8
			}
			s.play(f)
			if reload && i >= 650 && i%7 == 0 {
				s.verdicts = s.e.Reload(defaultPack(t), s.nowMs, s.verdicts)
			}
		}
		fired := changed(s.verdicts, Firing)
		if len(fired) != 1 {
			t.Fatalf("got %v", lines(fired))
		}
		return fired[0].Alert.FiringBatch
	}
	if without, with := run(false), run(true); without != with {
		t.Errorf("fired at batch %d without reloads and at %d with them", without, with)
	}
}

func TestARestartIntoASlowerRunIsAnotherBaseline(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(15)
	for i := range 1500 {
		f := figures{sync: 100 * n.next(), duration: 2000 * n.next()}
		if i == 700 {
			s.restart("run-2")
		}
		if i >= 700 {
			f.sync *= 2
			f.duration *= 2
		}
		s.play(f)
	}
	if fired := changed(s.verdicts, Firing); len(fired) > 0 {
		t.Errorf("got %v", lines(fired))
	}
}

func TestAPauseIsNotJoined(t *testing.T) {
	s := newStream(New(defaultPack(t), Options{}))
	n := newNoise(16)
	for i := range 1100 {
		f := figures{sync: 100 * n.next()}
		if i == 700 {
			s.nowMs += 12 * hourMs
		}
		if i >= 700 {
			f.sync *= 2
		}
		s.play(f)
	}
	if fired := changed(s.verdicts, Firing); len(fired) > 0 {
		t.Errorf("got %v", lines(fired))
	}
}

func TestAFallIsFoundHeldAndEnds(t *testing.T) {
	p, err := Load(Source{Name: "r.yaml", Data: []byte(`
signals: {rows: {of: query, value: input_rows, unit: rows}}
groups: [{name: g, rules: [{alert: InputFalling, signal: rows, falling: {by: 30%}, for: 10 batches, keep_firing_for: 10 batches}]}]`)})
	if err != nil {
		t.Fatal(err)
	}
	s := newStream(New(p, Options{}))
	n := newNoise(17)
	for i := range 900 {
		f := figures{rows: 1000 * math.Exp(0.1*n.r.NormFloat64())}
		if i >= 300 && i < 600 {
			f.rows *= 0.5
		}
		s.play(f)
	}
	fired, resolved := changed(s.verdicts, Firing), changed(s.verdicts, Resolved)
	if len(fired) != 1 || len(resolved) != 1 {
		t.Fatalf("fired %v, resolved %v, want once each", lines(fired), lines(resolved))
	}
	if after := fired[0].Alert.FiringBatch - 400; after < 10 || after > 60 {
		t.Errorf("fired %d batches after the fall", after)
	}
	if after := resolved[0].Alert.LastBatch - 700; after < 10 || after > 60 {
		t.Errorf("resolved %d batches after the recovery: the level that stayed low was no recovery", after)
	}
	if got := fired[0].Alert.Annotations.Get("evidence"); !strings.Contains(got, "(-") {
		t.Errorf("the evidence of a fall is %q", got)
	}
}
