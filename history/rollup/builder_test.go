package rollup

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// day is a midnight from which the tests count.
const day = int64(1_930_003_200_000)

type value struct {
	atMs int64
	v    float64
}

func TestValuesAreSummedUpHourByHour(t *testing.T) {
	var b Builder
	var out []Hour
	for i := range 180 { // each minute of three hours
		out, _ = b.Add(day+int64(i)*60_000, float64(i), out)
	}
	if len(out) != 0 {
		t.Errorf("hours were closed without need: %v", out)
	}
	out = b.Close(day+2*HourMs+1, out)
	want := []Hour{
		{StartMs: day, Count: 60, Min: 0, Median: 29.5, P95: 56.05, Max: 59, Last: 59},
		{StartMs: day + HourMs, Count: 60, Min: 60, Median: 89.5, P95: 116.05, Max: 119, Last: 119},
	}
	if diff := cmp.Diff(want, out, approx); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if rest := b.Close(day+3*HourMs, nil); len(rest) != 1 || rest[0].StartMs != day+2*HourMs || rest[0].Count != 60 {
		t.Errorf("the third hour came as %v", rest)
	}
}

var approx = cmp.Comparer(func(a, b float64) bool { return close(a, b) })

func TestAnHourIsClosedOnlyOnceItEnded(t *testing.T) {
	var b Builder
	b.Add(day, 1, nil)
	for _, by := range []int64{day - HourMs, day, day + HourMs - 1} {
		if out := b.Close(by, nil); len(out) != 0 {
			t.Errorf("closed %v by %d ms after its begin", out, by-day)
		}
	}
	if out := b.Close(day+HourMs, nil); len(out) != 1 {
		t.Errorf("closed %v at its end", out)
	}
	if out := b.Close(day+HourMs, nil); len(out) != 0 {
		t.Errorf("closed %v once more", out)
	}
}

func TestTheLastValueIsTheOneOfTheLatestMoment(t *testing.T) {
	var b Builder
	for _, x := range []value{{day + 100, 1}, {day + 300, 3}, {day + 200, 2}, {day + 300, 4}, {day + 50, 9}} {
		b.Add(x.atMs, x.v, nil)
	}
	if h := b.Close(day+HourMs, nil)[0]; h.Last != 4 || h.Count != 5 {
		t.Errorf("last is %v of %d values, want 4 of 5", h.Last, h.Count)
	}
}

func TestValuesOfAClosedHourAreRefused(t *testing.T) {
	var b Builder
	b.Add(day, 1, nil)
	b.Close(day+HourMs, nil)
	if _, taken := b.Add(day+5, 2, nil); taken {
		t.Error("a closed hour took a value: stored again, it would stand in place of the whole hour")
	}
	if _, taken := b.Add(day+HourMs, 2, nil); !taken {
		t.Error("the hour after it takes none")
	}
	if out := b.Close(day+5*HourMs, nil); len(out) != 1 || out[0].Count != 1 {
		t.Errorf("closed %v", out)
	}
}

func TestWhatWasStoredBeforeARestartIsSkipped(t *testing.T) {
	var b Builder
	b.Skip(day + HourMs)
	b.Skip(day) // it does not go back
	for _, x := range []value{{day + 1, 1}, {day + HourMs - 1, 2}, {day + HourMs, 3}, {day + HourMs + 9, 4}} {
		_, taken := b.Add(x.atMs, x.v, nil)
		if taken != (x.v > 2) {
			t.Errorf("value %v: taken is %v", x.v, taken)
		}
	}
	if out := b.Close(day+2*HourMs, nil); len(out) != 1 || out[0].Count != 2 {
		t.Errorf("closed %v", out)
	}
}

func TestAbsentAndInfiniteValuesArePassedOver(t *testing.T) {
	var b Builder
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if out, taken := b.Add(day, v, nil); !taken || len(out) != 0 {
			t.Errorf("%v: taken is %v", v, taken)
		}
	}
	if out := b.Close(day+HourMs, nil); len(out) != 0 {
		t.Errorf("an hour of nothing was closed: %v", out)
	}
}

// A daemon that catches up gets many hours at once, without time passing.
func TestHoursThatCatchUpAreClosedByNewerOnes(t *testing.T) {
	var b Builder
	var out []Hour
	for i := range 30 * 10 {
		var taken bool
		if out, taken = b.Add(day+int64(i)*HourMs/10, float64(i), out); !taken {
			t.Fatalf("value %d was refused", i)
		}
	}
	out = b.Close(day+30*HourMs, out)
	if len(out) != 30 {
		t.Fatalf("%d hours, want 30", len(out))
	}
	for i, h := range out {
		if h.StartMs != day+int64(i)*HourMs || h.Count != 10 || h.Last != float64(10*i+9) {
			t.Errorf("hour %d is %+v", i, h)
		}
	}
}

// Clocks of senders that are ahead must not keep the present hours out.
func TestClocksAheadOfTheirTimeDoNotBlockThePresent(t *testing.T) {
	var b Builder
	var out []Hour
	for i := range MaxOpen {
		out, _ = b.Add(day+int64(1000*(i+1))*HourMs, 1e9, out)
	}
	for i := range 50 * 4 {
		var taken bool
		if out, taken = b.Add(day+int64(i)*HourMs/4, float64(i), out); !taken {
			t.Fatalf("value %d of the present was refused", i)
		}
		out = b.Close(day+int64(i)*HourMs/4-600_000, out)
	}
	out = b.Close(day+51*HourMs, out)
	present := slices.DeleteFunc(out, func(h Hour) bool { return h.Max == 1e9 })
	if len(present) != 50 {
		t.Errorf("%d hours of the present, want 50: %+v", len(present), present)
	}
}

func TestNoMoreHoursAreOpenThanThereIsRoomFor(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var b Builder
	count, refused, closed := 0, 0, 0
	for range 5000 {
		out, taken := b.Add(day+rng.Int64N(1000*HourMs), 1, nil)
		for _, h := range out {
			closed += h.Count
		}
		count++
		if !taken {
			refused++
		}
		if len(b.open) > MaxOpen || !slices.IsSortedFunc(b.open, func(a, c gathering) int { return int(a.startMs - c.startMs) }) {
			t.Fatalf("%d hours are open", len(b.open))
		}
	}
	for _, h := range b.Close(day+1001*HourMs, nil) {
		closed += h.Count
	}
	if closed+refused != count {
		t.Errorf("%d values in hours and %d refused, of %d", closed, refused, count)
	}
}

// Memory is bounded; what is bounded with it are the quantiles alone.
func TestVeryFastStreamsAreThinnedEvenly(t *testing.T) {
	const n = 10*MaxValues + 77
	var b Builder
	sum := 0.0
	for i := range n {
		v := float64((i * 7919) % n) // each of 0 to n-1 once
		sum += v
		b.Add(day+int64(i)*HourMs/n, v, nil)
		if kept := len(b.open[0].values); kept > MaxValues {
			t.Fatalf("%d values are kept", kept)
		}
	}
	h := b.Close(day+HourMs, nil)[0]
	if h.Count != n || h.Min != 0 || h.Max != n-1 || h.Last != float64((n-1)*7919%n) {
		t.Errorf("count, min, max and last are to be exact: %+v", h)
	}
	if math.Abs(h.Median/n-0.5) > 0.01 || math.Abs(h.P95/n-0.95) > 0.01 {
		t.Errorf("median at %.3f and 95th percentile at %.3f of the way", h.Median/n, h.P95/n)
	}
}

func TestTheSameValuesGiveTheSameHours(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var values []value
	for i := range 400 {
		values = append(values, value{day + int64(i)*30_000, rng.ExpFloat64()})
	}
	run := func(b *Builder) (out []Hour) {
		for _, x := range values {
			out, _ = b.Add(x.atMs, x.v, out)
		}
		return b.Close(day+10*HourMs, out)
	}
	var b, again Builder
	first := run(&b)
	rng.Shuffle(110, func(i, j int) { values[i], values[j] = values[j], values[i] })
	if diff := cmp.Diff(first, run(&again)); diff != "" {
		t.Errorf("in another order within the hour (-first +again):\n%s", diff)
	}
}

func TestAddingAllocatesNothingOnceHoursWereOpen(t *testing.T) {
	var b Builder
	out := make([]Hour, 0, 8)
	at := day
	hour := func() {
		for range 60 {
			out, _ = b.Add(at, float64(at%977), out[:0])
			at += 60_000
		}
		out = b.Close(at, out[:0])
	}
	hour()
	if allocs := testing.AllocsPerRun(50, hour); allocs != 0 {
		t.Errorf("%v allocations an hour", allocs)
	}
}
