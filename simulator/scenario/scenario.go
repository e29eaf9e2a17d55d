// Package scenario is the files that say what the simulator plays: a query (or
// several), its input, its cluster and settings, the faults that befall it, and
// the truth that rules are scored against. It decodes and checks them; it plays
// nothing.
package scenario

import (
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Scenario is one file.
type Scenario struct {
	Name         string            `yaml:"-"` // of the file, without .yml
	Description  string            `yaml:"description"`
	SparkVersion string            `yaml:"spark_version"` // default 3.5
	Batches      int64             `yaml:"batches"`       // default length of a run of the scenario; default 300
	Start        string            `yaml:"start"`         // virtual time of the first trigger, RFC 3339; default 2026-03-02T00:00:00Z
	Envelope     bool              `yaml:"envelope"`      // events come in our listeners' envelope
	Queries      int               `yaml:"queries"`       // how many like this run on the cluster, with their own ids and loads; default 1
	Query        Query             `yaml:"query"`
	Cluster      Cluster           `yaml:"cluster"`
	Conf         map[string]string `yaml:"conf"` // by Spark's own keys
	Faults       []Fault           `yaml:"faults"`
	Expect       Expectations      `yaml:"expect"`
	Healthy      bool              `yaml:"healthy"`
}

// Query is what runs.
type Query struct {
	Name        string     `yaml:"name"`        // default: the scenario's; "" with unnamed
	Unnamed     bool       `yaml:"unnamed"`     // the user gave no name
	Application string     `yaml:"application"` // default "simulated"
	Trigger     Trigger    `yaml:"trigger"`
	Operators   []Operator `yaml:"operators"`
	Sources     []Source   `yaml:"sources"` // two for a join
	// WatermarkDelay is withWatermark's threshold; absent: no watermark.
	WatermarkDelay *strictyaml.Duration `yaml:"watermark_delay"`
	Sink           Sink                 `yaml:"sink"`
	// PlanTime and CodeTime are what planning costs per batch and the user's own
	// code per row, on an undisturbed core.
	PlanTime *strictyaml.Duration `yaml:"plan_time"`
	CodeTime *strictyaml.Duration `yaml:"code_time"`
}

// Trigger has exactly one field set; none is the default trigger.
type Trigger struct {
	Interval     strictyaml.Duration `yaml:"interval"`
	Default      bool                `yaml:"default"`
	AvailableNow strictyaml.Duration `yaml:"available_now"` // a run this often, from the start of the one before
	RealTime     strictyaml.Duration `yaml:"real_time"`     // batch length; 4.1 and newer
}

// Operator is one stateful operator, in the order of the plan.
type Operator struct {
	Kind string `yaml:"kind"` // aggregation, dedupe, dedupe_within_watermark, join, flat_map_groups, transform_with_state, session_window
	// Window is the length of the aggregation's windows; absent: keys only.
	Window *strictyaml.Duration `yaml:"window"`
	// Gap ends a session.
	Gap *strictyaml.Duration `yaml:"gap"`
	// Timeout or time to live of flat_map_groups and transform_with_state; absent: none.
	Timeout *strictyaml.Duration `yaml:"timeout"`
	// Bound is how far apart in event time the two sides of a join may be;
	// absent: no bound, so state is kept for ever.
	Bound *strictyaml.Duration `yaml:"bound"`
	// EventTimeInKey says that dedupe's keys hold the watermark column.
	EventTimeInKey *bool `yaml:"event_time_in_key"` // default true
	// Mode is the output mode: append, update or complete.
	Mode       string `yaml:"mode"`
	ValueBytes int    `yaml:"value_bytes"` // size of a value in state; default: that of the row
	// InitialRows is state from before the first batch, as of a query that has run for long.
	InitialRows int64 `yaml:"initial_rows"`
	// Language is scala or python (transform_with_state: another operator name and slower rows).
	Language string `yaml:"language"`
}

// Source is one input.
type Source struct {
	Kind          string  `yaml:"kind"` // kafka, rate or files
	Topic         string  `yaml:"topic"`
	Partitions    int     `yaml:"partitions"`
	RowsPerSecond float64 `yaml:"rows_per_second"`
	RowBytes      int     `yaml:"row_bytes"`
	MaxPerTrigger int64   `yaml:"max_per_trigger"` // maxOffsetsPerTrigger; 0: none
	Keys          Keys    `yaml:"keys"`
	Rate          Rate    `yaml:"rate"`
	Late          Late    `yaml:"late"`
	// Duplicates is the share of rows that come twice.
	Duplicates strictyaml.Percent `yaml:"duplicates"`
	// Backlog is rows waiting at the first trigger.
	Backlog int64 `yaml:"backlog"`
}

// Keys is the key space of a source.
type Keys struct {
	Count int64   `yaml:"count"`
	Skew  float64 `yaml:"skew"` // Zipf exponent; 0: uniform
	// NewPerSecond is how fast the key space grows; keys are then drawn from a
	// window of Count that moves on (sessions, order ids) unless Grow is set,
	// where it widens.
	NewPerSecond float64 `yaml:"new_per_second"`
	Grow         bool    `yaml:"grow"`
	Unique       bool    `yaml:"unique"` // each row its own key: order ids
}

// Rate is how arrival varies round RowsPerSecond.
type Rate struct {
	Daily  strictyaml.Percent  `yaml:"daily"`  // amplitude of a daily cycle
	Growth strictyaml.Percent  `yaml:"growth"` // per day
	Bursts Bursts              `yaml:"bursts"`
	On     strictyaml.Duration `yaml:"on"` // with Off: rows come for On, then nothing for Off
	Off    strictyaml.Duration `yaml:"off"`
	Noise  float64             `yaml:"noise"` // standard deviation of the logarithm, from second to second; default 0.05
}

// Bursts multiply the rate by Factor for Length, at random, on average every Every.
type Bursts struct {
	Every  strictyaml.Duration `yaml:"every"`
	Length strictyaml.Duration `yaml:"length"`
	Factor float64             `yaml:"factor"`
}

// Late says how event times trail behind arrival: Typical is the median of an
// exponential tail; Share of the rows are By late beyond that.
type Late struct {
	Typical strictyaml.Duration `yaml:"typical"`
	Share   strictyaml.Percent  `yaml:"share"`
	By      strictyaml.Duration `yaml:"by"`
}

// Sink is where output goes.
type Sink struct {
	Kind    string `yaml:"kind"`    // noop, kafka, delta, foreach_batch, console
	Actions int    `yaml:"actions"` // foreach_batch: how often the batch is evaluated without persist; default 1
}

// Cluster is what the query runs on, and how much of it is really simulated.
type Cluster struct {
	Executors     int              `yaml:"executors"`
	Cores         int              `yaml:"cores"` // per executor
	Memory        strictyaml.Bytes `yaml:"memory"`
	Overhead      strictyaml.Bytes `yaml:"overhead"`
	Name          string           `yaml:"name"`
	RealStores    int              `yaml:"real_stores"` // stores of an operator that are Pebble; 0: all
	Disk          Disk             `yaml:"disk"`
	Store         ObjectStore      `yaml:"store"`
	CoreSpeed     float64          `yaml:"core_speed"` // 1: the model's own
	Noise         Noise            `yaml:"noise"`
	MemtableBytes strictyaml.Bytes `yaml:"memtable_bytes"` // of each Pebble store, in place of RocksDB's 64 MiB; default 1 MiB
}

// Disk is an executor's local disk.
type Disk struct {
	BytesPerSecond strictyaml.Bytes    `yaml:"bytes_per_second"`
	Fsync          strictyaml.Duration `yaml:"fsync"`
}

// ObjectStore is the checkpoint location.
type ObjectStore struct {
	Latency        strictyaml.Duration `yaml:"latency"` // median of a request
	Tail           float64             `yaml:"tail"`    // Pareto index of the slow requests; smaller is heavier; default 3
	TailShare      strictyaml.Percent  `yaml:"tail_share"`
	BytesPerSecond strictyaml.Bytes    `yaml:"bytes_per_second"` // per connection
}

// Noise is how durations vary from batch to batch, beyond the devices' own tails.
type Noise struct {
	Kind        string  `yaml:"kind"`        // none, lognormal, ar1, heavy_tail, wander
	Sigma       float64 `yaml:"sigma"`       // of the logarithm; default 0.1
	Correlation float64 `yaml:"correlation"` // ar1: from batch to batch
	Batches     float64 `yaml:"batches"`     // wander: time constant
}

// Fault is one thing that goes wrong. Which fields count depends on Kind.
type Fault struct {
	Kind      string `yaml:"kind"`
	FromBatch int64  `yaml:"from_batch"`
	ToBatch   int64  `yaml:"to_batch"` // first batch that is well again; 0: never
	// Size is how much slower, larger or more things get: 1.2 small, 1.5 medium,
	// 3 large. --size replaces it unless Fixed.
	Size  float64 `yaml:"size"`
	Fixed bool    `yaml:"fixed"`
	// Ramp lets the fault grow in a line from 1 to Size over so many batches
	// instead of starting whole.
	Ramp  int64               `yaml:"ramp"`
	Every int64               `yaml:"every"` // batches between repeats
	Count int64               `yaml:"count"` // how many: executors, batches, events, partitions
	Share strictyaml.Percent  `yaml:"share"`
	For   strictyaml.Duration `yaml:"for"`
	Query int                 `yaml:"query"` // 1 and up: only this of several; 0: all
	Error string              `yaml:"error"` // error class of a failure
	Text  string              `yaml:"text"`  // first line of its exception
	// Source is the input that the fault befalls, 1 and up; 0: all of them.
	Source int               `yaml:"source"`
	Bytes  strictyaml.Bytes  `yaml:"bytes"` // of memory per store and batch
	Conf   map[string]string `yaml:"conf"`  // settings that a new run begins with
}

// Expectation is one finding that rules should come to.
type Expectation struct {
	Symptom   string `yaml:"symptom"` // id of a row
	Cause     string `yaml:"cause"`
	FromBatch int64  `yaml:"from_batch"`
	Query     int    `yaml:"query"` // 1 and up; 0: any, or the fleet
	// CannotTell says that the events do not decide it: a verdict of that kind is
	// right, and an alert with this symptom is not.
	CannotTell bool `yaml:"cannot_tell"`
	// Optional says that the symptom follows from the others of the scenario: an
	// alert with it is right, and none is missing where it is not found.
	Optional bool `yaml:"optional"`
}

// Expectations is one expectation or a list of them.
type Expectations []Expectation
