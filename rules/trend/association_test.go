package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// figures are those of a query whose state grows and is cut back, and whose input
// comes as it likes.
type figures struct{ time, state, input []float64 }

// sawTooth makes a state that grows for 40 batches and is then cut back.
func sawTooth(rng *rand.Rand, n int, stateShare, inputShare, ramp float64) figures {
	var f figures
	level := 0.0
	for i := range n {
		state := 1000 * (0.3 + float64(i%40)/40) * math.Exp(0.05*rng.NormFloat64())
		level = 0.6*level + 0.3*rng.NormFloat64()
		input := 500 * math.Exp(level)
		v := stateShare*state/800 + inputShare*input/500 + ramp*float64(i)/float64(n) + 0.2
		f.time = append(f.time, v*math.Exp(0.15*rng.NormFloat64()))
		f.state, f.input = append(f.state, state), append(f.input, input)
	}
	return f
}

func TestPartialRankErrorTable(t *testing.T) {
	arithmeticOnly(t)
	const runs = 300
	cases := []struct {
		name               string
		state, input, ramp float64
		growing            bool // the state only grows
		want               Follows
		least              float64
	}{
		{name: "the state's doing", state: 1, want: FollowsDriver, least: 0.95},
		{name: "the input's doing", input: 1, want: FollowsRival, least: 0.95},
		{name: "the doing of both", state: 1, input: 1, want: FollowsBoth, least: 0.85},
		{name: "nobody's doing", want: FollowsNeither, least: 0.98},
		{name: "a ramp of its own", ramp: 1, want: FollowsNeither, least: 0.98},
		{name: "a ramp of its own, state grows too", ramp: 1, growing: true, want: CannotSeparate, least: 0.98},
		{name: "a growing state's doing", state: 1, growing: true, want: CannotSeparate, least: 0.98},
	}
	for _, c := range cases {
		said, blamed := map[Follows]int{}, 0
		s := new(Scratch)
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 91))
			f := sawTooth(rng, 160, c.state, c.input, c.ramp)
			if c.growing {
				for i := range f.state {
					f.state[i] = 1000 * (1 + float64(i)/80) * math.Exp(0.02*rng.NormFloat64())
					f.time[i] = (0.3 + c.ramp*float64(i)/160 + c.state*f.state[i]/1000) * math.Exp(0.1*rng.NormFloat64())
				}
			}
			a := s.PartialRank(f.time, f.state, f.input, nil, PartialOptions{})
			said[a.Verdict]++
			blamed += count(math.Abs(a.RawDriver) > 0.4)
		}
		t.Logf("%-36s %v of %d; the plain correlation alone blames the state in %d", c.name, said, runs, blamed)
		if float64(said[c.want]) < c.least*runs {
			t.Errorf("%s: %q in %d of %d", c.name, c.want, said[c.want], runs)
		}
	}
}

func TestPartialCorrelationIsThatOfTheResiduals(t *testing.T) {
	// Given one figure, the correlation of two is that of what regressions leave.
	rng := rand.New(rand.NewPCG(93, 94))
	for range 50 {
		var a, b, c []float64
		for range 80 {
			z := rng.NormFloat64()
			a, b, c = append(a, z+rng.NormFloat64()), append(b, z+rng.NormFloat64()), append(c, z)
		}
		got := given(pearson(a, b), pearson(a, c), pearson(b, c))
		near(t, "partial correlation", got, pearson(leftOf(a, c), leftOf(b, c)), 1e-9)
	}
}

func leftOf(y, x []float64) []float64 {
	slope := pearson(x, y) * deviation(y) / deviation(x)
	out := make([]float64, len(y))
	for i := range y {
		out[i] = y[i] - slope*x[i]
	}
	return out
}

func deviation(v []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum)
}

func TestTooFewOrMismatchedFiguresAreUnknown(t *testing.T) {
	s := new(Scratch)
	for name, a := range map[string]Association{
		"few":        s.PartialRank(ramp(59), ramp(59), nil, nil, PartialOptions{}),
		"mismatched": s.PartialRank(ramp(80), ramp(79), nil, nil, PartialOptions{}),
		"rival":      s.PartialRank(ramp(80), ramp(80), ramp(2), nil, PartialOptions{}),
		"at":         s.PartialRank(ramp(80), ramp(80), nil, ramp(2), PartialOptions{}),
		"none":       s.PartialRank(nil, nil, nil, nil, PartialOptions{MinPoints: 1}),
	} {
		if a.Verdict != FollowsUnknown {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestMissingFiguresAreLeftOut(t *testing.T) {
	f := sawTooth(rand.New(rand.NewPCG(1, 1)), 160, 1, 0, 0)
	for i := range f.time {
		if i%4 == 0 {
			f.state[i] = math.NaN()
		}
		if i%8 == 1 {
			f.time[i] = math.Inf(1)
		}
	}
	a := new(Scratch).PartialRank(f.time, f.state, f.input, nil, PartialOptions{})
	if a.N != 100 || a.Verdict != FollowsDriver {
		t.Errorf("%+v", a)
	}
}

func TestConstantFiguresFollowNothing(t *testing.T) {
	flat := make([]float64, 100)
	s := new(Scratch)
	for _, a := range []Association{
		s.PartialRank(flat, flat, flat, nil, PartialOptions{}),
		s.PartialRank(sawTooth(rand.New(rand.NewPCG(2, 2)), 100, 1, 0, 0).time, flat, flat, nil, PartialOptions{}),
	} {
		if a.Verdict != FollowsNeither || a.Driver != 0 {
			t.Errorf("%+v", a)
		}
	}
}

func TestDriverAndRivalThatAreOneCannotBeSeparated(t *testing.T) {
	f := sawTooth(rand.New(rand.NewPCG(3, 3)), 160, 1, 0, 0)
	twin := make([]float64, 160)
	for i, v := range f.state {
		twin[i] = 3 * v
	}
	if a := new(Scratch).PartialRank(f.time, f.state, twin, nil, PartialOptions{}); a.Verdict != CannotSeparate || a.WithTime {
		t.Errorf("%+v", a)
	}
}

func TestElasticityIsThePower(t *testing.T) {
	arithmeticOnly(t)
	for _, power := range []float64{0, 0.5, 0.9, 1, 1.5, -1} {
		held, s := 0, new(Scratch)
		const runs = 100
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 95))
			var y, x []float64
			for i := range 120 {
				d := 100 * math.Exp(rng.NormFloat64()/2)
				v := 3 * math.Pow(d, power) * math.Exp(0.2*rng.NormFloat64())
				if i%12 == 0 {
					v *= 10
				}
				x, y = append(x, d), append(y, v)
			}
			e := s.Elasticity(y, x)
			near(t, "elasticity", e.Value, power, 0.25)
			held += count(e.Low <= power && power <= e.High)
		}
		if held < 95 {
			t.Errorf("power %v: held in %d of %d", power, held, runs)
		}
	}
}

func TestElasticityNeedsADriverThatMoves(t *testing.T) {
	s := new(Scratch)
	level := make([]float64, 100)
	for i := range level {
		level[i] = 100 + float64(i%2)
	}
	for name, e := range map[string]ElasticityFit{
		"hardly moves": s.Elasticity(ramp(100), level),
		"two values":   s.Elasticity(ramp(100), alternating(100)),
		"negative":     s.Elasticity(ramp(100), negative(100)),
		"few":          s.Elasticity(ramp(9), ramp(9)),
	} {
		if !math.IsNaN(e.Value) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func alternating(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(1 + i%2)
	}
	return v
}

func negative(n int) []float64 {
	v := ramp(n)
	for i := range v {
		v[i] = -v[i]
	}
	return v
}
