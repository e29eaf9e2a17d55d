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
// a query's very first batch. That may leave out one upload per run.
//
// The stores upload one after another, and Spark sends the sum over them: on its
// way through the stores the sum changes several times. It is counted once, when
// the next snapshot is cut: by then all have uploaded.
type sticky struct {
	uploadSeen, slowSeen bool
	upload, slow         [maxSticky]float64
	pending              bool // the upload figures have changed and were not counted since
	uploaded             bool // every store had uploaded a snapshot, as far as was told
	rebase               bool // the next upload figures only set what later ones are compared with
	compared, changed    int  // batches of this run; changed in both zip and copied bytes
	told                 tri  // by changelog commit times of this run
}

const maxSticky = 8

// startRun forgets what depends on a run's settings.
func (s *sticky) startRun() {
	s.rebase, s.compared, s.changed, s.told = true, 0, 0, unknown
}

// noteSnapshots takes the oldest snapshot that stores report to have uploaded. A
// store that is new to its executor has uploaded none, and what it shows as copied
// is what it fetched.
func (s *sticky) noteSnapshots(oldest int64) {
	if s.uploaded && oldest == -1 {
		s.rebase = true
	}
	s.uploaded = oldest >= 0
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

// fixUpload leaves in v the upload figures that have become complete with this
// batch. It comes after fixSlow, which tells a snapshot that this batch cut from a
// repeat.
func (s *sticky) fixUpload(v *event.Vector, p *plan, mode tri, batch int64) {
	was, seen := s.upload, s.uploadSeen
	if !take(&s.upload, v, p.sticky) {
		return
	}
	s.uploadSeen = true
	// Stores that fetched a snapshot show what they downloaded.
	rebase := s.rebase || v[event.RocksDBNumLoadedFromDfs] > 0
	s.rebase = false
	if seen && !rebase {
		s.compare(was, p)
	}
	s.pending = !rebase && (s.pending || seen && s.upload != was)
	complete := !has(v, p.slow) || total(v, p.slow) > 0
	if mode == off || !seen && batch == 0 || s.pending && complete {
		s.pending = false
		return
	}
	zero(v, p.sticky)
}

// fixPast takes the figures out of a batch that was overtaken which may repeat an
// earlier one: nothing tells, since what stood before it is not known any more.
func fixPast(v *event.Vector, p *plan, mode tri) {
	if mode == off {
		return
	}
	zero(v, p.sticky)
	if repeats40(v) {
		zero(v, p.slow)
	}
}

func zero(v *event.Vector, rows []event.MetricID) {
	for _, id := range rows {
		if v.Has(id) {
			v[id] = 0
		}
	}
}

// repeats40 reports whether the keys are those of Spark 4.0, which repeats times.
func repeats40(v *event.Vector) bool {
	return v.Has(event.RocksDBNumInternalColFamiliesKeys) && !v.Has(event.RocksDBLoadLatency)
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
	if !proven && !repeats40(v) {
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
	if !has(v, rows) {
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

// has reports whether any of the rows is there.
func has(v *event.Vector, rows []event.MetricID) bool {
	for _, id := range rows {
		if v.Has(id) {
			return true
		}
	}
	return false
}
