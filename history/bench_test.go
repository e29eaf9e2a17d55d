package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/event"
)

// intake is a step as an HTTP request of 50 events makes it.
func intake(seq uint64, queries, records int, noise *rand.Rand) *Step {
	step := &Step{Seq: seq, Offsets: []Offset{{"events", 0, int64(seq)}}}
	for i := range records {
		body := make([]byte, 400)
		for j := range 200 { // half of it can be compressed
			body[j] = byte(noise.Uint32())
		}
		query := fmt.Sprint("query-", (int(seq)*records+i)%queries)
		step.Records = append(step.Records, Record{
			Query: event.QueryID(query), Lineage: "name of " + query,
			AtMs: t0 + (int64(seq)*int64(records)+int64(i))/int64(queries)*10_000, Body: body,
		})
	}
	return step
}

// stopwatch adds up the time of one side of a comparison.
type stopwatch time.Duration

func (s *stopwatch) time(f func()) {
	start := time.Now()
	f()
	*s += stopwatch(time.Since(start))
}

// BenchmarkCommitVersusNoSync commits steps of 50 records of 400 bytes, alone and
// in groups, beside the same batch that is not forced to disk.
func BenchmarkCommitVersusNoSync(b *testing.B) {
	for _, group := range []int{1, 16} {
		b.Run(fmt.Sprintf("group=%d", group), func(b *testing.B) {
			noise := rand.New(rand.NewPCG(1, 1))
			ours, peer := open(b, Options{Dir: b.TempDir()}), open(b, Options{Dir: b.TempDir()})
			var oursTime, peerTime stopwatch
			for b.Loop() {
				steps := make([]*Step, group)
				for i := range steps {
					steps[i] = intake(ours.NextSeq()+uint64(i), 100, 50, noise)
				}
				oursTime.time(func() {
					if err := ours.Commit(steps); err != nil {
						b.Fatal(err)
					}
				})
				peerTime.time(func() {
					if err := peer.commitUnsynced(steps); err != nil {
						b.Fatal(err)
					}
				})
			}
			b.ReportMetric(float64(oursTime)/float64(peerTime), "x_peer")
			b.ReportMetric(float64(b.N*group*50)/time.Duration(oursTime).Seconds(), "records/s")
			b.ReportMetric(float64(ours.engine().Syncs())/float64(b.N*group), "syncs/step")
		})
	}
}

// commitUnsynced is Commit without waiting for the disk.
func (s *Store) commitUnsynced(steps []*Step) error {
	err := s.write("commit", pebble.NoSync, func(b *pebble.Batch) error {
		s.known.Lock()
		defer s.known.Unlock()
		w := writer{s: s, b: b}
		for _, step := range steps {
			if err := w.step(step); err != nil {
				return err
			}
		}
		return nil
	})
	s.next += uint64(len(steps))
	return err
}

// BenchmarkReadDayVersusScan reads a day of one query of a hundred, beside a scan
// over as many keys that lie together.
func BenchmarkReadDayVersusScan(b *testing.B) {
	const queries, perDay = 100, 8640
	s := open(b, Options{Dir: b.TempDir()})
	noise := rand.New(rand.NewPCG(1, 1))
	for seq := uint64(1); seq*1000 <= queries*perDay; seq++ {
		if err := s.commitUnsynced([]*Step{intake(seq, queries, 1000, noise)}); err != nil {
			b.Fatal(err)
		}
	}
	flush(b, s)
	var oursTime, peerTime stopwatch
	read := 0
	for n := 0; b.Loop(); n++ {
		id := event.QueryID(fmt.Sprint("query-", n%queries))
		got := 0
		oursTime.time(func() {
			if err := s.Read(id, t0, t0+dayMs, func(r Record) error { got++; return nil }); err != nil {
				b.Fatal(err)
			}
		})
		if got < perDay*9/10 {
			b.Fatalf("read %d records", got)
		}
		read += got
		peerTime.time(func() { scanKeys(b, s, got) })
	}
	b.ReportMetric(float64(oursTime)/float64(peerTime), "x_peer")
	b.ReportMetric(float64(time.Duration(oursTime).Microseconds())/float64(read), "us/record")
}

func scanKeys(b *testing.B, s *Store, n int) {
	b.Helper()
	if err := s.engine().Do(func(db *pebble.DB, _ *inside) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceRaw}, UpperBound: []byte{spaceRaw + 1}})
		if err != nil {
			return err
		}
		sum := 0
		for ok := it.First(); ok && n > 0; ok = it.Next() {
			sum += len(it.Value())
			n--
		}
		return it.Close()
	}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart opens a history of a day of raw batches, most of it trimmed.
func BenchmarkStart(b *testing.B) {
	const queries, perDay = 100, 8640
	o := Options{Dir: b.TempDir()}
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	noise := rand.New(rand.NewPCG(1, 1))
	for seq := uint64(1); seq*1000 <= queries*perDay; seq++ {
		if err := s.commitUnsynced([]*Step{intake(seq, queries, 1000, noise)}); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Trim(s.NextSeq() - 20); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(o)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBytesPerRecord reports what a record of 400 bytes takes in the end, and
// how much was written for it.
func BenchmarkBytesPerRecord(b *testing.B) {
	for b.Loop() {
		s := open(b, Options{Dir: b.TempDir()})
		noise := rand.New(rand.NewPCG(1, 1))
		for seq := uint64(1); seq <= 4000; seq++ {
			if err := s.commitUnsynced([]*Step{intake(seq, 100, 50, noise)}); err != nil {
				b.Fatal(err)
			}
			if seq%100 == 0 {
				if err := s.Trim(seq); err != nil {
					b.Fatal(err)
				}
			}
		}
		flush(b, s)
		records := 4000 * 50.
		if err := s.engine().Do(func(db *pebble.DB, _ *inside) error {
			f := readFigures(db)
			b.ReportMetric(float64(f.written)/float64(f.in), "write_amplification")
			b.ReportMetric(float64(liveBytes(db)-int64(db.Metrics().WAL.Size))/records, "B/record")
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
