package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

// wholePack is every rule file of the configuration, loaded together.
func wholePack(tb testing.TB) *Pack {
	tb.Helper()
	names, err := filepath.Glob("../configs/rules/*.yaml")
	if err != nil || len(names) == 0 {
		tb.Fatal("no rule files:", err)
	}
	var sources []Source
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		sources = append(sources, Source{Name: filepath.Base(name), Data: data})
	}
	p, err := Load(sources...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// usualBatch and usualOperator are what a healthy query with state says of a batch
// of a minute: four stores an operator, figures that move by noise.
var (
	usualBatch = map[event.MetricID]float64{
		event.BatchDuration: 20_000, event.DurationTriggerExecution: 20_000, event.DurationAddBatch: 16_000,
		event.DurationLatestOffset: 1200, event.DurationGetBatch: 300, event.DurationWalCommit: 300,
		event.DurationQueryPlanning: 1000, event.DurationCommitOffsets: 400, event.NumInputRows: 50_000,
		event.SourceNumInputRows: 50_000, event.SourceMaxOffsetsBehindLatest: 500,
	}
	usualOperator = map[event.MetricID]float64{
		event.RocksDBSstFileSize: 4e8, event.RocksDBGetLatency: 400, event.RocksDBPutLatency: 300,
		event.RocksDBGetCount: 50_000, event.RocksDBPutCount: 50_000, event.RocksDBCommitFlushLatency: 6000,
		event.RocksDBCommitCompactLatency: 0.5, event.RocksDBCommitCheckpointLatency: 200,
		event.RocksDBCommitFileSyncLatency: 4000, event.RocksDBBytesCopied: 4e7, event.RocksDBFilesCopied: 12,
		event.RocksDBReadBlockCacheMissCount: 5000, event.RocksDBReadBlockCacheHitCount: 45_000,
		event.RocksDBTotalBytesRead: 1e8, event.RocksDBTotalBytesWritten: 4e7, event.RocksDBWriterStallLatency: 0.1,
		event.RocksDBTotalBytesWrittenByCompaction: 1e7, event.RocksDBPinnedBlocksMemoryUsage: 88,
		event.NumRowsTotal: 1e6, event.NumRowsUpdated: 40_000, event.NumRowsRemoved: 38_000,
		event.AllUpdatesTime: 20_000, event.AllRemovalsTime: 900, event.CommitTime: 12_000, event.MemoryUsedBytes: 5e8,
	}
)

// fullStream is a query of three operators whose every figure is told.
type fullStream struct {
	*stream
	n *noise
}

// update builds the next batch, all of its figures moved by noise.
func (s *fullStream) update() event.Update {
	u := s.stream.update(figures{operators: 3})
	b := u.Event.Batch
	for id := range event.MetricID(event.NumMetrics) {
		if v, ok := usualBatch[id]; ok {
			b.Values[id] = v * s.n.next()
		}
	}
	ageRows(b, 60_000*s.n.next())
	for k := range b.Operators {
		for id := range event.MetricID(event.NumMetrics) {
			if v, ok := usualOperator[id]; ok {
				b.Operators[k].Values[id] = v * s.n.next()
			}
		}
	}
	b.Settle()
	u.IntervalMs, u.Origin.ReceivedMs = float64(s.everyMs), s.nowMs
	return u
}

// ageRows makes the newest row so many milliseconds old at the start of the batch.
func ageRows(b *event.Batch, ms float64) {
	newest := float64(b.StartMs) - ms
	b.Values[event.EventTimeMax], b.Values[event.EventTimeMin] = newest, newest-300_000
	b.Values[event.EventTimeAvg], b.Values[event.EventTimeWatermark] = newest-100_000, newest-600_000
}

func (s *fullStream) play(batches int) {
	for range batches {
		u := s.update()
		s.verdicts = s.e.Apply(&u, s.verdicts[:0])
		s.newRun = false
	}
}

func newFullStream(e *Engine, i int) *fullStream {
	s := &fullStream{stream: newStream(e), n: newNoise(uint64(i) + 1)}
	s.id = fmt.Sprint("q", i)
	return s
}

// packBytes is what an engine with the whole pack keeps of a query of three operators
// whose windows are full.
func packBytes(tb testing.TB, p *Pack) int {
	tb.Helper()
	const queries = 8
	var before, after runtime.MemStats
	e := New(p, Options{})
	for i := range queries { // buffers that all share, as large as they get
		newFullStream(e, queries+i).play(900)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range queries {
		newFullStream(e, i).play(900)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(e)
	return int(after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc)) / queries
}

// maxPackBytes is what the rules may keep of a query of three operators.
const maxPackBytes = 160 << 10

func TestTheWholePackKeepsLittleOfAQuery(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	p := wholePack(t)
	if got := packBytes(t, p); got > maxPackBytes {
		t.Errorf("%d rules keep %d bytes of a query of three operators, more than %d", p.Len(), got, maxPackBytes)
	} else {
		t.Logf("%d rules keep %d bytes of a query of three operators", p.Len(), got)
	}
}

// BenchmarkWholePackVersusDeriv is one batch of three operators through the whole
// pack, windows full, beside the least squares lines that as many rules of PromQL would
// draw through two hours of samples at each evaluation. Slow streams are judged more
// often by the batch.
func BenchmarkWholePackVersusDeriv(b *testing.B) {
	for _, everyMs := range []int64{10_000, minuteMs} {
		b.Run(fmt.Sprintf("trigger=%s", shortDuration(time.Duration(everyMs)*time.Millisecond)), func(b *testing.B) { benchWholePack(b, everyMs) })
	}
}

func benchWholePack(b *testing.B, everyMs int64) {
	p := wholePack(b)
	s := newFullStream(New(p, Options{}), 0)
	s.everyMs = everyMs
	s.play(int(12 * hourMs / everyMs))
	updates, batches := make([]event.Update, 256), make([]event.Batch, 256)
	for i := range updates {
		updates[i] = s.update()
		batches[i].CopyFrom(updates[i].Event.Batch)
		s.nowMs -= s.everyMs
		s.next--
	}
	at := 0
	ours := func(n int) {
		for range n {
			u := &updates[at%len(updates)]
			u.Event.Batch = &batches[at%len(updates)]
			u.Event.Batch.ID, u.Event.Batch.StartMs, u.Origin.ReceivedMs = s.next, s.nowMs, s.nowMs
			ageRows(u.Event.Batch, 60_000)
			at++
			s.next++
			s.nowMs += s.everyMs
			s.verdicts = s.e.Apply(u, s.verdicts[:0])
		}
	}
	lines, line := trendsOf(p), &leastSquares{n: newNoise(3)}
	line.play(300)
	theirs := func(n int) { line.play(n * lines) }
	reportRatio(b, ours, theirs)
	if line.met > 1e300 {
		b.Fatal(line.met)
	}
}

// trendsOf counts the series of a query of three operators that a trend is asked of.
func trendsOf(p *Pack) int {
	n := 0
	for _, r := range p.rules {
		switch r.detector.(type) {
		case *rising, *shifted, *reaches, *spiking, *follows:
			n++
			if r.signal.of == OfOperator {
				n += 2
			}
		}
	}
	return n
}

// BenchmarkWholePackOfAFleetVersusOneQuery is a batch of one of many queries through the
// whole pack, beside a batch of one that is alone, windows full: in a fleet what a query
// keeps has left the caches until its next batch comes.
func BenchmarkWholePackOfAFleetVersusOneQuery(b *testing.B) {
	p := wholePack(b)
	reportRatio(b, playFleet(p, 300), playFleet(p, 1))
}

// playFleet returns what plays so many batches of queries in turn, a batch of each after
// the other.
func playFleet(p *Pack, queries int) func(batches int) {
	const everyMs = 10_000
	e := New(p, Options{})
	streams := make([]*fullStream, queries)
	for i := range streams {
		streams[i] = newFullStream(e, i)
		streams[i].everyMs = everyMs
		streams[i].play(900)
	}
	u := streams[0].update()
	at := 0
	return func(batches int) {
		for range batches {
			s := streams[at%queries]
			at++
			b, id := u.Event.Batch, event.QueryID(s.id)
			b.Query.ID, b.ID, b.StartMs = id, s.next, s.nowMs
			u.Event.Query.ID, u.Origin.ReceivedMs = id, s.nowMs
			ageRows(b, 60_000)
			s.next++
			s.nowMs += everyMs
			s.verdicts = e.Apply(&u, s.verdicts[:0])
		}
	}
}
