package operator

import (
	"fmt"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
)

// Mode is a query's output mode.
type Mode uint8

// The output modes.
const (
	Append   Mode = iota // a row once it can not change any more
	Update               // each row that changed
	Complete             // everything, in every batch
)

// ParseMode reads "append", "update" or "complete"; empty is append.
func ParseMode(text string) (Mode, error) {
	switch text {
	case "", "append":
		return Append, nil
	case "update":
		return Update, nil
	case "complete":
		return Complete, nil
	}
	return 0, fmt.Errorf("output mode %q is none of append, update, complete", text)
}

// Spec is one stateful operator of a query. Times of 0 mean that there is none.
type Spec struct {
	Kind spark.OperatorKind
	Mode Mode // of aggregations and session windows
	// Watermark says that the query has one; Delay is its threshold.
	Watermark bool
	Delay     time.Duration
	Window    time.Duration // aggregation: length of the tumbling windows; 0: keys only
	Gap       time.Duration // session window: what ends a session
	// Timeout is when a key of flatMapGroupsWithState or transformWithState is
	// forgotten: by event time for the former where there is a watermark, by
	// processing time otherwise.
	Timeout time.Duration
	// TTL is the time to live of transformWithState's list and map; 0: a third
	// longer than Timeout.
	TTL time.Duration
	// Bounded says that the two sides of a join may be at most Bound apart in
	// event time. Without it their rows are kept for ever.
	Bounded bool
	Bound   time.Duration
	// EventTimeInKey says that deduplication compares the event time too, without
	// which its keys never expire.
	EventTimeInKey bool
	// ValueBytes is the size of a value in state. 0: what the operator needs, or
	// the row's own size where it keeps rows. Deduplication has no values: there it
	// is the size of further columns in the key.
	ValueBytes int
	Python     bool // the user's function is a Python one
}

// Operator plays one stateful operator. It holds no state of the query, only
// memory that tasks reuse: it is safe to run tasks of it at once.
type Operator struct {
	spec     Spec
	version  event.Version
	name     string
	stores   []string
	families []store.Family
	reports  []bool
	own      []event.MetricID // customMetrics beyond those of the stores
	plan     plan
	// readWrite says that a task opens its store twice, once to read and once to
	// write, as far as the version does that.
	readWrite bool
	tasks     sync.Pool // of *task
}

// plan is what one kind of operator does for the rows of a task, between load
// and commit.
type plan interface{ run(x *task) error }

// nullsSkipped is the setting that adds skippedNullValueCount to joins.
const nullsSkipped = "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled"

// New returns the operator of spec as Spark version plays it under conf. It
// fails for what that version can not run.
func New(spec Spec, version event.Version, conf *spark.Conf) (*Operator, error) {
	o := &Operator{
		spec: spec, version: version,
		name:    spark.OperatorName(spec.Kind, spec.Python, version),
		stores:  []string{"default"},
		reports: []bool{true},
	}
	if err := o.choose(conf); err != nil {
		return nil, fmt.Errorf("operator %s: %w", o.name, err)
	}
	o.own = ownKeys(spec, version, conf)
	o.tasks.New = func() any { return newTask(o) }
	return o, nil
}

func (o *Operator) choose(conf *spark.Conf) error {
	switch o.spec.Kind {
	case spark.Aggregation:
		return o.chooseAggregation()
	case spark.Dedupe, spark.DedupeWithinWatermark:
		return o.chooseDedupe(conf)
	case spark.Join:
		return o.chooseJoin(conf)
	case spark.FlatMapGroups:
		o.plan = &flatMap{spec: o.spec}
		return nil
	case spark.TransformWithState:
		return o.chooseTransform(conf)
	case spark.SessionWindow:
		return o.chooseSession()
	}
	return fmt.Errorf("kind %d is unknown", o.spec.Kind)
}

// needs fails for versions before since.
func (o *Operator) needs(what string, since event.Version) error {
	if o.version.Less(since) {
		return fmt.Errorf("%s needs Spark %d.%d", what, since.Major, since.Minor)
	}
	return nil
}

// ownKeys is what the operator adds to the customMetrics of its stores.
func ownKeys(spec Spec, v event.Version, conf *spark.Conf) []event.MetricID {
	keys := spark.Keys
	if spec.Python {
		keys = spark.PythonKeys
	}
	var out []event.MetricID
	for _, id := range keys(v, conf.Provider, spec.Kind) {
		if event.Lookup(id).Provider == event.ProviderAny {
			out = append(out, id)
		}
	}
	if spec.Kind == spark.Join && conf.Given[nullsSkipped] == "true" {
		out = append(out, event.SkippedNullValueCount)
	}
	return out
}

// Name is the operatorName that Spark writes.
func (o *Operator) Name() string { return o.name }

// StoreNames is the stores of each partition, in the order in which tasks want
// them. The slice is the operator's.
func (o *Operator) StoreNames() []string { return o.stores }

// Families is the column families of each store beyond the default one: family i
// of a store is Families()[i-1]. The slice is the operator's; nil: none.
func (o *Operator) Families() []store.Family { return o.families }

// Reports reports whether the store's figures are part of customMetrics and of
// the rows in state. Of a join's four stores the two that hold rows are; time,
// memory and number count all four.
func (o *Operator) Reports(store int) bool { return o.reports[store] }
