package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRankSumOfATextbookExample(t *testing.T) {
	// Hollander and Wolfe (1973), page 69: permeability of the human chorioamnion at
	// term and at 12 to 26 weeks. U is 35 of 50 pairs.
	term := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	r := new(Scratch).RankSum(early, term, RankSumOptions{Independent: true})
	near(t, "effect", r.Effect, 35.0/50, 1e-12)
	near(t, "z", r.RawZ, (35-25-0.5)/math.Sqrt(10*5*16/12.0), 1e-12)
	near(t, "z without memory", r.Z, r.RawZ, 0)
	near(t, "median at term", r.Recent, 1.415, 1e-12)
	near(t, "median before", r.Before, 0.90, 1e-12)
}

func TestRankSumEqualsACountOverAllPairs(t *testing.T) {
	rng, s := rand.New(rand.NewPCG(61, 62)), new(Scratch)
	for range 300 {
		before, recent := tiedValues(rng), tiedValues(rng)
		r := s.RankSum(before, recent, RankSumOptions{Independent: true})
		u, variance := naiveMannWhitney(before, recent)
		near(t, "effect", r.Effect, u/float64(len(before)*len(recent)), 1e-9)
		near(t, "z", r.RawZ, standardizeU(u-float64(len(before)*len(recent))/2, variance), 1e-9)
	}
}

func tiedValues(rng *rand.Rand) []float64 {
	v := make([]float64, 5+rng.IntN(60))
	for i := range v {
		v[i] = float64(rng.IntN(25))
	}
	return v
}

func naiveMannWhitney(before, recent []float64) (u, variance float64) {
	for _, b := range before {
		for _, r := range recent {
			switch {
			case r > b:
				u++
			case r == b:
				u += 0.5
			}
		}
	}
	groups, n := map[float64]float64{}, float64(len(before)+len(recent))
	for _, v := range append(append([]float64{}, before...), recent...) {
		groups[v]++
	}
	tied := 0.0
	for _, g := range groups {
		tied += g*g*g - g
	}
	return u, float64(len(before)*len(recent)) / 12 * (n + 1 - tied/(n*(n-1)))
}

func TestRankSumNeedsPointsOnBothSides(t *testing.T) {
	many, few := ramp(50), []float64{1, 2, math.NaN(), 4, 5}
	for _, r := range []RankSumResult{
		new(Scratch).RankSum(many, few, RankSumOptions{}),
		new(Scratch).RankSum(few, many, RankSumOptions{}),
		new(Scratch).RankSum(many, many, RankSumOptions{MinPoints: 51}),
	} {
		if r.Enough || r.Z != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestRankSumOfEqualValuesIsNothing(t *testing.T) {
	flat := make([]float64, 40)
	r := new(Scratch).RankSum(flat, flat[:20], RankSumOptions{})
	if !r.Enough || r.Z != 0 || r.RawZ != 0 || r.Effect != 0.5 || r.Ratio != 0 {
		t.Errorf("%+v", r)
	}
}

func TestSpikesHardlyMoveARankSum(t *testing.T) {
	before, recent := make([]float64, 100), make([]float64, 20)
	n := newNoise(3, iidNoise)
	for i := range before {
		before[i] = n.value()
	}
	for i := range recent {
		recent[i] = n.value()
	}
	quiet := new(Scratch).RankSum(before, recent, RankSumOptions{}).Z
	recent[3], recent[11] = 1e9, 1e9
	near(t, "z with two spikes", new(Scratch).RankSum(before, recent, RankSumOptions{}).Z, quiet, 1.2)
}

func TestNewestAreSplitFromThoseBeforeAGap(t *testing.T) {
	before, newest := SplitRecent(ramp(130), 20, 10)
	if len(before) != 100 || before[99] != 99 || len(newest) != 20 || newest[0] != 110 {
		t.Errorf("%d before, %d newest", len(before), len(newest))
	}
	for _, c := range [][2]int{{130, 0}, {120, 10}, {0, 0}, {5, -1}} {
		if b, n := SplitRecent(ramp(130), c[0], c[1]); b != nil || n != nil {
			t.Errorf("%v: %d and %d", c, len(b), len(n))
		}
	}
}

func TestRankSumErrorTable(t *testing.T) {
	arithmeticOnly(t)
	const windows = 4000
	for _, c := range []struct {
		name      string
		r         float64
		most      float64
		foundMost float64
	}{{"no memory", 0, 0.002, 1}, {"memory .3", 0.3, 0.004, 1}, {"memory .6", 0.6, 0.008, 1}, {"memory .8", 0.8, 0.03, 1}} {
		plain, corrected, half, more := 0, 0, 0, 0
		s := new(Scratch)
		for seed := range uint64(windows) {
			n := newNoise(seed, nil)
			y := make([]float64, 130)
			for i := range y {
				y[i] = math.Exp(0.25 * n.ar(c.r))
			}
			before, recent := SplitRecent(y, 20, 10)
			r := s.RankSum(before, recent, RankSumOptions{})
			plain, corrected = plain+count(r.RawZ > 3), corrected+count(r.Z > 3)
			for i := range recent {
				recent[i] *= 1.5
			}
			half += count(s.RankSum(before, recent, RankSumOptions{}).Z > 3)
			for i := range recent {
				recent[i] *= 2
			}
			more += count(s.RankSum(before, recent, RankSumOptions{}).Z > 3)
		}
		share := func(k int) float64 { return float64(k) / windows }
		t.Logf("%-10s z > 3: plain %.4f, corrected %.4f; finds x1.5 in %.2f, x3 in %.2f", c.name, share(plain), share(corrected), share(half), share(more))
		if share(corrected) > c.most {
			t.Errorf("%s: %.4f pass", c.name, share(corrected))
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestRanksShareTheirMeanWhereEqual(t *testing.T) {
	got := new(Scratch).rank([]float64{5, 1, 5, 3, 5}, nil)
	for i, want := range []float64{4, 1, 4, 2, 4} {
		near(t, "rank", got[i], want, 0)
	}
	if got := new(Scratch).rank(nil, nil); len(got) != 0 {
		t.Error("ranks of nothing")
	}
}
