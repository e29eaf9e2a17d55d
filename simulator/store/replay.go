package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
)

// errMissing is returned where the checkpoint does not hold a version.
var errMissing = errors.New("version is not in the checkpoint")

// plan is the files that make up a version: a snapshot (version 0: none, the
// empty state) and the changelogs after it.
type plan struct {
	snapshot checkpoint.StateFile
	logs     []checkpoint.StateFile
	lineage  []versionID
}

// logSize is what replaying one changelog costs.
type logSize struct{ version, records, bytes int64 }

// ownVersion is the newest version that this instance has written a changelog of.
type ownVersion struct {
	version     int64
	sum         uint32 // of the file
	keys, inner int64
}

// plan finds the newest snapshot that is not after version, and before another
// one unless that is negative, and the changelogs from there.
func (s *rocksDB) plan(found []checkpoint.StateFile, version, before int64) (plan, error) {
	if version == 0 && before < 0 {
		return plan{}, nil
	}
	if s.x.o.Conf.CheckpointFormat == 2 {
		return s.planLineage(found, version, before)
	}
	var p plan
	for _, f := range found {
		if f.Kind == checkpoint.KindSnapshot && f.UniqueID == "" && f.Version <= version && (before < 0 || f.Version < before) {
			p.snapshot = f
		}
	}
	if before == 0 {
		return p, fmt.Errorf("%w: no older snapshot of version %d is left", ErrDamaged, version)
	}
	next := p.snapshot.Version + 1
	for _, f := range found {
		if f.Kind == checkpoint.KindChangelog && f.UniqueID == "" && f.Version == next && next <= version {
			p.logs = append(p.logs, f)
			next++
		}
	}
	if next <= version {
		return p, s.missing(next, before)
	}
	return p, nil
}

// missing says that a version lacks a file: where a repair was under way, the
// damage is the cause.
func (s *rocksDB) missing(version, before int64) error {
	if before >= 0 {
		return fmt.Errorf("%w: no older snapshot leads to version %d", errors.Join(ErrDamaged, errMissing), version)
	}
	return fmt.Errorf("%s: %w: neither %d.zip nor %d.changelog", s.remote.Path(), errMissing, version, version)
}

// planLineage is plan for checkpoint format 2, where several files can have the
// number of a version and each changelog names those that came before it.
func (s *rocksDB) planLineage(found []checkpoint.StateFile, version, before int64) (plan, error) {
	at, ok := s.choose(found, version)
	if !ok {
		return plan{}, s.missing(version, before)
	}
	chain := []versionID{at}
	for {
		first := chain[0]
		f := checkpoint.StateFile{Version: first.Version, UniqueID: first.ID, Kind: checkpoint.KindSnapshot}
		if slices.Contains(found, f) && (before < 0 || first.Version < before) {
			return planOf(f, chain), nil
		}
		f.Kind = checkpoint.KindChangelog
		if !slices.Contains(found, f) {
			return plan{}, s.missing(first.Version, before)
		}
		older, err := s.parent(f)
		if err != nil {
			return plan{}, err
		}
		if older.Version == 0 {
			return planOf(checkpoint.StateFile{}, chain), nil
		}
		chain = slices.Insert(chain, 0, older)
	}
}

func planOf(snapshot checkpoint.StateFile, chain []versionID) plan {
	p := plan{snapshot: snapshot, lineage: chain}
	for _, v := range chain {
		if v.Version > snapshot.Version {
			p.logs = append(p.logs, checkpoint.StateFile{Version: v.Version, UniqueID: v.ID, Kind: checkpoint.KindChangelog})
		}
	}
	return p
}

// choose returns which of the files with a version's number is meant: the one
// that was named, or the only one.
func (s *rocksDB) choose(found []checkpoint.StateFile, version int64) (versionID, bool) {
	if w := s.x.wanted[s.id]; w.Version == version && w.ID != "" {
		return w, true
	}
	var at versionID
	for _, f := range found {
		if f.Version == version && f.UniqueID != "" {
			at = versionID{version, f.UniqueID}
		}
	}
	return at, at.ID != ""
}

// parent reads which version a changelog was written on top of; version 0 is the
// empty state.
func (s *rocksDB) parent(f checkpoint.StateFile) (versionID, error) {
	data, err := s.remote.Changelog(f.Version, f.UniqueID)
	if err != nil {
		return versionID{}, asDamaged(err)
	}
	r, err := openChangelog(data)
	if err != nil {
		return versionID{}, fmt.Errorf("%w: changelog %d: %w", ErrDamaged, f.Version, err)
	}
	if n := len(r.lineage); n > 0 && r.lineage[n-1].Version == f.Version-1 {
		return r.lineage[n-1], nil
	}
	if f.Version != 1 {
		return versionID{}, fmt.Errorf("%w: changelog %d does not name the version before", ErrDamaged, f.Version)
	}
	return versionID{}, nil
}

// replayAll applies changelogs to the database. The rows of a version that this
// instance has made are known: counting them anew takes a read for each record.
func (s *rocksDB) replayAll(p plan, version int64) error {
	s.recount = s.own.version != version || len(p.logs) == 0 || !s.isOwn(p.logs[len(p.logs)-1])
	for _, f := range p.logs {
		if err := s.replay(f); err != nil {
			return err
		}
	}
	if !s.recount {
		s.keys, s.inner = s.own.keys, s.own.inner
	}
	return nil
}

// isOwn tells whether a changelog is still the one that this instance wrote.
func (s *rocksDB) isOwn(f checkpoint.StateFile) bool {
	data, err := s.remote.Changelog(f.Version, f.UniqueID)
	return err == nil && f.Version == s.own.version && crc32.ChecksumIEEE(data) == s.own.sum
}

// replay applies a changelog to the database.
func (s *rocksDB) replay(f checkpoint.StateFile) error {
	m := s.x.o.Meter.Begin(device.StepReplay)
	data, err := s.remote.Changelog(f.Version, f.UniqueID)
	if err != nil {
		return asDamaged(err)
	}
	size := logSize{version: f.Version, bytes: int64(len(data))}
	r, err := openChangelog(data)
	for err == nil {
		var rec record
		var ok bool
		if rec, ok, err = r.next(); err != nil || !ok {
			break
		}
		if err := s.apply(rec); err != nil {
			return err
		}
		size.records++
	}
	if err != nil {
		return fmt.Errorf("%w: changelog %d: %w", ErrDamaged, f.Version, err)
	}
	s.logs = append(s.logs, size)
	s.loads.replayed++
	s.loads.replay += s.spend(device.StepReplay, m, device.Work{Ops: size.records, RemoteIn: size.bytes, Requests: 1})
	return nil
}

func (s *rocksDB) apply(rec record) error {
	family, err := s.familyID(rec.family)
	if err != nil {
		return err
	}
	phys, sign := s.physical(family, rec.key), int64(1)
	if rec.remove {
		sign = -1
	}
	if s.recount {
		if err := s.track(family, phys, sign); err != nil {
			return err
		}
	}
	if rec.remove {
		return s.unset(phys)
	}
	return s.set(phys, rec.value)
}

func (s *rocksDB) familyName(id byte) string {
	if id == 0 || int(id) > len(s.families) {
		return "default"
	}
	return s.families[id-1].Name
}

func (s *rocksDB) familyID(name string) (byte, error) {
	if name == "" || name == "default" {
		return 0, nil
	}
	for i, f := range s.families {
		if f.Name == name {
			return byte(i + 1), nil
		}
	}
	return 0, fmt.Errorf("store %s has no column family %q", s.id, name)
}
