package track

import (
	"slices"
	"strings"
	"sync"

	"github.com/stategauge/stategauge/event"
)

// maxNamesakes is how many queries may share a name and be watched for succession.
// A name that more of them share tells no query from another, and looking through
// all of them for each silent one would cost the square of their number.
const maxNamesakes = 64

// Names knows which queries go by which name, so that one with a new checkpoint is found
// to have taken over from the one before. It is safe for concurrent use; the shards of a
// process share one, because the two have different ids and may be of different shards.
type Names struct {
	mu      sync.Mutex
	bearers map[nameKey][]bearer // sorted by id, so that they depend on nothing but which there are
}

// nameKey is what a query keeps when it gets a new checkpoint.
type nameKey struct{ application, name string }

func keyOfName(q event.QueryRef) nameKey { return nameKey{q.Application, q.Name} }

// bearer is a query that goes by a name, and since when, by its sender's clock.
type bearer struct {
	id      event.QueryID
	firstMs int64
}

func compareID(b bearer, id event.QueryID) int {
	return strings.Compare(string(b.id), string(id))
}

// NewNames returns an empty table.
func NewNames() *Names { return &Names{bearers: map[nameKey][]bearer{}} }

// give notes that a query goes by its name, and since when.
func (n *Names) give(q event.QueryRef, firstMs int64) {
	if q.Name == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	k := keyOfName(q)
	at, known := slices.BinarySearchFunc(n.bearers[k], q.ID, compareID)
	if !known {
		n.bearers[k] = slices.Insert(n.bearers[k], at, bearer{id: q.ID})
	}
	n.bearers[k][at].firstMs = firstMs
}

// take notes that a query no longer goes by its name.
func (n *Names) take(q event.QueryRef) {
	if q.Name == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	k := keyOfName(q)
	all := n.bearers[k]
	at, known := slices.BinarySearchFunc(all, q.ID, compareID)
	switch {
	case !known:
	case len(all) == 1:
		delete(n.bearers, k)
	default:
		n.bearers[k] = slices.Delete(all, at, at+1)
	}
}

// after returns the query that was first heard of under the name of q last, and after
// sinceMs; empty where there is none or where too many share the name.
func (n *Names) after(q event.QueryRef, sinceMs int64) (id event.QueryID) {
	if q.Name == "" {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.bearers[keyOfName(q)]
	if len(all) > maxNamesakes {
		return ""
	}
	newest := sinceMs
	for _, b := range all {
		if b.id != q.ID && b.firstMs > newest {
			id, newest = b.id, b.firstMs
		}
	}
	return id
}

// successor returns the query that took over the name of q: one that was first
// heard of after q's last word. Two that live side by side are just two queries.
func (t *Tracker) successor(q *query) event.QueryID {
	if q.lastMs == event.Absent {
		return ""
	}
	return t.c.Names.after(q.ref, q.lastMs)
}

// file gives q its name in the table, where that or its age is not known there.
func (t *Tracker) file(q *query, ref event.QueryRef) {
	if ref == q.ref && q.filedMs == q.firstMs {
		return
	}
	if ref != q.ref {
		t.c.Names.take(q.ref)
	}
	q.ref, q.filedMs = ref, q.firstMs
	t.c.Names.give(q.ref, q.firstMs)
}
