package app

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var instants = []instant{inFlush, inCompaction, inEdit, inRemoval, inSave, inExport}

// lifetime is how many events a daemon hears while the instant of its end does not come.
// Each start leaves a table to be compacted.
const lifetime = 15

// rarest is the instant that came least often so far, the first of several.
func rarest(came map[instant]int, of []instant) instant {
	return slices.MinFunc(of, func(a, b instant) int { return came[a] - came[b] })
}

// power is a disk whose power is cut at a chosen operation of a chosen instant.
type power struct {
	disk *instantsFS

	mu    sync.Mutex
	torn  *rand.Rand // what of unsynced data is left; of whichever goroutine the power fails in
	when  instant
	left  int          // operations of it before the cut
	acked atomic.Int64 // events that the sender has an answer for
	after vfs.FS       // the disk as the cut left it; nil before
	upTo  int64        // and how many events had been answered by then
}

// connect makes a disk whose power is cut at one of the first operations of an instant,
// of which within says how many may be waited for.
func connect(fs vfs.FS, random *rand.Rand, acked int64, when instant, within int) *power {
	p := &power{torn: rand.New(rand.NewPCG(random.Uint64(), 4)), when: when, left: 1 + random.IntN(within)}
	p.acked.Store(acked)
	p.disk = &instantsFS{FS: fs, at: p.pass}
	return p
}

func (p *power) pass(at instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != nil || at != p.when {
		return
	}
	if p.left--; p.left > 0 {
		return
	}
	p.upTo = p.acked.Load() // before the picture is taken: what was answered must be in it
	p.after = p.disk.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.torn.IntN(101), RNG: p.torn})
}

// gone reports whether the cut has come.
func (p *power) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after != nil
}

// cutAtRest ends the wait for an instant that did not come.
func (p *power) cutAtRest() {
	p.after, p.upTo = p.disk.FS.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{}), p.acked.Load()
}

// save lets the cut come while state is saved.
func (p *power) save(m *mortal) {
	p.disk.saving.Store(true)
	m.app.journal.save()
	p.disk.saving.Store(false)
}

// restless are events of queries whose uploads are slow for a while now and then, in
// order of time.
func restless(queries, batches int) []heard {
	var out []heard
	for i := range queries {
		s := newStream(i)
		s.stepMs, s.operators, s.partitions = 60_000, 2, 4
		for range batches {
			s.fileSyncMs = 6400 + s.batch%13*20
			if (s.batch+int64(i)*7)%60 >= 40 {
				s.fileSyncMs *= 3
			}
			out = append(out, heard{s.at().UnixMilli() + int64(i), bytes.Clone(s.next())})
		}
	}
	slices.SortStableFunc(out, func(a, b heard) int { return int(a.atMs - b.atMs) })
	return out
}

// say posts an event, which may be a repeat, and lets the rules judge it.
func (m *mortal) say(e heard) {
	m.t.Helper()
	m.now.Store(e.atMs)
	if code, got := post(m.t, m.app, e.line); code != http.StatusOK || got.Accepted+got.Duplicates != 1 {
		m.t.Fatalf("status %d, %+v", code, got)
	}
	m.app.judge.ask(m.app.judge.drain)
}

// export lets the cut come while the history is written out.
func (p *power) export(m *mortal) {
	if err := m.app.journal.store.Export(writerFunc(func() { p.pass(inExport) })); err != nil {
		m.t.Errorf("export: %v", err)
	}
}

type writerFunc func()

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

// TestAPowerCutWithinACompactionASaveOrAnExportShowsInNothing cuts the power of daemons
// within each of the things that they do with the disk: while a table is flushed or
// compacted, while the manifest learns of it and the old tables go, while state is saved
// and while the history is exported. What was not answered is sent again. In the end
// the last daemon says what one says that nothing ever happened to.
func TestAPowerCutWithinACompactionASaveOrAnExportShowsInNothing(t *testing.T) {
	queries, batches := 6, 110
	if raced || testing.Short() {
		queries, batches = 4, 50
	}
	events := restless(queries, batches)
	want := unharmed(t, events)
	var now atomic.Int64
	random := rand.New(rand.NewPCG(11, 3))
	cuts, lives := map[instant]int{}, map[instant]int{}
	next := func(fs vfs.FS, acked int64) *power {
		when, within := rarest(cuts, instants), 4
		if lives[when] > cuts[when] {
			within = 1 // a compaction comes once in several lives: its first operation has to do
		}
		lives[when]++
		return connect(fs, random, acked, when, within)
	}
	now.Store(events[0].atMs)
	p := next(vfs.NewCrashableMem(), 0)
	m := born(t, p.disk, &now, 2)
	for i, began := int64(0), int64(0); i < int64(len(events)); {
		m.say(events[i])
		i++
		p.acked.Store(i)
		if i%4 == 0 {
			p.save(m)
		}
		if p.when == inExport {
			p.export(m)
		}
		if !p.gone() && i-began < lifetime {
			continue
		}
		m.stop() // a cut may come now, too
		if p.gone() {
			cuts[p.when]++
		} else {
			p.cutAtRest()
		}
		i, began = p.upTo, p.upTo
		p = next(p.after, i)
		m = born(t, p.disk, &now, 1+random.IntN(3))
	}
	if d := difference(m.shows(), want); d != "" {
		t.Errorf("after %v:\n%s", cuts, d)
	}
	m.stop()
	for _, when := range instants {
		if cuts[when] == 0 {
			t.Errorf("no power cut came while %s", when)
		}
		t.Logf("%d power cuts while %s", cuts[when], when)
	}
}
