package replay

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/stategauge/stategauge/event"
)

// Report is what a diagnosis says, as its JSON form shows it. Lists are never
// null. Times are RFC 3339 in UTC, durations seconds; what is not known is left
// out or empty, never 0.
type Report struct {
	Events     int `json:"events"`     // all events read
	Progress   int `json:"progress"`   // progress reports, idle copies and repeats too
	Started    int `json:"started"`    // started events
	Idle       int `json:"idle"`       // idle events proper
	Terminated int `json:"terminated"` // terminated events
	Heartbeats int `json:"heartbeats"` // of our own listeners
	Files      int `json:"files"`      // files opened
	Skipped    int `json:"skipped"`    // lines that hold no event
	Repaired   int `json:"repaired"`   // one-character repairs
	// Rejected lists pieces that should have been events; RejectedHidden counts
	// those beyond the limit.
	Rejected       []Rejected `json:"rejected"`
	RejectedHidden int        `json:"rejected_hidden,omitempty"`
	Queries        []Query    `json:"queries"`
	Findings       []Finding  `json:"findings"`
}

// Rejected is one piece of input that could not be used.
type Rejected struct {
	File   string `json:"file"`
	Line   int    `json:"line"` // counted from 1; 0: the file as a whole
	Reason string `json:"reason"`
}

// Finding is one thing that stands out.
type Finding struct {
	Symptom  string   `json:"symptom"`
	Query    string   `json:"query"` // its name, or its id where it has none
	QueryID  string   `json:"query_id"`
	Operator string   `json:"operator,omitempty"`
	Severity string   `json:"severity"` // page, ticket or info
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence"` // the numbers behind it
	Fix      string   `json:"fix"`
}

// Severities, as in the rules.
const (
	page   = "page"
	ticket = "ticket"
	info   = "info"
)

func bySeverity(a, b Finding) int {
	rank := func(f Finding) int {
		switch f.Severity {
		case page:
			return 0
		case ticket:
			return 1
		}
		return 2
	}
	return cmp.Compare(rank(a), rank(b))
}

// Query is what is known of one query.
type Query struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Application string `json:"application"`
	State       string `json:"state"` // at the newest event
	Runs        int64  `json:"runs"`
	// Batches is how many executed batches were counted, each once; NoData how many
	// of them read no rows.
	Batches    int64  `json:"batches"`
	NoData     int64  `json:"no_data_batches"`
	IdleCopies int64  `json:"idle_copies"` // progress repeated while idle, and idle events
	Repeats    int64  `json:"repeats"`     // the same execution or delivery again
	Late       int64  `json:"late"`        // of an older run: not counted
	Missed     int64  `json:"missed"`      // batches that never came
	Provider   string `json:"provider"`    // rocksdb, hdfs, unknown, or none without state
	Spark      string `json:"spark"`       // version told, or "3.5+" where the keys only bound it
	Databricks bool   `json:"databricks"`
	Changelog  string `json:"changelog"`      // on, off or unknown
	Bounded    string `json:"bounded_memory"` // on, off or unknown
	Trigger    string `json:"trigger"`
	// IntervalSeconds is the trigger's interval.
	IntervalSeconds *float64   `json:"interval_seconds,omitempty"`
	First           string     `json:"first"`
	Last            string     `json:"last"`
	Duration        *Spread    `json:"duration_seconds,omitempty"` // of executed batches
	InputRows       *Spread    `json:"input_rows,omitempty"`
	Phases          []Phase    `json:"phases"`
	Operators       []Operator `json:"operators"`
	Sources         []Source   `json:"sources"`
	WatermarkLag    *float64   `json:"watermark_lag_seconds,omitempty"` // newest event time minus watermark
	Failure         string     `json:"failure,omitempty"`
	Notes           []string   `json:"notes"` // what to know when reading the figures
}

// Spread sums up a figure over batches.
type Spread struct {
	Count  int     `json:"count"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	Last   float64 `json:"last"`
}

// Phase is one phase of the trigger: its mean over the batches and its share of
// all their time.
type Phase struct {
	Phase string  `json:"phase"`
	Mean  float64 `json:"mean_seconds"`
	Share float64 `json:"share"`
}

// Operator is one stateful operator. Means are per executed batch, commit phases
// per state store.
type Operator struct {
	Index      int      `json:"index"`
	Name       string   `json:"name"`
	Provider   string   `json:"provider"`
	Partitions *float64 `json:"partitions,omitempty"`
	Stores     *float64 `json:"stores,omitempty"` // those behind the custom metrics
	Instances  *float64 `json:"instances,omitempty"`
	RowsFirst  *float64 `json:"rows_first,omitempty"`
	Rows       *float64 `json:"rows,omitempty"`
	Memory     *float64 `json:"memory_bytes,omitempty"`
	SST        *float64 `json:"sst_bytes,omitempty"`
	Updated    *float64 `json:"rows_updated_mean,omitempty"`
	Removed    *float64 `json:"rows_removed_mean,omitempty"`
	Dropped    *float64 `json:"late_rows_dropped,omitempty"` // over all batches
	// Task seconds, summed over parallel tasks.
	UpdateTask  *float64 `json:"update_task_seconds,omitempty"`
	RemovalTask *float64 `json:"removal_task_seconds,omitempty"`
	CommitTask  *float64 `json:"commit_task_seconds,omitempty"`
	// Commit holds the phases of a RocksDB commit in seconds per store.
	Commit       []Phase  `json:"commit_store_seconds"`
	CopiedBytes  *float64 `json:"copied_bytes_mean,omitempty"`
	MissShare    *float64 `json:"cache_miss_share,omitempty"`
	SnapshotLag  *float64 `json:"snapshot_lag_versions,omitempty"`
	Implausible  int      `json:"implausible_values,omitempty"`
	CommitShare  *float64 `json:"commit_share,omitempty"` // of the operator's task time
	WriterStalls *float64 `json:"writer_stall_store_seconds,omitempty"`
}

// Source is one input, as the newest batch shows it.
type Source struct {
	Index       int      `json:"index"`
	Description string   `json:"description"`
	Rows        *float64 `json:"rows,omitempty"`
	Backlog     *float64 `json:"backlog_offsets,omitempty"`
}

// known returns a pointer to v, nil where it is absent.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// stamp formats a time in Unix milliseconds; empty where it is absent.
func stamp(ms int64) string {
	if ms == event.Absent {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// writeJSON writes the report as one JSON object.
func writeJSON(w io.Writer, r *Report) error {
	out := *r
	if out.Rejected == nil {
		out.Rejected = []Rejected{}
	}
	if out.Queries == nil {
		out.Queries = []Query{}
	}
	if out.Findings == nil {
		out.Findings = []Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(&out)
}
