package store

import (
	"slices"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/device"
)

// maintain is one round of the maintenance thread for this store: a snapshot of
// the newest version where more than minDeltasForSnapshot deltas have gathered
// and the map is still in memory, then the deletion of old versions.
func (s *hdfsStore) maintain() (Maintenance, error) {
	var done Maintenance
	meter := s.opt.Meter()
	mark := meter.Begin(device.StepList)
	snapshots, deltas, err := s.opt.Dir.List()
	done.Took = meter.End(device.StepList, mark, device.Work{Requests: 1, Files: int64(len(snapshots) + len(deltas))})
	if err != nil {
		return done, s.fault(err)
	}
	if len(deltas) == 0 {
		return done, nil
	}
	newest := deltas[len(deltas)-1]
	base := int64(0)
	if len(snapshots) > 0 {
		newest, base = max(newest, snapshots[len(snapshots)-1]), snapshots[len(snapshots)-1]
	}
	if m := s.cache.get(newest); m != nil && versionsAfter(deltas, base) > s.opt.Conf.MinDeltasForSnapshot {
		took, err := s.writeSnapshot(m, meter)
		done.Took += took
		if err != nil {
			return done, s.fault(err)
		}
		done.Uploaded++
	}
	return done, s.deleteOld(newest, meter, &done)
}

// versionsAfter counts versions after base; versions are sorted.
func versionsAfter(versions []int64, base int64) int {
	i, found := slices.BinarySearch(versions, base)
	if found {
		i++
	}
	return len(versions) - i
}

func (s *hdfsStore) deleteOld(newest int64, meter device.Meter, done *Maintenance) error {
	keepFrom := newest - int64(s.opt.Conf.MinBatchesToRetain)
	if keepFrom <= 0 {
		return nil
	}
	mark := meter.Begin(device.StepList)
	del, err := s.opt.Dir.DeleteVersions(keepFrom)
	done.Deleted += del.Files
	done.Took += meter.End(device.StepList, mark, device.Work{Requests: int64(1 + del.Files), Files: int64(del.Listed)})
	if err != nil {
		return s.fault(err)
	}
	return nil
}

// writeSnapshot writes a version's whole map.
func (s *hdfsStore) writeSnapshot(m *heapMap, meter device.Meter) (time.Duration, error) {
	mark := meter.Begin(device.StepUpload)
	data := make([]byte, 0, m.objects)
	m.tree.scan(nil, nil, func(r heapRow) bool {
		data = appendPut(data, r.key(), r.value())
		return true
	})
	n, err := s.opt.Dir.WriteSnapshotFile(m.version, appendEnd(data))
	took := meter.End(device.StepUpload, mark, device.Work{Requests: writeRequests, RemoteOut: n})
	if err != nil {
		return took, err
	}
	s.newestSnapshot, s.figures.LastUploaded = m.version, m.version
	s.snapshotMs = s.opt.Now()
	return took, nil
}

// The coordinator calls a store lagging when its newest snapshot is so many
// times minDeltasForSnapshot versions and so many maintenance intervals old.
const (
	lagDeltas    = 5
	lagIntervals = 10
)

// lags tells whether the coordinator would ask for a snapshot inside the commit.
func (s *hdfsStore) lags(version int64) bool {
	if !s.opt.Conf.ForceSnapshotUploadOnLag || !s.since(event.HDFSForceSnapshotCount) {
		return false
	}
	if s.snapshotMs == 0 {
		s.snapshotMs = s.opt.Now() // the time was not known when this instance began
	}
	age := s.opt.Now() - s.snapshotMs
	return version-s.newestSnapshot >= lagDeltas*int64(s.opt.Conf.MinDeltasForSnapshot) &&
		age >= lagIntervals*s.opt.Conf.MaintenanceInterval.Milliseconds()
}

// forceSnapshot writes a snapshot inside the commit where the last one lies too
// far behind.
func (s *hdfsStore) forceSnapshot(m *heapMap) (bool, error) {
	if !s.lags(m.version) {
		return false, nil
	}
	took, err := s.writeSnapshot(m, s.opt.Meter())
	s.figures.Commit += took
	return err == nil, err
}
