package rules

import (
	"fmt"
	"math"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// silentSpec is the detector `silent`: a query of which nothing is heard.
type silentSpec struct {
	// With says what the silence is judged by: heartbeats, anything (the default), or
	// record.
	With string `yaml:"with"`
	// Factor times what is usual is too long; default 5, with record 3.
	Factor float64 `yaml:"factor"`
	// AtLeast is how long a silence must be in any case; default 10m, with heartbeats
	// 2m, with record 30m.
	AtLeast strictyaml.Duration `yaml:"at_least"`
}

// howSilence is how a silence is found.
const howSilence = "silence"

// heardAgain is why a silence is none; Value and Limit hold the figures.
const heardAgain = "the query is heard"

// What a silence is judged by.
const (
	withHeartbeats = "heartbeats"
	withAnything   = "anything"
	withRecord     = "record"
)

// othersAlive is the part of a silence that others may be silent for and still
// count as heard: what ends for all does not end in the same second.
const othersAlive = 0.5

// leastWithHeartbeats is how long a silence with heartbeats must be.
const leastWithHeartbeats = 2 * time.Minute

// silent judges silence. With heartbeats it tells a batch that hangs, which takes
// factor times the 99th percentile of the query's batches, from a driver or a
// sender that is gone. Without them a query that says when it idles is silent
// after factor times the distance that nine of ten of its words keep. A query that
// never says so may just be idle: it is judged by the longest silence of seven
// days, its record. A job of short runs is judged by the distances of its runs.
// Exactly one of the three applies to a query at a time; the other rules say
// which.
type silent struct {
	spec      silentSpec
	atLeastMs float64
}

func (s *silentSpec) valueUnit() string { return "seconds" }

func (s *silentSpec) compile(c *ruleCompiler, key string) detector {
	d := &silent{spec: *s}
	if s.With == "" {
		d.spec.With = withAnything
	}
	if err := oneOf("with", d.spec.With, []string{withHeartbeats, withAnything, withRecord}); err != nil {
		c.faultf([]any{key, "with"}, "%w", err)
	}
	factor, atLeast := 5.0, 10*time.Minute
	switch d.spec.With {
	case withHeartbeats:
		atLeast = leastWithHeartbeats
	case withRecord:
		factor, atLeast = 3, 30*time.Minute
	}
	if s.Factor == 0 {
		d.spec.Factor = factor
	}
	if s.AtLeast == 0 {
		d.spec.AtLeast = strictyaml.Duration(atLeast)
	}
	if d.spec.Factor <= 1 || d.spec.Factor > 1000 {
		c.faultf([]any{key, "factor"}, "factor (%g) must be above 1 and at most 1000", s.Factor)
	}
	d.atLeastMs = float64(d.spec.AtLeast.Std().Milliseconds())
	return d
}

func (d *silent) name() string                      { return "silent" }
func (d *silent) inputs() []*expression             { return nil }
func (d *silent) span() Extent                      { return Extent{} }
func (d *silent) newWatcher() watcher               { return silentView{view(d.judge), d} }
func (d *silent) newTracker(*trend.Scratch) tracker { return nil }
func (d *silent) lasts() bool                       { return true }

func (d *silent) describe() string {
	return fmt.Sprintf("silent for %g times what is usual, at least %s, judged with %s", d.spec.Factor, shortDuration(d.spec.AtLeast.Std()), d.spec.With)
}

// silentView is a watcher that knows without a look that a silence is not long enough.
type silentView struct {
	view
	d *silent
}

// waits reports whether a silence that was none a while ago is too short to be one yet:
// no limit is below the least.
func (v silentView) waits(q *queryState, nowMs int64, before *Judgement) bool {
	quiet := q.silence(nowMs)
	if before.Said != SaidClear || before.How != howSilence || q.story.ended || quiet > v.d.atLeastMs {
		return false
	}
	before.Value = quiet / 1000
	return true
}

// judge says how the query stands.
func (d *silent) judge(q *queryState, nowMs int64) Judgement {
	s := &q.story
	switch {
	case q.trigger == event.TriggerContinuous:
		return noted(SaidClear, "a continuous trigger reports no progress")
	case s.heardMs == event.Absent:
		return noted(SaidTooFew, "too few points: nothing was heard yet")
	case s.ended:
		return d.between(q, nowMs)
	case d.spec.With == withHeartbeats:
		return d.byHeartbeats(q, nowMs)
	}
	return d.byWords(q, nowMs)
}

// silence is how long nothing was heard of the query, in milliseconds.
func (q *queryState) silence(nowMs int64) float64 { return float64(max(0, nowMs-q.story.heardMs)) }

// byWords judges by what the query itself says.
func (d *silent) byWords(q *queryState, nowMs int64) Judgement {
	s, quiet := &q.story, q.silence(nowMs)
	limit, known := s.limitMs(d.spec.Factor, d.atLeastMs, q.facts[FactIntervalMs])
	usual := s.usualMs()
	if d.spec.With == withRecord {
		usual, _ = s.longest.largest(s.lastMs)
		limit = max(d.spec.Factor*usual, d.atLeastMs)
		if s.ran == 0 || s.gaps.n < minGaps {
			limit = max(limit, newRunMs)
		}
	}
	switch {
	case !known:
		return noted(SaidTooFew, fmt.Sprintf("too few points: %d of %d distances between words of the query", s.gaps.n, minGaps))
	case quiet <= limit:
		return q.quietFor(SaidClear, quiet, limit, "", heardAgain)
	case s.beats.ms != event.Absent:
		return noted(SaidCannotTell, "heartbeats tell more: a rule with heartbeats judges this query")
	case d.spec.With == withAnything && !s.idle:
		return noted(SaidCannotTell, "this run never said that it idles, so it may be idle: a rule with record judges this query")
	case d.spec.With == withRecord && s.idle:
		return noted(SaidCannotTell, "this run says when it idles: a rule with anything judges this query")
	}
	return q.quietFor(SaidFound, quiet, limit, "cannot tell", fmt.Sprintf(
		"nothing was heard for %s, where %s is usual%s: a hung batch, a dead driver or a lost sender; heartbeats of stategauge's listener would tell which",
		spell(quiet), spell(usual), d.company(q, nowMs)))
}

// company says who is still heard.
func (d *silent) company(q *queryState, nowMs int64) string {
	h := q.around.drivers[q.driver()]
	quiet := q.silence(nowMs)
	if q.ref.Application != "" && h != nil && float64(nowMs-h.ms) < othersAlive*quiet {
		return ", while other queries of the application are heard"
	}
	if float64(nowMs-q.around.all.ms) < othersAlive*quiet {
		return ", while others are heard"
	}
	return ""
}

// byHeartbeats judges by what the sender says of the query.
func (d *silent) byHeartbeats(q *queryState, nowMs int64) Judgement {
	s, quiet := &q.story, q.silence(nowMs)
	p := s.beats.sender
	if s.beats.ms == event.Absent || p == nil {
		return noted(SaidTooFew, "too few points: no heartbeat names this run")
	}
	limit := max(d.atLeastMs, beatsMissed*p.gapMs)
	switch unheard := float64(nowMs - p.lastMs); {
	case quiet > limit && unheard > limit && float64(nowMs-q.around.all.ms) < othersAlive*unheard:
		return q.quietFor(SaidFound, quiet, limit, "dead driver", fmt.Sprintf(
			"heartbeats ended %s ago, while others are heard: the driver is dead, or cut off", spell(unheard)))
	case quiet > limit && unheard > limit:
		return q.quietFor(SaidFound, quiet, limit, "lost sender", fmt.Sprintf(
			"heartbeats ended %s ago and nobody else is heard: the sender, the network or the driver is gone", spell(unheard)))
	}
	limit = max(d.atLeastMs, beatsUnnamed*p.gapMs)
	if unnamed := float64(p.lastMs - s.beats.ms); quiet > limit && unnamed > limit {
		return q.quietFor(SaidFound, quiet, limit, "gone", fmt.Sprintf(
			"the driver lives and has not named the query for %s: it ended and its end was not heard", spell(unnamed)))
	}
	return d.hung(q, quiet)
}

// hung judges a trigger that is running.
func (d *silent) hung(q *queryState, quiet float64) Judgement {
	s := &q.story
	limit := max(d.atLeastMs, d.spec.Factor*s.durations.p99)
	if s.ran == 0 || s.durations.n < minGaps {
		limit = max(limit, newRunMs)
	}
	if !s.beats.active || quiet <= limit {
		return q.quietFor(SaidClear, quiet, limit, "", heardAgain)
	}
	return q.quietFor(SaidFound, quiet, limit, "hung batch", fmt.Sprintf(
		"the driver lives and its trigger has been running for %s, where 99 of 100 batches take %s at most", spell(quiet), spell(s.durations.p99)))
}

const (
	// A job of short runs is overdue after so many times the usual distance between
	// starts, and not before so many times the longest.
	runsFactor, runsAboveLongest = 2, 1.25
	minRuns                      = 3
)

// between judges a query whose run has ended.
func (d *silent) between(q *queryState, nowMs int64) Judgement {
	s := &q.story
	switch {
	case !chained(q.trigger) || s.died:
		return noted(SaidCannotTell, "the run has ended")
	case d.spec.With != withAnything:
		return noted(SaidCannotTell, "a rule with anything judges the rhythm of runs")
	case s.runs.n < minRuns:
		return noted(SaidTooFew, fmt.Sprintf("too few points: %d of %d distances between runs", s.runs.n, minRuns))
	}
	quiet := q.silence(nowMs)
	if s.lastMs != event.Absent && s.startMs != event.Absent {
		quiet += float64(max(0, s.lastMs-s.startMs))
	}
	limit := max(d.atLeastMs, runsFactor*s.runs.p90, runsAboveLongest*s.runs.longest())
	if quiet <= limit {
		return q.quietFor(SaidClear, quiet, limit, "", heardAgain)
	}
	return q.quietFor(SaidFound, quiet, limit, "no new run", fmt.Sprintf(
		"the last run began %s ago, where one begins every %s as a rule: what starts the runs has stopped", spell(quiet), spell(s.runs.p50)))
}

// quietFor is a judgement of a silence of so many milliseconds.
func (q *queryState) quietFor(said Said, quiet, limit float64, text, why string) Judgement {
	j := noted(said, why)
	j.Value, j.Limit, j.Text, j.How = quiet/1000, limit/1000, text, howSilence
	if said == SaidFound {
		j.Since = q.nextBatch()
	}
	return j
}

// nextBatch is the position of the batch that comes next, or should.
func (q *queryState) nextBatch() int64 {
	if q.lastBatch == event.Absent {
		return 0
	}
	return q.position + 1
}

// spell writes milliseconds as people do.
func spell(ms float64) string { return humanizeDuration(math.Round(ms/1000*10) / 10) }

// noted is a judgement without figures.
func noted(said Said, why string) Judgement {
	nan := math.NaN()
	return Judgement{Said: said, Value: nan, Limit: nan, EtaMs: nan, EtaLowMs: nan, EtaHighMs: nan, Since: -1, Why: why}
}

// view is a watcher that keeps nothing: it looks at the query's story.
type view func(q *queryState, nowMs int64) Judgement

func (v view) observe(*queryState, *event.Update, int64)  {}
func (v view) judge(q *queryState, nowMs int64) Judgement { return v(q, nowMs) }
