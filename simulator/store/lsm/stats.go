package lsm

// Flushed says what flushes and the compactions after them did, in bytes of
// files.
type Flushed struct {
	Flushes                     int64 // that wrote a file
	Bytes, Files                int64 // that they wrote
	Compactions                 int64 // that rewrote data
	CompactRead, CompactWritten int64 // read from files: blocks in the cache do not count
}

// Add adds o to f.
func (f *Flushed) Add(o Flushed) {
	f.Flushes += o.Flushes
	f.Bytes += o.Bytes
	f.Files += o.Files
	f.Compactions += o.Compactions
	f.CompactRead += o.CompactRead
	f.CompactWritten += o.CompactWritten
}

// minus is what was done since o.
func (f *Flushed) minus(o Flushed) Flushed {
	return Flushed{
		Flushes: f.Flushes - o.Flushes, Bytes: f.Bytes - o.Bytes, Files: f.Files - o.Files,
		Compactions: f.Compactions - o.Compactions,
		CompactRead: f.CompactRead - o.CompactRead, CompactWritten: f.CompactWritten - o.CompactWritten,
	}
}

// CacheCounts is how often a block was found in the cache, and how often it was
// read from a file instead.
type CacheCounts struct{ Hits, Misses int64 }

// Stats is the state of a database and what it did since it was opened or since
// ResetStats, in bytes.
type Stats struct {
	SSTBytes, SSTFiles int64
	MemtableBytes      int64 // entries and nodes since the last flush
	MemtableEntries    int64
	ReaderBytes        int64 // estimate: index and filter blocks of all tables

	UserWritten, UserRead int64 // keys and values put, values got
	IteratorRead          int64 // keys and values visited
	Work                  Flushed
	Cache                 CacheCounts // between Begin and End
}

// Debt is what compaction is behind with.
type Debt struct {
	L0Files, L0Bytes int64
	L0Sublevels      int64 // how many files a read of level 0 may have to look into
	PendingBytes     int64 // estimate of what must be compacted
}

// Begin and End enclose a group of operations: the hits and misses of the shared
// cache in between are counted as this database's, and End returns them. No
// other database of the same Shared may be used in between.
func (d *DB) Begin() { d.since = d.shared.counts() }

// End closes a group that Begin opened.
func (d *DB) End() CacheCounts {
	now := d.shared.counts()
	group := CacheCounts{Hits: now.Hits - d.since.Hits, Misses: now.Misses - d.since.Misses}
	d.since = now
	d.stats.Cache.Hits += group.Hits
	d.stats.Cache.Misses += group.Misses
	return group
}

// Stats is cheap enough for every commit.
func (d *DB) Stats() Stats {
	s := d.stats
	t := d.rec.tables()
	s.SSTBytes, s.SSTFiles = t.bytes, t.files
	s.MemtableBytes, s.MemtableEntries = d.mem.used, d.mem.entries
	s.ReaderBytes = readerBytes(t, d.block)
	work := d.rec.work()
	s.Work = work.minus(d.reset)
	return s
}

// ResetStats sets the counters to zero; the state remains.
func (d *DB) ResetStats() {
	d.stats = Stats{}
	d.reset = d.rec.work()
}

// readerBytes estimates what open tables take: about forty bytes of index for
// each block, ten bits of filter for each row of some hundred bytes, and the
// reader itself.
func readerBytes(t tables, block int64) int64 {
	const index, reader = 40, 1 << 10
	return t.bytes*index/block + t.bytes/80 + t.files*reader
}

// Debt asks Pebble only where tables have changed since the last call.
func (d *DB) Debt() Debt {
	t := d.rec.tables()
	if d.broken != nil || t.version == d.debtAt {
		return d.debt
	}
	d.debt = Debt{L0Files: t.l0Files, L0Bytes: t.l0Bytes}
	d.debtAt = t.version
	if t.files > 0 {
		m := d.db.Metrics()
		d.debt.L0Sublevels = int64(m.Levels[0].Sublevels)
		d.debt.PendingBytes = int64(m.Compact.EstimatedDebt)
	}
	return d.debt
}

// account returns the work since it was last called.
func (d *DB) account() Flushed {
	now := d.rec.work()
	work := now.minus(d.told)
	d.told = now
	return work
}
