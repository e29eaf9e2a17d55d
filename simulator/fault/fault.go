// Package fault turns the faults of a scenario into what is wrong in each batch:
// slower devices, other input, executors that die, restarts, failures, events
// that never arrive. It is pure; the simulation asks it once per batch.
package fault

import (
	"time"

	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// State is what the faults make of one batch of one query. Healthy gives the
// state without any. Before holds what happens once, ahead of the batch; all
// else is how things are during it.
type State struct {
	Device device.Conditions
	Input  []workload.Conditions // per source of the query
	Store  store.Faults

	LoseExecutors  int           // executors that die before the tasks of this batch, their local state with them
	Executors      int           // how many there are now (autoscaling); 0: as configured
	LocalityLost   float64       // share of partitions whose task is placed on another executor than the last one
	Hang           time.Duration // the batch stands still for so long
	OwnWork        time.Duration // the user's own code or sink takes so much longer per batch
	WalExtra       time.Duration // per file of offsets/ and commits/: long listings of old ones
	NoExpiry       bool          // state is not removed: no time to live, no bound
	WatermarkStuck bool          // the watermark does not move
	Partitions     int           // shuffle partitions that runs started from now on have, 0: as before
	Actions        int           // evaluations per foreachBatch, 0: as configured

	Before []Action // what happens to the query before this batch, in order

	DropEvent   bool // the event of this batch never arrives: listener queue full
	SenderLost  bool // nothing of this sender arrives, heartbeats neither
	DriverFroze bool // the driver itself is gone: no events, no heartbeats, no further batches
	Rival       bool // a second run of the query works on the same checkpoint
}

// ActionKind is something done to a query between two batches.
type ActionKind uint8

// The actions.
const (
	Restart    ActionKind = iota // stopped in order and started again
	Crash                        // killed: no terminated event, then started again
	Fail                         // the batch fails with Class and Text; started again after Pause, or not at all if Final
	Redeploy                     // restarted as another application
	Rewind                       // checkpoint put back by Batches, then restarted
	NewHistory                   // checkpoint deleted: restarted with a new id from batch 0
	Upgrade                      // restarted on the next Spark version
	Outage                       // down for Pause, then catches up
)

// Action is one such thing.
type Action struct {
	Kind    ActionKind
	Pause   time.Duration // how long the query is down
	Batches int64
	Class   string // error class, empty where the failure has none
	Text    string // first line of the exception
	Final   bool   // not started again
	// Conf holds settings, by Spark's keys, that the new run has in place of the
	// old ones; those that a checkpoint fixes stay.
	Conf map[string]string
}
