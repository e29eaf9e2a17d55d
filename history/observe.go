package history

import (
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// sampleEvery is how often the engine's own figures are read. That takes some
// microseconds.
const sampleEvery = 10 * time.Second

// sample is what was last read of an engine's counters, which begin at 0 with it.
type sample struct {
	at      time.Time
	syncs   int64
	written uint64
}

// figures are read from an engine at one moment.
type figures struct {
	in, written uint64 // bytes handed over and bytes written to disk
	disk        uint64
}

func readFigures(db *pebble.DB) figures {
	m := db.Metrics()
	f := figures{in: m.WAL.BytesIn, written: m.WAL.BytesWritten, disk: m.DiskSpaceUsage()}
	for i := range m.Levels {
		f.written += m.Levels[i].TableBytesFlushed + m.Levels[i].TableBytesCompacted
	}
	return f
}

func (s *Store) count(steps []*Step) {
	m := s.o.Metrics
	m.Steps.Add(float64(len(steps)))
	for _, step := range steps {
		m.Records.Add(float64(len(step.Records)))
		bytes := 0
		for i := range step.Records {
			bytes += len(step.Records[i].Body)
		}
		m.RecordBytes.Add(float64(bytes))
	}
}

// observe keeps the metrics up to date without asking the engine each time.
func (s *Store) observe(now time.Time) {
	syncs := s.engine().Syncs()
	s.o.Metrics.Syncs.Add(float64(syncs - s.sample.syncs))
	s.sample.syncs = syncs
	if s.sample.at.IsZero() || now.Sub(s.sample.at) >= sampleEvery {
		s.sampleNow()
	}
}

func (s *Store) sampleNow() {
	var f figures
	if err := s.engine().Do(func(db *pebble.DB, in *inside) error {
		got := readFigures(db)
		return in.Call(func() error { f = got; return nil })
	}); err != nil {
		return // what uses the engine next says why
	}
	m := s.o.Metrics
	s.sample.at = s.o.Now()
	m.Written.Add(float64(f.written - min(s.sample.written, f.written)))
	s.sample.written = f.written
	m.DiskBytes.Set(float64(f.disk))
	if f.in > 0 {
		m.WriteAmplification.Set(float64(f.written) / float64(f.in))
	}
}

// account keeps since when nothing can be written.
func (s *Store) account(err error) {
	broken := err != nil && (errors.Is(err, ErrFailed) || errors.Is(err, ErrDiskFull))
	switch {
	case broken && s.since == 0:
		s.since = s.o.Now().Unix()
	case err == nil:
		s.since = 0
	}
	s.o.Metrics.DegradedSince.Set(float64(s.since))
}
