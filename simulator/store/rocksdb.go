package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/store/lsm"
)

// none is the loaded version of a store that has nothing loaded.
const none = -1

// rocksDB is one store of the RocksDB provider: a database on the executor's
// local disk, and what Spark keeps around it.
//
// Spark has a version loaded (loaded) or not; the database has the content of a
// version (content) or something that no version has. The two differ where Spark
// forgets what it has loaded although the files are still good. Then loading
// costs what it costs, but the database need not really be opened anew.
type rocksDB struct {
	x        *Executor
	m        *mechanics
	id       ID
	families []Family // nil: only the default one
	dir      string   // local folder
	dirs     int64    // databases and snapshots made in it so far
	remote   *checkpoint.StateDir
	ids      *rand.Rand
	faults   *Faults

	shared  *lsm.Shared // where memory is not bounded
	db      *lsm.DB     // nil before the first load
	dbDir   string
	loaded  int64 // version that Spark takes for loaded, or none
	content int64 // version that the database holds, or none
	base    int64 // newest snapshot that the database's tables are those of
	dirty   bool  // the database was written to since content
	forget  bool  // the end of the task drops what is loaded

	lastSnapshot int64     // version of it, cut or loaded: deltas count from here
	queued       *snapshot // cut and not uploaded yet
	inRemote     int64     // newest snapshot that is known to be in the checkpoint
	lagSinceMs   int64     // when inRemote was brought up to date; 0: not known
	uploaded     int64     // by this instance; -1: none
	tables       map[string]table
	keys, inner  int64 // rows of state, and keys of internal families
	known        bool  // the loaded state has all families
	oldest       int64 // version in the checkpoint, as far as known; 0: not known

	changes changelog
	lineage []versionID // since the newest snapshot, of checkpoint format 2
	nextID  string      // of the version to be committed

	logs []logSize // changelogs since inRemote

	now        work // since the store was made
	times      nativeTimes
	settled    work // part of now that was charged already
	atLoad     mark // where the batch began
	from       mark // where the native statistics began
	live       liveTimes
	seen       lsm.Stats // of the database, taken over already
	memtable   int64     // bytes, at the last commit
	loads      loadFigures
	commits    commitFigures // as reported, with what was left standing
	commitTook time.Duration
	unloading  time.Duration // that the end of the last instance took
	synced     syncFigures
	fig        Figures
	lagFrom    int64  // newest snapshot in the checkpoint, for the driver's eyes
	key        []byte // memory for keys with their family
}

// table is where a table of the local database is in the checkpoint.
type table struct {
	dfs   string
	bytes int64
	since int64 // version whose snapshot brought it there, or it came from
}

// work counts native calls and what they moved.
type work struct {
	gets, puts, steps           int64
	getBytes, putBytes, scanned int64
	cacheHits, cacheMisses      int64
	scanMisses                  int64 // part of cacheMisses
	rotations, flushed          int64 // full memtables; bytes of tables written by any flush
	compIn, compOut             int64
}

// liveTimes gathers what a clock measured of single calls.
type liveTimes struct{ get, put, scan time.Duration }

func newRocksDB(x *Executor, id ID, families []Family) (*rocksDB, error) {
	s := &rocksDB{
		x: x, m: &x.mech, id: id, families: families, faults: &x.faults,
		remote:   x.o.Checkpoint.State(id.Operator, id.Partition, id.Name),
		loaded:   none,
		content:  none,
		uploaded: none,
		tables:   make(map[string]table),
		known:    len(families) == 0,
	}
	s.fig.LastUploaded = none
	s.fig.Custom.Clear()
	s.ids = seed.New(x.o.Seed, seed.ForIDs, x.o.Salt, uint64(x.o.ID), uint64(id.Operator), uint64(id.Partition), hashName(id.Name))
	name := strconv.Itoa(id.Operator) + "-" + strconv.Itoa(id.Partition) + "-" + strings.ReplaceAll(id.Name, "/", "_")
	s.dir = x.o.FS.PathJoin(x.o.Dir, name)
	if err := x.o.FS.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder of store %s: %w", id, err)
	}
	if !x.o.Conf.BoundedMemory {
		s.shared = lsm.NewShared(x.cacheBytes())
	}
	return s, nil
}

// hashName folds a name into a part of a seed.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

func (s *rocksDB) setFaults(f *Faults) {
	s.faults = f
	if s.shared != nil {
		s.shared.SetCapacity(s.x.cacheBytes())
	}
	if s.db != nil {
		s.db.PauseCompaction(f.CompactionPaused)
	}
}

// openDB opens the database in a folder, which may be new.
func (s *rocksDB) openDB(dir string) error {
	o := lsm.Options{
		FS: s.x.o.FS, Dir: dir, Shared: s.cache(), BlockBytes: s.x.o.Conf.BlockBytes,
		MemtableBytes: s.memtableBytes(), Uncharged: s.shared != nil,
	}
	db, err := lsm.Open(o)
	if err != nil {
		return fmt.Errorf("store %s: %w", s.id, err)
	}
	db.PauseCompaction(s.faults.CompactionPaused)
	s.db, s.dbDir = db, dir
	return nil
}

func (s *rocksDB) cache() *lsm.Shared {
	if s.shared != nil {
		return s.shared
	}
	return s.x.shared
}

func (s *rocksDB) memtableBytes() int64 {
	n, w := s.x.o.MemtableBytes, s.x.o.Conf.WriteBufferBytes
	if n <= 0 {
		n = lsm.DefaultMemtableBytes
	}
	if w > 0 {
		n = min(n, w)
	}
	return n
}

// newDir names a folder that does not exist yet.
func (s *rocksDB) newDir(what string) string {
	s.dirs++
	return s.x.o.FS.PathJoin(s.dir, what+strconv.FormatInt(s.dirs, 10))
}

// focus makes the shared cache count for this store.
func (s *rocksDB) focus() {
	if s.x.active == s {
		return
	}
	s.x.blur()
	s.db.Begin()
	s.x.active = s
}

// blur ends the counting for whichever store it is for.
func (x *Executor) blur() {
	if x.active != nil && x.active.db != nil {
		x.active.count()
	}
	x.active = nil
}

// count takes over what the cache counted since the last call.
func (s *rocksDB) count() {
	c := s.db.End()
	s.now.cacheHits += c.Hits
	s.now.cacheMisses += c.Misses
}

// ready refuses work on a store without a loaded version.
func (s *rocksDB) ready() error {
	if s.loaded == none || s.db == nil {
		return fmt.Errorf("store %s has no version loaded", s.id)
	}
	s.focus()
	return nil
}

// physical returns the key as the database has it: behind its family, where
// there are families.
func (s *rocksDB) physical(family byte, key []byte) []byte {
	if len(s.families) == 0 {
		return key
	}
	s.key = append(append(s.key[:0], family), key...)
	return s.key
}

// prefixBytes is what Spark puts before keys to tell families apart.
func (s *rocksDB) prefixBytes() int64 {
	if len(s.families) == 0 {
		return 0
	}
	return 2
}

func (s *rocksDB) internal(family byte) bool {
	return family > 0 && int(family) <= len(s.families) && s.families[family-1].Internal
}

// Get reads a key.
func (s *rocksDB) Get(family byte, key []byte) ([]byte, bool, error) {
	if err := s.ready(); err != nil {
		return nil, false, err
	}
	return s.get(s.physical(family, key))
}

func (s *rocksDB) get(key []byte) ([]byte, bool, error) {
	m := s.begin(device.StepGet)
	value, found, err := s.db.Get(key)
	s.live.get += s.end(device.StepGet, m)
	s.now.gets++
	s.now.getBytes += int64(len(value))
	return value, found, err
}

// begin and end time a single call by the clock of a live run.
func (s *rocksDB) begin(step device.Step) device.Mark {
	if !s.x.o.Live {
		return 0
	}
	return s.x.o.Meter.Begin(step)
}

func (s *rocksDB) end(step device.Step, m device.Mark) time.Duration {
	if !s.x.o.Live {
		return 0
	}
	return s.x.o.Meter.End(step, m, device.Work{Ops: 1})
}

// Put writes a key. Where rows are tracked it looks first whether it is there.
func (s *rocksDB) Put(family byte, key, value []byte) error {
	if err := s.ready(); err != nil {
		return err
	}
	phys := s.physical(family, key)
	if err := s.track(family, phys, 1); err != nil {
		return err
	}
	if s.x.o.Conf.Changelog {
		s.changes.put(s.familyName(family), key, value)
	}
	return s.set(phys, value)
}

// set writes to the database and counts what RocksDB would: header, tag and
// lengths of a record are bytes written.
func (s *rocksDB) set(phys, value []byte) error {
	s.dirty = true
	m := s.begin(device.StepPut)
	err := s.db.Set(phys, value)
	s.live.put += s.end(device.StepPut, m)
	s.now.puts++
	k := s.keyBytes(phys)
	s.now.putBytes += s.header() + 1 + varint(k) + k + varint(int64(len(value))) + int64(len(value))
	return err
}

// Delete removes a key.
func (s *rocksDB) Delete(family byte, key []byte) error {
	if err := s.ready(); err != nil {
		return err
	}
	phys := s.physical(family, key)
	if err := s.track(family, phys, -1); err != nil {
		return err
	}
	if s.x.o.Conf.Changelog {
		s.changes.delete(s.familyName(family), key)
	}
	return s.unset(phys)
}

func (s *rocksDB) unset(phys []byte) error {
	s.dirty = true
	m := s.begin(device.StepPut)
	err := s.db.Delete(phys)
	s.live.put += s.end(device.StepPut, m)
	s.now.puts++
	k := s.keyBytes(phys)
	s.now.putBytes += s.header() + 1 + varint(k) + k
	return err
}

// keyBytes is the length that Spark's key has for one of ours.
func (s *rocksDB) keyBytes(phys []byte) int64 {
	n := int64(len(phys))
	if len(s.families) > 0 {
		n += s.prefixBytes() - 1
	}
	return n
}

// header is what each write adds: its own write batch, but for versions that
// gather a batch's writes in one.
func (s *rocksDB) header() int64 {
	if s.m.batchedWrites {
		return 0
	}
	return writeBatchHeader
}

const writeBatchHeader = 12

func varint(n int64) int64 {
	bytes := int64(1)
	for n >= 0x80 {
		n >>= 7
		bytes++
	}
	return bytes
}

// track keeps the number of rows, at the price of a read per write.
func (s *rocksDB) track(family byte, phys []byte, sign int64) error {
	if !s.x.o.Conf.TrackRows {
		return nil
	}
	_, found, err := s.get(phys)
	if err != nil || found == (sign > 0) {
		return err
	}
	if s.internal(family) {
		s.inner += sign
	} else {
		s.keys += sign
	}
	return nil
}

// Scan visits the keys of a family in [from, to).
func (s *rocksDB) Scan(family byte, from, to []byte, visit func(key, value []byte) bool) error {
	if err := s.ready(); err != nil {
		return err
	}
	s.count()
	before, skip := s.now.cacheMisses, 0
	if len(s.families) > 0 {
		skip = 1
		from = append([]byte{family}, from...)
		if to == nil {
			to = []byte{family + 1}
		} else {
			to = append([]byte{family}, to...)
		}
	}
	prefix := s.prefixBytes()
	m := s.begin(device.StepScan)
	err := s.db.Scan(from, to, func(key, value []byte) bool {
		key = key[skip:]
		s.now.steps++
		s.now.scanned += int64(len(key)+len(value)) + prefix
		return visit(key, value)
	})
	s.live.scan += s.end(device.StepScan, m)
	s.count()
	s.now.scanMisses += s.now.cacheMisses - before
	return err
}

// Abort drops what was written since Load.
func (s *rocksDB) Abort() error {
	s.loaded = none
	s.changes.reset()
	if s.dirty {
		s.content = none
	}
	return nil
}

// close ends the store and deletes its local files.
func (s *rocksDB) close() error {
	if s.x.active == s {
		s.x.active = nil
	}
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if s.shared != nil {
		s.shared.Close()
	}
	s.db, s.loaded, s.content, s.queued = nil, none, none, nil
	if rerr := s.x.o.FS.RemoveAll(s.dir); err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.id, err)
	}
	return nil
}
