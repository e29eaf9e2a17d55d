// Package operator plays Spark's stateful operators: what a task of each does to
// its state stores for the rows of a batch, and how it finds and removes what the
// watermark or a time to live lets go.
package operator

import (
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// Task is the work of one partition in one batch.
type Task struct {
	Partition int
	Version   int64         // state version to load: the batch's id
	Stores    []store.Store // one; four for a join of format 2, in the order that StoreNames gives
	Rows      []workload.Row
	// LateMs is the watermark up to which rows are dropped, EvictMs the one up to
	// which state is removed, both Unix milliseconds and 0 where there is none yet.
	// In every version played the former is the latter of the batch before.
	LateMs, EvictMs int64
	NowMs           int64 // batch timestamp, for processing time and time to live
	Meter           device.Meter
	Collect         bool           // a next operator wants the output rows: fill Result.Out
	Out             []workload.Row // memory for Result.Out
}

// MaxOut is how many rows a task hands on at most: a join on a key that many rows
// share makes more than memory holds. Those beyond are counted as output only.
const MaxOut = 1 << 22

// Result is what a task did.
type Result struct {
	Updated, Removed, Dropped     int64
	RowsTotal                     int64
	Output                        int64          // rows handed on
	Out                           []workload.Row // the same, where a next operator wants them; at most MaxOut
	Update, Removal, Commit, Load time.Duration  // task time by part
	Other                         time.Duration  // reading, scanning and code outside the parts
	MemoryBytes                   int64
	Custom                        event.Vector // summed over the stores that report
	Instances                     int
	Uploaded                      []int64 // per store, in the order of StoreNames; -1: none
}

// Total is how long the task ran.
func (r *Result) Total() time.Duration {
	return r.Load + r.Update + r.Removal + r.Commit + r.Other
}
