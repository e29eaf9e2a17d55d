package history

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
)

const dayMs = 24 * hourMs

// days commits one record of a query for each of so many days, and trims.
func days(t testing.TB, s *Store, query string, n int) {
	t.Helper()
	for i := range n {
		r := batchOf(query, 0)
		r.AtMs += int64(i) * dayMs
		r.Body = fmt.Appendf(nil, "day %d", i)
		commit(t, s, &Step{Records: []Record{r}})
	}
	if err := s.Trim(s.NextSeq() - 1); err != nil {
		t.Fatal(err)
	}
}

func retain(t testing.TB, s *Store, nowMs int64) {
	t.Helper()
	if err := s.Retain(nowMs); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAreDeletedByAge(t *testing.T) {
	reg := prometheus.NewRegistry()
	o := inMemory()
	o.Metrics = NewMetrics(reg)
	s := open(t, o)
	days(t, s, "a", 12)
	retain(t, s, t0+11*dayMs)
	if diff := cmp.Diff([]string{"day 4", "day 5", "day 6", "day 7", "day 8", "day 9", "day 10", "day 11"}, readAll(t, s, "a")); diff != "" {
		t.Error(diff)
	}
	if got := valueOf(t, o.Metrics.Deletions.WithLabelValues(kindRaw, whyAge)); got != 4 {
		t.Errorf("%v hours were deleted, want 4", got)
	}
	retain(t, s, t0+11*dayMs) // there is nothing left to do
	if got := valueOf(t, o.Metrics.Deletions.WithLabelValues(kindRaw, whyAge)); got != 4 {
		t.Errorf("%v hours were deleted, want 4", got)
	}
}

func TestAClockThatJumpsDeletesNothing(t *testing.T) {
	s := open(t, inMemory())
	days(t, s, "a", 7)
	for _, now := range []int64{t0 + 8*dayMs, t0 + 3650*dayMs, t0 - dayMs, 0} {
		retain(t, s, now)
		if got := len(readAll(t, s, "a")); got != 7 {
			t.Errorf("at %d: %d records are left, want 7", now, got)
		}
	}
}

func TestEventsOfTheFutureDeleteNothing(t *testing.T) {
	s := open(t, inMemory())
	days(t, s, "a", 7)
	future := batchOf("b", 0)
	future.AtMs += 100 * 365 * dayMs
	absurd := batchOf("b", 0)
	absurd.AtMs = 1 << 62
	past := batchOf("b", 0)
	past.AtMs = event.Absent
	commit(t, s, &Step{Records: []Record{future, absurd, past}})
	retain(t, s, t0+6*dayMs)
	if got := len(readAll(t, s, "a")); got != 7 {
		t.Errorf("%d records are left, want 7", got)
	}
	var at []int64
	if err := s.Read("b", event.Absent, 1<<62+1, func(r Record) error {
		at = append(at, r.AtMs)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{event.Absent, future.AtMs, absurd.AtMs}, at); diff != "" {
		t.Errorf("before it is trimmed, even the oldest stays: %s", diff)
	}
}

func TestRecordsThatMustBeReplayedOutliveTheirAge(t *testing.T) {
	s := open(t, inMemory())
	days(t, s, "a", 9)
	old := batchOf("a", 0)
	old.Body = []byte("old")
	commit(t, s, &Step{Records: []Record{old}})
	retain(t, s, t0+8*dayMs)
	var replayed []string
	if err := s.Replay(0, func(_ uint64, r Record) error {
		replayed = append(replayed, string(r.Body))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"old"}, replayed); diff != "" {
		t.Error(diff)
	}
	if err := s.Trim(s.NextSeq()); err != nil {
		t.Fatal(err)
	}
	retain(t, s, t0+8*dayMs)
	if got := readAll(t, s, "a"); len(got) != 8 || got[0] != "day 1" {
		t.Errorf("left: %v", got)
	}
}

func TestTheOldestGoesFirstWhereTheHistoryIsTooLarge(t *testing.T) {
	o := inMemory()
	o.memtableBytes = 256 << 10
	o.MaxBytes = 1 << 20
	s := open(t, o)
	noise := rand.New(rand.NewPCG(1, 1))
	for hour := range 24 {
		step := &Step{}
		for i := range 100 {
			r := batchOf("a", 0)
			r.AtMs += int64(hour)*hourMs + int64(i)
			r.Body = make([]byte, 1000)
			for j := range r.Body {
				r.Body[j] = byte(noise.Uint32())
			}
			step.Records = append(step.Records, r)
		}
		commit(t, s, step)
	}
	if err := s.PutHours("l", "a", "x", []Hour{{t0, []byte("kept")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Trim(s.NextSeq()); err != nil {
		t.Fatal(err)
	}
	flush(t, s)
	retain(t, s, t0+24*hourMs)
	queries, err := s.Queries()
	if err != nil || len(queries) != 1 {
		t.Fatal(queries, err)
	}
	if q := queries[0]; q.Records < 500 || q.Records > 1000 || q.LastMs != t0+23*hourMs+99 {
		t.Errorf("left: %+v", q)
	}
	if size := sizeOnDisk(t, s); size > o.MaxBytes*11/10 {
		t.Errorf("%d bytes are left, allowed are %d", size, o.MaxBytes)
	}
	if got := valueOf(t, s.o.Metrics.Deletions.WithLabelValues(kindRaw, whySize)); got < 13 {
		t.Errorf("%v hours were deleted", got)
	}
	found := 0
	if err := s.ReadHours("l", "", "x", 0, 2*t0, func(string, Hour) error { found++; return nil }); err != nil || found != 1 {
		t.Errorf("%d summaries are left: %v", found, err)
	}
}

func flush(t testing.TB, s *Store) {
	t.Helper()
	if err := s.engine().Do(func(db *pebble.DB, _ *inside) error { return db.Flush() }); err != nil {
		t.Fatal(err)
	}
}

func sizeOnDisk(t testing.TB, s *Store) (size int64) {
	t.Helper()
	if err := s.engine().Do(func(db *pebble.DB, _ *inside) error { size = liveBytes(db); return nil }); err != nil {
		t.Fatal(err)
	}
	return size
}

func TestSummariesAreDeletedByTheWeek(t *testing.T) {
	s := open(t, inMemory())
	week := t0 / weekMs * weekMs
	for i := range int64(70) {
		if err := s.PutHours("l", "a", "x", []Hour{{week + i*weekMs, fmt.Append(nil, i)}}); err != nil {
			t.Fatal(err)
		}
	}
	days(t, s, "a", 1) // the newest record is older than the clock
	now := batchOf("a", 0)
	now.AtMs = week + 69*weekMs
	commit(t, s, &Step{Records: []Record{now}})
	retain(t, s, now.AtMs)
	var left []string
	if err := s.ReadHours("l", "a", "x", 0, 2*t0, func(_ string, h Hour) error {
		left = append(left, string(h.Body))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 58 || left[0] != "12" {
		t.Errorf("%d are left, from %s", len(left), left[0])
	}
}

func TestQueriesWithoutRecordsAreForgotten(t *testing.T) {
	o := inMemory()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	days(t, s, "gone", 1)
	days(t, s, "here", 9)
	if err := s.Close(); err != nil { // what was seen is not known after a start
		t.Fatal(err)
	}
	s = open(t, o)
	retain(t, s, t0+8*dayMs)
	queries, err := s.Queries()
	if err != nil || len(queries) != 1 || queries[0].ID != "here" {
		t.Errorf("queries: %v %v", queries, err)
	}
	if len(s.book.names) != 1 {
		t.Errorf("%d queries are remembered", len(s.book.names))
	}
	days(t, s, "new", 1) // gets a number of its own
	if r, err := check2(t, s); err != nil || !r.OK() || r.Queries != 2 {
		t.Errorf("%+v %v", r, err)
	}
	if number, _ := s.book.number("new", "name of new"); number != 3 {
		t.Errorf("the new query is number %d, want 3", number)
	}
}

func check2(t testing.TB, s *Store) (Report, error) {
	t.Helper()
	return Check(Options{Dir: s.o.Dir, FS: s.o.FS})
}

func TestRetentionReadsNoRecords(t *testing.T) {
	read := func(perHour int) int64 {
		fs := &countingFS{FS: vfs.NewMem()}
		o := Options{Dir: "data", FS: fs, memtableBytes: 64 << 10}
		s := open(t, o)
		noise := rand.New(rand.NewPCG(1, 1))
		for hour := range 24 * 9 {
			step := &Step{}
			for i := range perHour {
				r := batchOf("a", 0)
				r.AtMs += int64(hour)*hourMs + int64(i)
				r.Body = fmt.Append(nil, noise.Uint64(), noise.Uint64(), noise.Uint64())
				step.Records = append(step.Records, r)
			}
			commit(t, s, step)
		}
		if err := s.Trim(s.NextSeq()); err != nil {
			t.Fatal(err)
		}
		flush(t, s)
		if err := s.engine().Do(func(db *pebble.DB, in *inside) error {
			return db.Compact(t.Context(), []byte{0}, []byte{0xff}, false)
		}); err != nil {
			t.Fatal(err)
		}
		before := fs.read.Load()
		retain(t, s, t0+9*dayMs)
		return fs.read.Load() - before
	}
	few, many := read(5), read(50)
	t.Logf("bytes read: %d of a small history, %d of one ten times as large", few, many)
	if many > 4*few+256<<10 {
		t.Errorf("%d bytes were read of a history ten times as large, %d of the small one", many, few)
	}
}
