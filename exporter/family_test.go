package exporter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// checkPlaces verifies that every series and its query point at each other.
func checkPlaces(t *testing.T, x *Exporter) {
	t.Helper()
	for _, f := range x.families {
		for i, s := range f.series {
			q := x.queries[s.query]
			if q == nil {
				t.Fatalf("%s[%d] belongs to a query that has gone", f.name, i)
			}
			if r := q.refsOf(f)[s.slot]; r.family != f || int(r.pos) != i {
				t.Fatalf("%s[%d]: its query looks for it in %s[%d]", f.name, i, r.family.name, r.pos)
			}
		}
	}
	if !slices.IsSortedFunc(x.families, func(a, b *family) int { return strings.Compare(a.name, b.name) }) {
		t.Fatal("families are not sorted")
	}
	for id, q := range x.byID {
		if q.key != id || x.queries[q.id] != q {
			t.Fatalf("query %s is not in its place", id)
		}
		if n := int64(len(q.refs)) + int64(len(q.histRefs))*17; q.count != n {
			t.Fatalf("query %s has %d series and books %d", id, n, q.count)
		}
	}
}

func TestSeriesFindTheirWayHomeHoweverQueriesComeAndGo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := New(Options{RetirementGrace: -1})
	live := map[string]*stream{}
	for i := range 400 {
		id := fmt.Sprint("q", r.IntN(25))
		s := live[id]
		switch {
		case s == nil:
			s = newStream(id)
			live[id] = s
			x.Apply(s.started())
		case r.IntN(4) == 0:
			delete(live, id)
			x.Apply(s.state(event.StateRetired))
			x.Expire(s.nowMs)
		default:
			x.Apply(s.executed(func(b *event.Batch) {
				randomBatch(r, b)
				b.Operators = b.Operators[:min(len(b.Operators), 1+i%3)]
			}))
		}
		checkPlaces(t, x)
	}
	if len(x.byID) != len(live) || int(x.live.Load()) != len(live) {
		t.Errorf("%d queries, want %d", len(x.byID), len(live))
	}
	for _, s := range live {
		x.Apply(s.state(event.StateRetired))
	}
	x.Expire(1)
	if n := x.total.Load(); n != 0 || text(t, x) != "" || len(x.keys) != 0 {
		t.Errorf("%d series and %d keys are left", n, len(x.keys))
	}
}

func TestPlacesOfQueriesAreUsedAgain(t *testing.T) {
	x := New(Options{RetirementGrace: -1})
	for range 10 {
		s := newStream("q")
		x.Apply(s.executed(nil))
		x.Apply(s.state(event.StateRetired))
		x.Expire(1)
	}
	if n := len(x.queries); n != 2 { // one holds slots
		t.Errorf("%d places for one query at a time", n)
	}
}

func TestAFamilyGivesItsMemoryBack(t *testing.T) {
	x := New(Options{RetirementGrace: -1})
	var streams []*stream
	for i := range 1000 {
		s := newStream(fmt.Sprint("q", i))
		streams = append(streams, s)
		x.Apply(s.executed(nil))
	}
	for _, s := range streams[1:] {
		x.Apply(s.state(event.StateRetired))
	}
	x.Expire(1)
	for _, f := range x.families {
		if cap(f.series) > 64 {
			t.Errorf("%s keeps room for %d series and has %d", f.name, cap(f.series), len(f.series))
		}
	}
	checkPlaces(t, x)
}

func TestHeadersOfFamilies(t *testing.T) {
	f := func(got []byte, want string) {
		t.Helper()
		if string(got) != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	c := newFamily("a_bytes_total", "Say \"hi\" \\ and\nbye.", "bytes", counter, scaleOf(1))
	f(c.text, "# HELP a_bytes_total Say \"hi\" \\\\ and\\nbye.\n# TYPE a_bytes_total counter\n")
	f(c.om, "# HELP a_bytes Say \\\"hi\\\" \\\\ and\\nbye.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n")
	g := newFamily("g", "G.", "", gauge, scaleOf(1))
	f(g.text, "# HELP g G.\n# TYPE g gauge\n")
	f(g.om, string(g.text))
	if c.base != "a_bytes" || g.base != "g" || c.weight() != 1 {
		t.Error("names or weights are wrong")
	}
	h := newHistogram("h_seconds", "H.", "seconds", scaleOf(1e-3), []float64{.5, 1, 30})
	f(h.om, "# HELP h_seconds H.\n# TYPE h_seconds histogram\n# UNIT h_seconds seconds\n")
	f(slices.Concat(h.bucketText...), `le="0.5"le="1"le="30"le="+Inf"`)
	f(slices.Concat(h.bucketOM...), `le="0.5"le="1.0"le="30.0"le="+Inf"`)
	if h.weight() != 6 || !slices.Equal(h.bounds, []float64{500, 1000, 30_000}) {
		t.Errorf("weight %d, bounds %v", h.weight(), h.bounds)
	}
}

func TestAllHistogramsHaveRoomForTheirBuckets(t *testing.T) {
	x := New(Options{})
	for _, f := range x.families {
		if f.kind == histogram && (len(f.bucketText) > maxBuckets || !slices.IsSorted(f.bounds)) {
			t.Errorf("%s has %d buckets: %v", f.name, len(f.bucketText), f.bounds)
		}
	}
}

func TestAnAbsentFamilyHasNoHeader(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.executed(nil))
	x.Apply(s.executed(func(b *event.Batch) { b.Operators[0].Values[event.RocksDBSstFileSize] = absent }))
	var w discardText
	if err := x.Write(&w, "text/plain; version=0.0.4"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.String(), "sst_bytes") {
		t.Error("a family without values is on the page")
	}
	for _, mf := range collected(t, x) {
		if strings.Contains(mf.GetName(), "sst_bytes") {
			t.Error("a family without values is collected")
		}
	}
}

type discardText struct{ strings.Builder }

func TestEscapingOfLabelValues(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(extra(event.Label{Name: "a", Value: in}).text); got != `,a="`+want+`"` {
			t.Errorf("%q is written %s", in, got)
		}
	}
	f("", "")
	f("plain", "plain")
	f("a\"b", `a\"b`)
	f("a\\b", `a\\b`)
	f("a\nb", `a\nb`)
	f("tab\tand \u00fc", "tab\tand \u00fc")
	f(`\n`, `\\n`)
}

func TestLabelsRenderInPlace(t *testing.T) {
	l := extra(event.Label{Name: "a", Value: "long long long"})
	l.render("", []event.Label{{Name: "b", Value: "1"}, {Name: "c", Value: "2"}})
	if got := string(l.text); got != `b="1",c="2"` {
		t.Errorf("got %s", got)
	}
}
