package workload

import (
	"math"
	"sort"

	"github.com/stategauge/stategauge/simulator/seed"
)

// Arrival is counted in billionths of a row, in whole numbers: however a stretch
// of time is cut into calls of Advance, the same rows arrive at the same
// millisecond.
const (
	oneRow      = 1_000_000_000
	maxPerMs    = 1_000_000 * oneRow // a billion rows a second
	maxSegments = 1 << 16            // of the history: about 5 MB, 18 hours of single seconds
	maxRun      = 1 << 32            // rows of a segment, so that billionths of them fit 64 bits
)

// situation is under what conditions rows arrived. It is shared by segments and
// never changed.
type situation struct {
	Conditions
	frozenMs int64 // with Frozen: where event time stands
}

// segment is a stretch of time in which rows arrived evenly under one situation.
type segment struct {
	first, rows  int64 // offsets first to first+rows-1
	fromMs, toMs int64
	carry        int64 // billionths of a row that were there at fromMs
	perMs        int64 // billionths of a row per millisecond
	futureMs     int64 // the first row's event time is this far ahead; 0: it is not
	situation    *situation
}

func (s *segment) end() int64 { return s.first + s.rows }

// arrivalMs is when the row of an offset was complete; with early, when its turn
// began, as the rate source stamps rows.
func (s *segment) arrivalMs(offset int64, early bool) int64 {
	i := max(offset-s.first, -1) // what lies before the history came just before it
	if early {
		return s.fromMs + floorDiv(i*oneRow-s.carry, s.perMs)
	}
	return s.fromMs + ((i+1)*oneRow-s.carry+s.perMs-1)/s.perMs
}

// arrivals is which rows arrived when: a history that never grows beyond
// maxSegments, since the older half of a full one is told in steps twice as long.
type arrivals struct {
	cfg       *Config
	base      uint64 // of the random numbers of seconds
	nowMs     int64
	carry     int64
	total     int64
	segments  []segment
	situation *situation
	futureMs  int64 // the next row that arrives is this far ahead
}

func newArrivals(cfg *Config) *arrivals {
	a := &arrivals{
		cfg:       cfg,
		base:      seed.Mix(cfg.Seed, seed.ForWorkload, uint64(cfg.Query), uint64(cfg.Source)),
		nowMs:     cfg.StartMs,
		situation: &situation{Conditions: Normal()},
	}
	a.already(cfg.Backlog)
	return a
}

// already adds rows that arrived before now, at the usual rate.
func (a *arrivals) already(rows int64) {
	// Of more than what is worth telling only the end has times of its own.
	if untold := rows - 64*maxRun; untold > 0 {
		a.total += untold
		rows -= untold
	}
	// A situation of its own keeps later rows out of these segments.
	before := *a.situation
	perSecond := max(a.cfg.RowsPerSecond, 1)
	for rows > 0 {
		s := segment{first: a.total, rows: min(rows, maxRun), perMs: perMillisecond(perSecond), situation: &before}
		s.fromMs = a.nowMs - int64(math.Ceil(float64(rows)/perSecond*1000))
		s.toMs = s.arrivalMs(s.end()-1, false)
		a.push(s)
		a.total += s.rows
		rows -= s.rows
	}
}

// advance lets rows arrive until nowMs.
func (a *arrivals) advance(nowMs int64, c Conditions) {
	if nowMs <= a.nowMs {
		return
	}
	if c.FutureMs != 0 {
		a.futureMs = c.FutureMs
	}
	a.enter(c)
	for a.nowMs < nowMs {
		second := floorDiv(a.nowMs-a.cfg.StartMs, 1000)
		until := min(a.cfg.StartMs+(second+1)*1000, nowMs)
		a.arrive(until, a.perMs(second, c))
	}
}

// enter makes the conditions those of what arrives next.
func (a *arrivals) enter(c Conditions) {
	// The row from the future belongs to its segment: it does not make others.
	c.FutureMs = 0
	if a.situation.Conditions == c {
		return
	}
	next := &situation{Conditions: c}
	if c.Frozen {
		next.frozenMs = a.nowMs
		if a.situation.Frozen {
			next.frozenMs = a.situation.frozenMs
		}
	}
	a.situation = next
}

// perMs is the rate of a second, in billionths of a row per millisecond.
func (a *arrivals) perMs(second int64, c Conditions) int64 {
	if c.StopInput {
		return 0
	}
	return perMillisecond(a.rate(second) * c.Rate)
}

func perMillisecond(perSecond float64) int64 {
	if !(perSecond > 0) { // not a number, too
		return 0
	}
	return int64(min(math.Round(perSecond*(oneRow/1000)), maxPerMs))
}

// arrive goes on to a time within the present second.
func (a *arrivals) arrive(untilMs, perMs int64) {
	last := a.open(perMs)
	gained := a.carry + perMs*(untilMs-a.nowMs)
	rows := gained / oneRow
	if rows > 0 && a.futureMs != 0 {
		last = a.mark(last)
	}
	last.rows += rows
	last.toMs = untilMs
	a.carry = gained % oneRow
	a.total += rows
	a.nowMs = untilMs
}

// open is the segment that goes on with the present rate and situation. One
// without rows makes room for the next.
func (a *arrivals) open(perMs int64) *segment {
	if n := len(a.segments); n > 0 {
		last := &a.segments[n-1]
		same := last.perMs == perMs && last.situation == a.situation && last.toMs == a.nowMs
		if same && last.rows < maxRun {
			return last
		}
	}
	return a.push(segment{first: a.total, fromMs: a.nowMs, toMs: a.nowMs, carry: a.carry, perMs: perMs, situation: a.situation})
}

// mark starts a segment whose first row is from the future.
func (a *arrivals) mark(last *segment) *segment {
	if last.rows > 0 {
		next := *last
		next.first, next.rows, next.fromMs, next.carry = a.total, 0, a.nowMs, a.carry
		last = a.push(next)
	}
	last.futureMs = a.futureMs
	a.futureMs = 0
	return last
}

func (a *arrivals) push(s segment) *segment {
	if n := len(a.segments); n > 0 && a.segments[n-1].rows == 0 {
		a.segments = a.segments[:n-1]
	}
	if len(a.segments) >= maxSegments {
		a.coarsen()
	}
	a.segments = append(a.segments, s)
	return &a.segments[len(a.segments)-1]
}

// coarsen tells the older half of the history in half as many segments.
func (a *arrivals) coarsen() {
	half := len(a.segments) / 2
	merged := a.segments[:0]
	for i := 0; i+1 < half; i += 2 {
		merged = append(merged, join(a.segments[i], a.segments[i+1]))
	}
	a.segments = append(merged, a.segments[half&^1:]...)
}

// join is one segment in place of two, in the situation of the larger. What does
// not fit one segment is forgotten: its rows look as if they came at b's rate.
func join(a, b segment) segment {
	if a.rows+b.rows > maxRun {
		return b
	}
	out := segment{first: a.first, rows: a.rows + b.rows, fromMs: min(a.fromMs, b.fromMs), toMs: max(a.toMs, b.toMs), situation: a.situation}
	if b.rows > a.rows {
		out.situation = b.situation
	}
	span := max(out.toMs-out.fromMs, 1)
	out.perMs = (out.rows*oneRow + span - 1) / span
	return out
}

// find is the position of the segment that holds an offset, the nearest where
// none does.
func (a *arrivals) find(offset int64) int {
	i := sort.Search(len(a.segments), func(i int) bool { return a.segments[i].end() > offset })
	return min(i, len(a.segments)-1)
}

// rate is how many rows a second brings, without any conditions.
func (a *arrivals) rate(second int64) float64 {
	r := &a.cfg.Rate
	atMs := a.cfg.StartMs + second*1000
	if off(r, second) {
		return 0
	}
	rate := a.cfg.RowsPerSecond
	if r.Daily != 0 {
		hours := float64(floorMod(atMs, 86_400_000)) / 3_600_000
		rate *= 1 + r.Daily*math.Cos(2*math.Pi*(hours-14)/24)
	}
	if r.Growth != 0 {
		rate *= math.Pow(1+r.Growth, float64(second)/86_400)
	}
	if r.Noise != 0 {
		z := normal(seed.Mix(a.base, 1, uint64(second)), seed.Mix(a.base, 2, uint64(second)))
		rate *= math.Exp(r.Noise*z - r.Noise*r.Noise/2)
	}
	return rate * a.burst(second)
}

func off(r *Rate, second int64) bool {
	cycle := (r.On + r.Off).Milliseconds()
	return r.Off > 0 && cycle > 0 && floorMod(second*1000, cycle) >= r.On.Milliseconds()
}

// burst is the factor of a second. Each period holds one burst, at a place of
// its own, so that any second can be told without those before it.
func (a *arrivals) burst(second int64) float64 {
	every, length := a.cfg.Rate.BurstEvery.Milliseconds(), a.cfg.Rate.BurstLength.Milliseconds()
	if every <= 0 || length <= 0 {
		return 1
	}
	period, at := floorDiv(second*1000, every), floorMod(second*1000, every)
	start := int64(unit(seed.Mix(a.base, 3, uint64(period))) * float64(max(every-length, 0)))
	if at < start || at >= start+length {
		return 1
	}
	return a.cfg.Rate.BurstFactor
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
