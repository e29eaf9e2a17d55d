package rules

import (
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// midnight of a day, UTC, since 1970.
const midnight = 20_000 * 24 * hourMs

// playDays feeds so many days of a level that is 1 by night and 3 from 8 to 20 o'clock.
func playDays(d *dailyCycle, n int) {
	for m := range int64(n * 24 * 12) {
		at := midnight + m*5*minuteMs
		v := 1.0
		if hour := at / hourMs % 24; hour >= 8 && hour < 20 {
			v = 3
		}
		if m%50 == 0 {
			v *= 100 // a wild batch now and then
		}
		d.push(trend.Point{AtMs: at, Value: v})
	}
}

func TestADayIsKnownAfterTwo(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		d := &dailyCycle{}
		playDays(d, n)
		d.close()
		if d.known() != want {
			t.Errorf("after %d days: %v", n, d.known())
		}
	}
}

func TestAnHourIsAShareOfTheBusiestOne(t *testing.T) {
	d := &dailyCycle{}
	if got := d.share(midnight); got != 1 {
		t.Errorf("nothing known: %v", got)
	}
	playDays(d, 5)
	for hour, want := range map[float64]float64{3.5: 1.0 / 3, 14.5: 1, 8: 2.0 / 3, 20: 2.0 / 3} {
		at := int64(midnight + hour*hourMs)
		if got := d.share(at); math.Abs(got-want) > 0.25*want {
			t.Errorf("at %v o'clock: %v, want about %v", hour, got, want)
		}
	}
}

func TestADayLearnsNothingFromStrangeTimesAndValues(t *testing.T) {
	d := &dailyCycle{}
	for _, p := range []trend.Point{
		{AtMs: event.Absent, Value: 1}, {AtMs: -5, Value: 1}, {AtMs: midnight, Value: math.NaN()}, {AtMs: midnight, Value: -3},
	} {
		d.push(p)
	}
	if d.n != 0 || d.share(-1) != 1 {
		t.Errorf("%d batches, share %v", d.n, d.share(-1))
	}
	d.push(trend.Point{AtMs: math.MaxInt64, Value: 1})
	if s := d.share(math.MaxInt64); !(s > 0 && s <= 1) {
		t.Errorf("share %v", s)
	}
}
