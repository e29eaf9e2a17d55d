package exporter

import (
	"sync"
	"sync/atomic"

	"github.com/stategauge/stategauge/event"
)

// Exporter holds the series of all queries. Its methods may be called from
// several goroutines, but the updates of one query must come one after another.
type Exporter struct {
	o    Options
	m    *metrics
	plan plan
	defs [numDefs]def
	// keyTable names the definitions in what is saved.
	keyTable *keyTable
	// observedFamily holds what users observe; its labels are theirs.
	observedFamily *family

	mu       sync.RWMutex
	families []*family          // sorted by name
	byName   map[string]*family // also by the name without _total: OpenMetrics calls a counter so
	queries  []*query           // by query.id; nil where free
	freeIDs  []uint32
	ids      map[string]event.QueryID // by the value of query_id
	keys     map[string]*family       // unknown keys by their spelling
	keyOf    map[*family]string
	slots    *slotTable

	// byID has a lock of its own that nobody holds while waiting, so that finding
	// a query never waits for a scrape. It is taken after mu.
	index sync.RWMutex
	byID  map[event.QueryID]*query

	total       atomic.Int64 // series that exist, with their weights
	slotted     atomic.Int64 // those of slots
	unknownKeys atomic.Int64
	live        atomic.Int64 // queries that exist
	loggedMs    atomic.Int64
	pageBytes   atomic.Int64 // length of the last plain page

	buffers chan *scrape
	busy    chan struct{}
}

// New returns an Exporter without series. It panics if a name of its own metrics
// is taken in o.Registerer, as registering always does.
func New(o Options) *Exporter {
	x := &Exporter{
		o:      o.withDefaults(),
		byName: map[string]*family{},
		byID:   map[event.QueryID]*query{},
		ids:    map[string]event.QueryID{},
		keys:   map[string]*family{},
		keyOf:  map[*family]string{},
	}
	x.buffers = make(chan *scrape, 2)
	x.busy = make(chan struct{}, x.o.Scrapes)
	x.define(event.Catalog())
	x.keyTable = newKeyTable(&x.plan)
	x.slots = newSlotTable(x)
	x.m = newMetrics(x, x.o.Registerer)
	return x
}

// Apply takes an update in. It allocates only when series begin or identities
// change, and never blocks on a scrape unless series begin. Updates without a
// query, and those that are no news of one (duplicates, late and refused events),
// are ignored. An update that says that its query moved to another process takes
// everything about it off the page at once.
func (x *Exporter) Apply(u *event.Update) { x.take(u, false) }

// take is Apply; quiet leaves counters and histograms as they are.
func (x *Exporter) take(u *event.Update, quiet bool) {
	if u == nil || u.Event == nil || u.Event.Query.ID == "" || !isNews(u.Outcome) {
		return
	}
	if u.Moved {
		x.Forget(u.Event.Query.ID)
		return
	}
	q := x.own(u)
	if q == nil {
		return
	}
	defer q.owner.Unlock()
	x.identify(q, u.Event)
	q.quiet = quiet
	x.apply(q, u)
	q.publish()
}

// isNews reports whether updates of this outcome say something new of a query.
func isNews(o event.Outcome) bool {
	switch o {
	case event.OutcomeExecuted, event.OutcomeIdleCopy, event.OutcomeStarted, event.OutcomeIdle,
		event.OutcomeTerminated, event.OutcomeFailed, event.OutcomeStateChange:
		return true
	default:
		return false
	}
}

// own returns the query of u with its owner lock held, making it if need be. It
// returns nil for a query that is not there any more when all that u has to say
// is that its state changed.
func (x *Exporter) own(u *event.Update) *query {
	for {
		q := x.find(u.Event.Query.ID)
		if q == nil {
			if u.Outcome == event.OutcomeStateChange {
				return nil
			}
			q = x.create(u)
		}
		q.owner.Lock()
		if !q.gone {
			return q
		}
		q.owner.Unlock() // expired in between
	}
}

func (x *Exporter) find(id event.QueryID) *query {
	x.index.RLock()
	defer x.index.RUnlock()
	return x.byID[id]
}

// create makes the query of u, or returns the one that another goroutine made.
func (x *Exporter) create(u *event.Update) *query {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q := x.find(u.Event.Query.ID); q != nil {
		return q
	}
	q := x.newQuery(u.Event.Query.ID)
	q.bornMs = firstMs(u)
	x.index.Lock()
	defer x.index.Unlock()
	x.byID[q.key] = q
	x.live.Add(1)
	return q
}

// newQuery makes an empty query and gives it a place. The caller holds mu.
func (x *Exporter) newQuery(key event.QueryID) *query {
	q := newQueryState(key)
	x.giveID(q)
	return q
}

func newQueryState(key event.QueryID) *query {
	return &query{key: key, runFirst: event.Absent, newest: event.Absent, newestMs: event.Absent, base: &entity{labels: &labels{}}}
}

// giveID gives q a place among the queries. The caller holds mu.
func (x *Exporter) giveID(q *query) {
	if n := len(x.freeIDs); n > 0 {
		q.id = x.freeIDs[n-1]
		x.freeIDs = x.freeIDs[:n-1]
		x.queries[q.id] = q
		return
	}
	q.id = uint32(len(x.queries))
	x.queries = append(x.queries, q)
}

// takeID takes the place of q and its query_id back. The caller holds mu.
func (x *Exporter) takeID(q *query) {
	delete(x.ids, q.identity.id)
	x.queries[q.id] = nil
	x.freeIDs = append(x.freeIDs, q.id)
}

// firstMs returns when the counters of a new query were 0: on arrival of its
// first event, less the time that a batch reported by it took.
func firstMs(u *event.Update) int64 {
	at := u.Origin.ReceivedMs
	if u.Outcome != event.OutcomeExecuted || u.Event.Batch == nil {
		return at
	}
	if d, _ := u.Event.Batch.DurationMs(); d > 0 && d < float64(at) {
		return at - int64(d)
	}
	return at
}

// drop counts a series that a limit forbade and says so in the log.
func (x *Exporter) drop(reason string, q *query) {
	x.m.dropped.WithLabelValues(reason).Inc()
	if x.mayLog(q.lastMs) {
		x.o.Logger.Warn("series dropped", "reason", reason, "query", q.identity.id, "series", x.total.Load())
	}
}

// mayLog reports whether a minute has passed since the last line.
func (x *Exporter) mayLog(nowMs int64) bool {
	was := x.loggedMs.Load()
	if was != 0 && nowMs-was < 60_000 {
		return false
	}
	return x.loggedMs.CompareAndSwap(was, max(nowMs, 1))
}

// implausible counts a value that cannot be true.
func (x *Exporter) implausible(field string) { x.m.implausible.WithLabelValues(field).Inc() }
