package exporter

import (
	"github.com/stategauge/stategauge/event"
)

// sticky finds figures that Spark repeats from batch to batch. With changelog
// checkpointing on, the upload figures stand until the next upload; Spark 4.0
// repeats the times of the last snapshot's flush, compaction and checkpoint too.
//
// A repeat is told by nothing changing. What stood there when an operator or a
// run is first seen may be an upload of long ago, or a download, so it is counted
// only where that cannot be: with changelog checkpointing known to be off, or in
// a query's very first batch. That never counts anything twice; it may leave out
// one upload per run.
type sticky struct {
	uploadSeen, slowSeen bool
	upload, slow         [maxSticky]float64
	rebase               bool // the next upload figures only set what later ones are compared with
	compared, changed    int  // batches of this run; changed in both zip and copied bytes
	told                 tri  // by changelog commit times of this run
}

const maxSticky = 8

// startRun forgets what depends on a run's settings.
func (s *sticky) startRun() {
	s.rebase, s.compared, s.changed, s.told = true, 0, 0, unknown
}

// Off is inferred when at least nine tenths of so many batches changed.
const minCompared = 10

// mode returns whether changelog checkpointing is on: as the settings say, or as
// the figures tell.
func (s *sticky) mode(v *event.Vector, conf tri) tri {
	if v[event.RocksDBChangeLogWriterCommitLatency] > 0 {
		s.told = on
	}
	switch {
	case conf != unknown:
		return conf
	case s.told != unknown:
		return s.told
	case s.compared >= minCompared && s.changed*10 >= s.compared*9:
		return off
	default:
		return unknown
	}
}

// fixUpload leaves in v the upload figures that this batch brought.
func (s *sticky) fixUpload(v *event.Vector, p *plan, mode tri, batch int64) {
	was, seen := s.upload, s.uploadSeen
	if !take(&s.upload, v, p.sticky) {
		return
	}
	s.uploadSeen = true
	differs := s.upload != was
	if seen && !s.rebase {
		s.compare(was, p)
	}
	// Stores that fetched a snapshot show what they downloaded.
	fresh := seen && !s.rebase && differs && !(v[event.RocksDBNumLoadedFromDfs] > 0)
	s.rebase = false
	if mode == off || fresh || !seen && batch == 0 {
		return
	}
	for _, id := range p.sticky {
		if v.Has(id) {
			v[id] = 0
		}
	}
}

// compare notes whether the batch changed the figures that an upload always changes.
func (s *sticky) compare(was [maxSticky]float64, p *plan) {
	s.compared++
	for i, id := range p.sticky {
		if (id == event.RocksDBBytesCopied || id == event.RocksDBZipFileBytesUncompressed) && was[i] == s.upload[i] {
			return
		}
	}
	s.changed++
}

// fixSlow leaves in v the flush, compaction and checkpoint times that this batch
// brought. Parts of the commit that add up to more than the whole prove that
// some are old.
func (s *sticky) fixSlow(v *event.Vector, p *plan, mode tri, batch int64) {
	was, seen := s.slow, s.slowSeen
	if mode == off || !take(&s.slow, v, p.slow) {
		return
	}
	s.slowSeen = true
	slow := total(v, p.slow)
	proven := slow > 0 && slow+total(v, []event.MetricID{event.RocksDBCommitFileSyncLatency}) > v[event.CommitTime]
	spark40 := v.Has(event.RocksDBNumInternalColFamiliesKeys) && !v.Has(event.RocksDBLoadLatency)
	if !proven && !spark40 {
		return
	}
	old := 0.0
	switch {
	case seen && s.slow == was:
	case !seen && proven && batch != 0:
		old = absent // of an earlier batch, and what this one took is not told
	default:
		return
	}
	for _, id := range p.slow {
		if v.Has(id) {
			v[id] = old
		}
	}
}

// total adds up the rows that are there.
func total(v *event.Vector, rows []event.MetricID) float64 {
	sum := 0.0
	for _, id := range rows {
		if v.Has(id) {
			sum += v[id]
		}
	}
	return sum
}

// take copies the rows into vals, absent ones as -1 so that arrays compare. It
// returns false, and leaves vals alone, if none is there.
func take(vals *[maxSticky]float64, v *event.Vector, rows []event.MetricID) bool {
	any := false
	for _, id := range rows {
		any = any || v.Has(id)
	}
	if !any {
		return false
	}
	for i, id := range rows {
		vals[i] = -1
		if v.Has(id) {
			vals[i] = v[id]
		}
	}
	return true
}
