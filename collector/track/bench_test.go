package track

import (
	"fmt"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

// naive is the least that telling repeats takes: a map of everything seen, for
// ever. It knows neither runs nor gaps, states or triggers.
type naive map[naiveKey]struct{}

type naiveKey struct {
	query event.QueryID
	run   event.RunID
	batch int64
}

func (n naive) apply(e *event.Event) bool {
	k := naiveKey{e.Query.ID, e.Run, e.Batch.ID}
	if _, ok := n[k]; ok {
		return false
	}
	n[k] = struct{}{}
	return true
}

// BenchmarkApplyVersusMapOfAllSeen measures one executed batch, filter included,
// by number of queries. x_peer is the map's time over ours; the map is the lower
// bound of what is possible, not an equal.
func BenchmarkApplyVersusMapOfAllSeen(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("queries=%d", n), func(b *testing.B) { benchmarkApply(b, n) })
	}
}

func benchmarkApply(b *testing.B, n int) {
	events := make([]*event.Event, n)
	for i := range events {
		events[i] = batchEvent(event.QueryID(fmt.Sprint("query-", i)), event.RunID(fmt.Sprint("run-", i)), 0, epoch)
	}
	tr, peer := New(DefaultConfig(), NewFilter(64<<20)), naive{}
	var out []event.Update
	var ours, theirs time.Duration
	b.ReportAllocs()
	for i := 0; i < b.N; {
		size := min(1024, b.N-i)
		step(events, i, size)
		from := time.Now()
		for j := range size {
			e := events[(i+j)%n]
			e.Batch.ID, e.Batch.StartMs = int64((i+j)/n), epoch+int64((i+j)/n)*10_000
			out = tr.Apply(e, e.Batch.StartMs, out[:0])
		}
		ours += time.Since(from)
		from = time.Now()
		for j := range size {
			e := events[(i+j)%n]
			e.Batch.ID = int64((i + j) / n)
			peer.apply(e)
		}
		theirs += time.Since(from)
		i += size
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/event")
	b.ReportMetric(float64(theirs)/float64(ours), "x_peer")
}

// step brings the vectors into the cache for both sides.
func step(events []*event.Event, from, size int) {
	for j := range size {
		events[(from+j)%len(events)].Batch.Executed = true
	}
}

// BenchmarkTick measures one tick over 10,000 queries that are all fine.
func BenchmarkTick(b *testing.B) {
	tr := New(DefaultConfig(), nil)
	for i := range 10_000 {
		tr.Apply(batchEvent(event.QueryID(fmt.Sprint("query-", i)), "r", 1, epoch), epoch, nil)
	}
	var out []event.Update
	now := epoch
	for b.Loop() {
		now++
		out = tr.Tick(now, out[:0])
	}
}

// BenchmarkSnapshot measures saving 1,000 queries.
func BenchmarkSnapshot(b *testing.B) {
	tr := New(DefaultConfig(), nil)
	for i := range 1000 {
		tr.Apply(batchEvent(event.QueryID(fmt.Sprint("query-", i)), "r", 1, epoch), epoch, nil)
	}
	var buf []byte
	for b.Loop() {
		buf = tr.Snapshot(buf[:0])
	}
	b.ReportMetric(float64(len(buf))/1000, "B/query")
}
