package simulator

import (
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/stategauge/stategauge/event"
)

// TestAPowerCutWithinALocalCheckpointLosesNoRow cuts the power while a store writes the
// checkpoint of its database from which it uploads, at each of its operations in turn.
// The query goes on where it was, with all rows.
func TestAPowerCutWithinALocalCheckpointLosesNoRow(t *testing.T) {
	text := replaced(replaced(stateful, "VERSION", "4.0"), "CHANGELOG", "false")
	sc := parse(t, replaced(text, "FAULT", "store-slow"))
	var fs vfs.FS = vfs.NewCrashableMem()
	rows, last, cuts, step := 0.0, int64(-1), 0, 3
	if raced {
		step = 13
	}
	for at := 1; at <= 40; at += step {
		p := &localCut{disk: fs.(*vfs.MemFS), left: at}
		s, err := New(sc, Options{Seed: 8, FS: errorfs.Wrap(p.disk, errorfs.InjectorFunc(p.pass)), Dir: "/kept", Live: true, LocalDir: "/local", Batches: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; p.gone() == nil; n++ {
			if n == 6 {
				p.begin()
			}
			if n == 100 {
				t.Fatalf("%d batches made no checkpoint of %d operations", n, at)
			}
			batches(t, playUntil(t, s, p), func(_ *played, b *event.Batch) {
				v := &b.Operators[0].Values
				rows += v[event.NumRowsUpdated]
				if b.ID != last+1 || v[event.NumRowsTotal] != rows {
					t.Fatalf("after %d cuts: batch %d after %d has %v rows, %v came", cuts, b.ID, last, v[event.NumRowsTotal], rows)
				}
				last = b.ID
			})
		}
		fs, cuts = p.gone(), cuts+1
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := (40-1)/step + 1; cuts != want || last < int64(3*want) {
		t.Errorf("%d batches and %d cuts, want %d", last+1, cuts, want)
	}
	t.Logf("%d cuts in %d batches, %v rows", cuts, last+1, rows)
}

// localCut cuts the power at an operation of a local checkpoint.
type localCut struct {
	disk  *vfs.MemFS
	mu    sync.Mutex
	armed bool
	left  int
	fs    vfs.FS // as the cut left it
}

// begin lets the operations count from now on.
func (p *localCut) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = true
}

func (p *localCut) pass(op errorfs.Op) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || p.fs != nil || op.Kind.ReadOrWrite() == errorfs.OpIsRead || !strings.Contains(op.Path, "/snapshot") {
		return nil
	}
	if p.left--; p.left == 0 {
		p.fs = p.disk.CrashClone(vfs.CrashCloneCfg{})
	}
	return nil
}

func (p *localCut) gone() vfs.FS {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fs
}

// playUntil takes the next message, and forgets it where the power was cut before it.
func playUntil(t *testing.T, s *Simulation, p *localCut) []played {
	t.Helper()
	got := play(t, s, 1)
	if p.gone() != nil {
		return nil
	}
	return got
}
