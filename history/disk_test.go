package history

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// within fails the test where a call does not come back: a history on a broken
// disk must answer, not hang.
func within(t *testing.T, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		buf := make([]byte, 1<<20)
		t.Fatalf("hangs:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// badDisk lets so many writing operations pass and fails those after it, until
// it is repaired. Pebble writes from several goroutines.
type badDisk struct {
	left   atomic.Int64
	healed atomic.Bool
	err    error
	only   func(op errorfs.Op) bool // nil: every writing operation
}

func (d *badDisk) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || d.healed.Load() || d.only != nil && !d.only(op) {
		return nil
	}
	if d.left.Add(-1) < 0 {
		return d.err
	}
	return nil
}

func (*badDisk) String() string { return "bad disk" }

func failingFrom(n int, err error) *badDisk {
	d := &badDisk{err: err}
	d.left.Store(int64(n))
	return d
}

// diary writes a history and knows what must be in it.
type diary struct {
	t     *testing.T
	s     *Store
	acked atomic.Uint64 // newest step that was acknowledged
	tried atomic.Uint64 // newest step that was handed over
	sized int           // bytes of filling in every record
	noise bool          // the filling cannot be compressed
}

// goOn makes the diary continue behind a step that is known to be there.
func (d *diary) goOn(newest uint64) {
	d.acked.Store(newest)
	d.tried.Store(newest)
}

// group returns the steps to be committed next: alone, or three at once from a
// multiple of five on, so that no number tells less than all of a group.
func (d *diary) group() (steps []*Step) {
	next := d.acked.Load() + 1
	steps = append(steps, d.stepOf(next))
	if next%5 == 0 {
		steps = append(steps, d.stepOf(next+1), d.stepOf(next+2))
	}
	return steps
}

func (d *diary) filling(n uint64) []byte {
	if !d.noise {
		return bytes.Repeat([]byte{'x'}, d.sized)
	}
	b := make([]byte, d.sized)
	noise := rand.New(rand.NewPCG(n, 0))
	for i := range b {
		b[i] = byte(noise.Uint32())
	}
	return b
}

func (d *diary) commit() error {
	steps := d.group()
	newest := steps[len(steps)-1].Seq
	d.tried.Store(newest)
	if err := d.s.Commit(steps); err != nil {
		return err
	}
	d.acked.Store(newest)
	return nil
}

// stepOf is step n as the diary writes it: an offset, a state and records that
// all name it.
func (d *diary) stepOf(n uint64) *Step {
	r := batchOf("a", int(n))
	r.Body = fmt.Appendf(r.Body, " %s", d.filling(n))
	late := batchOf("b", -int(n)*100)
	return &Step{
		Seq: n, Records: []Record{r, late},
		Offsets: []Offset{{"events", 0, int64(n)}},
		States:  []State{{"counter", "all", n, fmt.Append(nil, n)}},
	}
}

// keep goes on until an error or so many steps.
func (d *diary) keep(steps int) error {
	for n := range steps {
		if err := d.commit(); err != nil {
			return err
		}
		if n%7 == 3 {
			if err := d.s.PutHours("name of a", "a", "commit_sync", []Hour{{t0 / hourMs * hourMs, fmt.Append(nil, n)}}); err != nil {
				return err
			}
		}
		if n%16 == 9 {
			if err := d.s.Trim(d.acked.Load() - 3); err != nil {
				return err
			}
		}
		if n%32 == 20 {
			if err := d.s.Retain(t0); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares the history with what was acknowledged: all of that is there,
// the steps that were under way are there together or not at all, and nothing of
// any other is.
func (d *diary) check() {
	d.t.Helper()
	newest := d.s.NextSeq() - 1
	if newest < d.acked.Load() || newest > d.tried.Load() || newest > 1 && newest%5 < 2 {
		d.t.Fatalf("newest step is %d, acknowledged were %d of %d", newest, d.acked.Load(), d.tried.Load())
	}
	if newest == 0 {
		return
	}
	offsets, err := d.s.Offsets()
	if err != nil || len(offsets) != 1 || offsets[0].Next != int64(newest) {
		d.t.Errorf("offsets %v, newest step is %d: %v", offsets, newest, err)
	}
	if err := d.s.States("counter", func(v State) error {
		if v.Seq != newest || string(v.Body) != fmt.Sprint(newest) {
			d.t.Errorf("state of step %d says %s, newest step is %d", v.Seq, v.Body, newest)
		}
		return nil
	}); err != nil {
		d.t.Error(err)
	}
	d.checkRecords(newest)
}

func (d *diary) checkRecords(newest uint64) {
	d.t.Helper()
	got := readAll(d.t, d.s, "a")
	if len(got) != int(newest) {
		d.t.Fatalf("%d records, newest step is %d", len(got), newest)
	}
	for i, body := range got {
		if want := string(d.stepOf(uint64(i + 1)).Records[0].Body); body != want {
			d.t.Fatalf("record %d is %.40q", i, body)
		}
	}
	last := uint64(0)
	if err := d.s.Replay(0, func(seq uint64, r Record) error {
		if last != 0 && seq != last && seq != last+1 {
			d.t.Errorf("step %d is replayed after step %d", seq, last)
		}
		last = seq
		return nil
	}); err != nil || last != newest {
		d.t.Errorf("replay ends with step %d, newest is %d: %v", last, newest, err)
	}
}

// reopen waits for what the failed engine still has with the disk.
func reopen(t testing.TB, s *Store) {
	t.Helper()
	for range 1_000_000 {
		err := s.Reopen()
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "still with the disk") {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	t.Fatal("writes stay with the disk")
}

func TestADiskThatFailsGivesAnErrorAndTheHistoryGoesOnAfterIt(t *testing.T) {
	step := 5
	if testing.Short() || raceEnabled {
		step = 61
	}
	failed := 0
	for at := 0; at < 700; at += step {
		within(t, func() {
			if failAndGoOn(t, failingFrom(at, syscall.EIO)) {
				failed++
			}
		})
	}
	if failed < 5 {
		t.Errorf("only %d runs failed", failed)
	}
	t.Logf("%d runs failed", failed)
}

// failAndGoOn keeps a diary on a bad disk, repairs the disk when it has failed,
// and goes on. It returns whether it failed.
func failAndGoOn(t *testing.T, disk *badDisk) bool {
	t.Helper()
	o := Options{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), disk), memtableBytes: 128 << 10}
	d := &diary{t: t, sized: 2000}
	s, err := Open(o)
	if err != nil {
		if !errors.Is(err, disk.err) || errors.Is(err, ErrDamaged) {
			t.Errorf("opening: %v", err)
		}
		disk.healed.Store(true)
		if s, err = Open(o); err != nil {
			t.Fatalf("opening after a failed opening: %v", err)
		}
	}
	d.s = s
	err = d.keep(300)
	if err != nil {
		goOnAfter(t, d, disk, err)
	}
	disk.healed.Store(true)
	if err := s.Close(); err != nil && !errors.Is(err, disk.err) { // a flush can have failed last of all
		t.Errorf("closing: %v", err)
	}
	if d.s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	d.check()
	d.close()
	return disk.left.Load() < 0
}

// goOnAfter expects that nothing works until the disk is repaired, and all after.
func goOnAfter(t *testing.T, d *diary, disk *badDisk, err error) {
	t.Helper()
	if !errors.Is(err, disk.err) || !errors.Is(err, ErrFailed) {
		t.Errorf("%v", err)
	}
	if d.s.Failed() == nil || d.s.Commit([]*Step{d.stepOf(d.s.NextSeq())}) == nil {
		t.Error("goes on as if nothing had happened")
	}
	disk.healed.Store(true)
	reopen(t, d.s)
	d.check()
	d.goOn(d.s.NextSeq() - 1)
	if err := d.keep(20); err != nil {
		t.Fatal(err)
	}
}

func TestEveryKindOfWriteThatFailsIsAnError(t *testing.T) {
	ending := func(suffix string, kinds ...errorfs.OpKind) func(errorfs.Op) bool {
		return func(op errorfs.Op) bool {
			return strings.Contains(op.Path, suffix) && slices.Contains(kinds, op.Kind)
		}
	}
	writes := []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}
	syncs := []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	creates := []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}
	for _, c := range []struct {
		name string
		err  error
		only func(errorfs.Op) bool
	}{
		{"the log is full", syscall.ENOSPC, ending(".log", writes...)},
		{"the log cannot be synced", syscall.EIO, ending(".log", syncs...)},
		{"no new log can be made", syscall.ENOSPC, ending(".log", creates...)},
		{"no table can be written", syscall.ENOSPC, ending(".sst", writes...)},
		{"no table can be synced", syscall.EIO, ending(".sst", syncs...)},
		{"no table can be made", syscall.EDQUOT, ending(".sst", creates...)},
		{"the manifest is full", syscall.ENOSPC, ending("MANIFEST", writes...)},
		{"the manifest cannot be synced", syscall.EIO, ending("MANIFEST", syncs...)},
		{"directories cannot be synced", syscall.EIO, ending("history", errorfs.OpFileSync)},
		{"the disk has become read-only", syscall.EROFS, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			failed := 0
			for after := range 6 {
				disk := failingFrom(after, c.err)
				disk.only = c.only
				within(t, func() { failAndGoOn(t, disk) })
				if disk.left.Load() < 0 {
					failed++
				}
			}
			if failed < 2 {
				t.Errorf("%d of 6 runs failed", failed)
			}
		})
	}
}
