package operator

import (
	"errors"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// join plays the symmetric hash join of two streams. A side keeps its rows under
// key and number, and under the key how many there are. Each row probes the
// other side, then joins its own; at the end every row of both sides is read
// again to find those that no partner can come for any more.
type join struct {
	bounded, watermark bool
	boundMs            int64
	bytes              int // of a row in state, version byte aside; 0: the row's own
	// dropsLeft says that rows of the left side, too, are not stored where they would be
	// removed at once. That lost matches, and was given up for the left side.
	dropsLeft bool
	counts    [2]place // keyToNumValues of both sides
	values    [2]place // keyWithIndexToValue of both sides
}

// place is a column family of a store.
type place struct {
	store  int
	family byte
}

// joinNames is the four stores of formats 1 and 2, and the families of format 3.
var joinNames = []string{
	"left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue",
}

// leftKeptSince is the version from which rows of the left side are always stored.
var leftKeptSince = event.Version{Major: 3, Minor: 5, Patch: 4}

func (o *Operator) chooseJoin(conf *spark.Conf) error {
	s := o.spec
	if s.Bounded && !s.Watermark {
		return errors.New("a bound in event time needs a watermark")
	}
	if s.Bound < 0 || s.Bound > 0 && s.Bound < time.Millisecond {
		return errors.New("bound is shorter than a millisecond")
	}
	if conf.JoinFormat >= 3 && conf.Provider != spark.RocksDB {
		return errors.New("state formats 3 and 4 need the RocksDB provider")
	}
	j := join{
		bounded: s.Bounded, watermark: s.Watermark, boundMs: s.Bound.Milliseconds(),
		bytes: s.ValueBytes, dropsLeft: o.version.Less(leftKeptSince),
	}
	switch conf.JoinFormat {
	case 0, 1, 2:
		o.stores, o.reports = joinNames, []bool{false, true, false, true}
		j.counts, j.values = [2]place{{store: 0}, {store: 2}}, [2]place{{store: 1}, {store: 3}}
		o.plan = &j
		return nil
	case 3:
		o.families = joinFamilies("keyToNumValues", "keyWithIndexToValue")
		j.counts, j.values = [2]place{{family: 1}, {family: 3}}, [2]place{{family: 2}, {family: 4}}
		o.plan = &j
		return o.needs("state format 3", spark.V41)
	case 4:
		o.families = joinFamilies("tsWithKey", "keyWithTsToValues")
		j.counts, j.values = [2]place{{family: 1}, {family: 3}}, [2]place{{family: 2}, {family: 4}}
		o.plan = &indexedJoin{j}
		return o.needs("state format 4", spark.V42)
	}
	return errors.New("state format is none of 1 to 4")
}

// joinFamilies is an internal family and one of rows, per side.
func joinFamilies(internal, rows string) []store.Family {
	return []store.Family{
		{Name: "left-" + internal, Internal: true},
		{Name: "left-" + rows},
		{Name: "right-" + internal, Internal: true},
		{Name: "right-" + rows},
	}
}

func (j *join) run(x *task) error {
	if err := x.eachSide(j.watermark, j.row); err != nil {
		return err
	}
	if !j.bounded {
		return nil
	}
	return x.in(removing, j.evict)
}

// eachSide passes the rows that are not late to do: those of the left side
// first, as a task does.
func (x *task) eachSide(watermark bool, do func(x *task, row *workload.Row) error) error {
	x.ran(int64(len(x.Rows)))
	for side := range uint8(2) {
		for i := range x.Rows {
			row := &x.Rows[i]
			if row.Side&1 != side {
				continue
			}
			if watermark && x.late(row.EventMs) {
				x.r.Dropped++
				continue
			}
			if err := do(x, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *join) row(x *task, row *workload.Row) error {
	matched, err := j.probe(x, row)
	if err != nil || !j.stores(x, row) {
		return err
	}
	side := row.Side & 1
	n, err := j.count(x, side, row.Key)
	if err != nil {
		return err
	}
	x.key = appendRow(x.key[:0], row.Key, n)
	x.value = j.appendValue(x.value[:0], row, matched)
	v := j.values[side]
	if err := x.put(v.store, v.family, x.key, x.value); err != nil {
		return err
	}
	x.r.Updated++
	return j.setCount(x, side, row.Key, n+1)
}

// stores reports whether a row is kept: not if the watermark would remove it in
// the same batch. A left row must be kept all the same, since right rows of the
// batch may still match it.
func (j *join) stores(x *task, row *workload.Row) bool {
	return row.Side&1 == 0 && !j.dropsLeft || !j.over(x, row.EventMs)
}

// over reports whether no partner can come any more for a row of this event time.
func (j *join) over(x *task, ms int64) bool {
	return j.bounded && x.EvictMs > 0 && ms < x.EvictMs-j.boundMs
}

func (j *join) fits(a, b int64) bool {
	return !j.bounded || max(a, b)-min(a, b) <= j.boundMs
}

// A row in state: the key, its event time, whether it ever matched, payload.
const (
	joinTimeAt    = prefix + word
	joinMatchedAt = prefix + 2*word
	joinRowBytes  = 4 * word
)

func (j *join) appendValue(b []byte, row *workload.Row, matched bool) []byte {
	size := j.bytes
	if size == 0 {
		size = int(row.Bytes)
	}
	b = appendRow(b, row.Key, micros(row.EventMs), 0)
	if matched {
		b[joinMatchedAt] = 1
	}
	return pad(b, max(size, joinRowBytes), row.Key)
}

// probe matches a row with those of the other side, and marks those that match
// for the first time.
func (j *join) probe(x *task, row *workload.Row) (matched bool, err error) {
	side := row.Side&1 ^ 1
	n, err := j.count(x, side, row.Key)
	if err != nil {
		return false, err
	}
	v := j.values[side]
	for i := range n {
		x.key = appendRow(x.key[:0], row.Key, i)
		value, found, err := x.get(v.store, v.family, x.key)
		if err != nil {
			return matched, err
		}
		if !found || len(value) <= joinMatchedAt {
			continue
		}
		ms := millisAt(value, joinTimeAt)
		if !j.fits(ms, row.EventMs) {
			continue
		}
		matched = true
		x.emit(joined(row, ms, len(value)))
		if value[joinMatchedAt] != 0 {
			continue
		}
		x.value = append(x.value[:0], value...)
		x.value[joinMatchedAt] = 1
		if err := x.put(v.store, v.family, x.key, x.value); err != nil {
			return matched, err
		}
	}
	return matched, nil
}

// joined is the row that two make: its event time is the later one's.
func joined(row *workload.Row, ms int64, bytes int) workload.Row {
	return workload.Row{Key: row.Key, EventMs: max(row.EventMs, ms), Bytes: row.Bytes + int32(bytes)}
}

// count is how many rows a side has under a key.
func (j *join) count(x *task, side uint8, key uint64) (uint64, error) {
	x.key2 = appendRow(x.key2[:0], key)
	value, found, err := x.get(j.counts[side].store, j.counts[side].family, x.key2)
	if err != nil || !found || len(value) < prefix+word {
		return 0, err
	}
	return wordAt(value, prefix), nil
}

func (j *join) setCount(x *task, side uint8, key, n uint64) error {
	x.key2 = appendRow(x.key2[:0], key)
	at := j.counts[side]
	if n == 0 {
		return x.remove(at.store, at.family, x.key2)
	}
	x.key3 = appendRow(x.key3[:0], n)
	return x.put(at.store, at.family, x.key2, x.key3)
}

// evict goes through the keys of both sides and reads every row they have.
func (j *join) evict(x *task) error {
	for side := range uint8(2) {
		x.pairs = x.pairs[:0]
		at := j.counts[side]
		err := x.scan(at.store, at.family, nil, nil, func(key, value []byte) bool {
			if len(key) >= prefix+word && len(value) >= prefix+word {
				x.pairs = append(x.pairs, pair{key: wordAt(key, prefix), n: wordAt(value, prefix)})
			}
			return true
		})
		if err != nil {
			return err
		}
		for _, p := range x.pairs {
			if err := j.evictKey(x, side, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// evictKey removes what is over among the rows of a key. The last row takes the
// place of one that goes, so that numbers have no gaps.
func (j *join) evictKey(x *task, side uint8, p pair) error {
	n := p.n
	for i := uint64(0); i < n; {
		over, err := j.rowOver(x, side, p.key, i)
		if err != nil {
			return err
		}
		if !over {
			i++
			continue
		}
		n--
		if err := j.removeRow(x, side, p.key, i, n); err != nil {
			return err
		}
	}
	if n == p.n {
		return nil
	}
	return j.setCount(x, side, p.key, n)
}

func (j *join) rowOver(x *task, side uint8, key, i uint64) (bool, error) {
	x.key = appendRow(x.key[:0], key, i)
	value, found, err := x.get(j.values[side].store, j.values[side].family, x.key)
	if err != nil || !found || len(value) < joinMatchedAt {
		return false, err
	}
	return j.over(x, millisAt(value, joinTimeAt)), nil
}

// removeRow removes row i of a key, whose last row is number last.
func (j *join) removeRow(x *task, side uint8, key, i, last uint64) error {
	v := j.values[side]
	x.key2 = appendRow(x.key2[:0], key, last)
	if i != last {
		value, found, err := x.get(v.store, v.family, x.key2)
		if err != nil {
			return err
		}
		if found {
			x.value = append(x.value[:0], value...)
			if err := x.put(v.store, v.family, x.key, x.value); err != nil {
				return err
			}
		}
	}
	x.r.Removed++
	x.ran(1)
	return x.remove(v.store, v.family, x.key2)
}
