package replay

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// commitPhases are the parts of a RocksDB commit in the order in which they run.
// They follow one another, so their sum is the commit; the changelog and the zip
// of a snapshot lie inside file_sync and are left out.
var commitPhases = [...]struct {
	id   event.MetricID
	name string
}{
	{event.RocksDBCommitWriteBatchLatency, "write_batch"},
	{event.RocksDBCommitFlushLatency, "flush"},
	{event.RocksDBCommitCompactLatency, "compact"},
	{event.RocksDBCommitPauseLatency, "pause"},
	{event.RocksDBCommitCheckpointLatency, "checkpoint"},
	{event.RocksDBCommitFileSyncLatency, "file_sync"},
}

// Places in commitPhases.
const (
	commitFlush      = 1
	commitCompact    = 2
	commitCheckpoint = 4
	commitFileSync   = 5
)

// operatorFacts is what the batches of one operator add up to.
type operatorFacts struct {
	index                         int
	name                          string
	provider                      event.Provider
	instances, stores, partitions float64

	rows, memory, sst        tally // levels, one per batch
	pinned                   tally // bytes per store
	updated, removed         tally
	dropped                  float64
	updateMs, removeMs       tally // task ms
	commitMs                 tally // task ms
	commit                   [len(commitPhases)]tally
	copied                   tally // bytes
	stall                    tally // seconds per store
	gets, getMs, hits, miss  float64
	lag                      float64 // versions, newest
	lagMin                   int64
	implausible              int
	repaired                 float64
	loadSeen                 bool // 4.1's keys are there
	changelogWriter          bool
	compacted, updatedBatch  int
	changedPairs, equalPairs int // successive batches whose upload figures differ, or not
	prevCopied, prevZip      float64
}

func newOperatorFacts(i int) *operatorFacts {
	nan := math.NaN()
	return &operatorFacts{index: i, instances: nan, stores: nan, partitions: nan, lag: nan, prevCopied: nan, prevZip: nan}
}

// levels takes what holds between batches as well.
func (f *operatorFacts) levels(o *event.Operator) {
	if o.Name != "" {
		f.name = o.Name
	}
	if o.Provider != event.ProviderAny && (f.provider == event.ProviderAny || o.Provider != event.ProviderUnknown) {
		f.provider = o.Provider
	}
	if o.Instances > 0 {
		f.instances, f.stores = float64(o.Instances), float64(o.Stores)
	}
	f.partitions = or(o.Values[event.NumShufflePartitions], f.partitions)
	f.rows.add(o.Values[event.NumRowsTotal])
	f.memory.add(o.Values[event.MemoryUsedBytes])
	f.pinned.add(o.Values[event.RocksDBPinnedBlocksMemoryUsage] / max(o.Values[event.NumStateStoreInstances], 1))
	f.sst.add(o.Values[event.RocksDBSstFileSize])
}

func or(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return a
}

// batch takes what one executed batch did.
func (f *operatorFacts) batch(b *event.Batch, o *event.Operator) {
	f.levels(o)
	v := &o.Values
	f.updated.add(v[event.NumRowsUpdated])
	f.removed.add(v[event.NumRowsRemoved])
	if v[event.NumRowsUpdated] > 0 {
		f.updatedBatch++
	}
	f.dropped += or(v[event.NumRowsDroppedByWatermark], 0)
	f.repaired += or(v[event.RocksDBNumSnapshotsAutoRepaired], 0) + or(v[event.HDFSNumSnapshotsAutoRepaired], 0)
	f.updateMs.add(f.time(b, o, event.AllUpdatesTime))
	f.removeMs.add(f.time(b, o, event.AllRemovalsTime))
	f.commitMs.add(f.time(b, o, event.CommitTime))
	f.phases(b, o)
	f.reads(b, o)
	f.uploads(v)
	f.snapshot(b, o)
}

// time returns a time in milliseconds, NaN where it cannot be true.
func (f *operatorFacts) time(b *event.Batch, o *event.Operator, id event.MetricID) float64 {
	if !b.PlausibleTaskSeconds(o, id) {
		f.implausible++
		return math.NaN()
	}
	return o.Values.Scaled(id) * 1000
}

func (f *operatorFacts) phases(b *event.Batch, o *event.Operator) {
	for i, p := range commitPhases {
		f.commit[i].add(f.time(b, o, p.id) / float64(o.Stores)) // no store: infinite or NaN, cleaned below
	}
	if o.Stores == 0 {
		f.commit = [len(commitPhases)]tally{}
	}
	if o.Values[event.RocksDBCommitCompactLatency] > 0 {
		f.compacted++
	}
	f.loadSeen = f.loadSeen || o.Values.Has(event.RocksDBLoadLatency)
	f.changelogWriter = f.changelogWriter || o.Values[event.RocksDBChangeLogWriterCommitLatency] > 0
	if o.Stores > 0 {
		f.stall.add(f.time(b, o, event.RocksDBWriterStallLatency) / 1000 / float64(o.Stores))
	}
}

func (f *operatorFacts) reads(b *event.Batch, o *event.Operator) {
	v := &o.Values
	f.hits += or(v[event.RocksDBReadBlockCacheHitCount], 0)
	f.miss += or(v[event.RocksDBReadBlockCacheMissCount], 0)
	if ms := f.time(b, o, event.RocksDBGetLatency); !math.IsNaN(ms) {
		f.getMs += ms
		f.gets += or(v[event.RocksDBGetCount], 0)
	}
}

// uploads compares the figures of successive uploads: with changelog checkpointing
// they repeat until the next snapshot.
func (f *operatorFacts) uploads(v *event.Vector) {
	copied, zip := v[event.RocksDBBytesCopied], v[event.RocksDBZipFileBytesUncompressed]
	f.copied.add(copied)
	switch {
	case math.IsNaN(f.prevCopied) || math.IsNaN(copied):
	case copied != f.prevCopied || zip != f.prevZip:
		f.changedPairs++
	default:
		f.equalPairs++
	}
	f.prevCopied, f.prevZip = copied, zip
}

// snapshot keeps how many versions the worst reported store is behind. Batch B
// writes version B+1.
func (f *operatorFacts) snapshot(b *event.Batch, o *event.Operator) {
	if o.SnapshotMin == event.Absent || o.SnapshotMin < 0 || b.ID == event.Absent {
		return
	}
	f.lagMin = o.SnapshotMin
	f.lag = float64(b.ID + 1 - o.SnapshotMin)
}

// title names the operator for people.
func (f *operatorFacts) title() string {
	if f.name == "" {
		return "operator " + whole(float64(f.index))
	}
	return f.name + " (operator " + whole(float64(f.index)) + ")"
}

// missShare is the share of block cache lookups that missed, NaN below 1,000.
func (f *operatorFacts) missShare() float64 {
	if f.hits+f.miss < 1000 {
		return math.NaN()
	}
	return f.miss / (f.hits + f.miss)
}

// commitShare is the share of the operator's task time that commits take.
func (f *operatorFacts) commitShare() float64 {
	total := or(f.updateMs.mean(), 0) + or(f.removeMs.mean(), 0) + or(f.commitMs.mean(), 0)
	if total == 0 || math.IsNaN(f.commitMs.mean()) {
		return math.NaN()
	}
	return f.commitMs.mean() / total
}

// setting is a switch that the events show or do not show.
type setting string

const (
	on      setting = "on"
	off     setting = "off"
	unknown setting = "unknown"
)

// minPairs is how many pairs of batches a judgement by change needs.
const minPairs = 5

// changelog tells from change, not from zero, whether changelog checkpointing is
// on: without it every upload has its own size.
func (f *operatorFacts) changelog() setting {
	if f.changelogWriter {
		return on
	}
	pairs := f.changedPairs + f.equalPairs
	switch {
	case pairs >= minPairs && f.changedPairs*10 >= pairs*9:
		return off
	case pairs >= minPairs && f.equalPairs*2 >= pairs && f.copied.max > 0:
		return on
	}
	// An upload without flush and checkpoint before it was one of a changelog.
	if f.commit[commitFileSync].sum > 0 && f.commit[commitFlush].sum == 0 && f.commit[commitCheckpoint].sum == 0 && f.copied.max > 0 {
		return on
	}
	return unknown
}

// sharedCache is what a cache that stores share has pinned at the least: memtables
// are charged to it in units of this size. A store's own cache pins next to nothing.
const sharedCache = 256 << 10

// bounded tells whether RocksDB's memory is bounded: before 4.1 each bounded store
// reports the whole shared cache as pinned, and in 4.0 no memory of its own.
func (f *operatorFacts) bounded() setting {
	switch {
	case f.loadSeen || f.memory.n == 0:
		return unknown
	case f.pinned.max >= sharedCache:
		return on
	case f.memory.max > 0:
		return off
	case f.sst.max > 0:
		return on
	}
	return unknown
}
