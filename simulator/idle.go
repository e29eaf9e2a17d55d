package simulator

// idleClock decides which triggers without a batch are reported. Up to Spark 3.4
// the first one is, and then one each interval; from 3.5 on the first only starts
// the clock.
type idleClock struct {
	intervalMs int64
	atOnce     bool // up to 3.4
	lastMs     int64
	running    bool
}

// executed stops the clock: a batch ran.
func (c *idleClock) executed() { c.running = false }

// due reports whether a trigger at nowMs that found nothing to do is reported.
func (c *idleClock) due(nowMs int64) bool {
	if !c.running {
		c.running, c.lastMs = true, nowMs
		return c.atOnce
	}
	if nowMs-c.lastMs < c.intervalMs {
		return false
	}
	c.lastMs = nowMs
	return true
}
