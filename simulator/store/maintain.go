package store

import (
	"math"

	"github.com/stategauge/stategauge/simulator/device"
)

// noteLag notes that the checkpoint has a snapshot of a version.
func (s *rocksDB) noteLag(version int64) {
	s.lagFrom, s.lagSinceMs = version, s.x.nowMs
}

// lags tells whether the batch that begins is to upload a snapshot by itself,
// because the maintenance thread does not get round to it.
func (s *rocksDB) lags() bool {
	c := s.x.o.Conf
	if !s.m.hasRepair || !c.ForceSnapshotUploadOnLag || !c.Changelog || s.lagSinceMs == 0 {
		return false
	}
	behind := s.loaded - s.lagFrom
	return behind >= lagDeltas*int64(c.MinDeltasForSnapshot) &&
		s.x.nowMs-s.lagSinceMs >= lagIntervals*c.MaintenanceInterval.Milliseconds()
}

// maintain uploads the snapshot that waits and deletes old versions.
func (s *rocksDB) maintain() (Maintenance, error) {
	var did Maintenance
	if s.queued != nil {
		tables, zip, err := s.upload()
		if err != nil {
			return did, err
		}
		did.Uploaded++
		did.Took += tables + zip
	}
	err := s.deleteOld(&did)
	return did, err
}

// deleteOld deletes what no version needs that is to be kept: those of the
// newest minBatchesToRetain batches. From 4.0 on it waits until enough have
// gathered, so that it lists the folder less often.
func (s *rocksDB) deleteOld(did *Maintenance) error {
	if s.content == none {
		return nil
	}
	c := s.x.o.Conf
	retain := int64(c.MinBatchesToRetain)
	keep := s.content - retain + 1
	slack := int64(0)
	if s.m.lazyRetention {
		slack = int64(math.Round(c.ExtraSpaceRatio * float64(retain)))
	}
	if keep <= 0 || s.m.lazyRetention && s.oldest > 0 && keep-s.oldest <= slack {
		return nil
	}
	meter := s.x.o.Meter
	m := meter.Begin(device.StepList)
	if s.m.lazyRetention {
		if err := s.findOldest(); err != nil || s.oldest == 0 || keep-s.oldest <= slack {
			did.Took += meter.End(device.StepList, m, device.Work{Requests: 1, Files: slack + retain})
			return err
		}
	}
	deleted, err := s.remote.DeleteVersions(keep)
	if err != nil {
		return err
	}
	did.Deleted += deleted.Files + deleted.SSTs
	w := device.Work{Requests: 2 + int64(deleted.Files+deleted.SSTs), Files: int64(deleted.Listed)}
	did.Took += meter.End(device.StepList, m, w)
	if deleted.Files == 0 {
		return nil
	}
	return s.findOldest()
}

// findOldest looks up the oldest version in the checkpoint.
func (s *rocksDB) findOldest() error {
	found, err := s.remote.Files()
	if err != nil {
		return err
	}
	s.oldest = 0
	if len(found) > 0 {
		s.oldest = found[0].Version
	}
	return nil
}
