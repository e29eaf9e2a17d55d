package exporter

import (
	"maps"
	"slices"
	"time"
)

// Expire ends what has outlived its time at nowMs, Unix milliseconds: the gauges
// of silent queries, those of operators and sources that batches stopped naming,
// and everything of queries that were retired longer ago than the grace time. The
// owner of a ticker calls it; once a minute is enough.
func (x *Exporter) Expire(nowMs int64) {
	for _, q := range x.list() {
		if id, gone := x.expire(q, nowMs); gone {
			x.blankSlotsOf(id)
		}
	}
}

// list returns the queries that exist.
func (x *Exporter) list() []*query {
	x.index.RLock()
	defer x.index.RUnlock()
	return slices.Collect(maps.Values(x.byID))
}

// expire expires one query, and says under which query_id it was if it is gone.
func (x *Exporter) expire(q *query, nowMs int64) (id string, gone bool) {
	q.owner.Lock()
	defer q.owner.Unlock()
	if q.gone {
		return "", false
	}
	if q.retired {
		return q.identity.id, x.expireRetired(q, nowMs)
	}
	x.expireGauges(q, nowMs)
	return "", false
}

// expireRetired removes q once its grace time is over. The caller owns q.
func (x *Exporter) expireRetired(q *query, nowMs int64) bool {
	if q.retiredAtMs == 0 {
		q.retiredAtMs = nowMs
	}
	if grace := max(x.o.RetirementGrace, 0); nowMs-q.retiredAtMs < grace.Milliseconds() {
		return false
	}
	x.removeQuery(q)
	return true
}

// removeQuery takes q with all its series away. The caller owns q.
func (x *Exporter) removeQuery(q *query) {
	x.mu.Lock()
	defer x.mu.Unlock()
	// Removing moves other series, maybe of q too: references are read one by one.
	for i := range q.refs {
		x.remove(q.refs[i])
	}
	for i := range q.histRefs {
		x.remove(q.histRefs[i])
	}
	x.index.Lock()
	delete(x.byID, q.key)
	x.index.Unlock()
	x.takeID(q)
	x.live.Add(-1)
	q.gone = true
}

// expireGauges takes stale gauges of q off the page. The caller owns q.
func (x *Exporter) expireGauges(q *query, nowMs int64) {
	if x.o.GaugeStaleness < 0 {
		return
	}
	if stale(q.lastMs, nowMs, x.o.GaugeStaleness) {
		x.clearAll(q)
		q.publish()
		return
	}
	for _, e := range q.operators {
		if stale(e.lastMs, nowMs, x.o.GaugeStaleness) {
			x.clear(q, e)
		}
	}
	for _, e := range q.sources {
		if stale(e.lastMs, nowMs, x.o.GaugeStaleness) {
			x.clear(q, e)
		}
	}
	q.publish()
}

// stale reports whether something last seen at lastMs is too old; what was never
// dated is not.
func stale(lastMs, nowMs int64, limit time.Duration) bool {
	return lastMs > 0 && nowMs-lastMs >= limit.Milliseconds()
}
