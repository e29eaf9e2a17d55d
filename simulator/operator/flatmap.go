package operator

import (
	"github.com/stategauge/stategauge/simulator/workload"
)

// flatMap plays flatMapGroupsWithState (and applyInPandasWithState): a state per
// key that the user's function reads and writes once per batch in which the key
// has rows. Keys time out, by event time where there is a watermark and by
// processing time otherwise; finding them reads the whole state.
type flatMap struct{ spec Spec }

// A state: how many rows it saw, its newest event time, its timeout, payload.
const (
	stateCountAt   = prefix
	stateTimeoutAt = prefix + 2*word
	stateBytes     = 4 * word
)

func (f *flatMap) byEventTime() bool { return f.spec.Timeout > 0 && f.spec.Watermark }

func (f *flatMap) run(x *task) error {
	rows := x.Rows
	if f.byEventTime() {
		rows = x.dropLate()
	}
	x.groups.fill(rows, 0)
	x.ran(int64(len(rows)))
	for i := range x.groups.list {
		if err := f.call(x, &x.groups.list[i]); err != nil {
			return err
		}
	}
	if f.spec.Timeout <= 0 {
		return nil
	}
	return x.in(removing, f.timeOut)
}

// dropLate returns the rows that are not late, in memory of the task's.
func (x *task) dropLate() []workload.Row {
	x.kept = x.kept[:0]
	for i := range x.Rows {
		if x.late(x.Rows[i].EventMs) {
			x.r.Dropped++
			continue
		}
		x.kept = append(x.kept, x.Rows[i])
	}
	return x.kept
}

// call is one call of the user's function for a key with rows.
func (f *flatMap) call(x *task, g *group) error {
	x.key = appendRow(x.key[:0], g.key)
	old, found, err := x.get(0, 0, x.key)
	if err != nil {
		return err
	}
	count := uint64(g.count)
	if found && len(old) >= prefix+word {
		count += wordAt(old, stateCountAt)
	}
	size := f.spec.ValueBytes
	if size == 0 {
		size = int(g.bytes)
	}
	x.value = appendRow(x.value[:0], count, micros(g.maxMs), micros(f.timeout(x, g)))
	x.value = pad(x.value, max(size, stateBytes), g.key)
	if err := x.put(0, 0, x.key, x.value); err != nil {
		return err
	}
	x.r.Updated++
	x.emit(workload.Row{Key: g.key, EventMs: g.maxMs, Bytes: g.bytes})
	return nil
}

// timeout is when the key times out, Unix milliseconds; 0: never.
func (f *flatMap) timeout(x *task, g *group) int64 {
	switch {
	case f.spec.Timeout <= 0:
		return 0
	case f.byEventTime():
		return max(g.maxMs, x.EvictMs) + f.spec.Timeout.Milliseconds()
	}
	return x.NowMs + f.spec.Timeout.Milliseconds()
}

// timeOut reads all states and calls the function once more for those whose time
// has come; it removes them.
func (f *flatMap) timeOut(x *task) error {
	limit := x.NowMs
	if f.byEventTime() {
		limit = x.EvictMs
	}
	x.doomed.reset()
	err := x.scan(0, 0, nil, nil, func(key, value []byte) bool {
		if len(key) >= prefix+word && len(value) >= stateTimeoutAt+word && millisAt(value, stateTimeoutAt) < limit {
			x.doomed.add(key)
		}
		return true
	})
	if err != nil {
		return err
	}
	for i := range x.doomed.len() {
		x.ran(1)
		x.emit(workload.Row{Key: wordAt(x.doomed.at(i), prefix), EventMs: limit})
	}
	return x.removeDoomed()
}
