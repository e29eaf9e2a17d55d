package rules

import (
	"fmt"
	"math"

	"github.com/stategauge/stategauge/rules/trend"
)

const (
	// moveGate of what the rule asks for must show in the medians of the window's
	// first and last third before a line is drawn: that costs a thousand times more.
	moveGate = 0.4
	// heldWithin is how much further away than the rule asks a limit may be before
	// an alert lets go of it.
	heldWithin = 2
)

// reachesTracker is the state of `reaches` for one series, over a column that it
// shares with other rules. Memory: 100 bytes; 300 for the daily cycle.
type reachesTracker struct {
	d      *reaches
	s      *trend.Scratch
	column *column
	own    []*columnSet
	limit  float64 // newest that is known
	atMs   int64   // of the newest batch
	day    *dailyCycle
}

// cols are the columns that it judges.
func (t *reachesTracker) cols() *trend.Columns { return t.column.set.cols }

func (t *reachesTracker) columns() [3]*column { return [3]*column{t.column} }

func (t *reachesTracker) shares() bool { return t.own == nil }

func (t *reachesTracker) push(p trend.Point, in []float64) {
	for _, s := range t.own {
		s.row[0], s.due = float32(p.Value), true
		if len(s.row) > 1 {
			s.row[1] = single(in, 0)
		}
		s.push(p.Batch, p.AtMs)
	}
	t.atMs = p.AtMs
	if l := t.d.limit.at(in); l == l {
		t.limit = l
	}
	if t.day != nil {
		t.day.push(p)
	}
}

// forecast is what one window says.
type forecast struct {
	trend.LimitResult
	start   float64 // level of its first third
	why     string
	batches int
	spanMs  int64
	since   int64 // first batch
}

// moving reports whether it goes towards the limit.
func (f *forecast) moving() bool {
	return f.Reach == trend.Ahead || f.Reach == trend.Beyond || f.Reach == trend.Reached
}

// atMostMs is the soonest that the limit can be meant to be met.
func (f *forecast) atMostMs() float64 {
	if f.Reach == trend.Beyond {
		return f.Horizon
	}
	return f.ETA
}

func (t *reachesTracker) judge(hold *Judgement) Judgement {
	s := &t.d.spec
	n := t.points()
	switch {
	case n < s.MinPoints:
		return tooFew(n, 0, Extent{Batches: s.MinPoints})
	case rareIn(t.column, s.MinPoints):
		return tooRare(s.MinPoints)
	case t.limit != t.limit:
		return unknown("limit", s.Limit)
	}
	near := t.ask(s.Over)
	far := near
	if !s.AgreeOver.IsZero() && near.moving() {
		if want := int(agreeShare * float64(s.AgreeOver.Batches)); n < want {
			return tooFew(n, 0, Extent{Batches: want})
		}
		far = t.ask(s.AgreeOver)
	}
	return t.weigh(&near, &far, hold)
}

// rests reports whether the values, load or the hour of the day taken out of them, went
// nowhere near the limit: to take that out costs up to forty times what the comparison of
// levels does.
func (t *reachesTracker) rests(last *Judgement) bool {
	towards := last.Rise
	if t.d.options.Down {
		towards = -towards
	}
	return (t.d.load || t.day != nil) && last.Said == SaidClear && towards < moveGate*float64(t.d.spec.By)*math.Abs(last.Start)
}

// weigh makes a judgement of both windows.
func (t *reachesTracker) weigh(near, far *forecast, hold *Judgement) Judgement {
	j := judgement(SaidClear, "%s", near.Reach)
	j.Points, j.SpanMs, j.Limit, j.Value = near.batches, near.spanMs, t.limit, near.Now
	if near.why != "" {
		j.Why = near.why
	}
	j.rise(near.start, near.Now)
	if !near.moving() || !far.moving() {
		if near.moving() {
			j.Why = fmt.Sprintf("%s, by %s", far.Reach, t.d.spec.AgreeOver)
		}
		return j
	}
	slowest := max(near.atMostMs(), far.atMostMs())
	within := t.d.withinMs
	if hold != nil {
		within *= heldWithin
	}
	if near.Reach == trend.Beyond && far.Reach == trend.Beyond || slowest > within {
		j.Why = "further away than " + shortDuration(t.d.spec.Within.Std())
		return j
	}
	j.Said, j.How, j.Since = SaidFound, "line", near.since
	if hold != nil && slowest > t.d.withinMs {
		j.How = "held"
	}
	t.eta(&j, near, far)
	j.SlopePerBatch = j.Rise / float64(max(near.batches-1, 1))
	return j
}

// eta gives the time until the limit: the later one of those that both windows know,
// with the widest range.
func (t *reachesTracker) eta(j *Judgement, near, far *forecast) {
	j.EtaMs, j.EtaLowMs, j.EtaHighMs = 0, math.Inf(1), 0
	for _, f := range []*forecast{near, far} {
		if f.Reach == trend.Beyond {
			j.EtaHighMs = math.Inf(1)
			continue
		}
		j.EtaMs, j.EtaLowMs, j.EtaHighMs = max(j.EtaMs, f.ETA), min(j.EtaLowMs, f.Low), max(j.EtaHighMs, f.High)
	}
	if math.IsInf(j.EtaHighMs, 1) {
		j.EtaHighMs = math.NaN() // perhaps never
	}
	j.Why = "the line meets it"
	if near.Reach == trend.Reached || far.Reach == trend.Reached {
		j.Why = "it is met, and goes on"
	}
	if near.why != "" {
		j.Why += "; " + near.why
	}
}

// ask draws the line over one window.
func (t *reachesTracker) ask(over Extent) forecast {
	r := t.s.Rows()
	p := trend.Series{Batch: r.Batch, AtMs: r.Ms, X: r.X, Y: r.Y}
	r.Load = t.cols().Trace(t.column.place, t.column.loadPlace(), span(over), &p, r.Load[:0])
	r.Batch, r.Ms, r.X, r.Y = p.Batch, p.AtMs, p.X, p.Y
	f := forecast{batches: p.Batches, spanMs: r.Ms[len(r.Ms)-1] - r.Ms[0], since: r.Batch[0]}
	taken := false
	if t.d.load {
		taken, f.why = t.withoutLoad(r)
	}
	if t.day != nil && !taken { // a load that is taken out takes its cycle along
		if why := t.withoutDay(r); why != "" {
			f.why = why
		}
	}
	third := len(r.Y) / 3
	first, last := t.s.Median(r.Y[:third]), t.s.Median(r.Y[len(r.Y)-third:])
	f.start, f.Now, f.Reach = first, last, trend.Level
	if t.moves(first, last) {
		f.LimitResult = t.s.TimeToLimit(r.X, r.Y, t.limit, t.d.options)
	}
	return f
}

// moves reports whether the thirds lie so far apart that a line could matter.
func (t *reachesTracker) moves(first, last float64) bool {
	move, gap := last-first, t.limit-last
	if t.d.options.Down {
		move, gap = -move, -gap
	}
	return move > 0 && move >= moveGate*float64(t.d.spec.By)*math.Abs(first) && move >= moveGate*gap/forecastWindows
}

// withoutLoad takes the load out of r.Y, unless the level is so high that it does
// not matter what fills it. It says why it could not.
func (t *reachesTracker) withoutLoad(r *trend.Rows) (taken bool, why string) {
	newest := r.Y[len(r.Y)-len(r.Y)/3:]
	if t.d.spec.RawAbove != "" && t.s.Median(newest) > t.d.rawAbove {
		return false, ""
	}
	r.Before, taken = t.s.WithoutLoad(r.Before[:0], r.X, r.Y, r.Load)
	if !taken {
		return false, "load (" + t.d.spec.AdjustedFor + ") is not known"
	}
	r.Y = append(r.Y[:0], r.Before...)
	return true, ""
}

// withoutDay lifts r.Y to what it would be at the busiest hour.
func (t *reachesTracker) withoutDay(r *trend.Rows) (why string) {
	if !t.day.known() {
		return "the daily cycle is not known yet"
	}
	newest := r.Ms[len(r.Ms)-1]
	for i, ms := range r.Ms {
		r.Y[i] /= t.day.share(t.atMs - (newest - ms))
	}
	return ""
}

func (t *reachesTracker) points() int { return t.cols().Points(t.column.place, span(t.d.reach())) }

// reset begins a new segment. The daily cycle is the input's, and stays.
func (t *reachesTracker) reset() {
	for _, s := range t.own {
		s.cols.Reset()
	}
	t.limit = math.NaN()
}
