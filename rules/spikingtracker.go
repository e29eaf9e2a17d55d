package rules

import (
	"fmt"
	"math"
	"strings"

	"github.com/stategauge/stategauge/rules/trend"
)

const (
	// finePoints is how many of the newest batches are kept as they are.
	finePoints = 240
	// fineSpare is how many of them are let go at once.
	fineSpare = 8
	// besideFactor is how much higher a figure must be on spikes than elsewhere, and
	// besideShare on how many of them.
	besideFactor = 1.5
	besideShare  = 0.6
	// neighbours on either side are what a spike must stand out from.
	neighbours = 3
)

// spikingTracker is the state of `spiking` for one series: the newest batches as
// they are, and where the extent reaches further back, the highest batch out of each
// few in a row, for what repeats each so many minutes in a stream of fast batches.
// Memory: 4 KiB and 1 for each figure beside, twice that for a fast stream.
type spikingTracker struct {
	d            *spiking
	s            *trend.Scratch
	fine, coarse *history
}

func (t *spikingTracker) push(p trend.Point, in []float64) {
	before := t.fine.n
	if !t.fine.push(p, in) {
		return
	}
	if t.coarse != nil {
		t.coarse.push(p, in)
		return
	}
	if t.fine.n > before {
		return
	}
	if _, covered := t.fine.start(t.d.spec.Over); !covered { // and it is full
		t.coarse = t.d.newCoarse()
	}
}

func (t *spikingTracker) judge(hold *Judgement) Judgement {
	s := &t.d.spec
	if n := t.fine.batches(0); n < s.MinPoints {
		return tooFew(n, 0, Extent{Batches: s.MinPoints})
	}
	if t.fine.rare(s.MinPoints) {
		return tooRare(s.MinPoints)
	}
	j := t.look(t.fine, hold)
	if j.Said != SaidFound && t.coarse != nil && t.coarse.step > 1 {
		if long := t.look(t.coarse, hold); long.Said == SaidFound {
			return long
		}
	}
	return j
}

// rests reports whether there was no spike at all: what comes once in ten batches needs
// fifty of them to be a rhythm.
func (t *spikingTracker) rests(last *Judgement) bool {
	return last.Said == SaidClear && last.Count == 0 && (t.coarse == nil || t.coarse.step == 1)
}

// look judges one history.
func (t *spikingTracker) look(h *history, hold *Judgement) Judgement {
	from, covered := h.start(t.d.spec.Over)
	if !covered {
		from = 0
	}
	r := t.s.Rows()
	r.Y = h.column(r.Y[:0], 0, from)
	rhythm, enough := t.s.CountSpikes(r.Y, t.d.options)
	j := judgement(SaidClear, "")
	j.Points, j.SpanMs, j.Count = h.batches(from), h.ageMs(from), rhythm.Spikes
	j.Value, j.Limit = rhythm.Median, rhythm.Threshold
	if !enough {
		return j
	}
	r.Batch, r.Ms = h.ids(r.Batch[:0], from), h.timesMs(r.Ms[:0], from)
	rhythm = t.s.Periodicity(r.Batch, r.Ms, r.Y, t.d.options)
	r.Places, _, _ = t.s.Spikes(r.Y, t.d.options, r.Places[:0])
	if !t.standOut(r) {
		j.Why = "the batches around them are as high: a level, not spikes"
		return j
	}
	j.Value, j.Since = rhythm.Height, h.batchAt(from+r.Places[0])
	j.rise(rhythm.Median, rhythm.Height)
	j.Text = t.beside(h, from, r)
	t.name(&j, rhythm)
	switch {
	case t.wanted(rhythm.Axis):
		j.Said = SaidFound
	case hold != nil:
		j.Said, j.How, j.Period, j.OnClock, j.Why = SaidFound, "held", hold.Period, hold.OnClock, "as many spikes still"
	}
	if j.Said != SaidFound {
		j.Since = -1
	}
	return j
}

// standOut reports whether most high batches are high beside those around them:
// in the first noisy half hour of a new level many are not.
func (t *spikingTracker) standOut(r *trend.Rows) bool {
	n, factor := 0, (1+t.d.options.Factor)/2
	for _, at := range r.Places {
		r.X = r.X[:0]
		for i := max(at-neighbours, 0); i <= min(at+neighbours, len(r.Y)-1); i++ {
			if i != at {
				r.X = append(r.X, r.Y[i])
			}
		}
		if r.Y[at] > factor*t.s.Median(r.X) {
			n++
		}
	}
	return float64(n) >= besideShare*float64(len(r.Places))
}

// wanted reports whether the rule asks for such a rhythm.
func (t *spikingTracker) wanted(a trend.Axis) bool {
	switch t.d.spec.Rhythm {
	case "batches":
		return a == trend.OnBatches || a == trend.OnEither
	case "clock":
		return a == trend.OnClock || a == trend.OnEither
	case "none":
		return a == trend.Irregular
	}
	return a != trend.Irregular
}

// name says in words how the spikes come.
func (t *spikingTracker) name(j *Judgement, r trend.Rhythm) {
	clock := shortClock(r.Ms)
	switch r.Axis {
	case trend.OnBatches:
		j.How, j.Period = "batches", r.Batches
		j.Why = fmt.Sprintf("%d spikes, one each %.3g batches", r.Spikes, r.Batches)
	case trend.OnClock:
		j.How, j.Period, j.OnClock = "clock", r.Ms, true
		j.Why = fmt.Sprintf("%d spikes, one each %s", r.Spikes, clock)
	case trend.OnEither:
		j.How, j.Period = "batches or clock", r.Batches
		if t.d.spec.Rhythm == "clock" {
			j.Period, j.OnClock = r.Ms, true
		}
		j.Why = fmt.Sprintf("%d spikes, one each %.3g batches or %s: batches come too evenly to tell which", r.Spikes, r.Batches, clock)
	default:
		j.How = "irregular"
		j.Why = fmt.Sprintf("%d spikes at no rhythm", r.Spikes)
	}
}

// shortClock prints a period in milliseconds.
func shortClock(ms float64) string { return Extent{Ms: int64(math.Round(ms/1000)) * 1000}.String() }

// beside names the figures that are higher on the spikes than elsewhere.
func (t *spikingTracker) beside(h *history, from int, r *trend.Rows) string {
	var names []string
	for i, name := range t.d.names {
		r.X = h.column(r.X[:0], i+1, from)
		if t.higher(r) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// higher reports whether the figure in r.X is: on most spikes beyond what it is on
// other batches.
func (t *spikingTracker) higher(r *trend.Rows) bool {
	r.Before = r.Before[:0]
	next := 0
	for i, v := range r.X {
		if next < len(r.Places) && r.Places[next] == i {
			next++
			continue
		}
		if v == v {
			r.Before = append(r.Before, v)
		}
	}
	usual := t.s.Median(r.Before) // NaN of nothing: then nothing is higher
	above := 0
	for _, i := range r.Places {
		if v := r.X[i]; v > usual && v > besideFactor*usual {
			above++
		}
	}
	return float64(above) >= besideShare*float64(len(r.Places))
}

func (t *spikingTracker) points() int { return t.fine.batches(0) }

func (t *spikingTracker) reset() {
	t.fine.reset()
	t.coarse = nil
}
