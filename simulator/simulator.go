// Package simulator plays Spark Structured Streaming queries whose state stores
// are real LSM trees, on a virtual clock: what the stores did is measured, what
// it costs in time comes from a model of the devices, and a seed fixes
// everything. It sends what a StreamingQueryListener would, with the quirks of
// the Spark version asked for, and knows the truth about the faults it plays.
package simulator

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
)

// Options is how a scenario is played.
type Options struct {
	Seed    uint64
	Batches int64         // of each query; 0: the scenario's own number
	StartMs int64         // virtual time of the first trigger, Unix milliseconds; 0: the scenario's own
	Size    float64       // of every fault that is not fixed; 0: the fault's own
	Version event.Version // zero: the scenario's
	// Envelope wraps events as our listeners do and adds heartbeats; a scenario
	// can ask for it too.
	Envelope bool
	// FS and Dir are where the checkpoint lies; nil and "": in memory. With several
	// queries each has a folder below. A checkpoint that is there is continued.
	FS  vfs.FS
	Dir string
	// Live keeps the local files of the stores below LocalDir on FS and measures
	// real time instead of computing it.
	Live     bool
	LocalDir string
	Parallel int // executors that work at once; 0 or 1: one after another
	// Pace, where set, says when each batch starts, how many rows each source has
	// for it and how long it takes, instead of trigger, workload and devices:
	// replays of real runs use it. False ends the run.
	Pace func(batch int64) (Pace, bool)
}

// Pace is the timing of one batch as it really was.
type Pace struct {
	StartMs, DurationMs int64
	Rows                []int64 // per source
	NewRun              bool    // a restart lies before this batch
	Planned             bool    // with NewRun: the run before had planned the batch
	LoseExecutors       int     // executors that died before this batch
}

// Message is one event as it leaves the simulated application.
type Message struct {
	AtMs    int64 // virtual time when it is sent
	Query   int   // which of the scenario's queries, from 0
	QueryID string
	Kind    event.Kind
	Batch   int64  // of a progress; otherwise event.Absent
	Data    []byte // JSON on one line, without its end; valid until the next call of Next
}
