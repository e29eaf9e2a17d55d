package rules

import (
	"fmt"
	"math"
	"testing"

	"github.com/stategauge/stategauge/rules/trend"
)

// sparseRules judge two signals over spans that reach back alike: one has a value in
// each batch, one only where there are many rows.
const sparseRules = `
signals:
  took: {of: query, value: duration_ms / 1000, unit: seconds}
  busy: {of: query, value: duration_ms / 1000, unit: seconds, when: input_rows > 5000}
groups:
  - name: g
    rules:
      - {alert: Full, signal: took, rising: {over: 90 batches, min_points: 40, by: 10%}}
      - {alert: Sparse, signal: busy, rising: {over: 90 batches, min_points: 40, by: 10%, adjusted_for: input_rows}}
`

// loaded compiles one rule file.
func loaded(tb testing.TB, text string) *Pack {
	tb.Helper()
	p, err := Load(Source{Name: "r.yaml", Data: []byte(text)})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// sparseStream plays it: each third batch is a busy one, and takes as long as at says.
type sparseStream struct {
	*stream
	n       *noise
	batches int64
	alone   tracker // the sparse rule's detector over columns of its own
}

func newSparseStream(t *testing.T) *sparseStream {
	t.Helper()
	p := loaded(t, sparseRules)
	return &sparseStream{
		stream: newStream(New(p, Options{})), n: newNoise(5),
		alone: p.rules[1].detector.newTracker(&trend.Scratch{}),
	}
}

func (s *sparseStream) play(at func(i int64) float64, every int64) {
	i := s.batches
	s.batches++
	f := figures{duration: 1000 * at(i) * s.n.next(), rows: 100}
	if i%every == 0 {
		f.rows = 10_000 * s.n.next()
	}
	u := s.stream.update(f)
	s.verdicts = s.e.Apply(&u, s.verdicts[:0])
	s.newRun = false
	q := s.query()
	if f.rows > 5000 && !q.warming() {
		ms, _ := u.Event.Batch.DurationMs()
		s.alone.push(trend.Point{Batch: q.position, AtMs: q.atMs, Value: ms / 1000, Load: f.rows}, []float64{f.rows})
	}
}

func (s *sparseStream) query() *queryState {
	for _, q := range s.e.queries {
		return q
	}
	return nil
}

// tracker is the tracker of a rule's only series, nil before its first value.
func (s *sparseStream) tracker(ri int) *risingTracker {
	if list := s.query().rules[ri]; len(list) > 0 {
		return list[0].tracker.(*risingTracker)
	}
	return nil
}

func level(seconds float64) func(int64) float64 { return func(int64) float64 { return seconds } }

func TestASparseColumnMovesIntoASetOfItsOwn(t *testing.T) {
	s := newSparseStream(t)
	for range 60 {
		s.play(level(20), 3)
	}
	if a, b := s.tracker(0).short.column.set, s.tracker(1).short.column.set; a != b {
		t.Fatal("columns that reach back alike do not begin in one set")
	}
	for range 300 {
		s.play(level(20), 3)
	}
	full, sparse := s.tracker(0).short.column, s.tracker(1).short.column
	if full.set == sparse.set || full.set.single || !sparse.set.single || full.moves != 0 || sparse.moves != 1 {
		t.Fatalf("the sparse column did not move, or the full one did: %d and %d moves", full.moves, sparse.moves)
	}
	if sparse.load == nil || sparse.load.set != sparse.set {
		t.Error("its load did not come along")
	}
	left := 0
	for _, c := range full.set.list {
		if c != nil {
			left++
		}
	}
	if left != 1 || len(s.query().columns) != 2 {
		t.Errorf("%d columns are left in the full set, and there are %d sets", left, len(s.query().columns))
	}
}

func TestAColumnOfNearlyAllBatchesStays(t *testing.T) {
	s := newSparseStream(t)
	for i := range 400 {
		every := int64(1)
		if i%5 == 0 {
			every = math.MaxInt64 // this batch has none
		}
		s.play(level(20), every)
	}
	if c := s.tracker(1).short.column; c.moves != 0 || c.set.single {
		t.Errorf("a column with values in four of five batches moved %d times", c.moves)
	}
}

// TestASparseColumnIsJudgedAsIfItHadBeenAlone holds the rule's tracker against one that
// had columns of its own from the start, at each batch, once the set of its own is full.
func TestASparseColumnIsJudgedAsIfItHadBeenAlone(t *testing.T) {
	for name, at := range map[string]func(int64) float64{
		"level": level(20),
		"ramp":  func(i int64) float64 { return 20 + 0.02*float64(max(0, i-900)) },
		"step":  func(i int64) float64 { return 20 + 12*float64(min(1, max(0, i-1000))) },
	} {
		s := newSparseStream(t)
		compared, found := 0, 0
		for range 1500 {
			s.play(at, 3)
			tr := s.tracker(1)
			if tr == nil || tr.short.column.moves == 0 || tr.cols().Pushes() < 250 {
				continue
			}
			span := trend.Span{Batches: 90}
			own := s.alone.(*risingTracker)
			c, d := tr.short.column, own.short.column
			got := c.set.cols.Rising(c.place, c.loadPlace(), span, tr.d.options)
			want := d.set.cols.Rising(d.place, d.loadPlace(), span, tr.d.options)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s, batch %d: shared %+v, alone %+v", name, s.batches, got, want)
			}
			compared++
			if got.Verdict == trend.Found {
				found++
			}
		}
		if compared < 300 || (found > 0) != (name != "level") {
			t.Errorf("%s: %d batches compared, found in %d", name, compared, found)
		}
	}
}

func TestARuleThatLeavesTakesItsSparseSetAlong(t *testing.T) {
	s := newSparseStream(t)
	for range 400 {
		s.play(level(20), 3)
	}
	one := loaded(t, `
signals:
  took: {of: query, value: duration_ms / 1000, unit: seconds}
groups:
  - name: g
    rules:
      - {alert: Full, signal: took, rising: {over: 90 batches, min_points: 40, by: 10%}}
`)
	s.e.Reload(one, s.nowMs, nil)
	s.play(level(20), 3)
	if n := len(s.query().columns); n != 1 {
		t.Errorf("%d sets are left, want one", n)
	}
	if tr := s.tracker(0); tr.points() < 90 {
		t.Errorf("the rule that stayed has %d batches left", tr.points())
	}
}
