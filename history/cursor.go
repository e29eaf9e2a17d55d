package history

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// cursor walks over the records of one query in order of time, or back from the
// newest: in each hour they are together, and it jumps from hour to hour.
type cursor struct {
	it     *pebble.Iterator
	name   queryName
	number uint32
	toMs   int64
	key    rawKey
	valid  bool
	err    error
}

func newCursor(db *pebble.DB, number uint32, name queryName, fromMs, toMs int64) (*cursor, error) {
	// The last hour is shared by all times behind it, so its end is no bound.
	of := spanOf(spaceRaw)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: of.from, UpperBound: of.to})
	if err != nil {
		return nil, err
	}
	c := &cursor{it: it, name: name, number: number, toMs: toMs}
	start := rawKey{query: number, atMs: fromMs}
	c.settle(it.SeekGE(start.append(nil)))
	return c, nil
}

func (c *cursor) next() { c.settle(c.it.Next()) }

// settle moves on to the next record of the query at or behind where the
// iterator is.
func (c *cursor) settle(ok bool) {
	c.valid = false
	for ok {
		hour, key, err := parseRawKey(c.it.Key())
		if err != nil {
			c.err = err
			return
		}
		switch {
		case key.query == c.number:
			c.key, c.valid = key, key.atMs < c.toMs
			return
		case key.query > c.number:
			if hour == math.MaxUint32 {
				return
			}
			hour++
		}
		if int64(hour) > int64(bucket(c.toMs, hourMs)) {
			return
		}
		ok = c.it.SeekGE(appendRawPrefix(nil, hour, c.number))
	}
	c.err = c.it.Error()
}

// last moves to the newest record of the query.
func (c *cursor) last() {
	c.valid = false
	ok := c.it.Last()
	for ok {
		hour, key, err := parseRawKey(c.it.Key())
		if err != nil {
			c.err = err
			return
		}
		switch {
		case key.query == c.number:
			c.key, c.valid = key, true
			return
		case key.query < c.number && hour == 0:
			return
		case key.query < c.number:
			hour--
		}
		ok = c.it.SeekLT(appendRawPrefix(nil, hour, c.number+1))
	}
	c.err = c.it.Error()
}

func (c *cursor) hand(in *inside, fn func(Record) error) error {
	body, err := c.it.ValueAndErr()
	if err != nil {
		return err
	}
	r := Record{Query: c.name.id, Lineage: c.name.lineage, AtMs: c.key.atMs, Body: body}
	return in.Call(func() error { return fn(r) })
}

// extent returns the times of the oldest and the newest record of a query.
func extent(db *pebble.DB, number uint32) (firstMs, lastMs int64, found bool, err error) {
	c, err := newCursor(db, number, queryName{}, math.MinInt64, math.MaxInt64)
	if err != nil {
		return 0, 0, false, err
	}
	defer func() { err = errors.Join(err, c.it.Close()) }()
	if !c.valid {
		return 0, 0, false, c.err
	}
	firstMs = c.key.atMs
	c.last()
	return firstMs, c.key.atMs, c.valid, c.err
}

// merge walks over the records of several queries in order of time.
type merge struct{ cursors []*cursor }

func (m *merge) open(db *pebble.DB, names map[uint32]queryName, fromMs, toMs int64) error {
	for number, name := range names {
		c, err := newCursor(db, number, name, fromMs, toMs)
		if err != nil {
			return err
		}
		m.cursors = append(m.cursors, c)
	}
	return nil
}

// first returns the cursor that is at the oldest record, nil at the end. Names
// that share records of one time are few, so all are looked at.
func (m *merge) first() *cursor {
	var oldest *cursor
	for _, c := range m.cursors {
		if c.valid && (oldest == nil || c.key.before(oldest.key)) {
			oldest = c
		}
	}
	return oldest
}

func (k rawKey) before(l rawKey) bool {
	if k.atMs != l.atMs {
		return k.atMs < l.atMs
	}
	if k.seq != l.seq {
		return k.seq < l.seq
	}
	return k.position < l.position
}

func (m *merge) err() error {
	errs := make([]error, 0, len(m.cursors))
	for _, c := range m.cursors {
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

func (m *merge) close() error {
	errs := make([]error, 0, len(m.cursors))
	for _, c := range m.cursors {
		errs = append(errs, c.it.Close())
	}
	return errors.Join(errs...)
}
