package rules

import (
	"fmt"
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// eventful plays one query to one rule of each detector of events until what it
// keeps is full.
func eventful(tb testing.TB) *stream {
	tb.Helper()
	s := newStream(New(eventPack(tb, lifeRules), Options{}))
	n := newNoise(1)
	for range 300 {
		s.play(figures{duration: 2000 * n.next(), rows: 1000 * n.next(), operators: 3})
	}
	return s
}

// again sends the same batch as another one.
func (s *stream) again(u *event.Update, out []Verdict) []Verdict {
	u.Event.Batch.ID, u.Event.Batch.StartMs, u.Event.AtMs = s.next, s.nowMs, s.nowMs
	u.Origin.ReceivedMs = s.nowMs
	s.next++
	s.nowMs += s.everyMs
	return s.e.Apply(u, out[:0])
}

func TestAStoryThatGoesOnCostsNoAllocation(t *testing.T) {
	s := eventful(t)
	u := s.update(figures{operators: 3})
	var out []Verdict
	if n := testing.AllocsPerRun(500, func() { out = s.again(&u, out) }); n != 0 {
		t.Errorf("got %v allocations a batch, want none", n)
	}
}

// BenchmarkApplyEventRules is one batch of three operators through a rule of each
// detector of events.
func BenchmarkApplyEventRules(b *testing.B) {
	s := eventful(b)
	u := s.update(figures{operators: 3})
	var out []Verdict
	b.ReportAllocs()
	for b.Loop() {
		out = s.again(&u, out)
	}
}

// BenchmarkTickEventRules is what time passing costs for each of 2,000 queries.
func BenchmarkTickEventRules(b *testing.B) {
	const queries = 2000
	e := New(eventPack(b, lifeRules), Options{})
	for i := range queries {
		s := newStream(e)
		s.id, s.name = fmt.Sprint("q", i), fmt.Sprint("query", i)
		for range 20 {
			u := s.update(figures{})
			u.Origin.ReceivedMs, u.IntervalMs = s.nowMs, math.NaN()
			e.Apply(&u, nil)
			s.newRun = false
		}
	}
	now := e.nowMs
	var out []Verdict
	b.ReportAllocs()
	for b.Loop() {
		now++
		out = e.Tick(now, out[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/queries, "ns/query")
}
