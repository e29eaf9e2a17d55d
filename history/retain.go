package history

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Retain deletes what is older than its time, and, where the history is larger
// than it may be, the oldest of what is left: first batches, then summaries.
// Whole hours of batches and whole weeks of summaries go at once, so something
// can stay that much longer. Batches that Trim has not covered outlive their
// age. The cost does not depend on how much is kept.
//
// The age is counted from nowMs or from the newest record, whichever is earlier:
// a clock that jumps forward deletes nothing.
func (s *Store) Retain(nowMs int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.ReadOnly {
		return fmt.Errorf("history %s: retain: %w", s.o.Dir, ErrReadOnly)
	}
	if err := s.flushTallies(); err != nil {
		return err
	}
	// How much a range takes is an estimate, so it is looked at again.
	for range retainRounds {
		plan, err := s.plan(nowMs)
		if err != nil {
			return err
		}
		if err := s.carryOut(plan); err != nil {
			return err
		}
		if plan.rawSize+plan.hourSize == 0 {
			break
		}
	}
	if err := s.forgetQueries(); err != nil {
		return err
	}
	s.sampleNow()
	return nil
}

const retainRounds = 4

// plan says which ranges go: whole buckets before the given ones.
type plan struct {
	raw, hourly       uint32 // first hour and first week that stay
	rawAge, hourlyAge int    // buckets deleted for their age
	rawSize, hourSize int    // and for the size of all
}

func (s *Store) plan(nowMs int64) (p plan, err error) {
	limit := s.o.MaxBytes
	held, isHeld := s.hold.oldest()
	err = s.read("plan retention", func(db *pebble.DB, in *inside) error {
		now, err := reference(db, nowMs)
		if err != nil {
			return err
		}
		q := plan{
			raw:    bucket(now-s.o.RawFor.Milliseconds(), hourMs),
			hourly: bucket(now-s.o.HourlyFor.Milliseconds(), weekMs),
		}
		if isHeld {
			q.raw = min(q.raw, held)
		}
		if err := q.bySize(db, limit); err != nil {
			return err
		}
		return in.Call(func() error { p = q; return nil })
	})
	return p, err
}

// reference is what age is counted from: a time that both the clock and the
// events have reached. Events of the future do not count.
func reference(db *pebble.DB, nowMs int64) (int64, error) {
	key, err := lastKey(db, spanOf(spaceRaw))
	if err != nil || key == nil {
		return nowMs, err
	}
	_, k, err := parseRawKey(key)
	return min(nowMs, k.atMs), err
}

// bySize moves the borders on until the rest fits. The newest hour and the newest
// week stay whatever their size.
func (p *plan) bySize(db *pebble.DB, limit int64) error {
	size := liveBytes(db)
	if err := p.border(db, spaceRaw, &p.raw, &p.rawAge, &p.rawSize, &size, limit); err != nil {
		return err
	}
	return p.border(db, spaceHour, &p.hourly, &p.hourlyAge, &p.hourSize, &size, limit)
}

// border walks over the buckets of a space, oldest first.
func (p *plan) border(db *pebble.DB, space byte, first *uint32, byAge, bySize *int, size *int64, limit int64) error {
	newest, err := lastBucket(db, space)
	if err != nil {
		return err
	}
	left := *size
	err = eachBucket(db, space, 0, func(n uint32) (bool, error) {
		if n >= *first && (left <= limit || n >= newest) {
			return false, nil
		}
		// Of all up to here: single hours share blocks, which count for each.
		bytes, err := db.EstimateDiskUsage(appendHour(nil, space, 0), appendHour(nil, space, n+1))
		if err != nil {
			return false, err
		}
		left = *size - int64(bytes)
		if n < *first {
			*byAge++
			return true, nil
		}
		*bySize++
		*first = n + 1
		return true, nil
	})
	*size = left
	return err
}

// liveBytes is the size of what is kept: what is obsolete goes by itself.
func liveBytes(db *pebble.DB) int64 {
	m := db.Metrics()
	size := int64(m.WAL.Size)
	for i := range m.Levels {
		size += m.Levels[i].TablesSize
	}
	return size
}

func (s *Store) carryOut(p plan) error {
	if p.rawAge+p.rawSize > 0 {
		for _, space := range []byte{spaceRaw, spaceTally} {
			if err := s.excise(space, p.raw); err != nil {
				return err
			}
		}
	}
	if p.hourlyAge+p.hourSize > 0 {
		if err := s.excise(spaceHour, p.hourly); err != nil {
			return err
		}
	}
	d := s.o.Metrics.Deletions
	d.WithLabelValues(kindRaw, whyAge).Add(float64(p.rawAge))
	d.WithLabelValues(kindRaw, whySize).Add(float64(p.rawSize))
	d.WithLabelValues(kindHourly, whyAge).Add(float64(p.hourlyAge))
	d.WithLabelValues(kindHourly, whySize).Add(float64(p.hourSize))
	return nil
}

// excise deletes all buckets of a space before one. Tables that lie within go
// without being read; no tombstone is left behind.
func (s *Store) excise(space byte, before uint32) error {
	r := pebble.KeyRange{Start: appendHour(nil, space, 0), End: appendHour(nil, space, before)}
	err := s.engine().Do(func(db *pebble.DB, _ *inside) error {
		return db.Excise(context.Background(), r)
	})
	if err != nil {
		return fmt.Errorf("history %s: delete what is old: %w", s.o.Dir, err)
	}
	return nil
}

// forgetQueries drops the queries that no record is left of.
func (s *Store) forgetQueries() error {
	gone, err := s.gone()
	if err != nil || len(gone) == 0 {
		return err
	}
	err = s.write("forget queries", pebble.NoSync, func(b *pebble.Batch) error {
		if err := b.Set(metaKey(metaQueries), appendUint(nil, uint64(s.book.newest)), nil); err != nil {
			return err
		}
		for _, number := range gone {
			if err := b.Delete(queryKey(number), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.known.Lock()
	defer s.known.Unlock()
	for _, number := range gone {
		s.book.forget(number)
	}
	return nil
}

// gone looks for records of those queries only that may have none: after a start
// that is every query that has not been heard of since.
func (s *Store) gone() (out []uint32, err error) {
	seen := make(map[uint32]uint32, len(s.book.names))
	for number, e := range s.book.names {
		seen[number] = e.lastHour
	}
	err = s.read("look for records", func(db *pebble.DB, in *inside) error {
		oldest, found, err := firstBucket(db, spaceRaw)
		if err != nil {
			return err
		}
		for number, hour := range seen {
			if found && hour >= oldest {
				continue
			}
			_, last, has, err := extent(db, number)
			if err != nil {
				return err
			}
			if err := in.Call(func() error {
				if has {
					s.known.Lock()
					s.book.seen(number, bucket(last, hourMs))
					s.known.Unlock()
				} else {
					out = append(out, number)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// eachBucket visits the numbers of the buckets that hold anything, oldest first,
// until f returns false.
func eachBucket(db *pebble.DB, space byte, from uint32, f func(n uint32) (bool, error)) (err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: appendHour(nil, space, from), UpperBound: []byte{space + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; {
		if len(it.Key()) < 5 {
			return errKey
		}
		n := binary.BigEndian.Uint32(it.Key()[1:])
		if more, err := f(n); err != nil || !more {
			return err
		}
		ok = it.SeekGE(appendHour(nil, space, n+1))
	}
	return it.Error()
}

func firstBucket(db *pebble.DB, space byte) (n uint32, found bool, err error) {
	err = eachBucket(db, space, 0, func(first uint32) (bool, error) {
		n, found = first, true
		return false, nil
	})
	return n, found, err
}

func lastBucket(db *pebble.DB, space byte) (uint32, error) {
	key, err := lastKey(db, spanOf(space))
	if err != nil || len(key) < 5 {
		return 0, err
	}
	return binary.BigEndian.Uint32(key[1:]), nil
}
