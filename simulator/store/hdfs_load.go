package store

import (
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
)

// Requests to the checkpoint store: a file is created and renamed, or opened.
const (
	writeRequests = 2
	readRequests  = 1
)

// rebuild makes the map of a version from the nearest older one at hand, in
// memory or as a snapshot file, and the deltas after it.
func (s *hdfsStore) rebuild(version int64) (*heapMap, error) {
	snapshots, _, err := s.opt.Dir.List()
	if err != nil {
		return nil, err
	}
	base, err := s.base(version, snapshots)
	if err != nil {
		return nil, err
	}
	m := copyOf(base, version, s.nextGen())
	for v := base.version + 1; v <= version; v++ {
		if err := s.apply(m, v); err != nil {
			return nil, err
		}
	}
	s.noteSnapshots(snapshots, version)
	return m, nil
}

// base walks back from a version as Spark does, asking for a snapshot file of
// each until there is one. With auto-repair a damaged one is passed over.
func (s *hdfsStore) base(version int64, snapshots []int64) (*heapMap, error) {
	asked := int64(0)
	defer func() { s.figures.Load += s.charge(device.StepDownload, device.Work{Requests: asked * readRequests}) }()
	at := len(snapshots) - 1
	passed := false
	for v := version; v > 0; v-- {
		if m := s.cache.get(v); m != nil {
			return m, nil
		}
		asked++
		for at >= 0 && snapshots[at] > v {
			at--
		}
		if at < 0 || snapshots[at] != v {
			continue
		}
		m, err := s.readSnapshot(v)
		if err == nil {
			s.countRepair(passed)
			return m, nil
		}
		if !errors.Is(err, checkpoint.ErrDamaged) {
			return nil, err
		}
		if !s.repairs() {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		passed = true
	}
	s.countRepair(passed)
	return newHeapMap(s.nextGen()), nil
}

func (s *hdfsStore) countRepair(passed bool) {
	if passed {
		s.repaired++
	}
}

// repairs tells whether a load that finds a damaged snapshot goes on with an
// older one.
func (s *hdfsStore) repairs() bool {
	return s.opt.Conf.AutoSnapshotRepair && s.since(event.HDFSNumSnapshotsAutoRepaired)
}

func (s *hdfsStore) readSnapshot(version int64) (*heapMap, error) {
	meter := s.opt.Meter()
	mark := meter.Begin(device.StepDownload)
	data, err := s.opt.Dir.SnapshotFile(version)
	s.figures.Load += meter.End(device.StepDownload, mark, device.Work{Requests: readRequests, RemoteIn: int64(len(data))})
	if err != nil {
		return nil, err
	}
	if s.faults != nil && s.faults.Damaged != nil && s.faults.Damaged(s.opt.ID, version) {
		data = data[:len(data)/2]
	}
	m := newHeapMap(s.nextGen())
	m.version = version
	if err := s.replay(m, data); err != nil {
		return nil, fmt.Errorf("read snapshot file %d.snapshot of %s: %w", version, s.opt.Dir.Path(), err)
	}
	return m, nil
}

// apply adds to m what the batch that made a version changed.
func (s *hdfsStore) apply(m *heapMap, version int64) error {
	meter := s.opt.Meter()
	mark := meter.Begin(device.StepDownload)
	data, err := s.opt.Dir.Delta(version)
	s.figures.Load += meter.End(device.StepDownload, mark, device.Work{Requests: readRequests, RemoteIn: int64(len(data))})
	if err != nil {
		return err
	}
	if err := s.replay(m, data); err != nil {
		return fmt.Errorf("read delta file %d.delta of %s: %w", version, s.opt.Dir.Path(), err)
	}
	return nil
}

func (s *hdfsStore) replay(m *heapMap, data []byte) error {
	meter := s.opt.Meter()
	mark := meter.Begin(device.StepHeap)
	n, err := readRecords(data, m.put, func(key []byte) { m.remove(key) })
	s.figures.Load += meter.End(device.StepHeap, mark, device.Work{Ops: n})
	return err
}

// noteSnapshots remembers the newest snapshot that is not after a version.
func (s *hdfsStore) noteSnapshots(snapshots []int64, version int64) {
	for _, v := range snapshots {
		if v <= version {
			s.newestSnapshot = max(s.newestSnapshot, v)
		}
	}
}
