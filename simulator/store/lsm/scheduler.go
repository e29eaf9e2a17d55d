package lsm

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler is Pebble's compaction scheduler that starts nothing by itself: a
// database grants compactions one after another when it decides to, and waits
// for each. Which compaction is next remains the choice of Pebble's picker.
type scheduler struct {
	r  *recorder
	db pebble.DBForCompaction
}

var _ pebble.CompactionScheduler = (*scheduler)(nil)

// Register implements pebble.CompactionScheduler.
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) { s.db = db }

// Unregister implements pebble.CompactionScheduler.
func (s *scheduler) Unregister() {}

// TrySchedule implements pebble.CompactionScheduler: it never grants.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	signal(s.r.wanted)
	return false, nil
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. Only
// the end of a flush calls it, with the lock held under which the flush then
// picks the next compaction: who waits for it and takes the lock sees the pick.
func (s *scheduler) UpdateGetAllowedWithoutPermission() { signal(s.r.flushed) }

// grant is the permission for one compaction.
type grant struct{ done chan<- struct{} }

func (grant) Started()                                          {}
func (grant) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (grant) CumulativeStats(pebble.CompactionGrantHandleStats) {}
func (g grant) Done()                                           { signal(g.done) }

// drain runs the compactions that the picker wants until it wants none, and waits
// for the files that are no longer needed to be deleted.
func (d *DB) drain() error {
	defer d.db.TestOnlyWaitForCleaning()
	defer d.uncache(d.shared.counts(), d.rec.work())
	for {
		if waiting, _ := d.sched.db.GetWaitingCompaction(); !waiting {
			return nil
		}
		if !d.sched.db.Schedule(grant{d.rec.compacted}) {
			return nil
		}
		if err := d.rec.wait(d.rec.compacted); err != nil {
			return d.fail("compact", err)
		}
	}
}

// uncache takes out of what compactions read since a moment the blocks that they
// found in the cache: a compaction looks there first, as RocksDB's does, but
// leaves nothing behind.
func (d *DB) uncache(before CacheCounts, was Flushed) {
	work := d.rec.work()
	read := work.minus(was).CompactRead
	if read == 0 {
		return
	}
	now := d.shared.counts()
	hits, misses := now.Hits-before.Hits, now.Misses-before.Misses
	if hits+misses > 0 {
		d.rec.uncache(read * hits / (hits + misses))
	}
}

// PauseCompaction stops the compactions that follow a flush, or allows them
// again; those that piled up run with the next Flush or Drain.
func (d *DB) PauseCompaction(paused bool) { d.paused = paused }

// Drain runs the compactions that are due, unless they are paused, and returns
// what was done as Flush does.
func (d *DB) Drain() (Flushed, error) {
	if d.broken != nil || d.paused {
		return Flushed{}, d.broken
	}
	err := d.drain()
	return d.account(), err
}

// Compact flushes and then compacts all there is into the lowest level, paused
// or not, as compaction on commit does, and returns what was done as Flush does.
// Tables that lie at the bottom already and overlap nothing above are left alone.
func (d *DB) Compact() (Flushed, error) {
	err := d.flush()
	if err == nil {
		err = d.drain()
	}
	if err == nil {
		err = d.compactAll()
	}
	return d.account(), err
}

func (d *DB) compactAll() error {
	from, to, err := d.bounds()
	if err != nil || from == nil {
		return err
	}
	defer d.db.TestOnlyWaitForCleaning()
	defer d.uncache(d.shared.counts(), d.rec.work())
	done := make(chan error, 1)
	go func() { done <- d.db.Compact(context.Background(), from, to, false) }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return d.fail("compact", err)
			}
			return nil
		case <-d.rec.wanted:
			if err := d.drain(); err != nil {
				return err
			}
		case <-d.rec.failed:
			return d.fail("compact", d.rec.err())
		}
	}
}

// bounds returns the range of all tables, tombstones included, with an exclusive
// end; nil where there is no table.
func (d *DB) bounds() (from, to []byte, err error) {
	levels, err := d.db.SSTables()
	if err != nil {
		return nil, nil, fmt.Errorf("bounds of %s: %w", d.dir, err)
	}
	for _, level := range levels {
		for i := range level {
			first, last := level[i].Smallest.UserKey, level[i].Largest.UserKey
			if from == nil || bytes.Compare(first, from) < 0 {
				from = append(make([]byte, 0, len(first)), first...)
			}
			if bytes.Compare(last, to) >= 0 {
				to = append(bytes.Clone(last), 0)
			}
		}
	}
	return from, to, nil
}
