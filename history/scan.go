package history

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/history/engine"
)

type inside = engine.Inside

// scan visits the keys of a range in order. Key and value are valid during the
// visit.
func scan(db *pebble.DB, of span, visit func(key, value []byte) error) (err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: of.from, UpperBound: of.to})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := visit(it.Key(), value); err != nil {
			return err
		}
	}
	return it.Error()
}

// lastKey returns the last key of a range, nil where there is none.
func lastKey(db *pebble.DB, of span) (key []byte, err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: of.from, UpperBound: of.to})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.Last() {
		key = append([]byte{}, it.Key()...)
	}
	return key, it.Error()
}

// get hands the value to f, if there is one.
func get(db *pebble.DB, key []byte, f func(value []byte) error) error {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f(v), closer.Close())
}

// getUint reads a number, 0 where there is none.
func getUint(db *pebble.DB, key []byte) (n uint64, err error) {
	err = get(db, key, func(v []byte) (err error) {
		n, err = parseUint(v)
		return err
	})
	return n, err
}
