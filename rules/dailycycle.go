package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

const (
	msPerHour = 3600 * 1000
	// dayKnown is how many of the 24 hours must have been seen, and daysKnown on how
	// many days.
	dayKnown  = 20
	daysKnown = 2
	// dayWeight is how fast an hour's level follows what it is from day to day.
	dayWeight = 0.3
	// wildest is how far one batch may pull an hour's mean, in multiples of it.
	wildest = 3
)

// dailyCycle learns how high a figure is at each hour of the day, UTC, from the
// means of hours. Memory: 240 bytes.
type dailyCycle struct {
	level [24]float32
	days  [24]uint8
	hour  int64 // the open one, since 1970
	sum   float64
	n     int
	last  float64 // mean of the hour before
}

func (d *dailyCycle) push(p trend.Point) {
	if p.AtMs == event.Absent || p.AtMs < 0 || !(p.Value >= 0) {
		return
	}
	if hour := p.AtMs / msPerHour; hour != d.hour {
		d.close()
		d.hour = hour
	}
	v, usual := p.Value, d.last
	if d.n > 0 {
		usual = d.sum / float64(d.n)
	}
	if usual > 0 {
		v = min(v, wildest*usual)
	}
	d.sum += v
	d.n++
}

// close takes the open hour in.
func (d *dailyCycle) close() {
	if d.n == 0 {
		return
	}
	h, mean := d.hour%24, float32(d.sum/float64(d.n))
	if d.days[h] == 0 {
		d.level[h] = mean
	}
	d.level[h] += dayWeight * (mean - d.level[h])
	d.last = float64(mean)
	d.days[h] = min(d.days[h]+1, math.MaxUint8-1)
	d.sum, d.n = 0, 0
}

// known reports whether enough of enough days was seen.
func (d *dailyCycle) known() bool {
	n := 0
	for _, days := range d.days {
		if days >= daysKnown {
			n++
		}
	}
	return n >= dayKnown
}

// share is how high the hour at a moment is, as a share of the busiest hour; hours
// that were not seen count as busiest. It is drawn in a line between the middles of
// two hours.
func (d *dailyCycle) share(atMs int64) float64 {
	busiest := float32(0)
	for _, l := range d.level {
		busiest = max(busiest, l)
	}
	if !(busiest > 0) || atMs < 0 {
		return 1
	}
	at := float64(atMs)/msPerHour - 0.5
	h, part := math.Floor(at), at-math.Floor(at)
	low, high := d.of(int64(h), busiest), d.of(int64(h)+1, busiest)
	return max(low+(high-low)*part, 0.01)
}

func (d *dailyCycle) of(hour int64, busiest float32) float64 {
	h := (hour%24 + 24) % 24
	if d.days[h] == 0 {
		return 1
	}
	return float64(d.level[h] / busiest)
}
