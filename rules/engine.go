package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// overrideEvery is how many batches of a run pass between looks at its overrides.
const overrideEvery = 16

// Options are the engine's limits. A zero field means its default.
type Options struct {
	// MaxQueries is how many queries are judged at once; default 20,000. Batches of
	// further ones are counted and passed over.
	MaxQueries int
	// MaxOperators is how many operators of a query are judged; default 64.
	MaxOperators int
	// MaxAlerts is how many alerts may be pending or firing at once; default 10,000.
	MaxAlerts int
	// TickMs is how often Tick will be called, milliseconds; default 15,000. It only
	// serves to tell missed ticks.
	TickMs int64
	// Override says what the configuration has for a query; nil: nothing for any.
	Override func(event.QueryRef) Override
	// Metrics are the engine's own series; nil means unregistered ones.
	Metrics *Metrics
}

func (o Options) withDefaults() Options {
	if o.MaxQueries <= 0 {
		o.MaxQueries = 20_000
	}
	if o.MaxOperators <= 0 {
		o.MaxOperators = 64
	}
	if o.MaxAlerts <= 0 {
		o.MaxAlerts = 10_000
	}
	if o.TickMs <= 0 {
		o.TickMs = 15_000
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return o
}

// Engine judges updates by the rules of a Pack. It is pure: time comes in with the
// updates and with Tick. It is not safe for concurrent use.
//
// Memory, with the default pack: less than 160 KiB for a query of three operators
// once its windows are full (wholepack_test.go holds it to that); what the trends
// of one query look at lies in columns that its rules share. Windows grow as
// batches come and are given back when the query is retired.
type Engine struct {
	pack    *Pack
	opts    Options
	queries map[event.QueryID]*queryState
	scratch *trend.Scratch
	in      []float64 // memory for a detector's inputs
	memo    memo
	order   []*queryState
	over    []ended // resolved by the present update
	grouped []Grouped
	rules   []ruleState // beside pack.rules
	// figures are the places of the rules that judge batches, sharers of those among
	// them that share columns, happenings of the others.
	figures, sharers, happenings []int
	alerts                       int   // pending and firing
	ticked                       int64 // time of the last Tick, 0 before the first
	nowMs                        int64 // newest time that anything told, never going back
	asOfMs                       int64 // event time of what is being judged
	around                       surroundings
	heirs                        map[event.QueryID]*predecessor // of names, until they come
	held                         int                            // queries that are retired and kept
	prunedMs                     int64
}

// ruleState is what the engine knows of a rule apart from its series.
type ruleState struct {
	metrics   ruleMetrics
	alerts    int // pending and firing
	taken     int // values that the metrics were not told of yet
	lastError string
	lastMs    int64   // event time of the newest value, Absent before
	share     sharing // the detector, where it shares columns
	// groups are what a rule of many queries judges, in the order in which they came.
	groups  []*queryState
	grouper grouper
	// evidence is what it and others gather, places where its own figures are in it.
	evidence *evidencePlan
	places   []int
}

// New returns an engine that knows no query yet. p may be nil: no rules.
func New(p *Pack, o Options) *Engine {
	if p == nil {
		p = &Pack{}
	}
	e := &Engine{
		opts: o.withDefaults(), queries: map[event.QueryID]*queryState{}, scratch: &trend.Scratch{},
		around: newSurroundings(), heirs: map[event.QueryID]*predecessor{},
	}
	e.adopt(p)
	return e
}

// adopt makes p the pack, with fresh rule states.
func (e *Engine) adopt(p *Pack) {
	e.pack = p
	e.memo.forget(p.places.count(), p.places)
	e.rules = make([]ruleState, len(p.rules))
	e.figures, e.sharers, e.happenings = nil, nil, nil
	for i, r := range p.rules {
		e.rules[i] = ruleState{metrics: e.opts.Metrics.of(r.alert), lastMs: event.Absent}
		if d, ok := r.detector.(groupDetector); ok {
			e.rules[i].grouper = d.newGroups()
		}
		if r.ofEvents() {
			e.happenings = append(e.happenings, i)
			continue
		}
		e.figures = append(e.figures, i)
		if e.rules[i].share = r.shared(); e.rules[i].share != nil {
			e.sharers = append(e.sharers, i)
		}
	}
	e.planEvidence()
}

// Judgeable tells the outcomes that Apply is to hear of, from the daemon and from
// a backtest alike. Repeats and late events say nothing new; that a query idles,
// and that its sender is alive, tells silence from a hung batch.
func Judgeable(o event.Outcome) bool {
	switch o {
	case event.OutcomeExecuted, event.OutcomeStarted, event.OutcomeTerminated, event.OutcomeFailed, event.OutcomeStateChange,
		event.OutcomeIdle, event.OutcomeIdleCopy, event.OutcomeHeartbeat:
		return true
	}
	return false
}

// Apply judges one update and appends what changed to out: alerts that changed
// their state, and judgements that differ from the one before. The update is the
// caller's again when Apply returns.
func (e *Engine) Apply(u *event.Update, out []Verdict) []Verdict {
	if u.Event == nil {
		return out
	}
	return e.settle(e.apply(u, out))
}

func (e *Engine) apply(u *event.Update, out []Verdict) []Verdict {
	e.advance(heardAtMs(u))
	e.asOfMs = e.asOf(u)
	if u.Outcome == event.OutcomeHeartbeat {
		return e.heartbeat(u, out)
	}
	if u.Event.Query.ID == "" {
		return out
	}
	q := e.query(u)
	if q == nil {
		return out
	}
	q.note(u)
	if u.State == event.StateRetired {
		return e.retire(q, u, out)
	}
	out = e.back(q, out)
	e.hear(q, u)
	switch {
	case u.Outcome == event.OutcomeExecuted && u.Event.Batch != nil:
		out = e.executed(q, u, out)
	case chained(q.trigger):
	case u.Outcome == event.OutcomeTerminated:
		out = e.resolveAll(q, "the query was stopped", eventMs(u), out)
	case u.Outcome == event.OutcomeFailed && u.State == event.StateFailed && q.story.failure.stopped():
		out = e.resolveAll(q, "the query was stopped with its application, or cancelled", eventMs(u), out)
	}
	return e.watch(q, u, out)
}

// query finds the update's query, and makes it known where a run or a batch of it
// came.
func (e *Engine) query(u *event.Update) *queryState {
	if q := e.queries[u.Event.Query.ID]; q != nil {
		return q
	}
	if u.Outcome != event.OutcomeExecuted && u.Outcome != event.OutcomeStarted || u.State == event.StateRetired {
		return nil
	}
	if len(e.queries) >= e.opts.MaxQueries {
		e.opts.Metrics.queriesRefused.Inc()
		return nil
	}
	q := newQueryState(len(e.pack.rules))
	q.ref.ID, q.around = u.Event.Query.ID, &e.around
	e.inherit(q, u.Event.Query.ID)
	e.know(q)
	return q
}

// know makes a query one of the engine's.
func (e *Engine) know(q *queryState) {
	e.queries[q.ref.ID] = q
	e.order = nil
	e.opts.Metrics.queries.Inc()
}

// lose makes a query none of the engine's.
func (e *Engine) lose(q *queryState) {
	e.hold(q, false)
	delete(e.queries, q.ref.ID)
	e.order = nil // and not shorter: it would hold on to what was behind its end
	e.opts.Metrics.queries.Dec()
}

// executed feeds one executed batch to every rule.
func (e *Engine) executed(q *queryState, u *event.Update, out []Verdict) []Verdict {
	b := u.Event.Batch
	if u.OutOfOrder || !q.advance(u) {
		return out
	}
	e.breakSegments(q, u)
	warm := q.warming()
	q.learn(u)
	q.story.batch(q, u)
	if q.runBatches%overrideEvery == 0 {
		e.overrideOf(q)
	}
	q.runBatches++
	if b.NoData || q.trigger == event.TriggerContinuous {
		return out
	}
	e.memo.next(min(len(b.Operators), e.opts.MaxOperators))
	out = e.stage(q, b, warm, out)
	operators := int32(len(b.Operators))
	fewer := operators < q.operators || q.operators == 0
	q.operators = operators
	for _, i := range e.figures {
		r := e.pack.rules[i]
		if !r.judges(q) {
			continue
		}
		if r.signal.of == OfQuery {
			e.memo.of(-1)
			out = e.feed(q, i, b, nil, warm, out)
			e.count(i)
			continue
		}
		for k := range b.Operators[:min(len(b.Operators), e.opts.MaxOperators)] {
			e.memo.of(k)
			out = e.feed(q, i, b, &b.Operators[k], warm, out)
		}
		e.count(i)
		if fewer {
			out = e.dropGone(q, i, len(b.Operators), out)
		}
	}
	return out
}

// count tells the rule's metrics how many values it took since the last time.
func (e *Engine) count(ri int) {
	if s := &e.rules[ri]; s.taken > 0 {
		s.metrics.evaluations.Add(float64(s.taken))
		s.taken = 0
	}
}

// breakSegments empties the windows that must not join what is before this batch
// with what comes now.
func (e *Engine) breakSegments(q *queryState, u *event.Update) {
	if chained(q.trigger) {
		return // runs that follow each other are one series
	}
	pause := q.paused()
	if !pause && !u.SegmentStart {
		return
	}
	breaks := func(acrossRuns, acrossPauses bool) bool {
		return pause && !acrossPauses || u.SegmentStart && !acrossRuns
	}
	q.resetColumns(breaks)
	for i, list := range q.rules {
		r := e.pack.rules[i]
		if !breaks(r.acrossRuns, r.acrossPauses) {
			continue
		}
		for _, s := range list {
			s.reset()
		}
	}
}

// chained tells triggers whose queries run shortly, end, and run again.
func chained(t event.TriggerKind) bool {
	return t == event.TriggerAvailableNow || t == event.TriggerOnce
}

// feed gives one batch's value to one rule's series and moves its alert.
func (e *Engine) feed(q *queryState, ri int, b *event.Batch, o *event.Operator, warm bool, out []Verdict) []Verdict {
	r := e.pack.rules[ri]
	v, s := math.NaN(), (*series)(nil)
	if e.rules[ri].share == nil {
		v = e.value(q, ri, b, o)
	} else if s = q.find(ri, o); s != nil {
		v = e.sharedValue(q, ri, s)
	}
	if math.IsNaN(v) || warm && !r.inWarmUp {
		return out
	}
	if s == nil {
		s, out = e.series(q, ri, o, out)
	}
	in, load := e.inputs(q, r.detector, b, o)
	s.tracker.push(trend.Point{Batch: q.position, AtMs: q.atMs, Value: v, Load: load}, in)
	s.evidence.push(q, b, o, &e.memo)
	e.rules[ri].taken++
	e.rules[ri].lastMs = q.atMs
	was := s.judged.Said
	s.judge(q)
	if s.judged.Said != was && s.alert == nil && s.judged.Said != SaidFound {
		out = append(out, Verdict{Rule: r.alert, Query: q.ref, Said: s.judged.Said})
	}
	if s.alert == nil && s.judged.Said != SaidFound { // most are: nothing to move
		s.asOfMs = e.asOfMs
		return out
	}
	return e.live(q, ri, s, q.moment(), out)
}

// inputs evaluates what a detector looks at beside the signal; the first of them
// is returned by itself too, NaN without any.
func (e *Engine) inputs(q *queryState, d detector, b *event.Batch, o *event.Operator) (in []float64, first float64) {
	in, first = e.in[:0], math.NaN()
	for i, x := range d.inputs() {
		y, _ := e.memo.at(x, b, o, &q.facts)
		in = append(in, y)
		if i == 0 {
			first = y
		}
	}
	e.in = in
	return in, first
}

// value evaluates a rule's signal under its guards; NaN where it does not apply.
func (e *Engine) value(q *queryState, ri int, b *event.Batch, o *event.Operator) float64 {
	v, plausible := e.pack.rules[ri].valueOf(b, o, &q.facts, &e.memo)
	if !plausible {
		e.rules[ri].metrics.implausible.Inc()
	}
	return v
}

// valueOf evaluates the rule's signal under its guards; NaN where it does not apply.
// plausible is false where a figure in it cannot be true.
func (r *rule) valueOf(b *event.Batch, o *event.Operator, f *Facts, m *memo) (v float64, plausible bool) {
	if when := r.signal.when; when != nil {
		if holds, _ := m.at(when, b, o, f); holds != 1 {
			return math.NaN(), true
		}
	}
	if r.when != nil {
		if holds, _ := m.at(r.when, b, o, f); holds != 1 {
			return math.NaN(), true
		}
	}
	return m.at(r.signal.expr, b, o, f)
}

// Tick tells the engine that time passes, Unix milliseconds: it judges what is
// silent. Silence resolves nothing. Ticks that could not happen in time are
// counted and change nothing.
func (e *Engine) Tick(nowMs int64, out []Verdict) []Verdict {
	if late := nowMs - e.ticked; e.ticked != 0 && late >= 2*e.opts.TickMs {
		e.opts.Metrics.ticksMissed.Add(float64(late/e.opts.TickMs - 1))
		e.standstill(e.ticked, nowMs)
	}
	e.ticked = nowMs
	e.advance(nowMs)
	e.asOfMs = e.nowMs
	e.prune()
	return e.settle(e.watchAll(e.letGo(out)))
}
