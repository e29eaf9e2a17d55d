package operator

import (
	"encoding/binary"
	"math"

	"github.com/stategauge/stategauge/simulator/workload"
)

// indexedJoin is a join in state format 4: rows lie under key and event time, so
// that a probe reads only those in its bound, and an index by event time finds
// what is over without reading the rest. Rows of one key and millisecond share
// an entry. In joins of this kind counts are the index.
type indexedJoin struct{ join }

// matches is what a probe found: the entries it must mark, copied, since the
// store may not be written while it is scanned.
type matches struct {
	visit func(key, value []byte) bool
	x     *task
	j     *indexedJoin
	row   *workload.Row
	any   bool
	keys  keyList
	vals  keyList
}

func (j *indexedJoin) run(x *task) error {
	if err := x.eachSide(j.watermark, j.row); err != nil {
		return err
	}
	if !j.bounded {
		return nil
	}
	return x.in(removing, j.evict)
}

// indexedKeyBytes is a key and an event time that sorts.
const indexedKeyBytes = prefix + word + sortableBytes

func appendIndexed(b []byte, key uint64, ms int64) []byte {
	return appendSortable(appendRow(b, key), ms)
}

// An entry: how many rows it holds, whether they ever matched, and their bytes.
const (
	entryRowsAt    = prefix
	entryMatchedAt = prefix + word
)

func (j *indexedJoin) row(x *task, row *workload.Row) error {
	matched, err := j.probe(x, row)
	if err != nil || !j.stores(x, row) {
		return err
	}
	side := row.Side & 1
	v, index := j.values[side], j.counts[side]
	x.key = appendIndexed(x.key[:0], row.Key, row.EventMs)
	old, found, err := x.get(v.store, v.family, x.key)
	if err != nil {
		return err
	}
	x.value = j.appendEntry(x.value[:0], old, row, matched)
	if err := x.put(v.store, v.family, x.key, x.value); err != nil {
		return err
	}
	x.r.Updated++
	if found {
		return nil
	}
	x.key2 = appendRow(appendSortable(x.key2[:0], row.EventMs), row.Key)
	x.key3 = appendRow(x.key3[:0], 0)
	return x.put(index.store, index.family, x.key2, x.key3)
}

// appendEntry adds a row to an entry; old is nil where there was none.
func (j *indexedJoin) appendEntry(b, old []byte, row *workload.Row, matched bool) []byte {
	if len(old) <= entryMatchedAt {
		b = appendRow(b, 1, 0)
	} else {
		b = append(b, old...)
		b[entryMatchedAt] = 0
		binary.LittleEndian.PutUint64(b[entryRowsAt:], wordAt(old, entryRowsAt)+1)
	}
	if matched {
		b[entryMatchedAt] = 1
	}
	size := j.bytes
	if size == 0 {
		size = int(row.Bytes)
	}
	return appendPayload(b, words(max(size, word)), row.Key)
}

// probe scans the other side for rows of the key within the bound.
func (j *indexedJoin) probe(x *task, row *workload.Row) (matched bool, err error) {
	v := j.values[row.Side&1^1]
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if j.bounded {
		from, to = row.EventMs-j.boundMs, row.EventMs+j.boundMs+1
	}
	m := &x.matches
	m.x, m.j, m.row, m.any = x, j, row, false
	m.keys.reset()
	m.vals.reset()
	x.key = appendIndexed(x.key[:0], row.Key, from)
	x.key2 = appendIndexed(x.key2[:0], row.Key, to)
	if err := x.scan(v.store, v.family, x.key, x.key2, m.visit); err != nil {
		return false, err
	}
	for i := range m.keys.len() {
		value := m.vals.at(i)
		value[entryMatchedAt] = 1
		if err := x.put(v.store, v.family, m.keys.at(i), value); err != nil {
			return m.any, err
		}
	}
	return m.any, nil
}

// add takes an entry that a probe met.
func (m *matches) add(key, value []byte) bool {
	if len(key) != indexedKeyBytes || len(value) <= entryMatchedAt {
		return true
	}
	ms := sortableAt(key, prefix+word)
	for range wordAt(value, entryRowsAt) {
		m.any = true
		m.x.emit(joined(m.row, ms, len(value)))
	}
	if value[entryMatchedAt] == 0 {
		m.keys.add(key)
		m.vals.add(value)
	}
	return true
}

// evict follows the index of both sides up to the first entry that stays.
func (j *indexedJoin) evict(x *task) error {
	for side := range uint8(2) {
		if err := j.evictSide(x, side); err != nil {
			return err
		}
	}
	return nil
}

func (j *indexedJoin) evictSide(x *task, side uint8) error {
	index, v := j.counts[side], j.values[side]
	x.doomed.reset()
	err := x.scan(index.store, index.family, nil, nil, func(key, _ []byte) bool {
		if len(key) < indexedKeyBytes || !j.over(x, sortableAt(key, 0)) {
			return false
		}
		x.doomed.add(key)
		return true
	})
	if err != nil {
		return err
	}
	for i := range x.doomed.len() {
		key := x.doomed.at(i)
		x.key = appendIndexed(x.key[:0], wordAt(key, sortableBytes+prefix), sortableAt(key, 0))
		value, found, err := x.get(v.store, v.family, x.key)
		if err != nil {
			return err
		}
		if found && len(value) >= entryRowsAt+word {
			x.r.Removed += int64(wordAt(value, entryRowsAt))
		}
		if err := x.remove(v.store, v.family, x.key); err != nil {
			return err
		}
		if err := x.remove(index.store, index.family, key); err != nil {
			return err
		}
		x.ran(1)
	}
	return nil
}
