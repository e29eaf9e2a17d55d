package rules

import (
	"math"

	"github.com/stategauge/stategauge/rules/trend"
)

const (
	// newest is how many batches the present level is the median of.
	newest = 15
	// maxAgeMs is how old the oldest of min_points batches may be: slower streams
	// have too few points for a trend.
	maxAgeMs = 7 * 24 * 3600 * 1000
	// agreeShare of the longer window must be there before it can agree: until then
	// it holds the same batches as the short one.
	agreeShare = 0.65
	// holdBatches is how long a level that rose and stays is held against the one
	// before where the rule names no reference window of its own; after that it is
	// the new normal.
	holdBatches = 500
	// lookEvery is how many batches pass between looks at the levels, at the longer
	// window and at what is only shown: they cost a hundred times what a look at a
	// window without a trend does.
	lookEvery = 4
)

// window is a span over a column, watched for a trend.
type window struct {
	column *column
	extent Extent
	number int // of the watch, in the column's set
	moves  int // of the column, when the watch was asked for
	pace   trend.Pace
}

// risingTracker is the state of `rising` for one series: its spans over columns that
// it shares with other rules. Memory: 300 bytes, and 450 for each span in the columns.
type risingTracker struct {
	d       *rising
	scratch *trend.Scratch
	short   window
	long    *column // nil without agree_over
	level   *column // nil without level
	own     []*columnSet

	looked   int64   // batches taken when value and levels were looked at
	value    float64 // the present level then
	old      bool    // the newest min_points batches took too long to be one trend
	leveled  *Judgement
	agrees   Said // of the longer window, when agreedAt batches had been taken
	agreedAt int64
}

// newSharer judges the columns that columnOf finds for the rule's extents.
func (d *rising) newSharer(s *trend.Scratch, columnOf func(Extent) *column) sharer {
	t := &risingTracker{d: d, scratch: s, looked: -1, agreedAt: -1, value: math.NaN()}
	t.short = window{column: columnOf(d.spec.Over), extent: d.spec.Over, moves: -1}
	if !d.spec.AgreeOver.IsZero() {
		t.long = columnOf(d.spec.AgreeOver)
	}
	if l := d.spec.Level; l != nil {
		t.level = columnOf(Extent(l.recent().Plus(l.before())))
	}
	return t
}

func (l *levelSpec) recent() trend.Span { return span(l.Recent) }
func (l *levelSpec) before() trend.Span { return span(l.Before) }

// columns are those that the tracker judges.
func (t *risingTracker) columns() [3]*column {
	return [3]*column{t.short.column, t.long, t.level}
}

func (t *risingTracker) shares() bool { return t.own == nil }

// push takes one batch into columns of the tracker's own; those that it shares have it
// already.
func (t *risingTracker) push(p trend.Point, _ []float64) {
	for _, s := range t.own {
		s.row[0], s.due = float32(p.Value), true
		if len(s.row) > 1 {
			s.row[1] = float32(p.Load)
		}
		s.push(p.Batch, p.AtMs)
	}
}

func (t *risingTracker) reset() {
	for _, s := range t.own {
		s.cols.Reset()
	}
	t.short.pace.Reset()
	t.looked, t.agreedAt, t.value, t.leveled = -1, -1, math.NaN(), nil
}

// cols are the columns that the short window is in.
func (t *risingTracker) cols() *trend.Columns { return t.short.column.set.cols }

// watch has the span watched in the set where its column is now.
func (w *window) watch() {
	w.number, w.moves = w.column.set.cols.Watch(w.column.place, span(w.extent)), w.column.moves
}

// rising judges the span.
func (w *window) rising(o trend.RisingOptions) trend.RisingResult {
	cols := w.column.set.cols
	if w.moves != w.column.moves {
		w.watch()
		w.pace.Reset()
	}
	return cols.RisingPaced(w.number, w.column.loadPlace(), o, &w.pace)
}

func (t *risingTracker) points() int {
	return t.cols().Points(t.short.column.place, span(t.d.spec.Over))
}

// look refreshes what need not be known at each batch.
func (t *risingTracker) look() {
	n := t.cols().Pushes()
	if t.looked >= 0 && n < t.looked+lookEvery {
		return
	}
	t.looked, t.old, t.value = n, t.rare(), t.now()
	t.leveled = nil
	if t.level == nil {
		return
	}
	if j := t.shift(); j.Said != SaidTooFew && j.Said != SaidClear {
		t.leveled = new(Judgement)
		*t.leveled = j
	}
}

// rare reports whether the newest min_points batches took too long to be one
// trend.
func (t *risingTracker) rare() bool {
	return rareIn(t.short.column, t.d.spec.MinPoints)
}

// rareIn reports whether the newest so many batches of a column took longer than a
// week.
func rareIn(c *column, batches int) bool {
	if c.set.cols.FineMs() <= maxAgeMs {
		return false
	}
	_, ms, full := c.set.cols.Reach(c.place, trend.Span{Batches: batches})
	return full && ms > maxAgeMs
}

func (t *risingTracker) judge(hold *Judgement) Judgement {
	t.look()
	if t.old {
		j := t.empty(SaidTooFew, t.points())
		j.Why = tooRare(t.d.spec.MinPoints).Why
		return j
	}
	j := t.trend()
	if j.Said != SaidFound && t.leveled != nil {
		j = better(j, *t.leveled)
	}
	if j.Said != SaidFound && hold != nil && t.holds(hold) {
		j = t.held(hold)
	}
	j.Why = t.why(j.Said)
	return j
}

// why says what a verdict without a finding rests on.
func (t *risingTracker) why(s Said) string {
	switch s {
	case SaidTooFew:
		want := Extent{Batches: t.d.spec.MinPoints}
		if t.points() >= want.Batches {
			want = t.d.spec.AgreeOver
		}
		n, ms, _ := t.cols().Reach(t.short.column.place, span(t.d.spec.Over))
		return tooFew(n, ms, want).Why
	case SaidCannotTell:
		return "cannot tell: it moved, and adjusted_for (" + t.d.spec.AdjustedFor + ") is not known for half of the batches"
	case SaidExplained:
		return t.d.spec.AdjustedFor + " explains it"
	}
	return ""
}

func (t *risingTracker) empty(said Said, points int) Judgement {
	j := Judgement{Said: said, Value: t.value, Points: points, Since: -1}
	if w := &t.short; w.moves == w.column.moves {
		j.SpanMs = t.cols().WatchedMs(w.number)
	}
	return j
}

// trend asks the windows for a line.
func (t *risingTracker) trend() Judgement {
	r := t.short.rising(t.d.options)
	j := t.empty(saidOf(r.Verdict), r.Batches)
	if r.Verdict == trend.TooFew || r.Verdict == trend.Clear {
		return j
	}
	j.Start, j.End, j.Rise, j.Relative = r.Start, r.End, r.Rise, r.Relative
	j.SlopePerBatch, j.Since, j.How = r.SlopePerBatch, r.Since, "trend"
	if r.Verdict == trend.Found && t.long != nil {
		j.Said = t.agreed()
	}
	return j
}

// agreed asks the longer window whether it sees the same: now and then, and only while
// the short one has a finding, so that it need not be watched.
func (t *risingTracker) agreed() Said {
	cols, place := t.long.set.cols, t.long.place
	if n := cols.Pushes(); t.agreedAt < 0 || n >= t.agreedAt+lookEvery {
		t.agreedAt = n
		r := cols.Rising(place, t.long.loadPlace(), span(t.d.spec.AgreeOver), t.d.longer)
		t.agrees = saidOf(r.Verdict)
		if float64(r.Batches) < agreeShare*float64(t.d.spec.AgreeOver.Batches) {
			t.agrees = SaidTooFew
		}
	}
	return t.agrees
}

// shift asks whether the newest batches lie above those before.
func (t *risingTracker) shift() Judgement {
	l := t.d.spec.Level
	r := t.level.set.cols.Level(t.level.place, t.level.loadPlace(), l.recent(), l.before(), t.d.level)
	j := t.empty(saidOf(r.Verdict), r.RecentBatches+r.BeforeBatches)
	if r.Verdict == trend.TooFew || r.Verdict == trend.Clear {
		return j
	}
	j.Start, j.End, j.Rise = r.Before, r.Recent, r.Recent-r.Before
	if r.Before > 0 {
		j.Relative = j.Rise / r.Before
	}
	j.SpanMs, j.Since, j.How = 0, r.Since, "level"
	if r.Verdict == trend.Found {
		j.Since = t.locate(r.Since)
	}
	return j
}

// locate finds the batch where a changed level began. The comparison only knows
// where its newest span begins; the short window, asked for any move at all, knows
// the batch that a step or a bend fits best. Too faint a move leaves what is known.
func (t *risingTracker) locate(known int64) int64 {
	o := trend.RisingOptions{MinPoints: leastMinPoints, Z: 1, GateZ: 1, By: 0.05, Falling: t.d.falling}
	if r := t.cols().Rising(t.short.column.place, trend.NoLoad, span(t.d.spec.Over), o); r.Verdict == trend.Found {
		return r.Since
	}
	return known
}

// better prefers a finding, then what says more than "too few".
func better(a, b Judgement) Judgement {
	if b.Said == SaidFound || a.Said == SaidTooFew || a.Said == SaidClear && b.Said == SaidExplained {
		return b
	}
	return a
}

// now is the present level: the median of the newest batches.
func (t *risingTracker) now() float64 {
	r := t.scratch.Rows()
	r.Y = t.cols().Newest(t.short.column.place, newest, r.Y[:0])
	if len(r.Y) == 0 {
		return math.NaN()
	}
	return t.scratch.Median(r.Y)
}

// holds reports whether the value still stands where a finding took it. A line
// goes flat once its window lies behind a step, and the step is still there:
// being used to a fault is no recovery. More than half of the rise must be gone,
// or as much time have passed as the rule's reference window has.
func (t *risingTracker) holds(f *Judgement) bool {
	reference := int64(holdBatches)
	if l := t.d.spec.Level; l != nil {
		reference = int64(max(l.Before.Batches, holdBatches))
	}
	if t.cols().LastBatch()-f.Since > reference {
		return false
	}
	half := f.Start + f.Rise/2
	if t.d.falling {
		return t.value < half
	}
	return t.value > half
}

// held repeats a finding with the present level.
func (t *risingTracker) held(f *Judgement) Judgement {
	j := t.empty(SaidFound, t.points())
	j.Start, j.End, j.Since, j.How = f.Start, j.Value, f.Since, "held"
	j.Rise = j.End - j.Start
	if j.Start > 0 {
		j.Relative = j.Rise / j.Start
	}
	return j
}

func saidOf(v trend.Verdict) Said {
	switch v {
	case trend.TooFew:
		return SaidTooFew
	case trend.Found:
		return SaidFound
	case trend.Explained:
		return SaidExplained
	case trend.CannotTell:
		return SaidCannotTell
	}
	return SaidClear
}
