package store

import (
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/device"
)

// begin and end time one operation where times are real.
func (s *hdfsStore) begin() device.Mark {
	if !s.opt.Live {
		return 0
	}
	return s.opt.Meter().Begin(device.StepHeap)
}

func (s *hdfsStore) end(m device.Mark) time.Duration {
	if !s.opt.Live {
		return 0
	}
	return s.opt.Meter().End(device.StepHeap, m, device.Work{Ops: 1})
}

// chargeWork turns what was counted since the last time into time.
func (s *hdfsStore) chargeWork() {
	gets, puts, steps := s.gets, s.puts, s.steps
	s.gets, s.puts, s.steps = 0, 0, 0
	f := &s.figures
	if puts > 0 {
		f.Put += s.collect()
	}
	if s.opt.Live {
		return
	}
	f.Get += s.charge(device.StepHeap, device.Work{Ops: gets})
	f.Put += s.charge(device.StepHeap, device.Work{Ops: puts})
	f.Scan += s.charge(device.StepHeap, device.Work{Ops: (steps + lightSteps - 1) / lightSteps})
}

// collect charges this store's share of garbage collection, once a batch: a
// collector looks at all that is alive, however little of it has changed.
func (s *hdfsStore) collect() time.Duration {
	if s.collected {
		return 0
	}
	s.collected = true
	live := s.cache.bytes() + s.work.ownBytes()
	if s.faults != nil {
		live += s.faults.LeakBytes
	}
	return s.charge(device.StepGC, device.Work{BytesIn: live})
}

func (s *hdfsStore) charge(step device.Step, w device.Work) time.Duration {
	if w == (device.Work{}) {
		return 0
	}
	meter := s.opt.Meter()
	return meter.End(step, meter.Begin(step), w)
}

// report fills in the figures of the batch. All keys of the version are there
// even at 0.
func (s *hdfsStore) report(m *heapMap, forced bool) {
	f := &s.figures
	f.Rows, f.MemoryBytes = m.rows, s.cache.bytes()
	f.Custom.Clear()
	f.Custom[event.StateOnCurrentVersionSizeBytes] = float64(m.stateBytes())
	f.Custom[event.LoadedMapCacheHitCount] = float64(s.hits)
	f.Custom[event.LoadedMapCacheMissCount] = float64(s.misses)
	if s.since(event.HDFSNumSnapshotsAutoRepaired) {
		f.Custom[event.HDFSNumSnapshotsAutoRepaired] = float64(s.repaired)
		f.Custom[event.HDFSForceSnapshotCount] = 0
	}
	if forced {
		f.Custom[event.HDFSForceSnapshotCount] = 1
	}
	s.repaired = 0
}

// since tells whether the Spark version played has a metric.
func (s *hdfsStore) since(id event.MetricID) bool {
	return !s.opt.Version.Less(event.Lookup(id).Since)
}

// Figures implements Store. It is valid until the next call.
func (s *hdfsStore) Figures() *Figures {
	if s.work != nil {
		s.chargeWork()
	}
	return &s.figures
}
