package history

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/event"
)

// Offsets returns how far each partition was read, as of the newest step.
func (s *Store) Offsets() ([]Offset, error) {
	var out []Offset
	err := s.visit("read offsets", spanOf(spaceOffset), func(key, value []byte) error {
		topic, partition, err := parseOffsetKey(key)
		if err != nil {
			return err
		}
		next, err := parseUint(value)
		out = append(out, Offset{topic, partition, int64(next)})
		return err
	})
	return out, err
}

// Words returns the dictionary, in order of the numbers.
func (s *Store) Words() ([]Word, error) {
	var out []Word
	err := s.visit("read words", spanOf(spaceWord), func(key, value []byte) error {
		id, err := parseNumberKey(key)
		out = append(out, Word{id, string(value)})
		return err
	})
	return out, err
}

// States calls fn with every saved state of a kind, in order of the keys, until
// it returns an error.
func (s *Store) States(kind string, fn func(State) error) error {
	prefix := statePrefix(kind)
	return s.visit("read states of kind "+kind, spanOf(prefix...), func(key, value []byte) error {
		seq, err := parseUint(value)
		if err != nil {
			return err
		}
		return fn(State{kind, string(key[len(prefix):]), seq, value[8:]})
	})
}

// visit calls back for every key of a range.
func (s *Store) visit(what string, of span, fn func(key, value []byte) error) error {
	eng := s.engine()
	return s.read(what, func(db *pebble.DB, in *inside) error {
		return scan(db, of, func(key, value []byte) error {
			if eng.Closing() {
				return ErrClosed
			}
			return in.Call(func() error { return fn(key, value) })
		})
	})
}

// Replay calls fn with the records of every step after the given one, in the
// order in which they were committed, until it returns an error. What Trim has
// covered may be missing.
func (s *Store) Replay(after uint64, fn func(seq uint64, r Record) error) error {
	if after == math.MaxUint64 {
		return nil
	}
	names := s.names(func(queryName) bool { return true })
	r := replayer{names: names, fn: fn}
	return s.visit("replay", span{logKey(after + 1), spanOf(spaceLog).to}, func(key, value []byte) error {
		return r.step(s, key, value)
	})
}

type replayer struct {
	names   map[uint32]queryName
	fn      func(seq uint64, r Record) error
	entries []entry
}

func (r *replayer) step(s *Store, key, value []byte) (err error) {
	seq, err := parseLogKey(key)
	if err != nil {
		return err
	}
	if r.entries, err = parseEntries(value, r.entries); err != nil {
		return err
	}
	return s.read("replay", func(db *pebble.DB, in *inside) error {
		for i, e := range r.entries {
			k := rawKey{query: e.query, atMs: e.atMs, seq: seq, position: uint32(i)}
			if err := get(db, k.append(nil), func(body []byte) error {
				name := r.names[e.query]
				return in.Call(func() error { return r.fn(seq, Record{name.id, name.lineage, e.atMs, body}) })
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) names(keep func(queryName) bool) map[uint32]queryName {
	s.known.RLock()
	defer s.known.RUnlock()
	return s.book.of(keep)
}

// Read calls fn with the records of a query in [fromMs, toMs), in order of time,
// until it returns an error. Records of one time come in the order in which they
// were committed.
func (s *Store) Read(query event.QueryID, fromMs, toMs int64, fn func(Record) error) error {
	return s.readNames(s.names(func(n queryName) bool { return n.id == query }), fromMs, toMs, fn)
}

// ReadLineage is Read over all queries that ever had the name, or over the one
// of that id where it has no name: a new checkpoint makes a new id.
func (s *Store) ReadLineage(lineage string, fromMs, toMs int64, fn func(Record) error) error {
	return s.readNames(s.names(func(n queryName) bool { return n.lineage == lineage }), fromMs, toMs, fn)
}

func (s *Store) readNames(names map[uint32]queryName, fromMs, toMs int64, fn func(Record) error) error {
	eng := s.engine()
	return s.read("read records", func(db *pebble.DB, in *inside) (err error) {
		m := merge{}
		defer func() { err = errors.Join(err, m.close()) }()
		if err := m.open(db, names, fromMs, toMs); err != nil {
			return err
		}
		for c := m.first(); c != nil; c = m.first() {
			if eng.Closing() {
				return ErrClosed
			}
			if err := c.hand(in, fn); err != nil {
				return err
			}
			c.next()
		}
		return m.err()
	})
}

// Queries returns every query that has records, in order of lineage and id. A
// query that has changed its name is there once for each. Senders that have records
// come first.
func (s *Store) Queries() ([]QueryInfo, error) {
	var out []QueryInfo
	counts, err := s.counts()
	if err != nil {
		return nil, err
	}
	names := s.names(func(queryName) bool { return true })
	err = s.read("read queries", func(db *pebble.DB, in *inside) error {
		for number, name := range names {
			first, last, found, err := extent(db, number)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			info := QueryInfo{name.id, name.lineage, first, last, max(counts[number], 1)}
			if err := in.Call(func() error { out = append(out, info); return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b QueryInfo) int {
		return cmp.Or(cmp.Compare(a.Lineage, b.Lineage), cmp.Compare(a.ID, b.ID))
	})
	return out, err
}

// counts adds up the tallies of every query, on disk and in memory.
func (s *Store) counts() (map[uint32]int64, error) {
	out := map[uint32]int64{}
	err := s.visit("read tallies", spanOf(spaceTally), func(key, value []byte) error {
		_, query, err := parseTallyKey(key)
		if err != nil {
			return err
		}
		n, err := parseTally(value)
		out[query] += int64(n)
		return err
	})
	s.known.RLock()
	defer s.known.RUnlock()
	for id, n := range s.tally {
		out[id.query] += int64(n)
	}
	return out, err
}
