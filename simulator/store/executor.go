package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store/lsm"
)

// maxCacheBytes is the largest block cache that behaves the same on every
// machine: larger ones are cut down to it.
const maxCacheBytes = 31 << 20

// Options is what an executor is and has.
type Options struct {
	ID         int    // of the executor, in names of local folders
	FS         vfs.FS // of the local disk
	Dir        string // folder on it for the executor's own files
	Checkpoint *checkpoint.Dir
	Conf       *spark.Conf
	Version    event.Version
	Meter      device.Meter
	// Seed and Salt fix the unique ids of files. Salt tells apart what may write
	// versions with the same number: runs of a query, and executors of a run.
	Seed, Salt uint64
	// MemtableBytes bounds memtables, which take real memory: some two to three
	// times as much each. The setting for write buffers counts where it is smaller.
	// 0: lsm.DefaultMemtableBytes, reached in steps. Where memory is bounded,
	// lsm.MemtableCharge of each store is taken from the shared cache: choose it so
	// that all stores leave room, unless a cap that is too small is to be played.
	MemtableBytes int64
	// Live times every single read and write with the Meter, which then is a
	// clock; otherwise they are counted and charged together.
	Live bool
}

// Executor holds the stores of one simulated executor. One goroutine uses it.
type Executor struct {
	o      Options
	mech   mechanics
	faults Faults
	nowMs  int64
	shared *lsm.Shared // where memory is bounded
	stores map[ID]instance
	order  []ID     // of stores, sorted
	active *rocksDB // whose operations the shared cache counts at the moment
	wanted map[ID]versionID
	closed bool
}

// instance is a store of either provider, as its executor sees it.
type instance interface {
	Store
	setFaults(f *Faults)
	// maintain does one round of the maintenance thread.
	maintain() (Maintenance, error)
	// close ends the store; its local files go with the executor's or by itself.
	close() error
}

// ErrClosed is returned for the use of an executor that is closed or lost.
var ErrClosed = errors.New("executor is gone")

// NewExecutor starts an executor with an empty local disk.
func NewExecutor(o Options) (*Executor, error) {
	x := &Executor{o: o, mech: mechanicsOf(o.Version), stores: make(map[ID]instance), wanted: make(map[ID]versionID)}
	if err := o.FS.RemoveAll(o.Dir); err != nil {
		return nil, fmt.Errorf("empty the disk of executor %d: %w", o.ID, err)
	}
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder of executor %d: %w", o.ID, err)
	}
	if o.Conf.Provider == spark.RocksDB && o.Conf.BoundedMemory {
		x.shared = lsm.NewShared(x.cacheBytes())
	}
	return x, nil
}

// cacheBytes is the size of a block cache: of the one that all stores share or,
// where memory is not bounded, of each store's own.
func (x *Executor) cacheBytes() int64 {
	n := x.o.Conf.BlockCacheBytes
	if x.o.Conf.BoundedMemory {
		n = x.o.Conf.MaxMemoryBytes
	}
	n = min(n, maxCacheBytes)
	if f := x.faults.CacheFactor; f > 0 {
		n = int64(float64(n) * f)
	}
	return n
}

// roomy tells that the cap on memory is far above what simulated stores take:
// then their memtables, whose real size has nothing to do with RocksDB's, leave
// the cache alone.
func (x *Executor) roomy() bool { return x.o.Conf.MaxMemoryBytes > maxCacheBytes }

// SetMeter replaces the meter, e.g. by that of another batch.
func (x *Executor) SetMeter(m device.Meter) { x.o.Meter = m }

// SetNow tells the time, Unix milliseconds, by which Spark 4.2 and newer judge
// whether uploads of snapshots lag. Without it none ever does.
func (x *Executor) SetNow(ms int64) { x.nowMs = ms }

// SetUniqueID tells which of the files that may exist of a version is the one
// that was committed, of checkpoint format 2. Without it the only one is taken.
func (x *Executor) SetUniqueID(id ID, version int64, unique string) {
	x.wanted[id] = versionID{version, unique}
}

// SetFaults sets what is wrong from now on.
func (x *Executor) SetFaults(f Faults) {
	x.faults = f
	if x.shared != nil {
		x.shared.SetCapacity(x.cacheBytes())
	}
	for _, id := range x.order {
		x.stores[id].setFaults(&x.faults)
	}
}

// Store returns a store, opened on first use and kept. Families are those of the
// first call. Nothing is loaded yet.
func (x *Executor) Store(id ID, families []Family) (Store, error) {
	if x.closed {
		return nil, fmt.Errorf("store %s of executor %d: %w", id, x.o.ID, ErrClosed)
	}
	if s, ok := x.stores[id]; ok {
		return s, nil
	}
	s, err := x.open(id, families)
	if err != nil {
		return nil, err
	}
	s.setFaults(&x.faults)
	x.stores[id] = s
	at, _ := slices.BinarySearchFunc(x.order, id, compareIDs)
	x.order = slices.Insert(x.order, at, id)
	return s, nil
}

// open makes the store that the settings ask for.
func (x *Executor) open(id ID, families []Family) (instance, error) {
	if x.o.Conf.Provider == spark.HDFS {
		return x.openHDFS(id)
	}
	return newRocksDB(x, id, families)
}

// Stores returns the ids of all stores that are open, sorted. The slice is the
// caller's.
func (x *Executor) Stores() []ID { return slices.Clone(x.order) }

// Unload closes a store that has moved to another executor. A snapshot that was
// cut and not uploaded yet is gone with it. A store that is not there is none to
// unload.
func (x *Executor) Unload(id ID) error {
	s, ok := x.stores[id]
	if !ok {
		return nil
	}
	delete(x.stores, id)
	at, _ := slices.BinarySearchFunc(x.order, id, compareIDs)
	x.order = slices.Delete(x.order, at, at+1)
	return s.close()
}

// Maintain does one round of the maintenance thread: each store uploads the
// newest snapshot that it has cut, if it is new, and deletes the versions that
// are no longer needed.
func (x *Executor) Maintain() (Maintenance, error) {
	var total Maintenance
	if x.closed || x.faults.MaintenanceStuck {
		return total, nil
	}
	for _, id := range x.order {
		m, err := x.stores[id].maintain()
		total.Uploaded += m.Uploaded
		total.Deleted += m.Deleted
		total.Took += m.Took
		if err != nil {
			return total, fmt.Errorf("maintain store %s: %w", id, err)
		}
	}
	return total, nil
}

// Close ends the executor in order. Its local files go, as Spark's do.
func (x *Executor) Close() error { return x.end() }

// Lose ends the executor as if it had died: its disk is gone, and with it every
// snapshot that was not uploaded.
func (x *Executor) Lose() error { return x.end() }

func (x *Executor) end() error {
	if x.closed {
		return nil
	}
	x.closed = true
	var errs []error
	for _, id := range x.order {
		errs = append(errs, x.stores[id].close())
	}
	clear(x.stores)
	x.order, x.active = nil, nil
	if x.shared != nil {
		x.shared.Close()
	}
	errs = append(errs, x.o.FS.RemoveAll(x.o.Dir))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close executor %d: %w", x.o.ID, err)
	}
	return nil
}

// String returns the store's place as its folder in the checkpoint has it.
func (id ID) String() string {
	return fmt.Sprintf("%d/%d/%s", id.Operator, id.Partition, id.Name)
}

func compareIDs(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Partition, b.Partition), strings.Compare(a.Name, b.Name))
}
