// Package exporter turns judged updates into Prometheus series and pages.
//
// What Spark said about a query becomes a set of families driven by the catalog
// of package event: a level is a gauge, work is added once to a counter, and the
// ways in which a figure is not what its name says are put right here, once, on
// the way out. The package owns the life of a series (it begins with its first
// value, gauges go when a query falls silent, everything goes after retirement)
// and guards its number.
//
// # Storage
//
// A family is a dense list of series, a series is two shared label sets and a
// place in its query's values. Labels are rendered once per query or operator,
// in the text and the protobuf form, and shared by all its series. An update is
// worked out on a private copy of the query's values and published under the
// query's lock in one step; a scrape copies the values of every query, each in
// one step, and renders from the copy. So a scrape sees each query before an
// update or after it, never in between, and holds no lock that an update of an
// existing series waits for.
//
// # Restarts
//
// SaveCounters and LoadCounters carry one query across a restart: its series in their
// order, raw, by keys that outlive a version, and all that decides what the next batch
// counts. A query loaded so renders the same bytes. Show takes in what was counted
// already, or by another process; Forget ends a query that another process counts now.
//
// # Locks
//
// They are taken in this order: query.owner (one update or expiry at a time),
// Exporter.mu (which families and series there are, and their labels),
// Exporter.index (which queries there are), query.mu (the published values).
package exporter
