package trend

// Side says which moves a test looks for.
type Side uint8

// The sides. The zero value looks upward.
const (
	Upward Side = iota
	Downward
	BothWays
)

// CUSUMOptions set a CUSUM up; DefaultCUSUM gives what its error rates were
// measured with.
type CUSUMOptions struct {
	// K is the drift in spreads that a batch is forgiven; 0 means 1.
	K float64
	// H is the sum at which it alarms, in spreads; 0 means 12.
	H float64
	// Cap bounds what one batch can add, in spreads, before K is taken off: a
	// single spike, however high, is then worth Cap - K. 0 means 3.
	Cap  float64
	Side Side
}

// DefaultCUSUM returns k = 1, h = 12 and a cap of 3: six batches in a row far above
// the baseline, or a dozen a little more than a spread above it.
func DefaultCUSUM() CUSUMOptions { return CUSUMOptions{K: 1, H: 12, Cap: 3} }

// CUSUM adds up how far each batch lies from a frozen baseline, beyond a drift that
// is forgiven, and alarms where the sum passes a limit (Page 1954). Scores are
// robust (median and median deviation) and capped, which is what makes it proof
// against spikes: without the cap two of them are an alarm.
//
// Cost: O(1) a batch, a few nanoseconds; 120 bytes.
//
// Errors measured over 20,000 healthy batches of each noise, the baseline 100 batches
// that the caller renews every 500: no false episode in independent noise with outliers,
// .7 per 1,000 batches at AR .6, .5 with spikes of five times besides; without the cap,
// with k = .5 and h = 5, it stands alarmed for a fifth to three quarters of all batches.
// Of 20 steps by 40 % at AR .6 all are found, after 18 batches in the mean, by 100 %
// after 6. Fast, and misled by a level that wanders: an early watch, no page of its own.
//
// Pitfalls: it knows nothing but its baseline, so that one learned from a busy hour
// alarms in the quiet one, and one learned from few points has a spread that is too
// small by chance. The sums stop at twice H, so that it also recovers: from an alarm at
// the limit a level that is back at its baseline clears within some 12 batches.
type CUSUM struct {
	o        CUSUMOptions
	base     Baseline
	up, down leg
}

// leg is the sum of one direction.
type leg struct {
	sum    float64
	since  int64 // batch that lifted the sum off 0 last
	pushes int32 // batches since then, that one included
}

// Alarm is what a CUSUM says.
type Alarm struct {
	// Verdict is TooFew without a baseline, else Found or Clear.
	Verdict Verdict
	Down    bool    // the move is downward
	Sum     float64 // the larger sum, in spreads, 0 to twice H
	Since   int64   // batch where the sum began to grow, -1 where it is 0
	Batches int     // batches since then
}

// NewCUSUM returns a CUSUM without a baseline; it takes no points until it has one.
func NewCUSUM(o CUSUMOptions) *CUSUM {
	d := DefaultCUSUM()
	if !(o.K > 0) {
		o.K = d.K
	}
	if !(o.H > 0) {
		o.H = d.H
	}
	if !(o.Cap > 0) {
		o.Cap = d.Cap
	}
	o.Cap = max(o.Cap, o.K)
	c := &CUSUM{o: o}
	c.Restart()
	return c
}

// Freeze makes b the baseline from now on and starts both sums afresh.
func (c *CUSUM) Freeze(b Baseline) {
	c.base = b
	c.Restart()
}

// Baseline returns the baseline in force.
func (c *CUSUM) Baseline() Baseline { return c.base }

// Restart sets both sums to 0 and keeps the baseline.
func (c *CUSUM) Restart() { c.up, c.down = leg{since: -1}, leg{since: -1} }

// Push takes the value of one batch in. Without a baseline, or where v is not
// finite, it does nothing.
func (c *CUSUM) Push(batch int64, v float64) {
	if !c.base.Known() || !measurable(v) {
		return
	}
	z := min(max(c.base.Score(v), -c.o.Cap), c.o.Cap)
	if c.o.Side != Downward {
		c.up.add(batch, z-c.o.K, c.o.H)
	}
	if c.o.Side != Upward {
		c.down.add(batch, -z-c.o.K, c.o.H)
	}
}

// add moves the sum by what one batch is worth.
func (l *leg) add(batch int64, by, h float64) {
	sum := min(l.sum+by, 2*h)
	if sum <= 0 {
		*l = leg{since: -1}
		return
	}
	if l.since < 0 {
		l.since = batch
	}
	l.sum = sum
	l.pushes++
}

// Alarm returns how the sums stand.
func (c *CUSUM) Alarm() Alarm {
	if !c.base.Known() {
		return Alarm{Since: -1}
	}
	l, down := c.up, false
	if c.down.sum > l.sum {
		l, down = c.down, true
	}
	a := Alarm{Verdict: Clear, Down: down, Sum: l.sum, Since: l.since, Batches: int(l.pushes)}
	if l.sum > c.o.H {
		a.Verdict = Found
	}
	return a
}
