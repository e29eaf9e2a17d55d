package operator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// The models: each operator once more with maps and slices, without a thought to
// encoding, order or cost.

const batches = 50

func TestAggregationEqualsItsModelInEveryMode(t *testing.T) {
	for mode := Append; mode <= Complete; mode++ {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("mode %d seed %d", mode, seed), func(t *testing.T) {
				spec := Spec{Kind: spark.Aggregation, Mode: mode, Watermark: true, Window: 5 * time.Second}
				b := newBench(t, spec, newest, changelog)
				in := newInput(seed, 20)
				state := map[cell]uint64{}
				for range batches {
					rows := in.next(true)
					b.feed(in, rows)
					checkAggregation(b, mode, state, rows)
				}
			})
		}
	}
}

// cell is a key in a window.
type cell struct {
	key   uint64
	start int64
}

func checkAggregation(b *bench, mode Mode, state map[cell]uint64, rows []workload.Row) {
	b.tb.Helper()
	const window = 5000
	groups := map[cell]uint64{}
	for _, r := range rows {
		groups[cell{r.Key, r.EventMs / window * window}]++
	}
	var updated, dropped, removed int64
	var out []workload.Row
	for c, n := range groups {
		if mode != Complete && b.task.LateMs > 0 && c.start+window <= b.task.LateMs {
			dropped++
			continue
		}
		updated++
		state[c] += n
		if mode == Update {
			out = append(out, workload.Row{Key: c.key, EventMs: c.start + window - 1})
		}
	}
	for c := range state {
		switch {
		case mode == Complete:
			out = append(out, workload.Row{Key: c.key, EventMs: c.start + window - 1})
		case b.task.EvictMs > 0 && c.start+window <= b.task.EvictMs:
			removed++
			delete(state, c)
			if mode == Append {
				out = append(out, workload.Row{Key: c.key, EventMs: c.start + window - 1})
			}
		}
	}
	b.want("aggregation", updated, removed, dropped, int64(len(state)))
	wantOut(b.tb, b.result.Out, out)
	checkCounts(b, state)
}

func checkCounts(b *bench, state map[cell]uint64) {
	b.tb.Helper()
	for n := b.fakes[0].lists[0].head.next[0]; n != nil; n = n.next[0] {
		c := cell{wordAt(n.key, windowedKeyAt), millisAt(n.key, windowStartAt)}
		if got := wordAt(n.value, prefix); got != state[c] {
			b.tb.Fatalf("%v has a count of %d, want %d", c, got, state[c])
		}
	}
}

func TestAggregationWithoutWindowKeepsEveryKey(t *testing.T) {
	b := newBench(t, Spec{Kind: spark.Aggregation, Mode: Update, Watermark: true}, newest, changelog)
	in := newInput(3, 50)
	seen := map[uint64]bool{}
	for range batches {
		rows := in.next(true)
		now := map[uint64]bool{}
		for _, r := range rows {
			seen[r.Key], now[r.Key] = true, true
		}
		b.feed(in, rows)
		b.want("keys", int64(len(now)), 0, 0, int64(len(seen)))
		if b.fakes[0].steps != 0 {
			t.Fatal("state was scanned although nothing can expire")
		}
	}
}

func TestDedupeEqualsItsModel(t *testing.T) {
	for name, spec := range map[string]Spec{
		"event time in key":    {Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true},
		"key alone":            {Kind: spark.Dedupe, Watermark: true},
		"without watermark":    {Kind: spark.Dedupe, EventTimeInKey: true},
		"within watermark":     {Kind: spark.DedupeWithinWatermark, Watermark: true, Delay: 12 * time.Second},
		"with columns to boot": {Kind: spark.Dedupe, Watermark: true, EventTimeInKey: true, ValueBytes: 300},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, spec, newest, changelog)
			in := newInput(5, 30)
			state := map[cell]int64{} // to the time when it expires
			for range batches {
				rows := in.next(spec.Watermark)
				b.feed(in, rows)
				checkDedupe(b, spec, state, rows)
			}
		})
	}
}

func checkDedupe(b *bench, spec Spec, state map[cell]int64, rows []workload.Row) {
	b.tb.Helper()
	within := spec.Kind == spark.DedupeWithinWatermark
	var updated, dropped, removed, duplicates int64
	var out []workload.Row
	for _, r := range rows {
		if spec.Watermark && b.task.LateMs > 0 && r.EventMs <= b.task.LateMs {
			dropped++
			continue
		}
		c := cell{key: r.Key}
		if spec.EventTimeInKey {
			c.start = r.EventMs
		}
		if _, again := state[c]; again {
			duplicates++
			continue
		}
		state[c] = r.EventMs + spec.Delay.Milliseconds()
		updated++
		out = append(out, r)
	}
	read := int64(len(state))
	for c, expiry := range state {
		if (within || spec.Watermark && spec.EventTimeInKey) && b.task.EvictMs > 0 && expiry <= b.task.EvictMs {
			delete(state, c)
			removed++
		}
	}
	if !within && !(spec.Watermark && spec.EventTimeInKey) {
		read = 0
	}
	b.want("dedupe", updated, removed, dropped, int64(len(state)))
	wantOut(b.tb, b.result.Out, out)
	wantCustom(b, event.NumDroppedDuplicateRows, duplicates)
	wantCustom(b, event.NumRowsReadDuringEviction, read)
	wantCustom(b, event.NumRowsIncrementallyRemoved, 0)
}

func wantCustom(b *bench, id event.MetricID, want int64) {
	b.tb.Helper()
	if got := b.result.Custom[id]; got != float64(want) {
		b.tb.Fatalf("%s is %v, want %d", event.Lookup(id).JSON, got, want)
	}
}

func TestJoinEqualsItsModelInEveryFormat(t *testing.T) {
	for format := 2; format <= 4; format++ {
		for _, bounded := range []bool{true, false} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("format %d bounded %v seed %d", format, bounded, seed), func(t *testing.T) {
					conf := changelog
					conf.JoinFormat = format
					spec := Spec{Kind: spark.Join, Watermark: true, Bounded: bounded, Bound: 3 * time.Second}
					b := newBench(t, spec, newest, conf)
					in := newInput(seed, 15)
					m := &joinModel{bounded: bounded, format: format}
					for range batches {
						rows := in.next(true)
						b.feed(in, rows)
						m.check(b, rows)
					}
				})
			}
		}
	}
}

// joinModel is the rows of both sides.
type joinModel struct {
	bounded bool
	format  int
	sides   [2][]workload.Row
}

const modelBound = 3000

func (m *joinModel) over(b *bench, r workload.Row) bool {
	return m.bounded && b.task.EvictMs > 0 && r.EventMs < b.task.EvictMs-modelBound
}

func (m *joinModel) check(b *bench, rows []workload.Row) {
	b.tb.Helper()
	var updated, removed, dropped int64
	var out []workload.Row
	for side := range uint8(2) {
		for _, r := range rows {
			if r.Side != side {
				continue
			}
			if b.task.LateMs > 0 && r.EventMs <= b.task.LateMs {
				dropped++
				continue
			}
			for _, o := range m.sides[side^1] {
				apart := max(o.EventMs-r.EventMs, r.EventMs-o.EventMs)
				if o.Key == r.Key && (!m.bounded || apart <= modelBound) {
					out = append(out, workload.Row{Key: r.Key, EventMs: max(o.EventMs, r.EventMs)})
				}
			}
			if side == 1 && m.over(b, r) {
				continue
			}
			updated++
			m.sides[side] = append(m.sides[side], r)
		}
	}
	for side := range m.sides {
		n := len(m.sides[side])
		m.sides[side] = slices.DeleteFunc(m.sides[side], func(r workload.Row) bool { return m.over(b, r) })
		removed += int64(n - len(m.sides[side]))
	}
	b.want("join", updated, removed, dropped, m.total())
	wantOut(b.tb, b.result.Out, out)
}

// total is the rows in state: format 4 keeps those of a key and time in one.
func (m *joinModel) total() (n int64) {
	for side := range m.sides {
		entries := map[cell]bool{}
		for _, r := range m.sides[side] {
			entries[cell{r.Key, r.EventMs}] = true
		}
		if m.format < 4 {
			n += int64(len(m.sides[side]))
			continue
		}
		n += int64(len(entries))
	}
	return n
}

func TestFlatMapGroupsEqualsItsModel(t *testing.T) {
	for name, spec := range map[string]Spec{
		"processing time": {Kind: spark.FlatMapGroups, Timeout: 9 * time.Second},
		"event time":      {Kind: spark.FlatMapGroups, Timeout: 9 * time.Second, Watermark: true},
		"no timeout":      {Kind: spark.FlatMapGroups, Watermark: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, spec, newest, changelog)
			in := newInput(9, 40)
			state := map[uint64]int64{} // to the timeout
			for range batches {
				rows := in.next(spec.Watermark)
				b.feed(in, rows)
				checkFlatMap(b, spec, state, rows)
			}
		})
	}
}

func checkFlatMap(b *bench, spec Spec, state map[uint64]int64, rows []workload.Row) {
	b.tb.Helper()
	byEvent := spec.Watermark && spec.Timeout > 0
	var dropped, removed int64
	newestOf := map[uint64]int64{}
	for _, r := range rows {
		if byEvent && b.task.LateMs > 0 && r.EventMs <= b.task.LateMs {
			dropped++
			continue
		}
		newestOf[r.Key] = max(newestOf[r.Key], r.EventMs)
	}
	for key, ms := range newestOf {
		state[key] = b.task.NowMs + spec.Timeout.Milliseconds()
		if byEvent {
			state[key] = max(ms, b.task.EvictMs) + spec.Timeout.Milliseconds()
		}
	}
	limit := b.task.NowMs
	if byEvent {
		limit = b.task.EvictMs
	}
	for key, ms := range state {
		if spec.Timeout > 0 && ms < limit {
			delete(state, key)
			removed++
		}
	}
	b.want("flatMapGroupsWithState", int64(len(newestOf)), removed, dropped, int64(len(state)))
	if want := int64(len(newestOf)) + removed; b.result.Output != want {
		b.tb.Fatalf("output is %d, want %d", b.result.Output, want)
	}
}

func TestSessionsEqualTheirModel(t *testing.T) {
	for _, mode := range []Mode{Append, Complete} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("mode %d seed %d", mode, seed), func(t *testing.T) {
				spec := Spec{Kind: spark.SessionWindow, Mode: mode, Watermark: true, Gap: 2 * time.Second}
				b := newBench(t, spec, newest, changelog)
				in := newInput(seed, 12)
				m := sessionModel{}
				for range batches {
					rows := in.next(true)
					b.feed(in, rows)
					m.check(b, mode, rows)
				}
			})
		}
	}
}

// sessionModel holds each key's sessions by start.
type sessionModel map[uint64][]span

const modelGap = 2000

func (m sessionModel) check(b *bench, mode Mode, rows []workload.Row) {
	b.tb.Helper()
	var dropped, removed, total, updated int64
	var out []workload.Row
	before := map[cell]span{}
	for key, list := range m {
		for _, s := range list {
			before[cell{key, s.startMs}] = s
		}
	}
	for _, r := range rows {
		if mode != Complete && b.task.LateMs > 0 && r.EventMs+modelGap <= b.task.LateMs {
			dropped++
			continue
		}
		m.insert(r)
	}
	for key, list := range m {
		for _, s := range list {
			if old, ok := before[cell{key, s.startMs}]; !ok || old.count != s.count {
				updated++
			}
		}
		m[key] = slices.DeleteFunc(list, func(s span) bool {
			closed := mode == Append && b.task.EvictMs > 0 && s.endMs <= b.task.EvictMs
			if closed || mode == Complete {
				out = append(out, workload.Row{Key: key, EventMs: s.startMs + modelGap - 1})
			}
			if closed {
				removed++
			}
			return closed
		})
		total += int64(len(m[key]))
	}
	b.want("session window", updated, removed, dropped, total)
	wantOut(b.tb, b.result.Out, out)
}

// insert puts a row into the session that it belongs to, joining two where it
// closes the gap between them.
func (m sessionModel) insert(r workload.Row) {
	add := span{startMs: r.EventMs, endMs: r.EventMs + modelGap, count: 1}
	var rest []span
	for _, s := range m[r.Key] {
		if s.startMs < add.endMs && add.startMs < s.endMs {
			add.startMs, add.endMs = min(add.startMs, s.startMs), max(add.endMs, s.endMs)
			add.count += s.count
			continue
		}
		rest = append(rest, s)
	}
	m[r.Key] = append(rest, add)
}

func TestTransformWithStateEqualsItsModel(t *testing.T) {
	for name, spec := range map[string]Spec{
		"scala":      {Kind: spark.TransformWithState, Timeout: 9 * time.Second},
		"python":     {Kind: spark.TransformWithState, Timeout: 9 * time.Second, Python: true},
		"own ttl":    {Kind: spark.TransformWithState, Timeout: 9 * time.Second, TTL: 4 * time.Second},
		"no timeout": {Kind: spark.TransformWithState},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, spec, newest, changelog)
			in := newInput(11, 40)
			m := newTransformModel(spec)
			for range batches {
				rows := in.next(false)
				b.feed(in, rows)
				m.check(b, rows)
			}
		})
	}
}

// transformModel is what the processor remembers of each key, with expiry times.
type transformModel struct {
	spec    Spec
	ttlMs   int64
	counts  map[uint64]bool
	timers  map[cell]bool // key and when
	lists   map[uint64]listModel
	entries map[cell]int64 // key and map key, to when it expires
}

type listModel struct{ n, expiresMs int64 }

func newTransformModel(spec Spec) *transformModel {
	ttl := spec.TTL
	if ttl == 0 {
		ttl = spec.Timeout * 4 / 3
	}
	return &transformModel{
		spec: spec, ttlMs: ttl.Milliseconds(),
		counts: map[uint64]bool{}, timers: map[cell]bool{}, lists: map[uint64]listModel{}, entries: map[cell]int64{},
	}
}

func (m *transformModel) check(b *bench, rows []workload.Row) {
	b.tb.Helper()
	now := b.task.NowMs
	var updated, removed, registered, fired, expired int64
	perKey := map[uint64]int64{}
	for _, r := range rows {
		perKey[r.Key]++
	}
	for key, n := range perKey {
		if !m.counts[key] && m.spec.Timeout > 0 {
			m.timers[cell{key, now + m.spec.Timeout.Milliseconds()}] = true
			registered++
		}
		m.counts[key] = true
		m.lists[key] = listModel{min(n, 3), now + m.ttlMs}
		updated += 2 + min(n, 3)
	}
	m.setEntries(rows, now)
	if m.spec.Timeout > 0 {
		fired, removed = m.fire(now)
		expired = m.expire(now)
	}
	total := int64(len(m.counts) + len(m.lists) + len(m.entries))
	b.want("transformWithState", updated, removed+expired, 0, total)
	if want := int64(len(perKey)) + fired; b.result.Output != want {
		b.tb.Fatalf("output is %d, want %d", b.result.Output, want)
	}
	wantCustom(b, event.NumRegisteredTimers, registered)
	wantCustom(b, event.NumDeletedTimers, fired)
	wantCustom(b, event.NumValuesRemovedDueToTTLExpiry, expired)
	if m.spec.Python {
		fired = 0
	}
	wantCustom(b, event.NumExpiredTimers, fired)
	internal := int64(2*len(m.timers) + 3*len(m.lists) + len(m.entries))
	if m.spec.Timeout == 0 {
		internal = int64(len(m.lists))
	}
	wantCustom(b, event.RocksDBNumInternalColFamiliesKeys, internal)
}

// setEntries repeats the choice of map key by a group's newest row.
func (m *transformModel) setEntries(rows []workload.Row, now int64) {
	var g groups
	g.fill(rows, 0)
	for _, e := range g.list {
		m.entries[cell{e.key, mapKey(&e)}] = now + m.ttlMs
	}
}

func (m *transformModel) fire(now int64) (fired, removed int64) {
	for c := range m.timers {
		if c.start > now {
			continue
		}
		delete(m.timers, c)
		fired++
		if m.counts[c.key] {
			removed++
			delete(m.counts, c.key)
		}
	}
	return fired, removed
}

func (m *transformModel) expire(now int64) (n int64) {
	for key, l := range m.lists {
		if l.expiresMs <= now {
			n += l.n
			delete(m.lists, key)
		}
	}
	for c, ms := range m.entries {
		if ms <= now {
			n++
			delete(m.entries, c)
		}
	}
	return n
}
