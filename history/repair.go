package history

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/history/engine"
)

// Repair makes a new database out of what can be read of a broken one, and moves
// the broken one aside, named after the time. The report says what was lost. A
// history that is whole is left as it is. No daemon may have it open.
func Repair(o Options, nowMs int64) (Report, error) {
	o = o.withDefaults()
	p := place{o.FS, o.Dir}
	r, err := p.repair(o, nowMs)
	if err != nil {
		return r, fmt.Errorf("repair history %s: %w", o.Dir, err)
	}
	return r, nil
}

func (p place) repair(o Options, nowMs int64) (Report, error) {
	if _, err := p.fs.Stat(p.dir); err != nil {
		return Report{}, err
	}
	lock, err := p.acquire()
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = lock.Close() }()
	if err := p.tidy(); err != nil {
		return Report{}, err
	}
	if found, err := p.exists(dataName); err != nil || !found {
		return Report{}, errors.Join(err, fmt.Errorf("no history here: %w", iofs.ErrNotExist))
	}
	r, err := Check(o)
	if err != nil || r.OK() {
		return r, err
	}
	return p.salvage(o, Report{Faults: r.Faults, MoreFaults: r.MoreFaults}, nowMs)
}

// salvage fills a new database and puts it in place.
func (p place) salvage(o Options, r Report, nowMs int64) (Report, error) {
	if version, err := p.versionInside(); err == nil && version > uint64(engine.Format) {
		return r, fmt.Errorf("%w: storage format %d", ErrNewer, version)
	}
	b, err := p.build(o)
	if err != nil {
		return r, err
	}
	s := salvager{o: o, fs: p.fs, dir: p.data(), to: b, r: &r, named: map[uint32]bool{}}
	if err := s.all(); err != nil {
		b.abandon()
		return r, err
	}
	if err := b.finish(); err != nil {
		return r, err
	}
	aside := brokenName + time.UnixMilli(nowMs).UTC().Format("20060102T150405.000Z")
	if err := p.replace(aside); err != nil {
		return r, err
	}
	r.Aside = p.path(aside)
	if b.version != o.format {
		r.Format = b.version
		return r, nil // counted when it is converted
	}
	return r, p.count(o, &r)
}

// count fills the report with what the new database holds.
func (p place) count(o Options, r *Report) error {
	o.ReadOnly = true
	now := Report{}
	if err := check(p, o, &now); err != nil {
		return err
	}
	now.Aside, now.MoreFaults = r.Aside, now.MoreFaults+r.MoreFaults
	now.Faults = append(r.Faults, now.Faults...)
	*r = now
	return nil
}

func (p place) versionInside() (uint64, error) {
	desc, err := pebble.Peek(p.data(), p.fs)
	if err != nil {
		return 0, err
	}
	return uint64(desc.FormatMajorVersion), nil
}
