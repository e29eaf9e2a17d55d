package demo

import (
	"sync"
	"time"
)

// clock is the demo's time. It runs speed times faster than the wall clock and stops
// where nothing is played yet: a machine that cannot keep up makes the demo slower,
// never silent queries.
type clock struct {
	wall  func() time.Time
	speed float64

	mu    sync.Mutex
	at    time.Time // time of the demo at from
	from  time.Time // time of the wall
	limit time.Time
}

func newClock(start time.Time, speed float64, wall func() time.Time) *clock {
	return &clock{wall: wall, speed: speed, at: start, from: wall(), limit: start}
}

// Now returns the time of the demo.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *clock) now() time.Time {
	passed := time.Duration(float64(c.wall().Sub(c.from)) * c.speed)
	if at := c.at.Add(passed); at.Before(c.limit) {
		return at
	}
	return c.limit
}

// run lets time run on to t and returns how long that takes on the wall.
func (c *clock) run(t time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.now()
	c.from = c.wall()
	if t.After(c.limit) {
		c.limit = t
	}
	return max(0, time.Duration(float64(t.Sub(c.at))/c.speed))
}

// jump makes it t at once, unless that has passed.
func (c *clock) jump(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now()) {
		c.at, c.from, c.limit = t, c.wall(), t
	}
}
