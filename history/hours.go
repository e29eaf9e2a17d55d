package history

import (
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// PutHours writes summaries of a signal, each in place of one of the same hour.
// A crash may lose them, but only together with every step that is committed
// later: so the state that says that they are written belongs into a later step.
func (s *Store) PutHours(lineage, query, signal string, hours []Hour) error {
	for _, text := range []string{lineage, query, signal} {
		if len(text) > math.MaxUint16 {
			return fmt.Errorf("history %s: put hours of signal %.50q: name of %d bytes is too long", s.o.Dir, signal, len(text))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write("put hours of signal "+signal, pebble.NoSync, func(b *pebble.Batch) error {
		for _, h := range hours {
			prefix := hourPrefix(bucket(h.StartMs, weekMs), lineage, signal)
			if err := b.Set(hourKey(prefix, h.StartMs, query), h.Body, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReadHours calls fn with the summaries of a signal whose hours begin in
// [fromMs, toMs), in order of time, until it returns an error. An empty query
// stands for every query of the lineage; fn is told which.
func (s *Store) ReadHours(lineage, query, signal string, fromMs, toMs int64, fn func(query string, h Hour) error) error {
	eng := s.engine()
	return s.read("read hours of signal "+signal, func(db *pebble.DB, in *inside) error {
		weeks, err := bucketsOf(db, spaceHour, bucket(fromMs, weekMs), bucket(toMs, weekMs))
		if err != nil {
			return err
		}
		for _, week := range weeks {
			prefix := hourPrefix(week, lineage, signal)
			if err := scan(db, spanOf(prefix...), func(key, body []byte) error {
				at, id, err := parseHourKey(key[len(prefix):])
				if err != nil || at < fromMs || at >= toMs || query != "" && query != string(id) {
					return err
				}
				if eng.Closing() {
					return ErrClosed
				}
				return in.Call(func() error { return fn(string(id), Hour{at, body}) })
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// bucketsOf returns the numbers of the hours or weeks in [from, to] that hold
// anything, by one jump each.
func bucketsOf(db *pebble.DB, space byte, from, to uint32) (out []uint32, err error) {
	err = eachBucket(db, space, from, func(n uint32) (bool, error) {
		if n <= to {
			out = append(out, n)
		}
		return n < to, nil
	})
	return out, err
}
