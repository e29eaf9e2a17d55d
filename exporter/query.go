package exporter

import (
	"math"
	"sync"

	"github.com/stategauge/stategauge/event"
)

// absent marks a value that is not there; its series is left out of pages.
var absent = math.NaN()

// query is what the exporter holds for one query.
type query struct {
	// owner is held through one update or expiry. What stands below it belongs to
	// its holder, unless said otherwise.
	owner sync.Mutex
	id    uint32 // place in Exporter.queries
	key   event.QueryID
	gone  bool // removed: look the query up again

	identity identity
	base     *entity
	state    event.State
	retired  bool
	// retiredAtMs is when expiry first saw the retirement; 0 before.
	retiredAtMs int64
	lastMs      int64 // arrival of the newest event
	batchMs     int64 // arrival of the newest executed batch
	// bornMs is when a counter that begins now was still 0: the arrival of the
	// update before this one. born is its cached form.
	bornMs   int64
	born     *stamp
	gen      uint64 // batches with operators so far
	begun    bool   // the counters of a query whose start was seen are there
	ran      bool   // a batch of the run was seen
	quiet    bool   // the present update counts nothing
	past     bool   // the present batch was overtaken by a newer one: levels stand
	run      event.RunID
	runFirst int64 // first batch id seen of the run
	newest   int64 // id of the newest batch that was measured, and when it began
	newestMs int64
	known    known
	inferred tri // changelog checkpointing, from the figures of this run
	info     *labels
	infoKey  infoKey

	operators map[operatorKey]*entity
	sources   []*entity
	unknown   *entity // rows that no source accounts for; nil until needed
	phases    map[string]phaseSlots
	observed  map[observedKey]uint32
	quantiles map[quantileKey]uint32

	// next is the values as the owner works them out; observations wait with them.
	next         []float64
	observations []observation

	mu     sync.Mutex // guards values and the content of hists
	values []float64  // published
	hists  []*hist    // the list is guarded by Exporter.mu as well

	refs, histRefs []ref    // by slot; guarded by Exporter.mu
	free           []uint32 // slots given back; guarded by Exporter.mu
	count          int64    // series with their weights; the owner's
}

// entity is a query, one of its operators or one of its sources: what shares
// labels.
type entity struct {
	labels *labels
	slots  [numDefs]int32 // place in the query's values plus 1; 0 for none
	lastMs int64          // arrival of the newest event that shows it alive
	op     *operatorState // operators only
}

type operatorKey struct {
	index int
	name  string
}

// refused marks a series that a limit forbade: it is asked for again, but
// counted once.
const refused = -1

// refsOf returns the list that holds the references to f's series.
func (q *query) refsOf(f *family) []ref {
	if f.kind == histogram {
		return q.histRefs
	}
	return q.refs
}

// addValue makes room for one more value. The caller holds Exporter.mu and owns q.
func (q *query) addValue(at ref) uint32 {
	if n := len(q.free); n > 0 {
		slot := q.free[n-1]
		q.free = q.free[:n-1]
		q.refs[slot] = at
		return slot
	}
	q.refs = append(q.refs, at)
	q.next = append(q.next, absent)
	q.mu.Lock()
	q.values = append(q.values, absent)
	q.mu.Unlock()
	return uint32(len(q.refs) - 1)
}

// addHist makes one more histogram. The caller holds Exporter.mu and owns q.
func (q *query) addHist(f *family, at ref) uint32 {
	q.histRefs = append(q.histRefs, at)
	q.mu.Lock()
	q.hists = append(q.hists, newHist(f))
	q.mu.Unlock()
	return uint32(len(q.histRefs) - 1)
}

// publish makes what the owner worked out visible, all of it at once.
func (q *query) publish() {
	q.mu.Lock()
	copy(q.values, q.next)
	for i := range q.observations {
		o := &q.observations[i]
		q.hists[o.hist].observe(o)
	}
	q.mu.Unlock()
	q.observations = q.observations[:0]
}

// stamp returns when a counter that begins now was still 0; nil if not known.
func (q *query) stamp() *stamp {
	if q.born == nil || q.born.ms != q.bornMs {
		q.born = newStamp(q.bornMs)
	}
	return q.born
}

// slot returns the place of d's series in q's values, making the series if need be.
func (x *Exporter) slot(q *query, e *entity, d defID) (uint32, bool) {
	return x.slotWith(q, e, d, x.defs[d].extra)
}

// slotWith is slot for a series whose own labels are the query's.
func (x *Exporter) slotWith(q *query, e *entity, d defID, ex *labels) (uint32, bool) {
	have := e.slots[d]
	if have > 0 {
		return uint32(have - 1), true
	}
	if have == refused && !x.room(q, x.defs[d].family.weight()) {
		return 0, false
	}
	def := &x.defs[d]
	at, ok := x.add(q, def.family, e.labels, ex, q.stamp())
	if !ok {
		e.slots[d] = refused
		return 0, false
	}
	e.slots[d] = int32(at) + 1
	return at, true
}

// room reports whether a series that was refused is worth asking for again. It
// takes no lock: a wrong answer costs one try.
func (x *Exporter) room(q *query, weight int64) bool {
	return x.total.Load()-x.slotted.Load()+weight <= int64(x.o.Series) && q.count+weight <= int64(x.o.SeriesPerQuery)
}

// set gives a gauge its value; absent takes it off the page.
func (x *Exporter) set(q *query, e *entity, d defID, v float64) {
	if e.slots[d] <= 0 && v != v || q.past {
		return
	}
	if at, ok := x.slot(q, e, d); ok {
		q.next[at] = v
	}
}

// count adds work to a counter. An absent value adds nothing and makes no series.
func (x *Exporter) count(q *query, e *entity, d defID, v float64) {
	if v != v {
		return
	}
	at, ok := x.slot(q, e, d)
	if !ok {
		return
	}
	v = q.work(v)
	if have := q.next[at]; have == have {
		v += have
	}
	q.next[at] = v
}

// work returns what an update adds to a counter: nothing if it counts nothing.
func (q *query) work(v float64) float64 {
	if q.quiet {
		return 0
	}
	return v
}

// put adds a figure to the counter or shows it as the gauge of its row. Most rows
// are absent or have their series; both are dealt with here.
func (x *Exporter) put(q *query, e *entity, r *planned, v float64) {
	at := e.slots[r.id]
	switch {
	case v != v && (at <= 0 || r.counter || r.keep), q.past && !r.counter:
	case at <= 0:
		x.putFirst(q, e, r, v)
	case r.counter && q.next[at-1] == q.next[at-1]:
		q.next[at-1] += q.work(v)
	default:
		q.next[at-1] = v
	}
}

// putFirst is put for a row that has no series yet.
func (x *Exporter) putFirst(q *query, e *entity, r *planned, v float64) {
	if r.counter {
		v = q.work(v)
	}
	if at, ok := x.slot(q, e, defID(r.id)); ok {
		q.next[at] = v
	}
}

// clear takes the gauges of e off the page, those apart that last until
// retirement.
func (x *Exporter) clear(q *query, e *entity) {
	for d := range e.slots {
		if def := &x.defs[d]; e.slots[d] > 0 && def.family.kind == gauge && !def.lasting {
			q.next[e.slots[d]-1] = absent
		}
	}
	if e.op == nil {
		return
	}
	for _, at := range e.op.unknown {
		q.next[at] = absent
	}
}

// clearAll takes all gauges of q off the page that do not last until retirement.
func (x *Exporter) clearAll(q *query) {
	x.clear(q, q.base)
	for _, e := range q.operators {
		x.clear(q, e)
	}
	for _, e := range q.sources {
		x.clear(q, e)
	}
	q.clearDynamic()
}

// clearDynamic takes the query's gauges off the page that have a label of Spark's
// or the user's choosing.
func (q *query) clearDynamic() {
	for _, p := range q.phases {
		if p.last >= 0 {
			q.next[p.last] = absent
		}
	}
	for _, at := range q.observed {
		q.next[at] = absent
	}
	for _, at := range q.quantiles {
		q.next[at] = absent
	}
}
