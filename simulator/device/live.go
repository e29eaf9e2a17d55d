package device

import "time"

// Live is a Meter that reads the monotonic clock: the work itself takes the time.
// Its use gives up that runs repeat.
type Live struct{ start time.Time }

// NewLive returns a Meter whose clock starts now.
func NewLive() *Live { return &Live{start: time.Now()} }

// Begin reads the clock.
func (l *Live) Begin(Step) Mark { return Mark(time.Since(l.start)) }

// End is the time since Begin, whatever the work.
func (l *Live) End(_ Step, m Mark, _ Work) time.Duration {
	return time.Since(l.start) - time.Duration(m)
}
