package history

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestAPowerCutLosesNoAcknowledgedStepAndLeavesNoHalfOne cuts the power at a
// random operation of the disk: what was not synced is there in part, at random.
// The history is opened on what is left, must hold a prefix of the steps, and is
// cut off again.
func TestAPowerCutLosesNoAcknowledgedStepAndLeavesNoHalfOne(t *testing.T) {
	seeds := 50
	if testing.Short() || raceEnabled {
		seeds = 15
	}
	const cuts = 2
	lost := 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 74))
		was := cut{fs: vfs.NewCrashableMem()}
		for range cuts {
			was = was.again(t, random)
			if was.acked < was.tried {
				lost++
			}
		}
		was.open(t, was.fs).close()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d power cuts, %d of them while a step was under way", cuts*seeds, lost)
}

// serial lets one operation at a time be looked at.
func serial(i errorfs.Injector) errorfs.Injector {
	var mu sync.Mutex
	return errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		return i.MaybeError(op)
	})
}

// cut is a disk as a power cut left it, and what had been acknowledged by then.
type cut struct {
	fs           *vfs.MemFS
	acked, tried uint64
}

// open opens what is left and checks it.
func (c cut) open(t *testing.T, fs vfs.FS) *diary {
	t.Helper()
	s, err := Open(Options{Dir: "data", FS: fs, memtableBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{t: t, s: s, sized: 1000}
	d.acked.Store(c.acked)
	d.tried.Store(c.tried)
	d.check()
	d.goOn(s.NextSeq() - 1)
	return d
}

func (d *diary) close() {
	d.t.Helper()
	if err := d.s.Close(); err != nil {
		d.t.Error(err)
	}
}

// again opens the history, goes on, and cuts the power at some operation of the
// disk, which may be one of the opening.
func (c cut) again(t *testing.T, random *rand.Rand) (next cut) {
	t.Helper()
	var d atomic.Pointer[diary]
	var mu sync.Mutex
	at := 1 + random.IntN(700)
	percent := random.IntN(101)
	torn := rand.New(rand.NewPCG(random.Uint64(), 75)) // of whichever goroutine the power fails in
	watch := errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if next.fs != nil || op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		if at--; at > 0 {
			return nil
		}
		next = cut{acked: c.acked, tried: c.tried}
		if d := d.Load(); d != nil {
			next.acked = d.acked.Load() // before the picture is taken,
		}
		next.fs = c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: torn})
		if d := d.Load(); d != nil {
			next.tried = d.tried.Load() // and after it
		}
		return nil
	})
	opened := c.open(t, errorfs.Wrap(c.fs, watch))
	d.Store(opened)
	for range 25 {
		if err := opened.keep(1 + random.IntN(12)); err != nil {
			t.Fatal(err)
		}
	}
	opened.close()
	mu.Lock()
	defer mu.Unlock()
	if next.fs == nil {
		next = cut{c.fs.CrashClone(vfs.CrashCloneCfg{}), opened.acked.Load(), opened.tried.Load()}
	}
	return next
}
