package history

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/event"
)

// Names in spaceMeta.
const (
	metaFormat  = "format"  // version of the key space and of the values
	metaTrimmed = "trimmed" // newest step that Trim has covered
	metaQueries = "queries" // newest number of a query that was forgotten
)

// book numbers the queries: keys of records hold four bytes instead of an id. A
// query that changes its name goes on under a second number.
type book struct {
	numbers map[queryName]uint32
	names   map[uint32]*queryEntry
	newest  uint32 // number; they are not used again
}

type queryName struct {
	id      event.QueryID
	lineage string
}

type queryEntry struct {
	queryName
	lastHour uint32 // of its records, as far as this process has seen
}

func newBook() book {
	return book{numbers: map[queryName]uint32{}, names: map[uint32]*queryEntry{}}
}

func (b *book) add(number uint32, name queryName) {
	b.numbers[name] = number
	b.names[number] = &queryEntry{queryName: name}
	b.newest = max(b.newest, number)
}

func (b *book) number(id event.QueryID, lineage string) (number uint32, isNew bool) {
	name := queryName{id, lineage}
	if n, ok := b.numbers[name]; ok {
		return n, false
	}
	b.add(b.newest+1, name)
	return b.newest, true
}

func (b *book) seen(number, hour uint32) {
	e := b.names[number]
	e.lastHour = max(e.lastHour, hour)
}

func (b *book) forget(number uint32) {
	if e, ok := b.names[number]; ok {
		delete(b.numbers, e.queryName)
		delete(b.names, number)
	}
}

// of returns the numbers for which keep says yes.
func (b *book) of(keep func(queryName) bool) map[uint32]queryName {
	out := map[uint32]queryName{}
	for number, e := range b.names {
		if keep(e.queryName) {
			out[number] = e.queryName
		}
	}
	return out
}

func loadBook(db *pebble.DB) (book, error) {
	b := newBook()
	forgotten, err := getUint(db, metaKey(metaQueries))
	if err != nil {
		return b, err
	}
	b.newest = uint32(forgotten)
	err = scan(db, spanOf(spaceQuery), func(key, value []byte) error {
		number, err := parseNumberKey(key)
		if err != nil {
			return err
		}
		id, lineage, err := parseQuery(value)
		if err != nil {
			return err
		}
		b.add(number, queryName{event.QueryID(id), lineage})
		return nil
	})
	return b, err
}

// tallies count the records by hour and query since they were last written.
type tallies map[tallyID]uint64

type tallyID struct{ hour, query uint32 }

// maxTallies is how many are held before they are written with the next step.
const maxTallies = 1 << 14

func (t tallies) add(hour, query uint32) { t[tallyID{hour, query}]++ }

// flushTallies adds what was counted to what is on disk. A crash loses what was
// counted since: the numbers are approximate.
func (s *Store) flushTallies() error {
	if len(s.tally) == 0 {
		return nil
	}
	sums := map[tallyID]uint64{}
	if err := s.read("read tallies", func(db *pebble.DB, in *inside) error {
		for id, n := range s.tally {
			old, err := getTally(db, id)
			if err != nil {
				return err
			}
			if err := in.Call(func() error { sums[id] = old + n; return nil }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	err := s.write("write tallies", pebble.NoSync, func(b *pebble.Batch) error {
		for id, n := range sums {
			if err := b.Set(tallyKey(id.hour, id.query), binary.AppendUvarint(nil, n), nil); err != nil {
				return err
			}
		}
		return nil
	})
	s.known.Lock()
	defer s.known.Unlock()
	clear(s.tally)
	return err
}

func getTally(db *pebble.DB, id tallyID) (n uint64, err error) {
	err = get(db, tallyKey(id.hour, id.query), func(v []byte) (err error) {
		n, err = parseTally(v)
		return err
	})
	return n, err
}

// hold knows the oldest hour that a step which Trim has not covered has records
// in: Replay needs them, so they outlive their age. It keeps the minima of all
// the suffixes of the log, which are few, since time mostly goes on.
type hold struct{ steps []heldHour }

type heldHour struct {
	seq  uint64
	hour uint32
}

func (h *hold) add(seq uint64, entries []entry) {
	for _, e := range entries {
		hour := bucket(e.atMs, hourMs)
		for len(h.steps) > 0 && h.steps[len(h.steps)-1].hour >= hour {
			h.steps = h.steps[:len(h.steps)-1]
		}
		h.steps = append(h.steps, heldHour{seq, hour})
	}
}

func (h *hold) trim(upTo uint64) {
	n := 0
	for n < len(h.steps) && h.steps[n].seq <= upTo {
		n++
	}
	h.steps = append(h.steps[:0], h.steps[n:]...)
}

// oldest returns false where nothing is held.
func (h *hold) oldest() (hour uint32, ok bool) {
	if len(h.steps) == 0 {
		return 0, false
	}
	return h.steps[0].hour, true
}

func loadHold(db *pebble.DB) (hold, error) {
	var h hold
	var entries []entry
	err := scan(db, spanOf(spaceLog), func(key, value []byte) error {
		seq, err := parseLogKey(key)
		if err != nil {
			return err
		}
		if entries, err = parseEntries(value, entries); err != nil {
			return err
		}
		h.add(seq, entries)
		return nil
	})
	return h, err
}
