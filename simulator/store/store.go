// Package store holds the state stores of simulated executors. The RocksDB
// provider keeps each store in a Pebble database that really puts, gets, scans,
// flushes, compacts, checkpoints and reopens; the HDFS-backed one in a map. Both
// commit, upload, keep and reload versions as Spark does, by version and
// setting, and report the figures that Spark would.
package store

import (
	"errors"
	"time"

	"github.com/stategauge/stategauge/event"
)

// ID names one state store.
type ID struct {
	Operator, Partition int
	Name                string // "default", or one of a join's four
}

// Family describes a column family beyond the default one (format 3 joins,
// transformWithState). Without families a store has only family 0.
type Family struct {
	Name     string
	Internal bool // kept by Spark for itself: its keys are not rows of state
}

// Store is one state store instance on one executor. A task uses it for one
// batch: Load, reads and writes, then Commit or Abort. Not safe for concurrent
// use; slices are valid until the next call.
type Store interface {
	// Load makes the state of a version current, fetching it from the checkpoint
	// where it is not at hand. Version 0 is the empty state.
	Load(version int64) error
	Get(family byte, key []byte) (value []byte, found bool, err error)
	Put(family byte, key, value []byte) error
	Delete(family byte, key []byte) error
	// Scan visits keys in [from, to) in order until visit returns false; nil is
	// no bound. The store must not be changed meanwhile.
	Scan(family byte, from, to []byte, visit func(key, value []byte) bool) error
	// Commit writes the version after the loaded one.
	Commit() error
	// Abort drops what was written since Load.
	Abort() error
	// Figures is what the last Commit reports. Before a Commit its times (Load,
	// Get, Put, Scan, Stall) are those of this batch so far: a caller that wants
	// to know what a part of its work cost takes the difference.
	Figures() *Figures
}

// ErrDamaged is in every error of a Load that found a snapshot which can not be
// read and could not do without it. Spark's query fails with it.
var ErrDamaged = errors.New("damaged snapshot")

// ReadWriter is a Store that knows that a task can open it twice.
type ReadWriter interface {
	// LoadReadWrite is Load as LoadReadWrite below describes it.
	LoadReadWrite(version int64) error
}

// LoadReadWrite loads a version as the tasks of aggregations and session windows
// do, which open the same store once to read and once to write. In Spark 3.5 and
// 4.0 the read store's end makes RocksDB forget what it has loaded, so that the
// next batch loads from the checkpoint again; from 4.1 on the second load hides
// the figures of the first. Where it makes no difference this is Load.
func LoadReadWrite(s Store, version int64) error {
	if rw, ok := s.(ReadWriter); ok {
		return rw.LoadReadWrite(version)
	}
	return s.Load(version)
}

// Figures is what one store contributes to its operator's progress.
type Figures struct {
	Rows        int64 // numRowsTotal; 0 where rows are not tracked
	MemoryBytes int64
	// Custom has the store's customMetrics by catalog id, raw as Spark would sum
	// them (milliseconds floored per store); NaN where this version has no such key.
	Custom event.Vector
	// LastUploaded is the version of the newest snapshot this instance uploaded; -1 none.
	LastUploaded int64
	// UniqueID is the id of the version committed last, of checkpoint format 2;
	// otherwise empty.
	UniqueID string
	// Times of this batch, exact: what the task spent, whatever Spark reports of
	// it. Put has Stall in it, and no time has another in it otherwise; where
	// writes are applied at the commit, in 3.4, Put is 0 and Commit has both.
	Load, Get, Put, Scan, Commit, Stall time.Duration
}

// Faults is what can be wrong inside an executor for a batch.
type Faults struct {
	CompactionPaused bool                            // background compaction does not run: debt piles up
	MaintenanceStuck bool                            // Maintain does nothing
	Damaged          func(id ID, version int64) bool // a snapshot that can not be read; nil: none
	CacheFactor      float64                         // share of the block cache that is left; 0 means 1
	LeakBytes        int64                           // memory that each store holds beyond its own, growing: pinned and fragmented
}

// Maintenance is what one round of the maintenance thread did on an executor.
type Maintenance struct {
	Uploaded int           // snapshots uploaded
	Deleted  int           // files deleted
	Took     time.Duration // wall time of the round
}
