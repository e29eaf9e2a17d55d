package replay

import (
	"math"
	"strconv"

	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
)

// Bounds on what is kept of one query, whatever its events hold.
const (
	maxOperators = 64
	maxSources   = 64
	maxPhases    = 32 // beyond the catalog's
	maxStarts    = 64
)

// facts is what the updates of one query add up to.
type facts struct {
	id     event.QueryID
	status track.QueryStatus // of the tracker, at the end

	firstMs, lastMs int64
	told            string        // Spark version as the carrier says it
	bound           event.Version // lower bound from the keys
	databricks      bool
	conf            map[string]string
	startsMs        []int64 // newest starts of runs
	rewound         int
	shared          bool

	executed, noData int
	idleCopies       int
	duration, rows   sample // ms; rows
	spacing          sample // ms between trigger starts within a run
	prevStart        int64
	prevRun          event.RunID
	lastBatch        int64
	tinyBatches      int // data batches with fewer rows than there are stores

	phases      [event.LastPhase - event.FirstPhase + 1]float64 // ms
	more        []event.KV                                      // phases outside the catalog, ms
	unaccounted float64                                         // ms
	triggerMs   float64                                         // whole trigger executions, ms

	operators []*operatorFacts
	sources   []sourceFacts
	backlog   sample // offsets, all sources
	read      tally  // offsets, all sources

	watermarks              int   // batches with a watermark
	sentinels               int   // batches whose watermark has not moved yet
	watermarkMs, eventMaxMs int64 // newest
	watermarkAhead          int64 // ms that the watermark was ahead of the batch, at most
}

type sourceFacts struct {
	description   string
	rows, backlog float64
}

func newFacts(id event.QueryID) *facts {
	return &facts{
		id: id, firstMs: event.Absent, lastMs: event.Absent, prevStart: event.Absent, lastBatch: event.Absent,
		watermarkMs: event.Absent, eventMaxMs: event.Absent,
	}
}

// add takes one update.
func (f *facts) add(u *event.Update) {
	e := u.Event
	if e.AtMs != event.Absent && e.AtMs > 0 {
		if f.firstMs == event.Absent || e.AtMs < f.firstMs {
			f.firstMs = e.AtMs
		}
		f.lastMs = max(f.lastMs, e.AtMs)
	}
	f.learn(e.Envelope)
	f.shared = f.shared || u.SharedRuns
	if u.Rewound {
		f.rewound++
	}
	switch u.Outcome {
	case event.OutcomeStarted:
		f.begun(e.AtMs)
	case event.OutcomeExecuted:
		f.batch(u)
	case event.OutcomeIdleCopy:
		f.idleCopies++
		f.identify(e.Batch)
		f.idle(e.Batch)
	}
}

func (f *facts) learn(env *event.Envelope) {
	if env == nil {
		return
	}
	if env.App.SparkVersion != "" {
		f.told = env.App.SparkVersion
	}
	if env.Conf != nil {
		f.conf = env.Conf
	}
}

func (f *facts) begun(at int64) {
	if at == event.Absent {
		return
	}
	if len(f.startsMs) == maxStarts {
		f.startsMs = append(f.startsMs[:0], f.startsMs[1:]...)
	}
	f.startsMs = append(f.startsMs, at)
}

// identify learns who sent the batch.
func (f *facts) identify(b *event.Batch) {
	if f.bound.Less(b.Spark) {
		f.bound = b.Spark
	}
	f.databricks = f.databricks || b.Databricks
}

// idle takes the levels of state that an idle query repeats, as long as no batch
// told them itself.
func (f *facts) idle(b *event.Batch) {
	if f.executed > 0 {
		return
	}
	for i := range b.Operators {
		if o := f.operator(&b.Operators[i]); o != nil {
			o.levels(&b.Operators[i])
		}
	}
	f.input(b)
}

// batch takes an executed batch.
func (f *facts) batch(u *event.Update) {
	b := u.Event.Batch
	if f.executed == 0 {
		f.operators = f.operators[:0] // an idle copy's levels are older
	}
	f.executed++
	f.identify(b)
	ms, _ := b.DurationMs()
	f.duration.add(ms)
	f.rows.add(b.Values[event.NumInputRows])
	if b.NoData {
		f.noData++
	}
	f.space(b)
	f.phase(b)
	f.eventTime(b)
	f.input(b)
	if b.ID != event.Absent {
		f.lastBatch = max(f.lastBatch, b.ID)
	}
	stores := 0.0
	for i := range b.Operators {
		o := f.operator(&b.Operators[i])
		if o == nil {
			continue
		}
		o.batch(b, &b.Operators[i])
		stores = max(stores, float64(b.Operators[i].Instances))
	}
	if rows := b.Values[event.NumInputRows]; rows > 0 && rows < stores {
		f.tinyBatches++
	}
}

// space notes the distance to the trigger before, within one run.
func (f *facts) space(b *event.Batch) {
	if b.StartMs == event.Absent {
		return
	}
	if f.prevStart != event.Absent && b.Run == f.prevRun && b.StartMs > f.prevStart {
		f.spacing.add(float64(b.StartMs - f.prevStart))
	}
	f.prevStart, f.prevRun = b.StartMs, b.Run
}

func (f *facts) phase(b *event.Batch) {
	whole := b.Values[event.DurationTriggerExecution]
	if math.IsNaN(whole) {
		return
	}
	f.triggerMs += whole
	for id := event.FirstPhase; id <= event.LastPhase; id++ {
		if b.Values.Has(id) {
			f.phases[id-event.FirstPhase] += b.Values[id]
		}
	}
	if b.Values.Has(event.DurationCollectSourceMetrics) {
		f.addPhase("collectSourceMetrics", b.Values[event.DurationCollectSourceMetrics])
	}
	for _, kv := range b.UnknownPhases {
		f.addPhase(kv.Key, kv.Value)
	}
	f.unaccounted += b.UnaccountedMs()
}

func (f *facts) addPhase(key string, ms float64) {
	for i := range f.more {
		if f.more[i].Key == key {
			f.more[i].Value += ms
			return
		}
	}
	if len(f.more) < maxPhases {
		f.more = append(f.more, event.KV{Key: key, Value: ms})
	}
}

func (f *facts) eventTime(b *event.Batch) {
	f.eventMaxMs = max(f.eventMaxMs, b.EventTimeMaxMs)
	if b.FirstWatermark {
		f.watermarks++
		f.sentinels++
		return
	}
	if b.WatermarkMs == event.Absent {
		return
	}
	f.watermarks++
	f.watermarkMs = max(f.watermarkMs, b.WatermarkMs)
	if b.StartMs != event.Absent {
		f.watermarkAhead = max(f.watermarkAhead, b.WatermarkMs-b.StartMs)
	}
}

// input takes what the sources say.
func (f *facts) input(b *event.Batch) {
	f.sources = f.sources[:0]
	backlog, read := math.NaN(), math.NaN()
	for i := range b.Sources[:min(len(b.Sources), maxSources)] {
		s := &b.Sources[i]
		behind := behind(s)
		f.sources = append(f.sources, sourceFacts{s.Description, number(s.Rows), behind})
		backlog, read = plus(backlog, behind), plus(read, number(s.Read))
	}
	f.backlog.add(backlog)
	f.read.add(read)
}

// behind is how much a source has not read yet: offsets where it tells its newest
// one, otherwise the files that it says are outstanding.
func behind(s *event.Source) float64 {
	if s.Backlog != event.Absent {
		return float64(s.Backlog)
	}
	return math.NaN()
}

func number(n int64) float64 {
	if n == event.Absent {
		return math.NaN()
	}
	return float64(n)
}

// plus adds, where an absent summand is none.
func plus(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}

// operator finds the facts of an operator by its place.
func (f *facts) operator(o *event.Operator) *operatorFacts {
	if o.Index >= maxOperators {
		return nil
	}
	for len(f.operators) <= o.Index {
		f.operators = append(f.operators, newOperatorFacts(len(f.operators)))
	}
	return f.operators[o.Index]
}

// label is what a person calls the query.
func (f *facts) label() string { return f.status.Query.Label() }

// gapSeconds is the usual distance between batches, NaN where unknown.
func (f *facts) gapSeconds() float64 { return f.spacing.quantile(0.5) / 1000 }

// spark returns the version told, or the lower bound that the keys give.
func (f *facts) spark() string {
	if f.told != "" {
		return f.told
	}
	if f.bound.IsZero() {
		return ""
	}
	return strconv.Itoa(int(f.bound.Major)) + "." + strconv.Itoa(int(f.bound.Minor)) + "+"
}
