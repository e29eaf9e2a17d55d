package track

import (
	"slices"

	"github.com/stategauge/stategauge/event"
)

// nameKey is what a query keeps when it gets a new checkpoint.
type nameKey struct{ application, name string }

func keyOfName(q *query) nameKey { return nameKey{q.ref.Application, q.ref.Name} }

// maxNamesakes is how many queries of one name are watched for succession. A name
// that more of them share tells no query from another, and looking through all of
// them for each new one would cost the square of their number.
const maxNamesakes = 64

func (t *Tracker) name(q *query) {
	if q.ref.Name == "" {
		return
	}
	if k := keyOfName(q); len(t.names[k]) < maxNamesakes {
		t.names[k] = append(t.names[k], q)
	}
}

func (t *Tracker) unname(q *query) {
	if q.ref.Name == "" {
		return
	}
	k := keyOfName(q)
	left := slices.DeleteFunc(t.names[k], func(o *query) bool { return o == q })
	if len(left) == 0 {
		delete(t.names, k)
		return
	}
	t.names[k] = left
}

// successor returns the query that took over the name of q: one that was first
// heard of after q's last word. Two that live side by side are just two queries.
func (t *Tracker) successor(q *query) *query {
	if q.ref.Name == "" || q.lastMs == event.Absent {
		return nil
	}
	var next *query
	for _, o := range t.names[keyOfName(q)] {
		if o != q && o.firstMs > q.lastMs && (next == nil || o.firstMs > next.firstMs) {
			next = o
		}
	}
	return next
}

// succeed retires the queries whose name the new query q takes over, as far as
// they are known to have ended; about the others time decides.
func (t *Tracker) succeed(q *query, nowMs int64, out []event.Update) []event.Update {
	if q.ref.Name == "" || len(t.names[keyOfName(q)]) < 2 {
		return out
	}
	for _, o := range slices.Clone(t.names[keyOfName(q)]) {
		if o != q && o.gone() && t.successor(o) == q {
			out = t.retire(o, q.ref.ID, nowMs, out)
		}
	}
	return out
}
