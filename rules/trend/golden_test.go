package trend

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// rainfall reads testdata/rainfall: the series that pyMannKendall (Hussain and Mahmud
// 2019) publishes its reference values for.
func rainfall(t *testing.T) (x, y []float64) {
	t.Helper()
	text, err := os.ReadFile("testdata/rainfall")
	if err != nil {
		t.Fatal(err)
	}
	month := 0.0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, word := range strings.Fields(line) {
			if v, err := strconv.ParseFloat(word, 64); err == nil {
				x, y = append(x, month), append(y, v)
			}
			month++
		}
	}
	return x, y
}

func TestPublishedValuesOfMonthlyRainfall(t *testing.T) {
	x, y := rainfall(t)
	k := MannKendall(y)
	if k.S != -1959 || k.N != 353 {
		t.Errorf("S is %d of %d months", k.S, k.N)
	}
	near(t, "variance", k.VarS, 4889800.333333333, 1e-6)
	near(t, "z", k.Z, -0.8854562842589916, 1e-12)
	near(t, "tau", k.Tau, -0.03153167653875869, 1e-12)
	// The published slope leaves months without a figure out and closes the gaps.
	near(t, "slope", TheilSen(ramp(len(y)), y, 0, 0).Slope, -0.0064516129032258064, 1e-12)
	near(t, "slope over months", TheilSen(x, y, 0, 0).Slope, -0.0064, 0.0001)
}

// The variance that Yue and Wang's method gives with the first lag alone is published;
// 1+2(1-1/n)r of it holds the correlation of what the slope leaves.
func TestMemoryOfMonthlyRainfallIsThePublishedOne(t *testing.T) {
	x, y := rainfall(t)
	n := float64(len(y))
	published := (10377301.691383107/4889800.333333333 - 1) / 2 / (1 - 1/n)
	left := make([]float64, len(y))
	for i := range y {
		left[i] = y[i] + 0.0064516129032258064*x[i]
	}
	got := lagOneOf(left, 0)
	raw := (got - 1/n) / (1 + 3/n) // the bias added for a short series
	near(t, "correlation", raw*(n-1)/n, published, 0.005)
}

func TestSlopeOfCloudSeeding(t *testing.T) {
	// Hollander and Wolfe (1973), example 9.1: five years of seeding, slope -.056.
	l := TheilSen([]float64{1, 2, 3, 4, 5}, []float64{1.26, 1.27, 1.12, 1.16, 1.03}, 0, 0)
	near(t, "slope", l.Slope, -0.05625, 1e-12)
}

func TestSpearmanOfATextbookExample(t *testing.T) {
	// Ten people's intelligence and hours before the television: rho is -29/165.
	s := new(Scratch)
	iq := s.rank([]float64{106, 86, 100, 101, 99, 103, 97, 113, 112, 110}, nil)
	hours := s.rank([]float64{7, 0, 27, 50, 28, 29, 20, 12, 6, 17}, nil)
	near(t, "rho", pearson(iq, hours), -29.0/165, 1e-12)
}

func TestPartialCorrelationWorkedByHand(t *testing.T) {
	// .8, .6 and .5: (.8 - .3) / sqrt(.64 * .75).
	near(t, "partial correlation", given(0.8, 0.6, 0.5), 0.5/math.Sqrt(0.48), 1e-12)
	near(t, "of what is the third", given(0.8, 1, 0.8), 0, 0)
}

func TestNileStepsDownIn1899(t *testing.T) {
	// Annual flow at Aswan, 1871 to 1970, 10^8 m³ (Cobb 1978; Zeileis 2003): the level
	// fell with the dam's first works, the last year of the old level being 1898.
	flow := []float64{
		1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
		1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
		831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
		781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
		744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
	}
	c := new(Scratch).Locate(ramp(100), flow)
	if c.Bend || c.Index != 28 {
		t.Errorf("changed in %d: %+v", 1871+c.Index, c)
	}
	near(t, "level before", c.Before, 1110, 30)
	near(t, "level after", c.After, 847, 20)
	if r := new(Scratch).RankSum(flow[:28], flow[28:], RankSumOptions{}); r.Z > -3 {
		t.Errorf("z is %v", r.Z)
	}
}
