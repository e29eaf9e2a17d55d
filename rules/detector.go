package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// detector is one way of judging a series of values, compiled from a rule. It is
// immutable and shared by every query; what it learns lives in its trackers.
type detector interface {
	// name is the word that rule files use for it.
	name() string
	// describe says what it asks, in one line.
	describe() string
	// inputs are what it looks at beside the signal, evaluated for each batch.
	inputs() []*expression
	// span is the stretch that evidence is gathered over.
	span() Extent
	// newTracker makes the state of one series. Trackers of one engine run on one
	// goroutine and share a scratch.
	newTracker(s *trend.Scratch) tracker
}

// paced is a detector that is judged each so many batches, where the engine's own
// stride does not fit what a judgement costs.
type paced interface {
	detector
	stride() int
}

// eventDetector is a detector that judges what happens to a query, and silence,
// instead of a figure of its batches. Its rules need no signal.
type eventDetector interface {
	detector
	newWatcher() watcher
}

// lasting is an eventDetector whose alerts outlive their query: what it finds is
// over only once the query makes progress, has a successor, or is forgotten.
type lasting interface{ lasts() bool }

// watcher is an eventDetector's state for one query.
type watcher interface {
	// observe takes in everything that is heard of the query; heartbeats that name
	// it come too. nowMs is when it was heard, Unix milliseconds.
	observe(q *queryState, u *event.Update, nowMs int64)
	// judge says how things stand at nowMs. It does not change the watcher.
	judge(q *queryState, nowMs int64) Judgement
}

// settled is a watcher that knows without a look that its judgement is what it was.
type settled interface {
	stays(q *queryState, before *Judgement) bool
}

// patient is a watcher that knows only where nothing but time has passed, and puts the time
// into the judgement.
type patient interface {
	waits(q *queryState, nowMs int64, before *Judgement) bool
}

// groupDetector is a detector that judges many queries together: those of a
// cluster, those of a sender. Its rules need no signal; their alerts have no query.
type groupDetector interface {
	eventDetector
	newGroups() grouper
}

// grouper is a groupDetector's state for the whole engine.
type grouper interface {
	// observe takes in everything that is heard; q is nil where it names no query.
	observe(q *queryState, u *event.Update, nowMs int64)
	// judge says how each group stands at nowMs, in an order that does not change.
	judge(e *Engine, nowMs int64, out []Grouped) []Grouped
}

// Grouped is a judgement of one group of queries.
type Grouped struct {
	Key         string // of the group: its cluster or sender
	Cluster     string // spark_cluster label; may be empty
	Application string // application label; may be empty
	Judgement
	Members []string // names of the queries that it rests on, sorted
	Total   int      // queries of the group
	AsOfMs  int64    // event time that it rests on, 0 for the present
}

// tracker is a detector's state for one series.
type tracker interface {
	// push takes in the value of one batch. in holds the detector's inputs in
	// order, NaN where one is absent; p.Load is the first of them, NaN without any.
	push(p trend.Point, in []float64)
	// judge says what the series shows now; hold is the finding that an alert fires
	// for, or nil. It does not change the tracker.
	judge(hold *Judgement) Judgement
	// reset forgets all batches, at the start of a new segment.
	reset()
	// points is the number of batches it has to judge by.
	points() int
}

// resting is a tracker whose judgements are dear: after some it can do with half as many.
type resting interface{ rests(last *Judgement) bool }

// Judgement is what a detector makes of one series at one batch. Values are in the
// signal's unit.
type Judgement struct {
	Said          Said
	Value         float64 // what the level is now
	Start, End    float64 // the fitted value at the beginning and at the end of the window
	Rise          float64 // End - Start, below zero in a fall
	Relative      float64 // Rise / Start, 0 where Start is not above zero
	SlopePerBatch float64
	Points        int   // batches judged by
	SpanMs        int64 // event time that they cover, milliseconds; 0 where it is not kept
	Since         int64 // batch where it began, -1 without a finding
	// How names the way the finding was made: "trend", "level", or "held" for a rise
	// that has stopped and has not gone back. Other detectors have words of their own.
	How string
	// Why says in words what a verdict rests on, or what would be needed for one.
	Why string
	// Limit is what the value is held against, NaN without one. EtaMs is when it will
	// be met, from now, milliseconds, with the likely range; NaN where it will not.
	Limit, EtaMs, EtaLowMs, EtaHighMs float64
	// Period of what repeats, in batches or, where OnClock is set, in milliseconds.
	Period  float64
	OnClock bool
	// Count is how many of what the detector counts: batches over the limit, starts,
	// queries of a fleet.
	Count int
	// Text carries one word of an event: an error class, what changed.
	Text string
}

// detectorSpecs are the keys of a rule that hold a detector: one field each. A new
// detector is a field here and a line in list.
type detectorSpecs struct {
	Rising  *risingSpec  `yaml:"rising"`
	Falling *risingSpec  `yaml:"falling"`
	Above   *aboveSpec   `yaml:"above"`
	Below   *aboveSpec   `yaml:"below"`
	Shifted *shiftedSpec `yaml:"shifted"`
	Spiking *spikingSpec `yaml:"spiking"`
	Reaches *reachesSpec `yaml:"reaches"`
	Follows *followsSpec `yaml:"follows"`
	Stands  *standsSpec  `yaml:"stands"`
	Fleet   *fleetSpec   `yaml:"fleet"`

	Silent     *silentSpec     `yaml:"silent"`
	Failed     *failedSpec     `yaml:"failed"`
	Restarting *restartingSpec `yaml:"restarting"`
	Changed    *changedSpec    `yaml:"changed"`
	Sender     *senderSpec     `yaml:"sender"`
}

// detectorSpec is a detector as a rule file writes it.
type detectorSpec interface {
	// compile checks the spec and makes the detector. It reports faults through c.
	compile(c *ruleCompiler, key string) detector
}

// eventSpec is the spec of an eventDetector: it says which unit its value has.
type eventSpec interface {
	detectorSpec
	valueUnit() string
}

// ofEvents returns the signal that stands in for the one that a rule of events does
// not have; nil where the rule needs a signal.
func (d *detectorSpecs) ofEvents() *signal {
	for _, n := range d.list() {
		if s, ok := n.spec.(eventSpec); ok {
			return &signal{name: n.key, unit: s.valueUnit(), expr: &expression{text: n.key, key: n.key, eval: absent}}
		}
	}
	return nil
}

func absent(*event.Vector, *event.Batch, *event.Operator, *Facts) float64 { return math.NaN() }

type namedSpec struct {
	key  string
	spec detectorSpec
}

// list returns the detectors that a rule sets.
func (d *detectorSpecs) list() []namedSpec {
	var out []namedSpec
	add := func(set bool, key string, spec detectorSpec) {
		if set {
			out = append(out, namedSpec{key, spec})
		}
	}
	add(d.Rising != nil, "rising", d.Rising)
	add(d.Falling != nil, "falling", d.Falling)
	add(d.Above != nil, "above", d.Above)
	add(d.Below != nil, "below", d.Below)
	add(d.Shifted != nil, "shifted", d.Shifted)
	add(d.Spiking != nil, "spiking", d.Spiking)
	add(d.Reaches != nil, "reaches", d.Reaches)
	add(d.Follows != nil, "follows", d.Follows)
	add(d.Stands != nil, "stands", d.Stands)
	add(d.Fleet != nil, "fleet", d.Fleet)
	add(d.Silent != nil, "silent", d.Silent)
	add(d.Failed != nil, "failed", d.Failed)
	add(d.Restarting != nil, "restarting", d.Restarting)
	add(d.Changed != nil, "changed", d.Changed)
	add(d.Sender != nil, "sender", d.Sender)
	return out
}

// detectorNames are the keys of all detectors.
func detectorNames() []string {
	return []string{
		"rising", "falling", "above", "below", "shifted", "spiking", "reaches", "follows", "stands",
		"fleet", "silent", "failed", "restarting", "changed", "sender",
	}
}

// ruleCompiler is what a detector's spec compiles with.
type ruleCompiler struct {
	*loader
	path   string // of the rule
	signal *signal
}

// faultf reports a fault at a key of the rule.
func (c *ruleCompiler) faultf(keys []any, format string, args ...any) {
	path := c.path
	for _, k := range keys {
		path += "." + strictyaml.Path(k)
	}
	c.fault(c.pos.Faultf(path, format, args...))
}
