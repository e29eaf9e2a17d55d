package rules

import (
	"slices"

	"github.com/stategauge/stategauge/rules/trend"
)

const (
	// recentKept is how many values a recent keeps: 512 bytes.
	recentKept = 128
	// recentStride is how many values pass between looks at the quantiles once there
	// are many: looking for them among 128 costs a microsecond.
	recentStride = 8
)

// recent keeps the newest values of something, in milliseconds, and their
// quantiles. What was seen once in a hundred values does not move them, so that
// one accident does not become what is usual.
type recent struct {
	ring          [recentKept]float32
	n, next, due  uint8
	p50, p90, p99 float64 // 0 while there is none
}

// add takes in a value; what is no time is passed over.
func (r *recent) add(ms float64) {
	if !(ms > 0) || ms > 1e12 {
		return
	}
	r.ring[r.next] = float32(ms)
	r.next = (r.next + 1) % recentKept
	r.n = min(r.n+1, recentKept)
	if r.due++; r.due >= recentStride || r.n <= 2*recentStride {
		r.due = 0
		r.refresh()
	}
}

func (r *recent) refresh() {
	var tmp [recentKept]float64
	s := tmp[:r.n]
	for i := range s {
		s[i] = float64(r.ring[i])
	}
	// Each search leaves what is larger behind it, for the next one.
	from := 0
	at := func(share float64) float64 {
		k := int(share * float64(len(s)-1))
		x := trend.SelectInPlace(s[from:], k-from)
		from = k
		return x
	}
	r.p50, r.p90, r.p99 = at(0.5), at(0.9), at(0.99)
}

// longest returns the largest value kept, 0 without any.
func (r *recent) longest() float64 {
	if r.n == 0 {
		return 0
	}
	return float64(slices.Max(r.ring[:r.n]))
}

func (r *recent) reset() { *r = recent{} }

const (
	daysKept = 7
	dayMs    = 24 * 3600 * 1000
)

// days keeps the largest value of each of the newest seven days.
type days struct {
	day  [daysKept]int32 // days since 1970, 0 for a free place
	most [daysKept]float32
}

// add takes in a value of a time, both in milliseconds.
func (d *days) add(ms float64, atMs int64) {
	day := int32(atMs / dayMs)
	i := int(day) % daysKept
	if day <= 0 || day < d.day[i] {
		return
	}
	if day > d.day[i] {
		d.day[i], d.most[i] = day, 0
	}
	d.most[i] = max(d.most[i], float32(ms))
}

// largest returns the largest value of the seven days up to now, and the largest
// of any other of those days: what happened on one day only is no habit.
func (d *days) largest(nowMs int64) (most, habit float64) {
	today := int32(nowMs / dayMs)
	for i := range d.day {
		x := float64(d.most[i])
		switch {
		case d.day[i] == 0 || d.day[i] <= today-daysKept:
		case x > most:
			most, habit = x, most
		default:
			habit = max(habit, x)
		}
	}
	return most, habit
}
