package store

import (
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/spark"
)

// lightSteps is how many entries a hash map copies or iterates over in the time
// of one get or put: nothing is hashed, compared or encoded.
const lightSteps = 4

// hdfsOptions is what an HDFS-backed store needs of its executor.
type hdfsOptions struct {
	ID      ID
	Dir     *checkpoint.StateDir
	Conf    *spark.Conf
	Version event.Version
	Live    bool                // time each read and write by itself
	Meter   func() device.Meter // the one of the batch under way
	Now     func() int64        // Unix milliseconds; 0: unknown
}

// hdfsStore is the HDFS-backed provider of one partition: the newest versions
// as maps on the heap, a delta file for each commit and now and then a snapshot
// file, which only the maintenance thread writes.
//
// Gets, puts and scans are charged in sums, when somebody asks for figures,
// unless times are real. Garbage collection is charged to puts, which make the
// garbage, and in a batch without any to the commit.
type hdfsStore struct {
	opt    hdfsOptions
	faults *Faults // nil: nothing is ever wrong
	cache  mapCache
	gen    uint32

	work  *heapMap // of the batch under way; nil outside of one
	delta []byte

	gets, puts, steps int64 // not charged yet
	collected         bool  // garbage of this batch is charged
	ended             bool  // times are those of a batch that is over
	hits, misses      int64 // for as long as the instance lives
	repaired          int64 // since the last commit
	newestSnapshot    int64 // in the checkpoint, as far as known
	snapshotMs        int64 // when it was written, at the earliest when this instance began
	figures           Figures
}

var (
	_ Store      = (*hdfsStore)(nil)
	_ ReadWriter = (*hdfsStore)(nil)
)

var (
	errNotLoaded = errors.New("no version is loaded")
	errFamily    = errors.New("the HDFS provider has no column families")
)

func newHDFS(o hdfsOptions) *hdfsStore {
	s := &hdfsStore{opt: o, cache: mapCache{max: o.Conf.MaxBatchesInMemory}}
	s.snapshotMs = o.Now()
	s.figures.LastUploaded = -1
	s.figures.Custom.Clear()
	return s
}

func (s *hdfsStore) fault(err error) error {
	return fmt.Errorf("state store %s of operator %d, partition %d: %w", s.opt.ID.Name, s.opt.ID.Operator, s.opt.ID.Partition, err)
}

// Load implements Store.
func (s *hdfsStore) Load(version int64) error {
	s.restart()
	if err := s.load(version); err != nil {
		s.ended = true
		return s.fault(err)
	}
	return nil
}

// LoadReadWrite implements ReadWriter: a read store and a write store each get
// their own copy of the map, and the cache is asked twice, in every version.
func (s *hdfsStore) LoadReadWrite(version int64) error {
	if err := s.Load(version); err != nil {
		return err
	}
	if err := s.load(version); err != nil {
		s.ended = true
		return s.fault(err)
	}
	return nil
}

func (s *hdfsStore) load(version int64) error {
	s.work = nil
	if version < 0 {
		return fmt.Errorf("version (%d) must not be negative", version)
	}
	m, err := s.fetch(version)
	if err != nil {
		return err
	}
	meter := s.opt.Meter()
	mark := meter.Begin(device.StepHeap)
	s.work = copyOf(m, version+1, s.nextGen())
	s.figures.Load += meter.End(device.StepHeap, mark, device.Work{Ops: 1 + m.rows/lightSteps})
	return nil
}

// restart begins a batch: what was written before and not committed is gone, and
// times begin at 0 where the batch before is over.
func (s *hdfsStore) restart() {
	s.endBatch()
	if s.ended {
		f := &s.figures
		f.Load, f.Get, f.Put, f.Scan, f.Commit, f.Stall = 0, 0, 0, 0, 0, 0
	}
	s.ended, s.collected = false, false
}

// endBatch forgets what was written since the last load.
func (s *hdfsStore) endBatch() {
	s.work = nil
	s.gets, s.puts, s.steps = 0, 0, 0
	if cap(s.delta) > 1<<20 {
		s.delta = nil // the first batch of a stream or a catch-up: not every store keeps that much
	}
	s.delta = s.delta[:0]
}

func (s *hdfsStore) nextGen() uint32 {
	s.gen++
	return s.gen
}

// fetch returns the map of a version from the cache or the checkpoint.
func (s *hdfsStore) fetch(version int64) (*heapMap, error) {
	if version == 0 {
		return newHeapMap(s.nextGen()), nil
	}
	if m := s.cache.get(version); m != nil {
		s.hits++
		return m, nil
	}
	s.misses++
	m, err := s.rebuild(version)
	if err != nil {
		return nil, err
	}
	s.cache.put(m)
	return m, nil
}

// Get implements Store.
func (s *hdfsStore) Get(family byte, key []byte) (value []byte, found bool, err error) {
	if err := s.usable(family); err != nil {
		return nil, false, err
	}
	s.gets++
	mark := s.begin()
	r := s.work.tree.get(key)
	s.figures.Get += s.end(mark)
	if r == nil {
		return nil, false, nil
	}
	return r.value(), true, nil
}

// Put implements Store.
func (s *hdfsStore) Put(family byte, key, value []byte) error {
	if err := s.usable(family); err != nil {
		return err
	}
	s.puts++
	mark := s.begin()
	s.work.put(key, value)
	s.delta = appendPut(s.delta, key, value)
	s.figures.Put += s.end(mark)
	return nil
}

// Delete implements Store.
func (s *hdfsStore) Delete(family byte, key []byte) error {
	if err := s.usable(family); err != nil {
		return err
	}
	s.puts++
	mark := s.begin()
	if s.work.remove(key) {
		s.delta = appendRemoval(s.delta, key)
	}
	s.figures.Put += s.end(mark)
	return nil
}

// Scan implements Store.
func (s *hdfsStore) Scan(family byte, from, to []byte, visit func(key, value []byte) bool) error {
	if err := s.usable(family); err != nil {
		return err
	}
	mark := s.begin()
	s.work.tree.scan(from, to, func(r heapRow) bool {
		s.steps++
		return visit(r.key(), r.value())
	})
	s.figures.Scan += s.end(mark)
	return nil
}

func (s *hdfsStore) usable(family byte) error {
	if s.work == nil {
		return s.fault(errNotLoaded)
	}
	if family != 0 {
		return s.fault(errFamily)
	}
	return nil
}

// Commit implements Store.
func (s *hdfsStore) Commit() error {
	if err := s.usable(0); err != nil {
		return err
	}
	s.chargeWork()
	s.figures.Commit += s.collect()
	if err := s.writeDelta(); err != nil {
		return s.fault(err)
	}
	m := s.work
	s.cache.put(m)
	forced, err := s.forceSnapshot(m)
	if err != nil {
		return s.fault(err)
	}
	s.report(m, forced)
	s.endBatch()
	s.ended = true
	return nil
}

// writeDelta writes what the batch changed, an empty file where that is nothing.
func (s *hdfsStore) writeDelta() error {
	meter := s.opt.Meter()
	mark := meter.Begin(device.StepChangelog)
	s.delta = appendEnd(s.delta)
	n, err := s.opt.Dir.WriteDelta(s.work.version, s.delta)
	s.figures.Commit += meter.End(device.StepChangelog, mark, device.Work{Requests: writeRequests, RemoteOut: n})
	return err
}

// Abort implements Store.
func (s *hdfsStore) Abort() error {
	s.endBatch()
	s.ended = true
	return nil
}

func (s *hdfsStore) setFaults(f *Faults) { s.faults = f }

// close lets go of all maps: all that this provider has is on the heap.
func (s *hdfsStore) close() error {
	s.endBatch()
	s.cache.maps, s.delta = nil, nil
	return nil
}
