package exporter

import (
	"github.com/stategauge/stategauge/event"
)

// Show takes an update in as Apply does, but counts nothing: levels and states are
// those of the update, counters and histograms stay where they are. Counters that it
// would begin are there from now on, at 0, so that what comes next shows as a step.
// What is remembered from batch to batch, such as figures that Spark repeats, goes
// on with it.
//
// It is for updates that were counted before or elsewhere: the past of a partition
// that was taken over, and after LoadCounters the newest update of a query. A batch
// that is the newest one already changes no level.
func (x *Exporter) Show(u *event.Update) { x.take(u, true) }

// Forget takes everything about a query off the page at once, grace time or not, as
// when another process counts it from now on. An unknown query changes nothing. An
// update that comes later begins it anew.
func (x *Exporter) Forget(id event.QueryID) {
	q := x.find(id)
	if q == nil {
		return
	}
	q.owner.Lock()
	gone := !q.gone
	if gone {
		x.removeQuery(q)
	}
	q.owner.Unlock()
	if gone {
		x.blankSlotsOf(q.identity.id)
	}
}
