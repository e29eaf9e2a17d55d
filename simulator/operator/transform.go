package operator

import (
	"errors"
	"time"

	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// transform plays transformWithState with a typical processor: per key a count,
// a list of recent values, a map, and, where there is a timeout, a timer that
// forgets the count. List and map then have a time to live as well. Each
// variable is a column family; timers and times to live have families that
// Spark keeps for itself.
type transform struct {
	python    bool
	timeoutMs int64
	ttlMs     int64
	bytes     int // of the count's value, version byte aside
}

// The families, by number. What begins with $ is Spark's own.
const (
	countVar byte = iota + 1
	recentVar
	parityVar
	keyToTimer
	timerToKey
	recentTTL   // index of list expiry by time
	recentMin   // per key its earliest expiry
	recentCount // per key the length of its list
	parityTTL   // index of map expiry by time
)

// recentRowCount takes the place of the timers' first family where nothing
// expires: the length of each list.
const recentRowCount = keyToTimer

func (o *Operator) chooseTransform(conf *spark.Conf) error {
	s := o.spec
	if err := o.needs("transformWithState", spark.V40); err != nil {
		return err
	}
	if conf.Provider != spark.RocksDB {
		return errors.New("transformWithState needs the RocksDB provider")
	}
	if s.Timeout < 0 || s.TTL < 0 {
		return errors.New("timeout or time to live is negative")
	}
	t := &transform{python: s.Python, timeoutMs: s.Timeout.Milliseconds(), bytes: max(s.ValueBytes, 2*word)}
	t.ttlMs = s.TTL.Milliseconds()
	if s.TTL == 0 {
		t.ttlMs = (s.Timeout + s.Timeout/3).Milliseconds()
	}
	if s.Timeout == 0 && s.TTL > 0 || s.Timeout > 0 && s.Timeout < time.Millisecond {
		return errors.New("time to live needs a timeout of at least a millisecond")
	}
	o.families = []store.Family{{Name: "count"}, {Name: "recent"}, {Name: "parity"}}
	for _, name := range t.internals() {
		o.families = append(o.families, store.Family{Name: name, Internal: true})
	}
	o.plan = t
	return nil
}

func (t *transform) internals() []string {
	if t.timeoutMs == 0 {
		return []string{"$rowCounter_recent"}
	}
	return []string{
		"$procTimers_keyToTimestamp", "$procTimers_timestampToKey",
		"$ttl_recent", "$min_recent", "$count_recent", "$ttl_parity",
	}
}

// What Python adds to the user's own code, counted in its rows: a worker and its
// streams for each task; for each key a frame, and calls back for its state.
const (
	pythonTask  = 8000
	pythonGroup = 600
)

func (t *transform) run(x *task) error {
	t.declare(x)
	x.groups.fill(x.Rows, 0)
	x.ran(int64(len(x.Rows)))
	if t.python {
		x.ran(pythonTask + pythonGroup*int64(len(x.groups.list)))
	}
	for i := range x.groups.list {
		if err := t.call(x, &x.groups.list[i]); err != nil {
			return err
		}
	}
	if t.timeoutMs == 0 {
		return nil
	}
	// The Python operator takes the time of everything as that of updates.
	timers := removing
	if t.python {
		timers = updating
	}
	if err := x.in(timers, t.fireTimers); err != nil {
		return err
	}
	return x.in(committing, t.expire)
}

// declare counts the state variables, once per task.
func (t *transform) declare(x *task) {
	x.counts.values = 1
	if t.timeoutMs == 0 {
		x.counts.lists, x.counts.maps = 1, 1
		return
	}
	x.counts.ttlLists, x.counts.ttlMaps = 1, 1
}

// call is one call of the processor for a key with rows.
func (t *transform) call(x *task, g *group) error {
	x.key = appendRow(x.key[:0], g.key)
	count, found, err := t.readCount(x)
	if err != nil {
		return err
	}
	if !found && t.timeoutMs > 0 {
		if err := t.registerTimer(x); err != nil {
			return err
		}
	}
	x.value = pad(appendRow(x.value[:0], count+uint64(g.count)), t.bytes, g.key)
	if err := x.put(0, countVar, x.key, x.value); err != nil {
		return err
	}
	if err := t.putList(x, g); err != nil {
		return err
	}
	if err := t.putMap(x, g); err != nil {
		return err
	}
	x.r.Updated += 2
	x.emit(workload.Row{Key: g.key, EventMs: g.maxMs, Bytes: g.bytes})
	return nil
}

// readCount asks whether the key has a count and, if so, reads it: two reads, as
// processors do.
func (t *transform) readCount(x *task) (count uint64, found bool, err error) {
	_, found, err = x.get(0, countVar, x.key)
	if err != nil || !found {
		return 0, false, err
	}
	value, found, err := x.get(0, countVar, x.key)
	if err != nil || !found || len(value) < prefix+word {
		return 0, found, err
	}
	return wordAt(value, prefix), true, nil
}

func (t *transform) registerTimer(x *task) error {
	due := x.NowMs + t.timeoutMs
	x.key2 = appendSortable(append(x.key2[:0], x.key...), due)
	_, found, err := x.get(0, keyToTimer, x.key2)
	if err != nil || found {
		return err
	}
	x.value = appendRow(x.value[:0], 0)
	if err := x.put(0, keyToTimer, x.key2, x.value); err != nil {
		return err
	}
	x.key2 = append(appendSortable(x.key2[:0], due), x.key...)
	x.counts.registered++
	return x.put(0, timerToKey, x.key2, x.value)
}

// recentValues is how many of the newest values a list holds.
const recentValues = 3

// putList replaces a key's list by the newest values of the batch. Each element
// is a write of its own that makes the value longer.
func (t *transform) putList(x *task, g *group) error {
	if err := t.clearList(x); err != nil {
		return err
	}
	n := min(g.count, recentValues)
	x.value = x.value[:0]
	for i := range n {
		x.value = appendRow(x.value, g.key, uint64(g.maxMs)+uint64(i), micros(x.NowMs+t.ttlMs))
		if err := x.put(0, recentVar, x.key, x.value); err != nil {
			return err
		}
	}
	x.r.Updated += n
	return t.indexList(x, uint64(n))
}

// clearList removes a key's list and what says when it expires.
func (t *transform) clearList(x *task) error {
	if t.timeoutMs > 0 {
		old, found, err := x.get(0, recentMin, x.key)
		if err != nil {
			return err
		}
		if found && len(old) >= prefix+word {
			x.key2 = append(appendSortable(x.key2[:0], millisAt(old, prefix)), x.key...)
			if err := x.remove(0, recentTTL, x.key2); err != nil {
				return err
			}
		}
	}
	return x.remove(0, recentVar, x.key)
}

// indexList notes a list's length and expiry.
func (t *transform) indexList(x *task, n uint64) error {
	x.value = appendRow(x.value[:0], n)
	if t.timeoutMs == 0 {
		return x.put(0, recentRowCount, x.key, x.value)
	}
	if err := x.put(0, recentCount, x.key, x.value); err != nil {
		return err
	}
	expiry := x.NowMs + t.ttlMs
	x.value = appendRow(x.value[:0], micros(expiry))
	if err := x.put(0, recentMin, x.key, x.value); err != nil {
		return err
	}
	x.key2 = append(appendSortable(x.key2[:0], expiry), x.key...)
	x.value = appendRow(x.value[:0], 0)
	return x.put(0, recentTTL, x.key2, x.value)
}

// putMap sets one entry of a key's map: of two, by the last row.
func (t *transform) putMap(x *task, g *group) error {
	x.key2 = appendRow(append(x.key2[:0], x.key...), uint64(mapKey(g)))
	expiry := x.NowMs + t.ttlMs
	if t.timeoutMs > 0 {
		old, found, err := x.get(0, parityVar, x.key2)
		if err != nil {
			return err
		}
		if found && len(old) >= prefix+2*word {
			x.key3 = append(appendSortable(x.key3[:0], millisAt(old, prefix+word)), x.key2...)
			if err := x.remove(0, parityTTL, x.key3); err != nil {
				return err
			}
		}
	}
	x.value = appendRow(x.value[:0], uint64(g.count), micros(expiry))
	if err := x.put(0, parityVar, x.key2, x.value); err != nil {
		return err
	}
	if t.timeoutMs == 0 {
		return nil
	}
	x.key3 = append(appendSortable(x.key3[:0], expiry), x.key2...)
	x.value = appendRow(x.value[:0], 0)
	return x.put(0, parityTTL, x.key3, x.value)
}

// mapKey is the key of the map entry that a group sets, 0 or 1.
func mapKey(g *group) int64 { return int64(seed.Mix(g.key, uint64(g.maxMs)) & 1) }

// due fills x.doomed with the entries of an index by time that are not later than
// now. The first that stays is read as well.
func (t *transform) due(x *task, family byte) error {
	x.doomed.reset()
	return x.scan(0, family, nil, nil, func(key, _ []byte) bool {
		if len(key) < sortableBytes+prefix+word || sortableAt(key, 0) > x.NowMs {
			return false
		}
		x.doomed.add(key)
		return true
	})
}

// fireTimers calls the processor for each timer that is due; it clears the count.
func (t *transform) fireTimers(x *task) error {
	if err := t.due(x, timerToKey); err != nil {
		return err
	}
	for i := range x.doomed.len() {
		if err := t.fire(x, x.doomed.at(i)); err != nil {
			return err
		}
	}
	return nil
}

func (t *transform) fire(x *task, entry []byte) error {
	x.key = append(x.key[:0], entry[sortableBytes:]...)
	_, found, err := t.readCount(x)
	if err != nil {
		return err
	}
	if found {
		x.r.Removed++
	}
	if err := x.remove(0, countVar, x.key); err != nil {
		return err
	}
	x.key2 = appendSortable(append(x.key2[:0], x.key...), sortableAt(entry, 0))
	if _, _, err := x.get(0, keyToTimer, x.key2); err != nil {
		return err
	}
	if err := x.remove(0, keyToTimer, x.key2); err != nil {
		return err
	}
	if err := x.remove(0, timerToKey, entry); err != nil {
		return err
	}
	x.counts.deleted++
	if !t.python {
		x.counts.expired++
	}
	x.ran(1)
	x.emit(workload.Row{Key: wordAt(x.key, prefix), EventMs: x.NowMs})
	return nil
}

// expire removes the lists and map entries whose time to live is over.
func (t *transform) expire(x *task) error {
	if err := t.due(x, recentTTL); err != nil {
		return err
	}
	for i := range x.doomed.len() {
		if err := t.expireList(x, x.doomed.at(i)); err != nil {
			return err
		}
	}
	if err := t.due(x, parityTTL); err != nil {
		return err
	}
	for i := range x.doomed.len() {
		entry := x.doomed.at(i)
		if err := x.remove(0, parityVar, entry[sortableBytes:]); err != nil {
			return err
		}
		if err := x.remove(0, parityTTL, entry); err != nil {
			return err
		}
		x.forget(1)
	}
	return nil
}

func (t *transform) expireList(x *task, entry []byte) error {
	key := entry[sortableBytes:]
	value, found, err := x.get(0, recentVar, key)
	if err != nil {
		return err
	}
	if found {
		x.forget(int64(len(value)) / recentElementBytes)
	}
	if _, _, err := x.get(0, recentMin, key); err != nil {
		return err
	}
	for _, family := range [...]byte{recentVar, recentMin, recentCount} {
		if err := x.remove(0, family, key); err != nil {
			return err
		}
	}
	return x.remove(0, recentTTL, entry)
}

// recentElementBytes is one element of a list.
const recentElementBytes = prefix + 3*word

// forget counts values that outlived their time.
func (x *task) forget(n int64) {
	x.counts.ttlRemovals += n
	x.r.Removed += n
}
