package workload

import (
	"math"
	"testing"
	"time"
)

// perSecond is how many rows arrive in each of some seconds.
func perSecond(t *testing.T, cfg Config, seconds int) []float64 {
	t.Helper()
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	a := newArrivals(&cfg)
	out := make([]float64, seconds)
	for s := range out {
		before := a.total
		a.advance(cfg.StartMs+int64(s+1)*1000, Normal())
		out[s] = float64(a.total - before)
	}
	return out
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func near(t *testing.T, what string, got, want, off float64) {
	t.Helper()
	if math.Abs(got-want) > off {
		t.Errorf("%s is %.4f, want %.4f within %.4f", what, got, want, off)
	}
}

func TestFractionsOfRowsAreCarriedOn(t *testing.T) {
	for _, rate := range []float64{0.001, 0.3, 1.5, 333.3, 12345.678} {
		x := perSecond(t, Config{StartMs: startMs, RowsPerSecond: rate}, 100_000)
		near(t, "mean", mean(x), rate, 1.1e-5+rate*1e-9)
	}
}

func TestDailyCyclePeaksInTheAfternoon(t *testing.T) {
	x := perSecond(t, Config{StartMs: startMs, RowsPerSecond: 1000, Rate: Rate{Daily: 0.4}}, 86_400)
	near(t, "rate at 14:00", x[14*3600], 1400, 1)
	near(t, "rate at 02:00", x[2*3600], 600, 1)
	near(t, "rate at 08:00", x[8*3600], 1000, 1)
	near(t, "mean of a day", mean(x), 1000, 0.01)
}

func TestGrowthCompoundsByTheDay(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 1000, Rate: Rate{Growth: 0.1}}
	x := perSecond(t, cfg, 2*86_400+1)
	near(t, "rate after a day", x[86_400], 1100, 1)
	near(t, "rate after two", x[2*86_400], 1210, 1)
}

func TestBurstsComeOnceAPeriodAtRandom(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 100, Rate: Rate{BurstEvery: 10 * time.Minute, BurstLength: time.Minute, BurstFactor: 5}}
	x := perSecond(t, cfg, 100*600)
	places := map[int]bool{}
	for period := range 100 {
		high, first := 0, -1
		for s, v := range x[period*600 : (period+1)*600] {
			switch {
			case v >= 495:
				if high++; first < 0 {
					first = s
				}
			case v > 101 && v < 490 || v < 99:
				high = -1e6
			}
		}
		places[first] = true
		if high < 59 || high > 61 {
			t.Errorf("period %d has %d seconds of burst", period, high)
		}
	}
	if len(places) < 50 {
		t.Errorf("a hundred bursts begin at %d places of their periods", len(places))
	}
}

func TestRowsComeForATimeThenNoneDo(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 10, Rate: Rate{On: time.Minute, Off: 2 * time.Minute}}
	for s, v := range perSecond(t, cfg, 720) {
		if want := 10.0; s%180 >= 60 {
			if v != 0 {
				t.Fatalf("second %d brings %v rows", s, v)
			}
		} else if v != want {
			t.Fatalf("second %d brings %v rows", s, v)
		}
	}
}

func TestNoiseOfSecondsKeepsTheMean(t *testing.T) {
	x := perSecond(t, Config{StartMs: startMs, RowsPerSecond: 10_000, Rate: Rate{Noise: 0.3}}, 20_000)
	near(t, "mean", mean(x), 10_000, 100)
	var sum float64
	for _, v := range x {
		sum += math.Pow(math.Log(v/10_000)+0.045, 2)
	}
	near(t, "deviation of the logarithm", math.Sqrt(sum/float64(len(x))), 0.3, 0.01)
}

func TestConditionsOfTheInputHoldWhileTheyLast(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 100}.withDefaults()
	a := newArrivals(&cfg)
	step := func(seconds int64, set func(*Conditions)) int64 {
		c, before := Normal(), a.total
		set(&c)
		a.advance(a.nowMs+seconds*1000, c)
		return a.total - before
	}
	for what, got := range map[string][2]int64{
		"healthy": {step(10, func(*Conditions) {}), 1000},
		"triple":  {step(10, func(c *Conditions) { c.Rate = 3 }), 3000},
		"stopped": {step(1000, func(c *Conditions) { c.StopInput = true }), 0},
		"nothing": {step(10, func(c *Conditions) { c.Rate = 0 }), 0},
		"invalid": {step(10, func(c *Conditions) { c.Rate = math.NaN() }), 0},
		"again":   {step(10, func(*Conditions) {}), 1000},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d rows, want %d", what, got[0], got[1])
		}
	}
}

func TestTimeDoesNotGoBack(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 100}.withDefaults()
	a := newArrivals(&cfg)
	a.advance(startMs+5000, Normal())
	a.advance(startMs+1000, Normal())
	if a.total != 500 || a.nowMs != startMs+5000 {
		t.Errorf("%d rows at %d", a.total, a.nowMs-startMs)
	}
}

func TestRowsArriveBetweenTheEndsOfTheirSecond(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 7.7, Rate: Rate{Noise: 0.5, Daily: 0.5}}.withDefaults()
	a := newArrivals(&cfg)
	for s := range int64(5000) {
		before := a.total
		a.advance(startMs+(s+1)*1000, Normal())
		for offset := before; offset < a.total; offset++ {
			at := a.segments[a.find(offset)].arrivalMs(offset, false)
			if at <= startMs+s*1000 || at > startMs+(s+1)*1000 {
				t.Fatalf("row %d of second %d arrives at %d ms", offset, s, at-startMs)
			}
		}
	}
}

func TestHistoryOfAnyLengthStaysSmallAndInOrder(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 5, Rate: Rate{Noise: 0.5}}.withDefaults()
	a := newArrivals(&cfg)
	a.advance(startMs+400_000_000, Normal()) // 4.6 days of single seconds
	if n := len(a.segments); n > maxSegments || n < maxSegments/2 {
		t.Errorf("the history has %d segments", n)
	}
	if want := 400_000 * 5.0; math.Abs(float64(a.total)-want) > want/100 {
		t.Errorf("%d rows", a.total)
	}
	next, last := int64(0), int64(math.MinInt64)
	for i := range a.segments {
		s := &a.segments[i]
		if s.first != next {
			t.Fatalf("segment %d begins with row %d after %d", i, s.first, next)
		}
		next = s.end()
		for offset := s.first; offset < next; offset += max(1, s.rows/3) {
			at := s.arrivalMs(offset, false)
			if at < last || at > s.toMs {
				t.Fatalf("row %d arrives at %d after %d", offset, at, last)
			}
			last = at
		}
	}
	if next != a.total {
		t.Errorf("the history tells %d rows of %d", next, a.total)
	}
}

func TestRowsBeyondWhatASegmentCountsStillHaveATime(t *testing.T) {
	cfg := Config{StartMs: startMs, RowsPerSecond: 1e9}.withDefaults()
	a := newArrivals(&cfg)
	a.already(1 << 50)
	a.advance(startMs+20_000, Normal())
	for _, offset := range []int64{0, 1 << 20, 1 << 40, 1<<50 - 1, 1 << 50, a.total - 1} {
		at := a.segments[a.find(offset)].arrivalMs(offset, false)
		if at > startMs+20_000 || at < startMs-400_000 {
			t.Errorf("row %d arrives %d ms after the start", offset, at-startMs)
		}
	}
	if a.total != 1<<50+20e9 {
		t.Errorf("%d rows", a.total)
	}
}

func TestDaysPassWithoutAReadAndAreReadThen(t *testing.T) {
	cfg := orders()
	cfg.RowsPerSecond, cfg.Rate = 1, Rate{}
	s := source(t, "rate", cfg)
	s.Advance(ms(8*24*time.Hour), Normal())
	if got := s.Take(); got.Count != 8*86_400 || got.End != "691200" {
		t.Fatalf("%d rows up to %s in eight days", got.Count, got.End)
	}
	s.Advance(ms(9*24*time.Hour), Normal())
	if n := len(s.(*rate).marks.rows); n > 2*keptMarks+1 {
		t.Errorf("%d seconds are remembered", n)
	}
	if got := s.Take(); got.Count != 86_400 || got.Start != "691200" {
		t.Errorf("%d rows from %s on the ninth day", got.Count, got.Start)
	}
	if err := s.Seek("5"); err == nil {
		t.Error("a second that was forgotten is gone to")
	}
}
