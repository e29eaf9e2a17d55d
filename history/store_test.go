package history

import (
	"flag"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func inMemory() Options { return Options{Dir: "data/history", FS: vfs.NewMem()} }

const t0 = int64(1_780_000_000_000) // a time in May 2026

func batchOf(query string, n int) Record {
	return Record{Query: event.QueryID(query), Lineage: "name of " + query, AtMs: t0 + int64(n)*10_000, Body: fmt.Appendf(nil, "batch %d of %s", n, query)}
}

func commit(t testing.TB, s *Store, steps ...*Step) {
	t.Helper()
	for _, step := range steps {
		if step.Seq == 0 {
			step.Seq = s.NextSeq()
		}
	}
	if err := s.Commit(steps); err != nil {
		t.Fatal(err)
	}
}

func readAll(t testing.TB, s *Store, query string) (out []string) {
	t.Helper()
	if err := s.Read(event.QueryID(query), t0-1e9, t0+1e12, func(r Record) error {
		out = append(out, string(r.Body))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatWasCommittedIsThereAfterReopening(t *testing.T) {
	o := inMemory()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, s, &Step{
		Records: []Record{batchOf("a", 1), batchOf("b", 1)},
		Offsets: []Offset{{"events", 3, 17}},
		States:  []State{{"tracker", "0", 1, []byte("tracked")}},
		Words:   []Word{{7, "rocksdbNewFigure"}},
	})
	commit(t, s, &Step{Records: []Record{batchOf("a", 2)}, Offsets: []Offset{{"events", 3, 18}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, o)
	if got := s.NextSeq(); got != 3 {
		t.Errorf("next step is %d, want 3", got)
	}
	if diff := cmp.Diff([]string{"batch 1 of a", "batch 2 of a"}, readAll(t, s, "a")); diff != "" {
		t.Error(diff)
	}
	offsets, err := s.Offsets()
	if diff := cmp.Diff([]Offset{{"events", 3, 18}}, offsets); diff != "" || err != nil {
		t.Error(diff, err)
	}
	words, err := s.Words()
	if diff := cmp.Diff([]Word{{7, "rocksdbNewFigure"}}, words); diff != "" || err != nil {
		t.Error(diff, err)
	}
	var states []State
	if err := s.States("tracker", func(v State) error {
		v.Body = append([]byte(nil), v.Body...)
		states = append(states, v)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]State{{"tracker", "0", 1, []byte("tracked")}}, states); diff != "" {
		t.Error(diff)
	}
	queries, err := s.Queries()
	if diff := cmp.Diff([]QueryInfo{
		{"a", "name of a", t0 + 10_000, t0 + 20_000, 2}, {"b", "name of b", t0 + 10_000, t0 + 10_000, 1},
	}, queries); diff != "" || err != nil {
		t.Error(diff, err)
	}
	var log []string
	if err := s.Replay(1, func(seq uint64, r Record) error {
		log = append(log, fmt.Sprint(seq, " ", string(r.Body), " ", r.Lineage))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2 batch 2 of a name of a"}, log); diff != "" {
		t.Error(diff)
	}
}

func TestReadingOnlySeesTheHistoryOfARunningDaemon(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := open(t, o)
	for i := range 50 {
		commit(t, s, &Step{Records: []Record{batchOf("a", i)}})
	}
	ro := o
	ro.ReadOnly = true
	r := open(t, ro)
	if got := len(readAll(t, r, "a")); got != 50 {
		t.Errorf("%d records, want 50", got)
	}
}
