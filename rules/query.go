package rules

import (
	"github.com/stategauge/stategauge/event"
)

const (
	// A run warms up for so many batches and so long, the longer: caches are cold,
	// stores load, executors come.
	warmUpBatches = 20
	warmUpMs      = 30 * 60 * 1000
	// A gap is a pause if it is so many times the usual spacing and so long.
	pauseFactor = 10
	pauseMs     = 30 * 60 * 1000
	// spacingWeight is how fast the usual spacing follows.
	spacingWeight = 0.1
)

// queryState is what the engine keeps of one query.
type queryState struct {
	ref     event.QueryRef
	cluster string
	extra   []event.Label
	trigger event.TriggerKind
	state   event.State

	run        event.RunID
	runStartMs int64
	runBatches int  // executed batches of the run
	midway     bool // the run was running already when we first saw it

	lastBatch int64 // newest executed batch id, Absent before the first
	// position is the batch's place in the windows: its id, moved up where a run
	// went back to ids that had been before.
	position int64
	shift    int64
	atMs     int64 // start of the newest batch
	// elapsedMs only ever grows: the sum of the steps forward in event time, so that
	// a clock that jumps back cannot hold a pending alert.
	elapsedMs int64
	gapMs     int64 // from the batch before
	spacingMs float64

	facts     Facts
	story     story
	around    *surroundings // what is heard of others
	held      bool          // retired, and kept for alerts that last
	operators int32         // of the newest batch with figures, 0 before the first
	uploads   uploads
	dated     int    // batches that FactFirstEventMs is from
	group     string // key of a group of queries that this stands for; empty for a query

	rules   [][]*series // by place of the rule in the pack
	columns []*columnSet
	rings   []*sharedRing
}

func newQueryState(rules int) *queryState {
	return &queryState{lastBatch: event.Absent, atMs: event.Absent, runStartMs: event.Absent, facts: unknownFacts, story: newStory(), rules: make([][]*series, rules)}
}

// note keeps what the update says about the query itself. Terminated and idle
// events carry no name: what was known stays.
func (q *queryState) note(u *event.Update) {
	ref := u.Event.Query
	q.ref.ID = ref.ID
	if ref.Name != "" {
		q.ref.Name = ref.Name
	}
	if ref.Application != "" {
		q.ref.Application = ref.Application
	}
	if u.Event.Cluster != "" {
		q.cluster = u.Event.Cluster
	}
	q.told(u.Event.Envelope)
	if len(u.Event.Extra) > 0 && !sameLabels(q.extra, u.Event.Extra) {
		q.extra = append(q.extra[:0], u.Event.Extra...)
	}
	if u.Trigger != event.TriggerUnknown {
		q.trigger = u.Trigger
	}
	if u.State != event.StateUnknown {
		q.state = u.State
	}
	if u.Outcome == event.OutcomeStarted && u.Event.Run != q.run {
		q.enterRun(u.Event.Run, u.Event.AtMs, false)
	}
}

func sameLabels(a, b []event.Label) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// newestBatch is the newest executed batch, -1 before the first.
func (q *queryState) newestBatch() int64 { return max(-1, q.lastBatch) }

func (q *queryState) enterRun(run event.RunID, atMs int64, midway bool) {
	q.run, q.runStartMs, q.runBatches, q.midway = run, atMs, 0, midway
}

// advance moves on to the update's batch. It reports false for a batch that is not
// newer than the last one of its run, or that cannot be placed.
func (q *queryState) advance(u *event.Update) bool {
	b := u.Event.Batch
	if b.ID == event.Absent {
		return false
	}
	run := u.Event.Run
	if run == "" {
		run = b.Run
	}
	if first := q.lastBatch == event.Absent; run != q.run || first && q.runStartMs == event.Absent {
		q.enterRun(run, b.StartMs, first && !u.StartedSeen && b.ID > 0)
	} else if !first && b.ID <= q.lastBatch && q.runBatches > 0 {
		return false
	}
	q.place(b.ID)
	q.clock(b.StartMs)
	return true
}

// place gives the batch a position above all before it.
func (q *queryState) place(id int64) {
	if q.lastBatch != event.Absent && id+q.shift <= q.position {
		q.shift = q.position + 1 - id
	}
	q.lastBatch, q.position = id, id+q.shift
}

// clock moves event time on. An undated batch happens when the last one did.
func (q *queryState) clock(startMs int64) {
	if q.runStartMs == event.Absent {
		q.runStartMs = startMs
	}
	q.gapMs = 0
	if startMs == event.Absent {
		return
	}
	if q.atMs != event.Absent && startMs > q.atMs {
		q.gapMs = startMs - q.atMs
		q.elapsedMs += q.gapMs
	}
	q.atMs = startMs
}

// paused reports whether there was a long gap before the newest batch, and learns
// the usual spacing from gaps that are none.
func (q *queryState) paused() bool {
	gap := float64(q.gapMs)
	if q.spacingMs > 0 && q.gapMs >= pauseMs && gap > pauseFactor*q.spacingMs {
		return true
	}
	switch {
	case gap <= 0:
	case q.spacingMs == 0:
		q.spacingMs = gap
	default:
		q.spacingMs += spacingWeight * (gap - q.spacingMs)
	}
	return false
}

// warming reports whether the newest batch is too early in its run to be judged:
// the first batch of each short run, or a long run's warm-up.
func (q *queryState) warming() bool {
	switch {
	case chained(q.trigger):
		return q.runBatches == 0
	case q.midway:
		return false
	}
	return q.runBatches < warmUpBatches || q.runStartMs != event.Absent && q.atMs-q.runStartMs < warmUpMs
}

// series is one rule's view of one query or operator.
type series struct {
	operator string
	index    int // of the operator, -1 for the query
	tracker  tracker
	shared   sharer       // the same, where it shares columns
	watcher  watcher      // in place of a tracker, for detectors of events
	evidence evidenceView // what the rule watches beside
	judged   Judgement
	// waited is how many batches came since the last judgement, and judgedAt the
	// elapsed time of it.
	waited   int
	judgedAt int64
	stride   int32 // batches from one judgement to the next
	patience int32 // strides from one to the next while there is no alert
	alert    *liveAlert
	asOfMs   int64 // Engine.asOfMs at the last judgement
}

const (
	// A quiet series is judged every so many batches, one with an alert more often,
	// and each at least every five minutes: a judgement costs a hundred times what
	// taking a value in does.
	quietStride  = 8
	activeStride = 4
	judgeEveryMs = 5 * 60 * 1000
	// A window of hours turns no sooner where batches are seconds long: a quiet series of
	// such a rule waits up to so many strides, unless the five minutes pass before.
	hoursPatience = 4
)

// judge looks at the series if it is time to.
func (s *series) judge(q *queryState) {
	s.waited++
	if !s.due(q) {
		return
	}
	s.waited, s.judgedAt = 0, q.elapsedMs
	var hold *Judgement
	if s.alert != nil && s.alert.state == Firing {
		hold = &s.alert.finding
	}
	s.judged = s.tracker.judge(hold)
}

// due reports whether it is time to judge the series.
func (s *series) due(q *queryState) bool {
	stride := int(s.stride)
	if s.alert != nil {
		return s.passed(q, max(1, stride*activeStride/quietStride), stride)
	}
	patience := int(s.patience)
	if !s.passed(q, stride*patience, stride) {
		return false
	}
	r, ok := s.tracker.(resting)
	return !ok || !r.rests(&s.judged) || s.passed(q, 2*stride*patience, 2*stride)
}

// passed reports whether so many batches came since the last judgement, or as much time
// passed as a stride so long may take at the most.
func (s *series) passed(q *queryState, batches, stride int) bool {
	return s.waited >= batches || q.elapsedMs-s.judgedAt >= int64(stride)*judgeEveryMs/quietStride
}

// reset empties the windows. An alert stays: it needs batches that say it is over.
func (s *series) reset() {
	if s.watcher != nil {
		return // what happens to a query knows no segments
	}
	s.tracker.reset()
	s.evidence.reset()
	s.judged, s.waited = Judgement{Said: SaidTooFew, Since: -1}, 0
}

// series returns the rule's series for the operator, or for the query where o is
// nil, and makes it where there is none. An operator whose name changed is another.
func (e *Engine) series(q *queryState, ri int, o *event.Operator, out []Verdict) (*series, []Verdict) {
	index, name := -1, ""
	if o != nil {
		index, name = o.Index, o.Name
	}
	for k, s := range q.rules[ri] {
		if s.index != index {
			continue
		}
		if s.operator == name {
			return s, out
		}
		out = e.end(q, ri, s, "another operator took its place", q.atMs, out)
		s.release(q)
		q.rules[ri][k] = e.newSeries(q, ri, index, name)
		return q.rules[ri][k], out
	}
	s := e.newSeries(q, ri, index, name)
	q.rules[ri] = append(q.rules[ri], s)
	return s, out
}

func (e *Engine) newSeries(q *queryState, ri, index int, name string) *series {
	r := e.pack.rules[ri]
	s := &series{operator: name, index: index}
	if d, ok := r.detector.(eventDetector); ok {
		s.watcher = d.newWatcher()
	} else if d := e.rules[ri].share; d != nil {
		s.shared = d.newSharer(e.scratch, func(x Extent) *column {
			return q.columnOf(r, d.adjusts(), x, index, name, e.scratch)
		})
		s.tracker = s.shared
	} else {
		s.tracker = r.detector.newTracker(e.scratch)
	}
	s.stride = quietStride
	if d, ok := r.detector.(paced); ok {
		s.stride = int32(d.stride())
	}
	s.patience = patienceOf(r.detector, s.stride)
	s.judged, s.waited = Judgement{Said: SaidTooFew, Since: -1}, int(s.stride*s.patience) // judged at once
	s.evidence = e.evidenceOf(q, ri, index, name)
	return s
}

// patienceOf is how many strides a quiet series waits at most. A rhythm is one of batches:
// what comes each tenth shows as soon where they are short.
func patienceOf(d detector, stride int32) int32 {
	if _, rhythm := d.(*spiking); rhythm || stride == 1 || d.span().Ms == 0 {
		return 1
	}
	return hoursPatience
}

// dropGone ends the series of operators that the query no longer has.
func (e *Engine) dropGone(q *queryState, ri, operators int, out []Verdict) []Verdict {
	kept := q.rules[ri][:0]
	for _, s := range q.rules[ri] {
		if s.index < operators {
			kept = append(kept, s)
			continue
		}
		out = e.end(q, ri, s, "the query no longer has the operator", q.atMs, out)
		s.release(q)
	}
	clear(q.rules[ri][len(kept):])
	q.rules[ri] = kept
	return out
}
