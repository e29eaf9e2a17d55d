package track

import (
	"fmt"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// A job that starts its query under one name with a new checkpoint each time must
// not make each new start dearer than the one before.
func TestOneNameForManyQueriesIsWatchedForAFewOfThem(t *testing.T) {
	tr := New(DefaultConfig(), nil)
	var out []event.Update
	for i := range 4 * maxNamesakes {
		e := batchEvent(event.QueryID(fmt.Sprint("q", i)), "r", 1, epoch+int64(i)*1000)
		e.Query.Name, e.Batch.Query.Name = "all", "all"
		out = tr.Apply(e, epoch+int64(i)*1000, out[:0])
	}
	if n := len(tr.names[nameKey{name: "all"}]); n != maxNamesakes {
		t.Errorf("%d namesakes are kept, want %d", n, maxNamesakes)
	}
	for i := range 4 * maxNamesakes {
		out = tr.Forget(event.QueryID(fmt.Sprint("q", i)), epoch+day, out[:0])
	}
	if len(tr.names) != 0 || tr.Len() != 0 {
		t.Errorf("%d names and %d queries are left", len(tr.names), tr.Len())
	}
}
