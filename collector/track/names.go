package track

import (
	"cmp"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// nameKey is what a query keeps when it gets a new checkpoint.
type nameKey struct{ application, name string }

func keyOfName(q *query) nameKey { return nameKey{q.ref.Application, q.ref.Name} }

// maxNamesakes is how many queries may share a name and be watched for succession.
// A name that more of them share tells no query from another, and looking through
// all of them for each new one would cost the square of their number.
const maxNamesakes = 64

// namesakes returns the queries of q's name, q included, sorted by id; nil where
// they are not watched.
func (t *Tracker) namesakes(q *query) []*query {
	if q.ref.Name == "" {
		return nil
	}
	if all := t.names[keyOfName(q)]; len(all) <= maxNamesakes {
		return all
	}
	return nil
}

// name files q under its name. Lists are sorted by id, so that they depend on
// nothing but which queries there are.
func (t *Tracker) name(q *query) {
	if q.ref.Name == "" {
		return
	}
	k := keyOfName(q)
	at, _ := slices.BinarySearchFunc(t.names[k], q.ref.ID, compareID)
	t.names[k] = slices.Insert(t.names[k], at, q)
}

func (t *Tracker) unname(q *query) {
	if q.ref.Name == "" {
		return
	}
	k := keyOfName(q)
	all := t.names[k]
	at, found := slices.BinarySearchFunc(all, q.ref.ID, compareID)
	switch {
	case !found:
	case len(all) == 1:
		delete(t.names, k)
	default:
		t.names[k] = slices.Delete(all, at, at+1)
	}
}

func compareID(q *query, id event.QueryID) int { return cmp.Compare(q.ref.ID, id) }

// successor returns the query that took over the name of q: one that was first
// heard of after q's last word. Two that live side by side are just two queries.
func (t *Tracker) successor(q *query) *query {
	if q.lastMs == event.Absent {
		return nil
	}
	var next *query
	for _, o := range t.namesakes(q) {
		if o != q && o.firstMs > q.lastMs && (next == nil || o.firstMs > next.firstMs) {
			next = o
		}
	}
	return next
}

// succeed retires the queries whose name the new query q takes over, as far as
// they are known to have ended; about the others time decides.
func (t *Tracker) succeed(q *query, nowMs int64, out []event.Update) []event.Update {
	if len(t.namesakes(q)) < 2 {
		return out
	}
	for _, o := range slices.Clone(t.namesakes(q)) {
		if o != q && o.gone() && t.successor(o) == q {
			out = t.retire(o, q.ref.ID, nowMs, out)
		}
	}
	return out
}
