// Package event holds what Spark says about its streaming queries, typed: the
// four listener events, the batch inside a progress event, and the catalog of
// every metric that a batch can carry. It knows nothing of carriers, transports
// or Prometheus; every other package of the project speaks in these types.
package event

import "math"

// Absent is the value of an int64 field (a time, a count, a version) that the
// event did not carry. Absent is never zero.
const Absent = math.MinInt64

// QueryID identifies a query for the life of its checkpoint: Spark's `id`. It is
// a string rather than 16 bytes because hand-made events carry ids that are no UUID.
type QueryID string

// RunID identifies one start of a query: Spark's `runId`. Empty where a carrier
// leaves it out.
type RunID string

// QueryRef names a query the way people and labels do.
type QueryRef struct {
	ID          QueryID
	Name        string // empty where the user gave none
	Application string // application name or id, empty where the carrier does not say
}

// Label returns the name a person would use for the query: its name, or its id
// where it has none.
func (q QueryRef) Label() string {
	if q.Name == "" {
		return string(q.ID)
	}
	return q.Name
}

// Kind is what an Event says.
type Kind uint8

// The kinds of event. Tick is the only one that no sender writes: the tracker
// makes it when time passing changes a query's state.
const (
	KindUnknown Kind = iota
	KindStarted
	KindProgress
	KindIdle
	KindTerminated
	KindHeartbeat
	KindTick
)

var kindNames = [...]string{"unknown", "started", "progress", "idle", "terminated", "heartbeat", "tick"}

// String returns the kind in lower case, as metrics and JSON show it.
func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// Event is one thing Spark said, whatever carried it.
type Event struct {
	Kind  Kind
	Batch *Batch // progress only, otherwise nil
	Query QueryRef
	Run   RunID
	// AtMs is when it happened by the sender's clock, Unix milliseconds: the
	// trigger's start for progress, the event's own timestamp for started and
	// idle, the envelope's `at` for the rest. Absent where nothing dates it.
	AtMs     int64
	Failure  *Failure  // terminated with an exception only
	Envelope *Envelope // nil for bare events: absent, not empty
	JobTags  []string  // started only, Spark 4.1+
	Cluster  string    // spark_cluster label: the envelope's app.cluster or what the carrier says; empty if unknown
	Extra    []Label   // further labels that the configuration takes from the carrier, sorted by name
}

// Label is a name and a value that the carrier adds to a query.
type Label struct{ Name, Value string }

// Failure is why a query died.
type Failure struct {
	Class   string // Spark's errorClassOnException, empty before 3.5
	Message string // first line of the exception, cut to a bounded length
}

// Batch is one progress report: an executed batch, an executed batch without
// data, or the copy that Spark sends while a query idles (Executed false).
//
// A Batch is pooled: it and everything it points to are valid until the handler
// that received it returns. Strings in it are interned and may be kept.
type Batch struct {
	Query          QueryRef
	Run            RunID
	ID             int64 // batchId; Absent where the carrier leaves it out
	StartMs        int64 // start of the trigger, Unix milliseconds; Absent if undated
	WatermarkMs    int64 // watermark this batch used; Absent for none and for Spark's 1970 sentinel
	EventTimeMaxMs int64 // Absent without input rows or without a watermark column

	// Executed tells a batch that ran from the copy sent while idle. See Settle.
	Executed bool
	// NoData marks an executed batch that read no rows (eviction, timeouts).
	NoData bool
	// FirstWatermark is true where the watermark is present but still at Spark's
	// sentinel of 1970: the query has one, but it has not moved yet.
	FirstWatermark bool

	Values    Vector // query and sink metrics by MetricID
	Operators []Operator
	Sources   []Source

	UnknownPhases []KV         // durationMs keys outside the catalog, milliseconds
	Observed      []Observed   // numeric columns of Dataset.observe
	Percentiles   []Percentile // real-time mode latencies (Databricks)

	Trigger     TriggerKind // from the progress itself, where a Spark says it; otherwise TriggerUnknown
	Description string      // sink description, as Spark writes it
	Spark       Version     // lower bound of the sender's version, from the keys present; zero if nothing tells
	Databricks  bool        // keys or class names that only Databricks writes
	Missing     Missing     // fields that a progress should have and this one has not
}

// Missing is a bit set of fields that were expected and absent.
type Missing uint8

// Fields whose absence is counted by name.
const (
	MissingBatchDuration Missing = 1 << iota
	MissingTriggerExecution
	MissingTimestamp
	MissingBatchID
	MissingRunID
)

// MissingNames lists the fields of m by Spark's own names.
func (m Missing) MissingNames() []string {
	var out []string
	for i, n := range [...]string{"batchDuration", "durationMs.triggerExecution", "timestamp", "batchId", "runId"} {
		if m&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// Operator is one stateful operator of a batch. All values are Spark's own,
// summed over parallel tasks unless the catalog says otherwise.
type Operator struct {
	Name  string // short operator name, empty before Spark 3.2
	Index int    // position in stateOperators: the only identity an operator has
	// Instances is numStateStoreInstances: the divisor for commitTimeMs and
	// memoryUsedBytes. 0 where absent.
	Instances int32
	// Stores is how many of the instances feed customMetrics: half of them for a
	// stream-stream join of format 1 and 2, all of them otherwise. 0 where unknown.
	Stores int32
	Values Vector
	// SnapshotMin is the smallest SnapshotLastUploaded of the instances reported
	// (a state version; -1: one of them uploaded nothing yet). Absent where no
	// such key came. NumSnapshots is how many keys were folded into it.
	SnapshotMin  int64
	NumSnapshots int32
	Provider     Provider // as far as the keys tell
	Unknown      []KV     // customMetrics keys outside the catalog
}

// Source is one input of a batch, its per-partition offsets folded.
type Source struct {
	Description string
	Rows        int64 // numInputRows; Absent where not told
	// Backlog is newest minus read, in offsets, summed over partitions; Absent
	// where the source does not say its newest offset.
	Backlog int64
	// Read is how far the batch advanced the source (end minus start), in
	// offsets, summed over partitions; Absent where offsets are no numbers.
	Read                               int64
	InputRate, ProcessedRate           float64 // rows per second, NaN where absent
	MinBehind, MaxBehind, AvgBehind    float64 // offsets behind latest per partition as the source's metrics say; NaN where absent
	FilesOutstanding, BytesOutstanding float64 // NaN where absent
}

// KV is a metric outside the catalog: Spark's key and its number.
type KV struct {
	Key   string
	Value float64
}

// Observed is one numeric column of a named Dataset.observe.
type Observed struct {
	Name, Column string
	Value        float64
}

// Percentile is one latency percentile of a real-time mode batch.
type Percentile struct {
	Metric   MetricID
	Quantile float64 // 0 to 1
	Value    float64 // milliseconds, as sent
}

// TriggerKind says how a query's batches are started.
type TriggerKind uint8

// The trigger kinds of symptoms.md's first ground rule.
const (
	TriggerUnknown TriggerKind = iota
	TriggerInterval
	TriggerDefault
	TriggerAvailableNow
	TriggerOnce
	TriggerRealTime
	TriggerContinuous
)

var triggerNames = [...]string{"unknown", "interval", "default", "available_now", "once", "real_time", "continuous"}

// String returns the name used in labels and in configuration.
func (t TriggerKind) String() string { return nameOf(triggerNames[:], int(t)) }

// Envelope is what our own listeners wrap around an event. All of it is optional.
type Envelope struct {
	Sender       string // one UUID per listener
	Seq, Dropped int64  // running number and count of events the sender had to drop; Absent if not told
	AtMs         int64  // sender's clock; Absent if not told
	App          App
	Conf         map[string]string // allow-listed Spark settings, nil where not sent
	Executors    *Executors        // nil where not sent
	Active       []ActiveQuery     // heartbeat only
}

// CopyFrom makes e a copy of src that outlives it, reusing e's memory. Settings and
// executors are shared: nobody changes them once they are decoded.
func (e *Envelope) CopyFrom(src *Envelope) {
	active := append(e.Active[:0], src.Active...)
	*e = *src
	e.Active = active
}

// App is the application a sender runs in.
type App struct{ ID, Name, SparkVersion, Cluster string }

// Executors sums up a sender's executors. Absent fields hold Absent.
type Executors struct {
	Count, Cores, MemoryBytes, OverheadBytes, Losses, GCTimeMs int64
}

// ActiveQuery is one query of a heartbeat.
type ActiveQuery struct {
	ID            QueryID
	Run           RunID
	TriggerActive bool // a trigger is running now
}

// Origin is where an event came from.
type Origin struct {
	Source     string // name of the source: "http", "kafka", "file"
	Topic      string // Kafka topic or file name
	Partition  int32
	Offset     int64 // Kafka offset, or line number in a file
	ReceivedMs int64 // our clock, Unix milliseconds
}

// Outcome is what the tracker made of an event. Every event has exactly one.
type Outcome uint8

// The outcomes.
const (
	OutcomeUnknown     Outcome = iota
	OutcomeExecuted            // a batch counted for the first time
	OutcomeIdleCopy            // a progress that repeats the last batch: liveness only
	OutcomeDuplicate           // the same delivery or execution again
	OutcomeLate                // of an older run, or too old to tell from a repeat: never touches the current run
	OutcomeStarted             // a run began
	OutcomeIdle                // an idle event
	OutcomeTerminated          // a run ended cleanly
	OutcomeFailed              // a run ended with an exception
	OutcomeHeartbeat           // a sender is alive
	OutcomeStateChange         // made by Tick: time changed a query's state
	OutcomeUnjudgeable         // lacks what identity needs
	OutcomeRefused             // over a limit on queries or the like
)

var outcomeNames = [...]string{
	"unknown", "executed", "idle_copy", "duplicate", "late", "started", "idle", "terminated",
	"failed", "heartbeat", "state_change", "unjudgeable", "refused",
}

// Outcomes lists every outcome that can be counted, in order.
func Outcomes() []Outcome {
	out := make([]Outcome, 0, len(outcomeNames)-1)
	for i := 1; i < len(outcomeNames); i++ {
		out = append(out, Outcome(i))
	}
	return out
}

// String returns the outcome as metrics show it.
func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

// State is a query's present state.
type State uint8

// The states of a query.
const (
	StateUnknown State = iota
	StateRunning
	StateIdle
	StateOverdue
	StateTerminated
	StateFailed
	StateRetired
)

var stateNames = [...]string{"unknown", "running", "idle", "overdue", "terminated", "failed", "retired"}

// String returns the state as labels and JSON show it.
func (s State) String() string { return nameOf(stateNames[:], int(s)) }

// States lists the states that a query can be in, without unknown.
func States() []State {
	return []State{StateRunning, StateIdle, StateOverdue, StateTerminated, StateFailed, StateRetired}
}

// Update is what every consumer sees: a fresh fact, in order, judged once.
type Update struct {
	Event   *Event
	Origin  Origin
	Outcome Outcome
	// Missed is how many batches between the run's last one and this one never
	// came; MissedReason says why, as far as it can be told.
	Missed       int
	MissedReason MissedReason
	NewRun       bool // first word of a run that we had not seen
	NewQuery     bool // first word of a query that we had not seen
	StartedSeen  bool // the run's Started event was seen: counters begin at 0
	Reexecuted   bool // the same batch id had run before, under an older run
	Rewound      bool // the batch id went back by two or more under a new run
	SegmentStart bool // trend windows must not join across this point
	// OutOfOrder is an executed batch that arrived after a newer one of its run: it
	// is counted, but levels and anything newest must not go back to it.
	OutOfOrder bool
	// SharedRuns is set while two runs of the query take turns by trigger time:
	// two drivers work on one checkpoint.
	SharedRuns   bool
	State, Was   State
	Trigger      TriggerKind // as configured, told or inferred
	IntervalMs   float64     // trigger interval; NaN where there is none or it is not known
	IntervalFrom IntervalOrigin
	// Successor is the query that took over this one's name, on the update that
	// retires the old id; empty otherwise.
	Successor QueryID
	// Moved is set on the update that retires a query only here, because another
	// process reads its events from now on: nothing is over, so its series go at once
	// and its alerts are let go of without being resolved.
	Moved bool
}

// MissedReason says why batches are missing.
type MissedReason uint8

// The reasons: within a run the listener bus dropped them; across runs and
// while our own intake was down nobody knows.
const (
	MissedNone MissedReason = iota
	MissedDropped
	MissedAcrossRuns
	MissedSender
)

var missedNames = [...]string{"none", "dropped", "across_runs", "sender"}

// String returns the reason as the missed_batches series shows it.
func (m MissedReason) String() string { return nameOf(missedNames[:], int(m)) }

// IntervalOrigin says where a trigger interval comes from.
type IntervalOrigin uint8

// The origins of a trigger interval.
const (
	IntervalNone IntervalOrigin = iota
	IntervalInferred
	IntervalConfig
	IntervalListener
)

var originNames = [...]string{"none", "inferred", "config", "listener"}

// String returns the origin as the trigger_interval_seconds series shows it.
func (o IntervalOrigin) String() string { return nameOf(originNames[:], int(o)) }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
