package rollup

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hours(medians ...float64) []Hour {
	var out []Hour
	for i, m := range medians {
		out = append(out, Hour{StartMs: day + int64(i)*HourMs, Count: 10, Min: m - 1, Median: m, P95: m + 2, Max: m + 3, Last: m + 1})
	}
	return out
}

func TestHoursMergeIntoLongerSteps(t *testing.T) {
	const h = HourMs
	for _, c := range []struct {
		name         string
		hours        []Hour
		fromMs, step int64
		want         []Hour
	}{
		{"nothing", nil, day, 24 * h, nil},
		{
			"steps of two hours", hours(1, 2, 3, 4, 5), day, 2 * h,
			[]Hour{
				{StartMs: day, Count: 20, Min: 0, Median: 1.5, P95: 3.5, Max: 5, Last: 3},
				{StartMs: day + 2*h, Count: 20, Min: 2, Median: 3.5, P95: 5.5, Max: 7, Last: 5},
				{StartMs: day + 4*h, Count: 10, Min: 4, Median: 5, P95: 7, Max: 8, Last: 6},
			},
		},
		{
			"an odd number of hours", hours(5, 1, 3), day, 24 * h,
			[]Hour{{StartMs: day, Count: 30, Min: 0, Median: 3, P95: 5, Max: 8, Last: 4}},
		},
		{
			"what lies before is left out", hours(1, 2, 3), day + h, 24 * h,
			[]Hour{{StartMs: day + h, Count: 20, Min: 1, Median: 2.5, P95: 4.5, Max: 6, Last: 4}},
		},
		{
			"steps are counted from the first moment", hours(1, 2), day - 5*h, 4 * h,
			[]Hour{{StartMs: day - h, Count: 20, Min: 0, Median: 1.5, P95: 3.5, Max: 5, Last: 3}},
		},
		{"steps of minutes count as hours", hours(1, 2), day, 60_000, hours(1, 2)},
		{"steps of nothing count as hours", hours(1, 2), day, 0, hours(1, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Merge(c.hours, c.fromMs, c.step, nil), approx); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStepsWithoutHoursAreLeftOut(t *testing.T) {
	all := hours(1, 2, 3, 4, 5, 6, 7, 8)
	got := Merge(append(all[:1:1], all[7]), day, 2*HourMs, nil)
	if len(got) != 2 || got[0].StartMs != day || got[1].StartMs != day+6*HourMs {
		t.Errorf("got %+v", got)
	}
}

func TestTypicalHoursWeighByTheirCount(t *testing.T) {
	all := hours(1, 50, 100)
	all[0].Count = 1000
	if got := Merge(all, day, 24*HourMs, nil)[0]; got.Median != 1 || got.P95 != 3 || got.Count != 1020 {
		t.Errorf("one busy hour and two quiet ones: %+v", got)
	}
	all[0].Count = 20 // as many as behind the other two
	if got := Merge(all, day, 24*HourMs, nil)[0]; got.Median != 25.5 {
		t.Errorf("median %v, want the middle of the two figures that part the values evenly", got.Median)
	}
}

func TestTwoRowsOfOneHourMergeToo(t *testing.T) {
	a, b := hours(1)[0], hours(9)[0]
	got := Merge([]Hour{a, b}, day, HourMs, nil)
	want := []Hour{{StartMs: day, Count: 20, Min: 0, Median: 5, P95: 7, Max: 12, Last: 10}}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Count, min, max and last of merged hours are those of all their values. Median
// and 95th percentile are close where the hours are alike, and always between the
// figures of the hours.
func TestMergedHoursAgainstAllTheirValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, drift := range []float64{0, 0.05} {
		var parts []Hour
		var all []float64
		for i := range 24 {
			var values []float64
			for range 20 + rng.IntN(80) {
				values = append(values, (1+drift*float64(i))*math.Exp(0.3*rng.NormFloat64()))
			}
			all = append(all, values...)
			h, _ := Of(day+int64(i)*HourMs, values)
			parts = append(parts, h)
		}
		// Of puts values in order of size, so the last one is told from the parts.
		want, _ := Of(day, all)
		want.Last = parts[23].Last
		got := Merge(parts, day, 24*HourMs, nil)[0]
		if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || got.Last != want.Last {
			t.Errorf("drift %v: got %+v, want count, min, max and last of %+v", drift, got, want)
		}
		if err := got.check(); err != nil {
			t.Error(err)
		}
		t.Logf("drift %v: median %.3f for %.3f, 95th percentile %.3f for %.3f", drift, got.Median, want.Median, got.P95, want.P95)
		if tolerance := 0.05 + 4*drift; math.Abs(got.Median/want.Median-1) > tolerance || math.Abs(got.P95/want.P95-1) > 0.05+6*drift {
			t.Errorf("drift %v: got %+v, want about %+v", drift, got, want)
		}
	}
}

// Merging in two stages gives the exact figures of merging at once.
func TestMergingDaysIntoWeeksKeepsWhatIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var parts []Hour
	for i := range 24 * 14 {
		h, _ := Of(day+int64(i)*HourMs, []float64{rng.ExpFloat64(), rng.ExpFloat64(), rng.ExpFloat64()})
		parts = append(parts, h)
	}
	days := Merge(parts, day, 24*HourMs, nil)
	twice, once := Merge(days, day, 7*24*HourMs, nil), Merge(parts, day, 7*24*HourMs, nil)
	if len(days) != 14 || len(twice) != 2 || len(once) != 2 {
		t.Fatalf("%d days and %d weeks", len(days), len(twice))
	}
	for i := range once {
		a, b := once[i], twice[i]
		a.Median, a.P95, b.Median, b.P95 = 0, 0, 0, 0
		if a != b {
			t.Errorf("week %d: %+v at once, %+v by days", i, once[i], twice[i])
		}
	}
}

var approx = cmp.Comparer(func(a, b float64) bool { return close(a, b) })
