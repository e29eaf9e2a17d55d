package track

import (
	"bytes"
	"encoding/gob"
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

// thousand returns a tracker of 1,000 queries that have been at work for a while:
// full rings, a run before the present one.
func thousand() *Tracker {
	tr := New(DefaultConfig(), nil)
	for i := range 1000 {
		id := event.QueryID(fmt.Sprintf("5b1f9e0c-64c1-4f0e-9a53-%012d", i))
		for b := range int64(100) {
			at := epoch + b*10_000 + int64(i)
			e := batchEvent(id, event.RunID(fmt.Sprintf("%d-64c1-4f0e-9a53-%012d", b/60, i)), b, at)
			e.Query.Name, e.Query.Application = fmt.Sprint("query number ", i), "some application"
			tr.Apply(e, at+1000, nil)
		}
	}
	return tr
}

// BenchmarkSnapshotVersusGobOfStatuses measures saving 1,000 queries against what the
// standard library takes for their statuses, which hold far less: no windows.
func BenchmarkSnapshotVersusGobOfStatuses(b *testing.B) {
	tr := thousand()
	statuses := tr.Queries(nil)
	var saved []byte
	var peer bytes.Buffer
	var ours, theirs time.Duration
	for b.Loop() {
		from := time.Now()
		saved = tr.Snapshot(saved[:0])
		ours += time.Since(from)
		from = time.Now()
		peer.Reset()
		if err := gob.NewEncoder(&peer).Encode(statuses); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(from)
	}
	b.ReportMetric(float64(len(saved))/1000, "B/query")
	b.ReportMetric(float64(peer.Len())/float64(len(saved)), "x_peer_bytes")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N)/1000, "ns/query")
	b.ReportMetric(float64(theirs)/float64(ours), "x_peer")
}

// BenchmarkRestore measures restoring, and adopting half of, 1,000 queries.
func BenchmarkRestore(b *testing.B) {
	tr, again := thousand(), New(DefaultConfig(), nil)
	saved := tr.Snapshot(nil)
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if err := again.Restore(saved); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("adopt half", func(b *testing.B) {
		for b.Loop() {
			if err := New(DefaultConfig(), nil).Adopt(saved, func(id event.QueryID) bool { return ShardOf(id, 2) == 1 }); err != nil {
				b.Fatal(err)
			}
		}
	})
}
