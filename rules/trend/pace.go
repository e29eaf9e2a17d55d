package trend

import "math"

// Pace remembers how the dear test came out last for one rule and one series, so that
// it need not be run at each batch. The zero value is ready. It holds 16 bytes, and
// 250 more once something was found.
type Pace struct {
	next  int64 // count of batches from which on the dear test may run again
	found *RisingResult
}

const (
	// restShare of the points is the longest rest of the dear test, restSlope how
	// fast it shortens as the test comes nearer to passing.
	restShare, restSlope = 1.0 / 8, 1.0 / 4
	// foundShare of the points is how long a finding stands before it is looked at
	// again, the cheap test still passing.
	foundShare = 1.0 / 24
	// sketchRest is the share of that rest after a sketch said no: it costs less, and
	// is less sure.
	sketchRest = 1.0 / 2
)

// RisingPaced judges a watched span as RisingWatched does, but spares the dear test. A
// sketch with a tenth of its cost goes before it and says where it cannot pass, until
// something was found. After both it rests: an eighth of the points at most after the dear
// test said Clear, half of that after the sketch did, less the nearer it was to passing.
// What was found stands for a 24th of the points while the cheap test passes. p belongs to
// the rule and the series that ask, and to the same options; call it once for each batch.
//
// Why: one batch in ten of a healthy series with memory passes the cheap test, and the
// dear one costs some hundred times as much. Measured against RisingWatched over 120
// batches, 12,000 healthy ones of each noise: a sketch in less than a fifth of the batches
// past the cheap test and a dear test after a third of those at AR .6, 14 false episodes
// in all instead of 12; a step by half is found 2 batches later in the median and 9 at
// most, a ramp of half a percent a batch 2 and 7. Of fits that pass, fewer than 1 in 100
// have a sketch that says no.
func (c *Columns) RisingPaced(number, load int, o RisingOptions, p *Pace) RisingResult {
	l, v := c.watched(number)
	o = o.withDefaults()
	res := RisingResult{Since: -1}
	if !v.gate(&o, &res) {
		p.found = nil
		return res
	}
	if c.pushes < p.next {
		return p.standing(res)
	}
	c.copyRows(l, l.n-v.n, int(v.column), load)
	if s := c.work(); p.found == nil {
		if f := s.sketch(s.x, s.y); !o.near(&f) {
			p.rests(c.pushes, l.size, o.rest(f, len(v.order))*sketchRest)
			return res
		}
	}
	c.judgeRows(o, &res)
	rest := foundShare * float64(len(v.order))
	p.found = nil
	if res.Verdict == Clear {
		rest = o.rest(res.Fit, len(v.order))
	} else {
		p.found = new(RisingResult)
		*p.found = res
	}
	p.rests(c.pushes, l.size, rest)
	return res
}

// rests lets the dear test rest for so many rows of so many batches.
func (p *Pace) rests(now int64, size int, rows float64) {
	p.next = now + int64(size)*int64(max(rows, 1))
}

// standing returns what the last dear test said, with the present cheap one.
func (p *Pace) standing(res RisingResult) RisingResult {
	if p.found == nil {
		return res
	}
	r := *p.found
	r.RawZ, r.Batches = res.RawZ, res.Batches
	return r
}

// Reset forgets, as at a new run.
func (p *Pace) Reset() { *p = Pace{} }

// rest is how many rows the dear test may rest after f failed.
func (o RisingOptions) rest(f Fit, points int) float64 {
	move := o.sign() * f.Rise
	near := o.sign() * f.Z / o.Z
	if need := o.By * f.Start; need > 0 {
		near = min(near, move/need)
	}
	if o.AtLeast > 0 {
		near = min(near, move/o.AtLeast)
	}
	near = min(max(near, 0), 1)
	n := float64(points)
	return math.Ceil(max(min((1-near)*restSlope, restShare)*n, 2))
}
