package store

import (
	"math"
	"time"

	"github.com/stategauge/stategauge/simulator/device"
)

// nativeTimes is how long RocksDB was busy with what.
type nativeTimes struct{ get, put, scan, stall, compaction time.Duration }

// mark is a point in a store's life that figures are counted from.
type mark struct {
	work
	t nativeTimes
}

// RocksDB slows writers down at so many files in level 0, and stops them at so
// many; a slowed writer gets a rate that falls with every further file.
const (
	slowdownFiles    = 20
	stopFiles        = 36
	delayedWriteRate = 16 << 20 // bytes per second
	delayStep        = 0.8
	maxStall         = 10 * time.Second // of one store in one batch
)

// absorb takes over what the database did by itself since the last call: flushes
// of full memtables and the compactions after them.
func (s *rocksDB) absorb() {
	st := s.db.Stats()
	s.now.rotations += st.Work.Flushes - s.seen.Work.Flushes
	s.now.flushed += st.Work.Bytes - s.seen.Work.Bytes
	in, out := st.Work.CompactRead-s.seen.Work.CompactRead, st.Work.CompactWritten-s.seen.Work.CompactWritten
	files := st.Work.Compactions - s.seen.Work.Compactions
	s.seen = st
	if in+out == 0 {
		return
	}
	s.now.compIn += in
	s.now.compOut += out
	meter := s.x.o.Meter
	m := meter.Begin(device.StepBackground)
	s.times.compaction += meter.End(device.StepBackground, m, device.Work{BytesIn: in, BytesOut: out, Files: files})
}

// absorbCompactions takes over compactions that took so long.
func (s *rocksDB) absorbCompactions(took time.Duration) {
	st := s.db.Stats()
	s.now.compIn += st.Work.CompactRead - s.seen.Work.CompactRead
	s.now.compOut += st.Work.CompactWritten - s.seen.Work.CompactWritten
	s.seen = st
	s.times.compaction += took
}

// settle charges the reads and writes since it was called last.
func (s *rocksDB) settle() {
	if s.x.active == s {
		s.count()
	}
	compacting := s.times.compaction
	s.absorb()
	compacting = s.times.compaction - compacting
	w, was := &s.now, &s.settled
	if w.gets == was.gets && w.puts == was.puts && w.steps == was.steps {
		return
	}
	scanMisses := w.scanMisses - was.scanMisses
	get := s.charge(device.StepGet, s.live.get, device.Work{
		Ops: w.gets - was.gets, CacheMisses: max(w.cacheMisses-was.cacheMisses-scanMisses, 0),
	})
	scan := s.charge(device.StepScan, s.live.scan, device.Work{
		Ops: w.steps - was.steps, BytesIn: w.scanned - was.scanned, CacheMisses: scanMisses,
	})
	s.times.get += get
	s.times.scan += scan
	if !s.m.batchedWrites {
		written := w.putBytes - was.putBytes
		put := s.charge(device.StepPut, s.live.put, device.Work{Ops: w.puts - was.puts, BytesOut: written})
		if written > 0 {
			stall := s.stall(w.rotations-was.rotations, w.flushed-was.flushed, written, get+scan+put-compacting)
			s.times.stall += stall
			put += stall
		}
		s.times.put += put
		s.live.put = 0
	}
	s.live.get, s.live.scan = 0, 0
	s.settled = s.now
}

// charge is how long a group of calls took: by the clock, or by the model.
func (s *rocksDB) charge(step device.Step, measured time.Duration, w device.Work) time.Duration {
	if s.x.o.Live {
		return measured
	}
	if w.Ops == 0 {
		return 0
	}
	m := s.x.o.Meter.Begin(step)
	return s.x.o.Meter.End(step, m, w)
}

// stall models how long writers waited: for memtables that fill faster than they
// are flushed, and for a level 0 with too many files. fill is how long filling
// the memtables took, without what compactions beside it took of the disk.
func (s *rocksDB) stall(rotations, flushed, written int64, fill time.Duration) time.Duration {
	var wait time.Duration
	if rotations > 0 {
		wait = s.waitForFlush(rotations, flushed, fill)
	}
	wait += s.waitForLevel0(written)
	// RocksDB counts microseconds.
	return min(wait, maxStall).Truncate(time.Microsecond)
}

// waitForFlush lets memtables queue up behind the one thread that flushes, until
// all buffers are full.
func (s *rocksDB) waitForFlush(rotations, flushed int64, fill time.Duration) time.Duration {
	meter := s.x.o.Meter
	m := meter.Begin(device.StepFlush)
	flush := meter.End(device.StepFlush, m, device.Work{BytesOut: flushed, Files: rotations})
	buffers := s.x.o.Conf.MaxWriteBuffers
	if buffers <= 0 {
		buffers = 2
	}
	one := flush / time.Duration(rotations)
	return max(flush-max(fill, 0)-one*time.Duration(buffers-1), 0)
}

func (s *rocksDB) waitForLevel0(written int64) time.Duration {
	debt := s.db.Debt()
	if debt.L0Files < slowdownFiles {
		return 0
	}
	rate := delayedWriteRate * math.Pow(delayStep, float64(min(debt.L0Files, stopFiles)-slowdownFiles))
	wait := time.Duration(float64(written) / rate * float64(time.Second))
	if debt.L0Files < stopFiles {
		return wait
	}
	meter := s.x.o.Meter
	m := meter.Begin(device.StepBackground)
	return wait + meter.End(device.StepBackground, m, device.Work{BytesIn: debt.L0Bytes, BytesOut: debt.L0Bytes})
}
