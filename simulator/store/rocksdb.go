package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/simulator/checkpoint"
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
	seeded   int64  // version that ids are those of, or none
	reloads  uint64 // loads of it before the present one
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
	own     ownVersion
	recount bool        // replay counts rows
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
	last       lastRead
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
		seeded:   none,
		tables:   make(map[string]table),
		known:    len(families) == 0,
	}
	s.fig.LastUploaded = none
	s.fig.Custom.Clear()
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

// reseed begins the ids of a batch. The version is part of their seed: a query
// that goes on from a checkpoint must not give a table the name of an older one,
// even where its driver calls itself the same. So is how often the version was
// loaded before, where a batch is evaluated several times.
func (s *rocksDB) reseed(version int64) {
	if s.seeded == version {
		s.reloads++
	} else {
		s.seeded, s.reloads = version, 0
	}
	o := &s.x.o
	parts := []uint64{o.Seed, seed.ForIDs, o.Salt, uint64(o.ID), uint64(s.id.Operator), uint64(s.id.Partition), hashName(s.id.Name), uint64(version)}
	if s.reloads > 0 {
		parts = append(parts, s.reloads)
	}
	s.ids = seed.New(parts...)
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
		MemtableBytes: s.memtableBytes(), Uncharged: s.shared != nil || s.x.roomy(),
	}
	db, err := lsm.Open(o)
	if err != nil {
		return fmt.Errorf("store %s: %w", s.id, err)
	}
	db.PauseCompaction(s.faults.CompactionPaused)
	s.db, s.dbDir = db, dir
	if s.x.o.MemtableBytes > 0 {
		// Spark's first write buffer is as large as the others: without this the
		// database would flush once before it has so large a one.
		if err := db.Grow(); err != nil {
			return fmt.Errorf("store %s: %w", s.id, err)
		}
	}
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
